/** The workspace: tabs on top, the editor, what it found wrong, and below it the result. */
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
import { load, save } from '../state/store.js';
import type { Problem, Session } from '../state/session.js';
import { Icon } from './icons.js';
import { ResultPane } from './ResultPane.js';

const DEFAULT_EDITOR = 356;
const LEAST_EDITOR = 96;
const LEAST_RESULT = 140;
const STEP = 24;

export function WorkspaceView(props: { session: Session }): JSX.Element {
  let pane!: HTMLDivElement;
  const [height, setHeight] = createSignal(DEFAULT_EDITOR);

  onMount(() => {
    void load<number>('editor-height').then((height) => setHeight(height ?? DEFAULT_EDITOR));
  });

  const resize = (wanted: number): void => {
    const most = Math.max(LEAST_EDITOR, pane.clientHeight - LEAST_RESULT);
    setHeight(Math.round(Math.max(LEAST_EDITOR, Math.min(most, wanted))));
    void save('editor-height', height());
  };

  return (
    <div class="workspace" ref={pane}>
      <TabBar session={props.session} />
      <div
        class="editor-pane"
        data-region="editor"
        style={{ height: `min(${height()}px, calc(100% - ${LEAST_RESULT}px))` }}
      >
        <Toolbar session={props.session} />
        <EditorHost session={props.session} />
        <ProblemStrip session={props.session} />
      </div>
      <Splitter height={height()} onResize={resize} />
      <ResultPane session={props.session} />
    </div>
  );
}

function TabBar(props: { session: Session }): JSX.Element {
  const { workspace } = props.session;
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step !== undefined) {
      workspace.step(step);
      document.getElementById(`tab-${workspace.active()}`)?.focus();
    } else if (event.key === 'Delete') {
      props.session.closeTab(workspace.active());
    } else {
      return;
    }
    event.preventDefault();
  };
  return (
    <div class="tabs">
      <div class="tablist" role="tablist" aria-label="Query tabs" onKeyDown={onKeyDown}>
        <For each={workspace.tabs}>
          {(tab) => (
            <div class="tab-item" role="presentation">
              <button
                id={`tab-${tab.id}`}
                class="tab"
                role="tab"
                aria-selected={workspace.active() === tab.id ? 'true' : 'false'}
                tabindex={workspace.active() === tab.id ? 0 : -1}
                onClick={() => workspace.select(tab.id)}
                onAuxClick={(event) => event.button === 1 && props.session.closeTab(tab.id)}
              >
                <Show
                  when={workspace.runner(tab.id).run()?.state === 'running'}
                  fallback={<Icon name="sql" class="faint-icon" />}
                >
                  <Icon name="running" class="spin accent" />
                </Show>
                <bdi>{tab.title}</bdi>
              </button>
              <span
                class="tab-close"
                aria-hidden="true"
                title="Close (Delete); the draft can be brought back"
                onClick={() => props.session.closeTab(tab.id)}
              >
                <Icon name="close" />
              </span>
            </div>
          )}
        </For>
      </div>
      <button
        class="icon-button"
        aria-label="New tab"
        title="New tab (Alt+T)"
        onClick={() => {
          workspace.add();
          props.session.editor?.focus();
        }}
      >
        <Icon name="plus" />
      </button>
    </div>
  );
}

function Toolbar(props: { session: Session }): JSX.Element {
  const { session } = props;
  const running = createMemo(
    () => session.workspace.runner(session.workspace.active()).run()?.state === 'running',
  );
  const savedAt = (): string => session.workspace.savedAt()?.toTimeString().slice(0, 8) ?? '';
  return (
    <div class="toolbar" role="toolbar" aria-label="Query">
      <button class="button primary" data-action="run" onClick={() => void session.run()}>
        <Icon name={running() ? 'running' : 'play'} class={running() ? 'spin' : ''} />
        Run
        <kbd>Ctrl ⏎</kbd>
      </button>
      <button class="button ghost" title="Ctrl+Shift+Enter" onClick={() => void session.runAll()}>
        Run all
      </button>
      <button
        class="button ghost"
        data-action="cancel"
        title="Alt+K"
        disabled={!running()}
        onClick={() => session.cancel()}
      >
        <Icon name="stop" />
        Cancel
      </button>
      <button class="button ghost" title="Alt+E" onClick={() => session.explain()}>
        <Icon name="plan" />
        Explain
      </button>
      <span class="spring" />
      <Show when={savedAt()}>
        <span class="hint">Draft saved {savedAt()}</span>
      </Show>
    </div>
  );
}

/** The editor's code comes in a file of its own, after the shell is on screen. */
function EditorHost(props: { session: Session }): JSX.Element {
  let host!: HTMLDivElement;
  const { session } = props;
  const [ready, setReady] = createSignal(false);

  const begin = async (): Promise<void> => {
    const { SqlEditor } = await import('../editor/editor.js');
    const editor = new SqlEditor(host, {
      changed: (tab, text) => session.edited(tab, text),
      run: () => void session.run(),
      runAll: () => void session.runAll(),
      names: () => session.schema.names(),
    });
    session.editor = editor;
    setReady(true);
    editor.show(session.workspace.active(), session.workspace.activeDraft);
    editor.focus();
  };
  onMount(() => void begin());
  onCleanup(() => session.editor?.destroy());

  createEffect(
    on(session.workspace.active, (active) => {
      session.editor?.show(active, session.workspace.activeDraft);
    }),
  );

  return <div class="editor-host" classList={{ ready: ready() }} ref={host} />;
}

function ProblemStrip(props: { session: Session }): JSX.Element {
  const { session } = props;
  const tab = session.workspace.active;
  const problem = createMemo((): Problem | undefined => session.problems().get(tab()));
  return (
    <Show when={problem()}>
      {(found) => (
        <div class="problem" role="status">
          <Icon name="alert" />
          <span class="where">
            {found().line}:{found().column}
          </span>
          <span class="what">
            <b>
              <bdi>{found().message}</bdi>
            </b>{' '}
            {found().advice}
          </span>
          <span class="spring" />
          <Show when={found().replacement}>
            <button class="button small" onClick={() => session.replaceProblem(tab())}>
              Replace
            </button>
          </Show>
          <button class="button small ghost" onClick={() => session.editor?.goToProblem()}>
            Go to the place <kbd>F8</kbd>
          </button>
        </div>
      )}
    </Show>
  );
}

function Splitter(props: { height: number; onResize: (height: number) => void }): JSX.Element {
  const onPointerDown = (event: PointerEvent): void => {
    event.preventDefault();
    const bar = event.currentTarget as HTMLElement;
    const from = event.clientY;
    const height = props.height;
    bar.setPointerCapture(event.pointerId);
    bar.onpointermove = (move) => props.onResize(height + move.clientY - from);
    bar.onpointerup = () => (bar.onpointermove = bar.onpointerup = null);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowUp: -STEP, ArrowDown: STEP }[event.key];
    if (step === undefined) {
      return;
    }
    event.preventDefault();
    props.onResize(props.height + step);
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabindex="0"
      aria-orientation="horizontal"
      aria-label="Height of the editor"
      aria-valuenow={props.height}
      aria-valuemin={LEAST_EDITOR}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    />
  );
}
