/** Dialog for sharing a notebook with other users, or through a link. */
import { createSignal, For, onMount, Show, type JSX } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { copy } from '../ui/clipboard.js';
import { addressOfLink } from './open.js';
import { Failure } from '../ui/Failure.js';
import { messageOf } from '../model/message.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

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
  const take = ({ shares: given = [], link: linkId }: notebooks.Listed): void => {
    setShares(given);
    setLink(typeof linkId === 'string');
    setAddress(typeof linkId === 'string' ? addressOfLink(linkId) : '');
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
    const user = name().trim();
    if (user !== '' && !shares().some((one) => one.name === user)) {
      setShares([...shares(), { name: user, access: 'read' }]);
    }
    setName('');
  };
  const submit = async (): Promise<string> => {
    add();
    take(await notebooks.share(props.id, shares(), hasLink()));
    props.onShared?.();
    if (link() !== '') {
      await copy(link(), texts.share.link);
    }
    return '';
  };
  return (
    <FormDialog
      title={texts.common.share}
      name={props.title}
      cancel={texts.common.cancel}
      act={hasLink() ? texts.share.shareAndCopyLink : texts.common.share}
      isComplete={isRead()}
      submit={submit}
      onClose={() => props.onClose()}
    >
      <Failure text={failure()} />
      <p>{texts.share.hint}</p>
      {/*
       * The inputs are shown after the server has responded, because its response would overwrite
       * earlier input.
       */}
      <Show when={isRead()}>
        <ShareList shares={shares()} onChange={setShares} />
        <AddShare name={name()} onInput={setName} onAdd={add} />
        <LinkChoice isOn={hasLink()} address={link()} onChange={setLink} />
      </Show>
    </FormDialog>
  );
}

function LinkChoice(props: {
  isOn: boolean;
  address: string;
  onChange: (isOn: boolean) => void;
}): JSX.Element {
  return (
    <>
      <label class="merge-choice">
        <input
          type="checkbox"
          checked={props.isOn}
          onChange={(event) => props.onChange(event.currentTarget.checked)}
        />
        {texts.share.withLink}
      </label>
      <Show when={props.address !== '' && props.isOn}>
        <p class="share-link data">
          <bdi>{props.address}</bdi>
        </p>
      </Show>
    </>
  );
}

/** Lists the users who have access. The access of each user can be changed. */
function ShareList(props: {
  shares: readonly notebooks.Sharing[];
  onChange: (shares: readonly notebooks.Sharing[]) => void;
}): JSX.Element {
  const allow = (one: notebooks.Sharing, value: string): void => {
    const access = value === 'write' ? 'write' : 'read';
    props.onChange(props.shares.map((other) => (other === one ? { ...one, access } : other)));
  };
  return (
    <ul class="share-list">
      <For each={props.shares} fallback={<li class="hint">{texts.share.notSharedYet}</li>}>
        {(one) => (
          <li>
            <bdi>{one.name}</bdi>
            <span class="spring" />
            <select
              class="select"
              aria-label={fill(texts.share.accessOf, { name: one.name })}
              onChange={(event) => allow(one, event.currentTarget.value)}
            >
              <option value="read" selected={one.access === 'read'}>
                {texts.share.canRead}
              </option>
              <option value="write" selected={one.access === 'write'}>
                {texts.share.canWrite}
              </option>
            </select>
            <IconButton
              icon="close"
              type="button"
              label={fill(texts.share.stopSharingWith, { name: one.name })}
              onClick={() => props.onChange(props.shares.filter((other) => other !== one))}
            />
          </li>
        )}
      </For>
    </ul>
  );
}

function AddShare(props: {
  name: string;
  onInput: (name: string) => void;
  onAdd: () => void;
}): JSX.Element {
  return (
    <div class="share-add">
      <label class="confirm-typed">
        <span>{texts.share.name}</span>
        <input
          class="input"
          value={props.name}
          onInput={(event) => props.onInput(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && props.name.trim() !== '') {
              event.preventDefault();
              props.onAdd();
            }
          }}
        />
      </label>
      <button
        type="button"
        class="button"
        disabled={props.name.trim() === ''}
        onClick={() => props.onAdd()}
      >
        {texts.share.add}
      </button>
    </div>
  );
}
