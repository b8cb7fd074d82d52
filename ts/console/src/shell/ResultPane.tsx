/** Result pane: grid, chart, plan or log, and a one-line summary of the last run. */
import {
  createEffect,
  createMemo,
  createSignal,
  lazy,
  Match,
  on,
  onCleanup,
  onMount,
  Show,
  Suspense,
  Switch,
  type JSX,
} from 'solid-js';
import { familyOf } from '../model/types.js';
import { Grid } from '../grid/Grid.js';
import { gridStateOf, type GridState } from '../grid/state.js';
import { duration, grouped, rowsText } from '../model/format.js';
import { orderOf, type RowOrder } from '../model/order.js';
import { asOf, isPartial, type Result } from '../model/result.js';
import { storedChoice } from '../page/choice.js';
import { type Run, type Runner, outcome, runTitle } from '../state/run.js';
import type { EarlierResult } from '../state/run.js';
import type { Session } from '../state/session.js';
import type { ResultView } from '../state/tab.js';
import type { Workspace } from '../state/workspace.js';
import { copy } from '../ui/clipboard.js';
import { CopyMenu, ExportMenu, FilterField } from './GridTools.js';
import { Icon } from '../ui/icons.js';
import { LogView, serverMs, SummaryIcon } from './LogView.js';
import { LoadedRows } from '../grid/LoadedRows.js';
import { withNotebooks } from '../notebook/load.js';
import { ZoneSwitch } from '../ui/ZoneSwitch.js';
import { zone } from '../page/zone.js';
import { editor } from '../state/editor.js';
import type { Tabs } from '../state/tabs.js';
import type { Statements } from '../state/statements.js';
import { IconButton } from '../ui/IconButton.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const Chart = lazy(() => import('../chart/Chart.js'));
const PlanView = lazy(() => import('../plan/PlanView.js'));

/** Storage key of the user's choice to show the chart beside the grid. */
const BESIDE = 'tidemark.chart-beside';
/** Minimum window width for showing the grid and the chart side by side. */
const WIDE = '(min-width: 1180px)';

/** Minimum number of rows for which a chart opens beside the grid. */
const MIN_CHARTED_ROWS = 8;

export function ResultPane(props: { session: Session }): JSX.Element {
  const { workspace } = props.session;
  const runner = createMemo(() => workspace.runner(workspace.active()));
  const run = createMemo(() => runner().run());
  const result = createMemo(() => runner().result());
  const views = viewsOf(workspace, () => asOf(result(), runner().revision()));
  const { state, order } = arrangementOf(runner, run, result);
  // The outcome of a run without rows covers the previous rows until the user chooses to see them.
  const [showsRows, setShowsRows] = createSignal(false);
  createEffect(on(run, (now) => now?.state === 'running' && setShowsRows(false)));
  const isRowless = (): boolean => {
    const now = run();
    return now?.state === 'failed' || (now?.state === 'done' && !now.hasRows);
  };
  const isOutcome = (): boolean => isRowless() && !showsRows();

  return (
    <section class="result" aria-label={texts.result.result} aria-busy={run()?.state === 'running'}>
      <div class="result-bar">
        <ViewButtons views={views} onPlan={() => props.session.statements.showPlan()} />
        <Summary run={run()} result={result()} revision={runner().revision()} />
        <span class="spring" />
        <Show when={isOutcome() || views.plan() || views.log() ? undefined : result()}>
          {(shown) => (
            <>
              <Show when={views.grid()}>
                <FilterField state={state()} result={shown()} order={order()} />
              </Show>
              <FollowButton tabs={props.session.tabs} result={shown()} />
              <ZoneSwitch />
              <CopyMenu state={state()} result={shown()} order={order()} />
              <ExportMenu state={state()} result={shown()} order={order()} />
            </>
          )}
        </Show>
      </div>
      <Switch fallback={<NoResult run={run()} workspace={workspace} />}>
        <Match when={workspace.view() === 'log'}>
          <LogView session={props.session} />
        </Match>
        <Match when={workspace.view() === 'plan'}>
          <Suspense>
            <PlanView session={props.session} />
          </Suspense>
        </Match>
        <Match when={isOutcome()}>
          <Outcome
            run={run()}
            onShowRows={() => setShowsRows(true)}
            hasRows={result() !== undefined}
          />
        </Match>
        <Match when={result()}>
          {(shown) => (
            <Rows
              session={props.session}
              views={views}
              result={shown()}
              state={state()}
              order={order()}
              revision={runner().revision()}
              running={run()?.state === 'running'}
              earlier={runner().earlier()}
            />
          )}
        </Match>
      </Switch>
    </section>
  );
}

function FollowButton(props: { tabs: Tabs; result: Result }): JSX.Element {
  return (
    <IconButton
      icon="follow"
      label={texts.result.follow}
      title={texts.result.followHint}
      onClick={() => void props.tabs.followQuery(props.result.statement)}
    />
  );
}

/** Returns the state of a tab's grid and the resulting order of rows. */
function arrangementOf(
  runner: () => Runner,
  run: () => Run | undefined,
  result: () => Result | undefined,
): { readonly state: () => GridState; readonly order: () => RowOrder } {
  const state = createMemo(() => gridStateOf(runner()));
  createEffect(() => state().adopt(result()?.columns ?? []));
  const order = createMemo((): RowOrder => {
    const shown = asOf(result(), runner().revision());
    // While rows arrive, the grid shows them in their original order.
    if (!shown || run()?.state === 'running') {
      return undefined;
    }
    return orderOf(shown.columns, shown.rows, state().sort(), state().filter());
  });
  return { state, order };
}

interface Views {
  readonly grid: () => boolean;
  readonly chart: () => boolean;
  readonly plan: () => boolean;
  readonly log: () => boolean;
  readonly press: (view: ResultView) => void;
}

/**
 * Shows the grid and the chart side by side if the window is wide enough and the result has a time
 * column. Otherwise, shows a single view.
 */
function viewsOf(workspace: Workspace, result: () => Result | undefined): Views {
  const wide = useMedia(WIDE);
  const [besides, choose] = storedChoice(BESIDE, ['yes', 'no']);
  const beside = (): boolean => besides() === 'yes';
  const setBeside = (isBeside: boolean): void => choose(isBeside ? 'yes' : 'no');
  const isTimed = createMemo(
    () => result()?.columns.some(({ type }) => familyOf(type) === 'time') ?? false,
  );
  const view = (): ResultView => workspace.view();
  const setView = (next: ResultView): void => workspace.setView(next);
  const isAlone = (): boolean => view() === 'plan' || view() === 'log';
  // For only a few rows, the grid is enough. The user can still open the chart.
  const mayBeBoth = (): boolean =>
    wide() && isTimed() && !isAlone() && (result()?.rows.length ?? 0) >= MIN_CHARTED_ROWS;
  const both = (): boolean => beside() && mayBeBoth();
  return {
    grid: () => view() === 'grid' || both(),
    chart: () => view() === 'chart' || both(),
    plan: () => view() === 'plan',
    log: () => view() === 'log',
    press: (pressed) => {
      if (pressed === 'plan' || pressed === 'log') {
        setView(view() === pressed ? 'grid' : pressed);
      } else if (both()) {
        // If both views are visible, pressing a view's button hides that view.
        setBeside(false);
        setView(pressed === 'grid' ? 'chart' : 'grid');
      } else if (mayBeBoth() && view() !== pressed) {
        setBeside(true);
      } else {
        setView(pressed);
      }
    },
  };
}

function ViewButtons(props: { views: Views; onPlan: () => void }): JSX.Element {
  const press = (view: ResultView): void => {
    if (view === 'plan' && !props.views.plan()) {
      props.onPlan();
    } else {
      props.views.press(view);
    }
  };
  const button = (view: ResultView, name: string): JSX.Element => (
    <button class="view" aria-pressed={props.views[view]()} onClick={() => press(view)}>
      <Icon name={view} />
      {name}
    </button>
  );
  return (
    <div class="views" role="group" aria-label={texts.result.view} data-region="views">
      {button('grid', texts.common.grid)}
      {button('chart', texts.common.chart)}
      {button('plan', texts.common.plan)}
      {button('log', texts.result.log)}
    </div>
  );
}

interface RowsProps {
  readonly session: Session;
  readonly result: Result;
  readonly revision: number;
  readonly state: GridState;
  readonly order: RowOrder;
  readonly running: boolean;
  /** The stored result, if its rows were read before the page was reloaded. */
  readonly earlier: EarlierResult | undefined;
}

const NO_OPTIONS = {};

/** Runs an annotation query with the values of the tab's parameters. */
async function annotated(session: Session, text: string, signal: AbortSignal) {
  const [{ annotate }, { bind }] = await Promise.all([
    import('../chart/annotations.js'),
    import('../sql/parameters.js'),
  ]);
  const { workspace } = session;
  return await annotate(bind(text, workspace.parametersOf(workspace.active())).text, signal);
}

function Rows(props: RowsProps & { views: Views }): JSX.Element {
  const { workspace } = props.session;
  const columns = (): string => props.result.columns.map(({ name }) => name).join();
  return (
    <div class="split" classList={{ both: props.views.grid() && props.views.chart() }}>
      <Show when={props.views.grid()}>
        <GridOrNothing {...props} />
      </Show>
      <Show when={props.views.chart()}>
        <Suspense fallback={<div class="chart" />}>
          <Chart
            result={props.result}
            revision={props.revision}
            zone={zone()}
            isGrowing={props.running}
            kind={workspace.chart(columns()).kind ?? ''}
            onKind={(kind) => workspace.setChart(columns(), { kind })}
            series={workspace.chart(columns()).series}
            onSeries={(series) => workspace.setChart(columns(), { series })}
            options={workspace.chart(columns()).options ?? NO_OPTIONS}
            onOptions={(options) => workspace.setChart(columns(), { options })}
            annotate={(text, signal) => annotated(props.session, text, signal)}
            onPick={(row) => {
              if (!props.views.grid()) {
                props.views.press('grid');
              }
              props.state.seek(row);
            }}
          />
        </Suspense>
      </Show>
    </div>
  );
}

function useMedia(query: string): () => boolean {
  const media = matchMedia(query);
  const [matches, setMatches] = createSignal(media.matches);
  const listen = (): void => void setMatches(media.matches);
  onMount(() => media.addEventListener('change', listen));
  onCleanup(() => media.removeEventListener('change', listen));
  return matches;
}

function Summary(props: {
  run: Run | undefined;
  result: Result | undefined;
  revision: number;
}): JSX.Element {
  const rows = createMemo(() => asOf(props.result, props.revision)?.rows.length ?? 0);
  const elapsedSeconds = useElapsedSeconds(() => props.run);
  // Rows that are loaded on demand do not count as missing.
  const isUnread = (): boolean =>
    props.run?.state === 'done' &&
    props.run.hasRows &&
    rows() < (props.run.tail?.count ?? 0) &&
    typeof props.result?.lazyRows() === 'string';
  return (
    <Show when={props.run}>
      {(run) => (
        <div class="summary" data-state={run().state}>
          <SummaryIcon state={run().state} />
          <b>
            <Show when={run().state === 'done'} fallback={stateText(run(), rows())}>
              {outcome(run())}
            </Show>
          </b>
          <Show when={run().state === 'running' && elapsedSeconds() > 0}>
            <span class="elapsed">
              {fill(texts.result.runningFor, { seconds: elapsedSeconds() })}
            </span>
          </Show>
          <Show when={run().state === 'done' && run().tail?.timings}>
            <span class="server-time" title={texts.result.serverTimeHint}>
              {fill(texts.result.serverTime, { duration: duration(serverMs(run())) })}
            </span>
          </Show>
          <Show when={run().totalMs}>
            {(total) => (
              <span>{fill(texts.result.totalTime, { duration: duration(total()) })}</span>
            )}
          </Show>
          <Show when={isUnread()}>
            <span class="warn">{shownText(props.result, rows())}</span>
          </Show>
        </div>
      )}
    </Show>
  );
}

/** Counts the whole seconds since the running statement started; 0 if no statement is running. */
function useElapsedSeconds(run: () => Run | undefined): () => number {
  const [seconds, setSeconds] = createSignal(0);
  createEffect(() => {
    const now = run();
    if (now?.state !== 'running') {
      setSeconds(0);
      return;
    }
    const count = (): number => setSeconds(Math.floor((performance.now() - now.startedAt) / 1000));
    const timer = setInterval(count, 250);
    count();
    onCleanup(() => clearInterval(timer));
  });
  return seconds;
}

function stateText(run: Run, rows: number): string {
  if (run.state === 'failed') {
    return texts.common.failed;
  }
  const word = run.state === 'running' ? texts.common.running : texts.result.cancelled;
  return run.hasRows ? fill(texts.result.soFar, { state: word, rows: rowsText(rows) }) : word;
}

/** Describes which rows are loaded. */
function shownText(result: Result | undefined, count: number): string {
  const skipped = result?.skipped ?? 0;
  return skipped === 0
    ? fill(texts.result.firstShown, { count: grouped(String(count)) })
    : fill(texts.result.partShown, {
        from: grouped(String(skipped + 1)),
        to: grouped(String(skipped + count)),
      });
}

function GridOrNothing(props: RowsProps): JSX.Element {
  const empty = createMemo(() => asOf(props.result, props.revision).rows.length === 0);
  const hasMore = createMemo(() => isPartial(asOf(props.result, props.revision)));
  return (
    <div class="grid-pane">
      <Grid
        result={props.result}
        revision={props.revision}
        state={props.state}
        order={props.order}
        zone={zone()}
        onLeave={() => editor()?.focus()}
      />
      <Show when={empty() && !props.running}>
        <div class="empty over-grid">
          <strong>{texts.common.noRows}</strong>
          <p>{texts.result.noRowsHint}</p>
        </div>
      </Show>
      <Show when={props.order?.length === 0}>
        <div class="empty over-grid">
          <strong>{texts.result.noMatchingRows}</strong>
          <p>{texts.result.noMatchingRowsHint}</p>
        </div>
      </Show>
      <Show when={props.earlier}>
        {(earlier) => <OfBefore statements={props.session.statements} earlier={earlier()} />}
      </Show>
      <Show when={!props.running && hasMore()}>
        <LoadedRows {...props} statements={props.session.statements} />
      </Show>
    </div>
  );
}

/** Note that shows when the rows of a stored result were read. */
function OfBefore(props: { statements: Statements; earlier: EarlierResult }): JSX.Element {
  const text = (): string => {
    const { at, total, result } = props.earlier;
    const time = at.toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });
    const shown = result.rows.length;
    const part =
      shown < total
        ? fill(texts.result.firstOfAll, { count: grouped(String(shown)), rows: rowsText(total) })
        : '';
    return fill(texts.result.earlierResult, { time, part });
  };
  return (
    <p class="grid-note">
      <span>{text()}</span>
      <button class="button small" onClick={() => void props.statements.showRows(0)}>
        {texts.result.runAgain}
      </button>
    </p>
  );
}

function NoResult(props: { run: Run | undefined; workspace: Workspace }): JSX.Element {
  const begin = (): void => withNotebooks((all) => all.create(props.workspace));
  return (
    <div class="empty">
      <Show
        when={props.run}
        fallback={
          <>
            <strong>{texts.result.noResultYet}</strong>
            <p>{fillNodes(texts.result.noResultHint, { keys: <kbd>Ctrl+Enter</kbd> })}</p>
            <button class="button small" onClick={begin}>
              <Icon name="notebook" />
              {texts.result.createNotebook}
            </button>
          </>
        }
      >
        {(run) => (
          <strong>{run().state === 'running' ? texts.common.running : runTitle(run())}</strong>
        )}
      </Show>
    </div>
  );
}

/** Shows the outcome of a run without rows: an error, or the completion of a statement. */
function Outcome(props: {
  run: Run | undefined;
  hasRows: boolean;
  onShowRows: () => void;
}): JSX.Element {
  const failure = createMemo(() => props.run?.failure);
  const excerpt = createMemo(() => errorExcerpt(props.run));
  return (
    <div class="outcome">
      <div class="outcome-head" data-state={props.run?.state}>
        <Icon name={failure() ? 'alert' : 'check'} />
        <strong class="outcome-message">
          <bdi>{failure()?.message ?? (props.run && outcome(props.run))}</bdi>
        </strong>
      </div>
      <Show when={failure() && props.run?.hasRows}>
        <p>{texts.result.incomplete}</p>
      </Show>
      <Show when={!failure()}>
        <pre class="outcome-excerpt">{props.run?.statement.text}</pre>
      </Show>
      <Show when={excerpt()}>
        {(shown) => (
          <div class="outcome-excerpt">
            <pre>{shown().line}</pre>
            <pre class="caret">{shown().caret}</pre>
          </div>
        )}
      </Show>
      <div class="outcome-actions">
        <Show when={failure()}>
          {(failed) => (
            <button
              class="button small"
              onClick={() => void copy(failed().message, texts.result.message)}
            >
              <Icon name="copy" />
              {texts.result.copyMessage}
            </button>
          )}
        </Show>
        <Show when={props.hasRows}>
          <button class="button small" onClick={() => props.onShowRows()}>
            {props.run?.hasRows ? texts.result.showReceived : texts.result.backToPrevious}
          </button>
        </Show>
      </div>
    </div>
  );
}

/** Returns the line that contains the error position, and a caret to print below it. */
function errorExcerpt(run: Run | undefined): { line: string; caret: string } | undefined {
  const offset = run?.failure?.offset;
  if (!run || offset === undefined) {
    return undefined;
  }
  const { text, start } = run.statement;
  const at = Math.max(0, Math.min(offset - start, text.length));
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const lineEnd = text.indexOf('\n', at);
  const line = text.slice(lineStart, lineEnd < 0 ? text.length : lineEnd);
  return { line, caret: `${line.slice(0, at - lineStart).replace(/[^\t]/g, ' ')}^` };
}
