/**
 * Import page. The user selects or drops files, checks the preview, changes settings, and imports
 * the files.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  Match,
  Show,
  Switch,
  untrack,
  type JSX,
} from 'solid-js';
import { Icon, SPINNING, type IconName } from '../ui/icons.js';
import { route } from '../page/pages.js';
import type { Session } from '../state/session.js';
import { bytesText, countText, rowsText } from '../model/format.js';
import { FileForm } from './FileForm.js';
import { FileReport } from './FileReport.js';
import { percent, remaining } from './progress.js';
import { importQueue, type FileState, type ImportFile, type ImportQueue } from './queue.js';
import { dropped } from '../page/imports.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

export default function ImportPage(props: { session: Session }): JSX.Element {
  const queue = importQueue(props.session);
  const [chosen, setChosen] = createSignal(queue.files.at(-1)?.id);
  const take = (files: Iterable<File>): void => {
    const ids = queue.add(files, route().subject);
    setChosen(ids[0] ?? chosen());
  };
  createEffect(() => {
    const files = dropped();
    if (files.length > 0) {
      untrack(() => {
        if (!props.session.server.isReadOnly) {
          take(files);
        }
        dropped.set([]);
      });
    }
  });
  const file = createMemo(() => queue.of(chosen() ?? -1));

  return (
    <section class="page" aria-labelledby="import-title" data-region="import">
      <header class="page-head">
        <h1 id="import-title">{texts.common.importFiles}</h1>
        <p class="hint">{overview(queue.files, route().subject)}</p>
      </header>
      <Show
        when={queue.files.length > 0}
        fallback={
          <Show when={!props.session.server.isReadOnly} fallback={<ReadOnlyNote />}>
            <DropZone onFiles={take} />
          </Show>
        }
      >
        <div class="import">
          <div class="import-files">
            <ul aria-label={texts.importPage.files}>
              <For each={queue.files}>
                {(entry) => (
                  <li>
                    <FileButton
                      file={entry}
                      isChosen={entry.id === chosen()}
                      onPick={() => setChosen(entry.id)}
                    />
                  </li>
                )}
              </For>
            </ul>
            <ChooseButton label={texts.importPage.addFiles} onFiles={take} />
          </div>
          <Show when={file()} keyed>
            {(shown) => <FilePane session={props.session} queue={queue} file={shown} />}
          </Show>
        </div>
      </Show>
    </section>
  );
}

function overview(files: readonly ImportFile[], table: string): string {
  if (files.length === 0) {
    return table === ''
      ? texts.importPage.fileKinds
      : fill(texts.importPage.intoTheTable, { table });
  }
  const bytes = files.reduce((sum, { size }) => sum + size, 0);
  const done = files.filter(({ state }) => state === 'done').length;
  const count = countText(files.length, texts.counts.files);
  return fill(texts.importPage.overview, { files: count, bytes: bytesText(bytes), count: done });
}

/** Tells the user that a read-only server accepts no files. */
export function ReadOnlyNote(): JSX.Element {
  return (
    <div class="empty">
      <strong>{texts.importPage.readOnly}</strong>
      <p>
        {fillNodes(texts.importPage.readOnlyHint, {
          setting: <code>http.security.readonly</code>,
        })}
      </p>
    </div>
  );
}

/** Invites the user to drop files anywhere on the page, or to select them with a button. */
function DropZone(props: { onFiles: (files: Iterable<File>) => void }): JSX.Element {
  return (
    <div class="dropzone">
      <Icon name="import" />
      <h2>{texts.common.dropFiles}</h2>
      <p>{texts.common.dropFilesHint}</p>
      <ChooseButton label={texts.common.chooseFiles} primary onFiles={props.onFiles} />
    </div>
  );
}

export function ChooseButton(props: {
  label: string;
  primary?: boolean;
  onFiles: (files: Iterable<File>) => void;
}): JSX.Element {
  let input!: HTMLInputElement;
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={props.label}
        onChange={() => {
          props.onFiles([...(input.files ?? [])]);
          input.value = '';
        }}
      />
      <button
        class="button large"
        classList={{ primary: props.primary === true }}
        onClick={() => input.click()}
      >
        <Show when={!props.primary}>
          <Icon name="plus" />
        </Show>
        {props.label}
      </button>
    </>
  );
}

const STATE_ICONS: Readonly<Record<FileState, readonly [IconName, string]>> = {
  reading: ['running', SPINNING],
  ready: ['sql', 'accent'],
  refused: ['alert', 'error'],
  waiting: ['clock', 'faint-icon'],
  sending: ['running', SPINNING],
  done: ['check', 'ok'],
  failed: ['alert', 'error'],
};

function FileButton(props: {
  file: ImportFile;
  isChosen: boolean;
  onPick: () => void;
}): JSX.Element {
  return (
    <button
      class="import-file"
      aria-current={props.isChosen ? 'true' : undefined}
      onClick={() => props.onPick()}
    >
      <Icon name={STATE_ICONS[props.file.state][0]} class={STATE_ICONS[props.file.state][1]} />
      <bdi class="data">{props.file.name}</bdi>
      <span class="hint">{stateText(props.file)}</span>
      <Show when={props.file.state === 'sending' && props.file.progress}>
        {(progress) => (
          <progress
            value={percent(progress())}
            max="100"
            aria-label={fill(texts.common.importOf, { name: props.file.name })}
          />
        )}
      </Show>
    </button>
  );
}

function stateText(file: ImportFile): string {
  switch (file.state) {
    case 'reading':
      return file.progress
        ? fill(texts.importPage.uploading, { progress: sendingText(file) })
        : texts.importPage.detectingColumns;
    case 'ready':
      return texts.importPage.checkColumns;
    case 'waiting':
      return texts.importPage.queued;
    case 'sending':
      return sendingText(file);
    case 'done':
      return rowsText(file.report?.rowsImported ?? 0);
    case 'refused':
    case 'failed':
      return file.message ?? '';
  }
}

function sendingText({ progress }: ImportFile): string {
  if (!progress) {
    return '';
  }
  const left = remaining(progress);
  return left === undefined ? `${percent(progress)} %` : `${percent(progress)} %, ${left}`;
}

function FilePane(props: { session: Session; queue: ImportQueue; file: ImportFile }): JSX.Element {
  return (
    <div class="import-pane">
      <Switch>
        <Match when={props.file.state === 'done'}>
          <FileReport statements={props.session.statements} file={props.file} queue={props.queue} />
        </Match>
        <Match when={props.file.proposal}>
          <FileForm file={props.file} queue={props.queue} />
        </Match>
        <Match when={props.file.message}>
          <div class="empty">
            <strong>
              <bdi>{props.file.message}</bdi>
            </strong>
            <p>
              <button class="button" onClick={() => props.queue.remove(props.file.id)}>
                {texts.common.removeFromList}
              </button>
            </p>
          </div>
        </Match>
        <Match when={props.file.state === 'reading'}>
          <div class="empty">
            <strong>{texts.importPage.detectingColumns}</strong>
            <Show when={props.file.progress}>
              {(progress) => (
                <>
                  <p>
                    {fill(texts.importPage.uploadingParquet, {
                      progress: sendingText(props.file),
                      size: bytesText(props.file.size),
                    })}
                  </p>
                  <progress
                    value={percent(progress())}
                    max="100"
                    aria-label={fill(texts.importPage.uploadOf, { name: props.file.name })}
                  />
                  <p>
                    <button class="button" onClick={() => props.queue.remove(props.file.id)}>
                      {texts.importPage.stopUpload}
                    </button>
                  </p>
                </>
              )}
            </Show>
          </div>
        </Match>
      </Switch>
    </div>
  );
}
