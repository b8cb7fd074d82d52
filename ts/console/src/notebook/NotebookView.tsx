/** Shows a notebook tab: a toolbar, variables, and cells in a list or a grid. */
import '../styles/saved.css';
import '../styles/notebook.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { NotebookSync } from '../saved/sync.js';
import { MergeOffer } from '../saved/MergeOffer.js';
import { Icon } from '../ui/icons.js';
import type { Session } from '../state/session.js';
import type { Tab } from '../state/tab.js';
import { AddCells } from './AddCells.js';
import { CellView } from './CellView.js';
import { documentOf } from './document.js';
import { exportFile, sentence } from './templates.js';
import { NotebookBar } from './NotebookBar.js';
import { move, type NotebookContext } from './context.js';
import { Presentation } from './Presentation.js';
import { present, presenting } from './presenting.js';
import { Refresher } from './refresher.js';
import { VariableBar } from './VariableBar.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export default function NotebookView(props: { session: Session; tab: Tab }): JSX.Element {
  let host!: HTMLElement;
  const { tab } = props;
  const { workspace, server, schema } = props.session;
  const document_ = documentOf(props.session, tab.id, tab.draft);
  const [maximised, maximise] = createSignal<string>();
  const refresher = new Refresher(document_, () => tab.notebook?.approved === true);
  const context: NotebookContext = {
    workspace,
    server,
    schema,
    tab,
    document: document_,
    refresher,
    sync: new NotebookSync(workspace, tab),
    maximised: () => (document_.cell(maximised() ?? '') ? maximised() : undefined),
    maximise,
  };
  // Adopts the text if another window has saved the same tab.
  createEffect(
    on(
      () => tab.draft,
      (draft) => document_.adopt(draft),
    ),
  );
  onMount(() => {
    const onKeyDown = (event: KeyboardEvent): void => onKey(event, context, host);
    document.addEventListener('keydown', onKeyDown, true);
    onCleanup(() => document.removeEventListener('keydown', onKeyDown, true));
  });
  onCleanup(() => {
    if (!workspace.tabs.some(({ id }) => id === tab.id)) {
      document_.stop();
    }
  });
  return (
    <section
      ref={host}
      class="notebook"
      classList={{
        gridded: document_.notebook().layout === 'grid',
        presenting: presenting(),
      }}
      aria-label={fill(texts.notebook.label, { title: tab.title })}
    >
      <Show
        when={document_.problem()}
        fallback={
          <Show when={presenting()} fallback={<Opened {...context} host={() => host} />}>
            <Presentation {...context} />
          </Show>
        }
      >
        {(problem) => <Unreadable tab={tab} message={problem().message} />}
      </Show>
    </section>
  );
}

function Opened(props: NotebookContext & { host: () => HTMLElement }): JSX.Element {
  const ids = createMemo(() => props.document.notebook().cells.map(({ id }) => id), undefined, {
    equals: (left, right) => left.join() === right.join(),
  });
  const shown = createMemo(() => {
    const one = props.maximised();
    return one === undefined ? ids() : [one];
  });
  return (
    <>
      <NotebookBar {...props} />
      <Show when={props.maximised() === undefined}>
        <VariableBar {...props} />
      </Show>
      <MergeOffer
        sync={props.sync}
        mine={props.document.problem() ? undefined : props.document.notebook()}
      />
      <Untouched {...props} />
      <div class="cells" classList={{ maximised: props.maximised() !== undefined }}>
        <For each={shown()}>
          {(id) => (
            <Show when={props.document.cell(id)}>
              {(cell) => <CellView {...props} cell={cell()} />}
            </Show>
          )}
        </For>
        <Show when={props.maximised() === undefined}>
          <AddCells {...props} at={ids().length} />
        </Show>
      </div>
    </>
  );
}

/**
 * Note on a notebook that another user may have written. The console does not run such a notebook
 * automatically.
 */
function Untouched(props: NotebookContext): JSX.Element {
  return (
    <Show when={props.tab.notebook?.approved === false}>
      <p class="notebook-note">
        <Icon name="alert" />
        <span>{texts.notebook.createdElsewhere}</span>
      </p>
    </Show>
  );
}

/** Shows the raw text of a notebook that the console cannot parse. */
function Unreadable(props: { tab: Tab; message: string }): JSX.Element {
  return (
    <>
      <div class="notebook-note" role="alert">
        <Icon name="alert" />
        <span>
          <b>{texts.notebook.plainText}</b> <bdi>{sentence(props.message)}</bdi>
        </span>
        <span class="spring" />
        <button class="button small" onClick={() => exportFile(props.tab)}>
          <Icon name="export" />
          {texts.common.export}
        </button>
      </div>
      <pre class="notebook-text" tabindex="0" role="region" aria-label={texts.notebook.text}>
        {props.tab.draft}
      </pre>
    </>
  );
}

/** Handles the notebook's shortcuts before the console's global shortcuts. */
function onKey(event: KeyboardEvent, context: NotebookContext, host: HTMLElement): void {
  const inside = event.target instanceof Node && host.contains(event.target);
  const isFree = inside || event.target === document.body;
  if (!isFree || document.querySelector('dialog[open]') !== null || host.hidden) {
    return;
  }
  const run = keyCommand(event, context);
  if (run) {
    event.preventDefault();
    event.stopPropagation();
    run();
  }
}

function keyCommand(event: KeyboardEvent, context: NotebookContext): (() => void) | undefined {
  const modified = event.ctrlKey || event.metaKey;
  const { document: doc } = context;
  const id = cellOf(event.target);
  if (modified && event.code === 'Enter' && event.shiftKey) {
    return () => void doc.runFrom();
  }
  if (modified && event.code === 'Enter' && id !== undefined) {
    // In a text cell, this shortcut ends editing.
    return doc.cell(id)?.kind === 'sql' ? () => void doc.runCell(id) : undefined;
  }
  if (modified && event.code === 'KeyS' && context.server.storesNotebooks) {
    return () => void context.sync.save();
  }
  if (event.altKey && event.code === 'KeyK') {
    return () => doc.stop();
  }
  if (event.key === 'Escape' && presenting()) {
    return () => present(false);
  }
  if (event.key === 'Escape' && context.maximised() !== undefined && !inText(event)) {
    return () => context.maximise(undefined);
  }
  if (modified && event.code === 'KeyZ' && !inText(event)) {
    return event.shiftKey ? () => doc.redo() : () => doc.undo();
  }
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (event.altKey && step !== undefined && id !== undefined && !inText(event)) {
    return () => move(context, id, step);
  }
  return undefined;
}

function cellOf(target: EventTarget | null): string | undefined {
  const element = target instanceof Element ? target.closest<HTMLElement>('[data-cell]') : null;
  return element?.dataset['cell'];
}

/** True if key presses go to a text field or to an editor, which is inside a shadow root. */
function inText({ target }: KeyboardEvent): boolean {
  return (
    target instanceof HTMLInputElement ||
    target instanceof HTMLTextAreaElement ||
    (target instanceof Element && target.shadowRoot !== null)
  );
}
