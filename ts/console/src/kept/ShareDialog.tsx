/** With whom a notebook is shared, and the link by which others read it. */
import { createSignal, For, onMount, Show, type JSX } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { copy } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import { addressOfLink } from './open.js';

export function ShareDialog(props: {
  id: string;
  title: string;
  onClose: () => void;
  onShared?: () => void;
}): JSX.Element {
  const [shares, setShares] = createSignal<readonly notebooks.Sharing[]>([]);
  const [hasLink, setLink] = createSignal(false);
  const [link, setAddress] = createSignal('');
  const [name, setName] = createSignal('');
  const [isRead, setRead] = createSignal(false);
  const take = ({ shares: given = [], link: made }: notebooks.Listed): void => {
    setShares(given);
    setLink(typeof made === 'string');
    setAddress(typeof made === 'string' ? addressOfLink(made) : '');
  };
  const [failure, setFailure] = createSignal('');
  onMount(() => {
    const read = async (): Promise<void> => {
      take(await notebooks.open(props.id));
      setRead(true);
    };
    read().catch((cause: unknown) => setFailure(messageOf(cause)));
  });
  const add = (): void => {
    const wanted = name().trim();
    if (wanted !== '' && !shares().some((one) => one.name === wanted)) {
      setShares([...shares(), { name: wanted, access: 'read' }]);
    }
    setName('');
  };
  const submit = async (): Promise<string> => {
    add();
    try {
      take(await notebooks.share(props.id, shares(), hasLink()));
      props.onShared?.();
      if (link() !== '') {
        await copy(link(), 'Link');
      }
      return '';
    } catch (cause) {
      return messageOf(cause);
    }
  };
  return (
    <FormDialog
      title="Share"
      name={props.title}
      keep="Leave it"
      act={hasLink() ? 'Share and copy the link' : 'Share'}
      isComplete={isRead()}
      submit={submit}
      onClose={() => props.onClose()}
    >
      <Show when={failure()}>
        <p class="error" role="alert">
          <Icon name="alert" /> <bdi>{failure()}</bdi>
        </p>
      </Show>
      <p>What its statements may read is decided by the rights of who runs them.</p>
      <ul class="share-list">
        <For each={shares()} fallback={<li class="hint">Shared with no user yet</li>}>
          {(one) => (
            <li>
              <bdi>{one.name}</bdi>
              <span class="spring" />
              <select
                class="select"
                aria-label={`What ${one.name} may do`}
                onChange={({ currentTarget: { value } }) =>
                  setShares(
                    shares().map((other) =>
                      other === one
                        ? { ...one, access: value === 'write' ? 'write' : 'read' }
                        : other,
                    ),
                  )
                }
              >
                <option value="read" selected={one.access === 'read'}>
                  may read
                </option>
                <option value="write" selected={one.access === 'write'}>
                  may write
                </option>
              </select>
              <button
                type="button"
                class="icon-button"
                aria-label={`No longer with ${one.name}`}
                onClick={() => setShares(shares().filter((other) => other !== one))}
              >
                <Icon name="close" />
              </button>
            </li>
          )}
        </For>
      </ul>
      <div class="share-add">
        <label class="confirm-typed">
          <span>User, service account or group</span>
          <input
            class="input"
            value={name()}
            onInput={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && name().trim() !== '') {
                event.preventDefault();
                add();
              }
            }}
          />
        </label>
        <button type="button" class="button" disabled={name().trim() === ''} onClick={add}>
          Add
        </button>
      </div>
      <label class="merge-choice">
        <input
          type="checkbox"
          checked={hasLink()}
          onChange={(event) => setLink(event.currentTarget.checked)}
        />
        Those who have the link, and may log in, may read
      </label>
      <Show when={link() !== '' && hasLink()}>
        <p class="share-link data">
          <bdi>{link()}</bdi>
        </p>
      </Show>
    </FormDialog>
  );
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
