/** Dialog that shows the saved versions of a notebook and restores one of them as the draft. */
import { createSignal, createUniqueId, For, onMount, type JSX } from 'solid-js';
import * as notebooks from '../api/notebooks.js';
import { showToast } from '../page/notices.js';
import type { NotebookSync } from './sync.js';
import { Failure } from '../ui/Failure.js';
import { messageOf } from '../model/message.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

export function VersionsDialog(props: {
  sync: NotebookSync;
  id: string;
  onClose: () => void;
}): JSX.Element {
  let dialog!: HTMLDialogElement;
  const title = createUniqueId();
  // Signals are used because a loading resource would remove the surrounding page, including this
  // dialog.
  const [versions, setVersions] = createSignal<readonly notebooks.Version[]>([]);
  const [chosen, setChosen] = createSignal<number>();
  const [text, setText] = createSignal<string>();
  const [failure, setFailure] = createSignal('');
  const failed = (cause: unknown): void => {
    setFailure(messageOf(cause));
  };
  const choose = (version: number): void => {
    setChosen(version);
    setText(undefined);
    setFailure('');
    notebooks.open(props.id, version).then((opened) => {
      if (chosen() === version) {
        setText(opened.text);
      }
    }, failed);
  };
  const restore = (): void => {
    const draft = text();
    if (draft !== undefined) {
      props.sync.restore(draft);
      dialog.close();
      showToast({
        text: fill(texts.versions.restored, { version: chosen() ?? '' }),
      });
    }
  };
  onMount(() => {
    dialog.showModal();
    notebooks.versions(props.id).then((all) => setVersions(all.toReversed()), failed);
  });
  return (
    <dialog
      ref={dialog}
      class="dialog wide"
      aria-labelledby={title}
      onClose={() => props.onClose()}
    >
      <header>
        <h2 id={title}>
          {fillNodes(texts.versions.title, { title: <bdi>{props.sync.title}</bdi> })}
        </h2>
      </header>
      <div class="versions">
        <VersionList versions={versions()} chosen={chosen()} choose={choose} />
        <pre class="code-block" tabindex="0" role="region" aria-label={texts.versions.text}>
          {text() ?? (chosen() === undefined ? texts.versions.nothingSelected : '')}
        </pre>
      </div>
      <Failure text={failure()} />
      <div class="confirm-actions">
        <button class="button" onClick={() => dialog.close()}>
          {texts.common.close}
        </button>
        <button class="button primary" disabled={text() === undefined} onClick={restore}>
          {texts.versions.restoreAsDraft}
        </button>
      </div>
    </dialog>
  );
}

function VersionList(props: {
  versions: readonly notebooks.Version[];
  chosen: number | undefined;
  choose: (version: number) => void;
}): JSX.Element {
  return (
    <ul class="version-list">
      <For each={props.versions}>
        {(version) => (
          <li>
            <button
              aria-pressed={props.chosen === version.version ? 'true' : 'false'}
              onClick={() => props.choose(version.version)}
            >
              <b>{fill(texts.common.version, { version: version.version })}</b>
              <span class="hint">
                {dateTimeText(version.changed)}, <bdi>{version.changedBy}</bdi>
              </span>
            </button>
          </li>
        )}
      </For>
    </ul>
  );
}

/** Formats a time as `2026-11-27 10:30`, in UTC like all times that the server reports. */
export function dateTimeText(iso: string): string {
  return fill(texts.versions.dateTime, { date: iso.slice(0, 10), time: iso.slice(11, 16) });
}
