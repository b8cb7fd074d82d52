/** The SQL workspace: tabs, the editor with its problems, and the result pane below. */
import {
  createEffect,
  createMemo,
  createSignal,
  lazy,
  on,
  onCleanup,
  onMount,
  Show,
  Suspense,
  type JSX,
} from 'solid-js';
import { load, save } from '../state/store.js';
import type { Session } from '../state/session.js';
import type { Problem } from '../state/problems.js';
import { editorEvents } from '../editor/events.js';
import { Icon } from '../ui/icons.js';
import { presenting } from '../notebook/presenting.js';
import { ParameterBar } from './ParameterBar.js';
import { ResultPane } from './ResultPane.js';
import { takeShared, copyLink } from './share.js';
import { TabBar } from './TabBar.js';
import { editor, registerEditor } from '../state/editor.js';
import type { SqlEditor } from '../editor/editor.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const FollowView = lazy(() => import('../follow/FollowView.js'));
const NotebookView = lazy(() => import('../notebook/NotebookView.js'));

/**
 * Initial height of the editor as a fraction of the window height. The result gets the larger
 * share.
 */
const EDITOR_FRACTION = 0.38;
const MIN_EDITOR = 96;
const MIN_RESULT = 140;
const STEP = 24;

export function WorkspaceView(props: { session: Session; palette: () => void }): JSX.Element {
  let pane!: HTMLDivElement;
  const [height, setHeight] = createSignal(Math.round(innerHeight * EDITOR_FRACTION));

  onMount(() => {
    const first = workspace.tabs.find(({ notebook }) => notebook);
    if (presenting() && first && !tab()?.notebook) {
      workspace.select(first.id);
    }
    void load<number>('editor-height').then((saved) => setHeight(saved ?? height()));
  });

  const resize = (target: number): void => {
    const maxHeight = Math.max(MIN_EDITOR, pane.clientHeight - MIN_RESULT);
    setHeight(Math.round(Math.max(MIN_EDITOR, Math.min(maxHeight, target))));
    void save('editor-height', height());
  };

  const { workspace } = props.session;
  const tab = createMemo(() => workspace.tabs.find(({ id }) => id === workspace.active()));
  return (
    <div
      class="workspace"
      classList={{ following: (tab()?.follow ?? tab()?.notebook) !== undefined }}
      ref={pane}
    >
      <TabBar session={props.session} palette={() => props.palette()} />
      <Show when={tab()?.follow && tab()} keyed>
        {(shown) => (
          <Suspense>
            <Show when={shown.follow}>
              {(follow) => <FollowView session={props.session} tab={shown} follow={follow()} />}
            </Show>
          </Suspense>
        )}
      </Show>
      <Show when={tab()?.notebook && tab()} keyed>
        {(shown) => (
          <Suspense>
            <NotebookView session={props.session} tab={shown} />
          </Suspense>
        )}
      </Show>
      <div
        class="editor-pane"
        data-region="editor"
        style={{ height: `min(${height()}px, calc(100% - ${MIN_RESULT}px))` }}
      >
        <Toolbar session={props.session} />
        <EditorHost session={props.session} />
        <ParameterBar session={props.session} />
        <ProblemStrip session={props.session} />
      </div>
      <Splitter height={height()} onResize={resize} />
      <ResultPane session={props.session} />
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
    <div class="toolbar" role="toolbar" aria-label={texts.common.query}>
      <button
        class="button primary"
        data-action="run"
        onClick={() => void session.statements.run()}
      >
        <Icon name={running() ? 'running' : 'play'} class={running() ? 'spin' : ''} />
        {texts.common.run}
        <kbd>Ctrl ⏎</kbd>
      </button>
      <button
        class="button ghost"
        title="Ctrl+Shift+Enter"
        onClick={() => void session.statements.runAll()}
      >
        {texts.common.runAll}
      </button>
      <button
        class="button ghost"
        data-action="cancel"
        title="Alt+K"
        disabled={!running()}
        onClick={() => session.statements.cancel()}
      >
        <Icon name="stop" />
        {texts.common.cancel}
      </button>
      <button class="button ghost" title="Alt+E" onClick={() => session.statements.explain()}>
        <Icon name="plan" />
        {texts.query.explain}
      </button>
      <button class="button ghost wide-only" title="Alt+Shift+F" onClick={() => editor()?.format()}>
        <Icon name="format" />
        {texts.query.format}
      </button>
      <span class="spring" />
      <Show when={savedAt()}>
        <span class="hint">{fill(texts.query.draftSaved, { time: savedAt() })}</span>
      </Show>
      <button
        class="button ghost wide-only"
        title={texts.query.copyLinkHint}
        onClick={() => copyLink(session.workspace, false)}
      >
        <Icon name="link" />
        <span class="label">{texts.query.copyLink}</span>
      </button>
    </div>
  );
}

/**
 * Hosts the SQL editor. The editor's code is a separate chunk, loaded after the shell is visible.
 */
function EditorHost(props: { session: Session }): JSX.Element {
  let host!: HTMLDivElement;
  let created: SqlEditor | undefined;
  const { session } = props;
  const [ready, setReady] = createSignal(false);

  const begin = async (): Promise<void> => {
    const { SqlEditor } = await import('../editor/editor.js');
    created = new SqlEditor(host, editorEvents(session));
    const view = created;
    registerEditor(view);
    session.workspace.onRewritten = (tab, text) => view.rewrite(tab, text);
    session.workspace.onClosed = (tab) => session.tabs.forget(tab);
    setReady(true);
    view.show(session.workspace.active(), session.workspace.activeDraft);
    view.focus();
    const openShared = (): void => {
      const shared = takeShared();
      if (shared !== undefined) {
        void session.statements.openShared(shared);
      }
    };
    openShared();
    addEventListener('hashchange', openShared);
  };
  onMount(() => void begin());
  onCleanup(() => created?.destroy());

  createEffect(
    on(session.workspace.active, (active) => {
      created?.show(active, session.workspace.activeDraft);
    }),
  );

  return <div class="editor-host" classList={{ ready: ready() }} ref={host} />;
}

function ProblemStrip(props: { session: Session }): JSX.Element {
  const { session } = props;
  const tab = session.workspace.active;
  const problem = createMemo((): Problem | undefined => session.problems.of(tab()));
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
            {(replacement) => (
              <button class="button small" onClick={() => editor()?.replaceProblem(replacement())}>
                {texts.common.replace}
              </button>
            )}
          </Show>
          <button class="button small ghost" onClick={() => editor()?.goToProblem()}>
            {found().count > 1 ? texts.query.nextProblem : texts.query.goToProblem} <kbd>F8</kbd>
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
      aria-label={texts.query.editorHeight}
      aria-valuenow={props.height}
      aria-valuemin={MIN_EDITOR}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
    />
  );
}
