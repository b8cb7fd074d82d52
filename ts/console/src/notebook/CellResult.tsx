/** Shows the result of a cell: its rows as a grid or a chart, or why the cell has no rows. */
import { createEffect, createMemo, lazy, Match, Show, Suspense, Switch, type JSX } from 'solid-js';
import { annotate } from '../chart/annotations.js';
import type { ChartOptions } from '../chart/options.js';
import { Grid } from '../grid/Grid.js';
import { gridStateOf } from '../grid/state.js';
import { orderOf, type RowOrder } from '../model/order.js';
import { asOf, type Result } from '../model/result.js';
import { Icon } from '../ui/icons.js';
import { outcome } from '../state/run.js';
import { split } from './cell-menu.js';
import type { CellRun } from './cell-run.js';
import type { CellProps } from './context.js';
import { freeName, type SqlCell } from '../cells/model.js';
import { compose } from '../cells/statement.js';
import { zone } from '../page/zone.js';
import { fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const Chart = lazy(() => import('../chart/Chart.js'));

type ResultProps = CellProps<SqlCell> & { readonly run: CellRun };

export function CellResult(props: ResultProps): JSX.Element {
  const run = (): ReturnType<CellRun['runner']['run']> => props.run.runner.run();
  const isRowless = (): boolean => run()?.state === 'done' && run()?.hasRows === false;
  return (
    <>
      <Trouble {...props} />
      <Late {...props} />
      <Show
        when={!isRowless() && props.run.runner.result()}
        fallback={
          <Show when={isRowless() && run()}>
            {(done) => <p class="cell-outcome">{outcome(done())}</p>}
          </Show>
        }
      >
        {(result) => (
          <div class="cell-result" style={{ 'max-height': usualHeight(props, result()) }}>
            <Switch>
              <Match when={props.cell.view === 'grid'}>
                <CellGrid {...props} result={result()} />
              </Match>
              <Match when={props.cell.view === 'chart'}>
                <CellChart {...props} result={result()} />
              </Match>
            </Switch>
          </div>
        )}
      </Show>
    </>
  );
}

const HEAD_PX = 46;
const ROW_PX = 26;
const MIN_ROWS = 2;

/**
 * Limits the height of a result. In the list layout, a grid with few rows is shorter than usual.
 */
function usualHeight({ cell, document: doc, maximised, run }: ResultProps, result: Result): string {
  const isFree = doc.notebook().layout === 'grid' || maximised() !== undefined;
  const { rows } = asOf(result, run.revision());
  return isFree || cell.view === 'chart'
    ? 'none'
    : `${HEAD_PX + Math.max(MIN_ROWS, rows.length) * ROW_PX}px`;
}

function CellGrid(props: ResultProps & { result: Result }): JSX.Element {
  const state = createMemo(() => gridStateOf(props.run));
  createEffect(() => state().adopt(props.result.columns));
  const order = createMemo((): RowOrder => {
    const { columns, rows } = asOf(props.result, props.run.revision());
    return orderOf(columns, rows, state().sort(), state().filter());
  });
  return (
    <Grid
      name={`${props.cell.id}-`}
      result={props.result}
      revision={props.run.revision()}
      state={state()}
      order={order()}
      zone={zone()}
      onLeave={() => undefined}
    />
  );
}

function CellChart(props: ResultProps & { result: Result }): JSX.Element {
  return (
    <Suspense fallback={<div class="chart" />}>
      <Chart
        result={props.result}
        revision={props.run.revision()}
        zone={zone()}
        name={props.cell.name}
        {...(props.cell.chart === undefined ? {} : { kind: props.cell.chart })}
        onKind={(chart) =>
          props.document.change({ kind: 'change', id: props.cell.id, patch: { chart } })
        }
        options={props.cell.options ?? NO_OPTIONS}
        onOptions={(options) => {
          const patch = { options: Object.keys(options).length === 0 ? undefined : options };
          props.document.change({ kind: 'change', id: props.cell.id, patch });
        }}
        annotate={(text, signal) => annotate(annotationQuery(props, text), signal)}
        onRange={(range) => props.refresher.zoom(range)}
        onPick={(row) => {
          const patch = { view: 'grid' } as const;
          props.document.change({ kind: 'change', id: props.cell.id, patch });
          gridStateOf(props.run).seek(row);
        }}
      />
    </Suspense>
  );
}

const NO_OPTIONS: ChartOptions = {};

/**
 * Composes an annotation query. It can refer to the notebook's variables, this cell and the cells
 * above, as if it were the next cell.
 */
function annotationQuery({ cell, document: doc }: ResultProps, text: string): string {
  const notebook = doc.asRun();
  const at = notebook.cells.findIndex(({ id }) => id === cell.id);
  const id = 'annotations';
  const added: SqlCell = { kind: 'sql', id, name: freeName(notebook), text, view: 'grid' };
  const cells = [...notebook.cells.slice(0, at + 1), added];
  const { statement, trouble } = compose({ ...notebook, cells }, id, Date.now());
  if (trouble) {
    throw new Error(trouble.message);
  }
  return statement.bound.text;
}

/** Explains why the cell did not run, or why it failed. */
function Trouble(props: ResultProps): JSX.Element {
  const trouble = createMemo(() => props.run.trouble());
  const failure = (): string | undefined => props.run.runner.run()?.failure?.message;
  return (
    <Show when={trouble()?.message ?? failure()}>
      {(message) => (
        <p class="cell-trouble" role="alert">
          <Icon name="alert" />
          <bdi>{message()}</bdi>
          <Show when={(trouble()?.statements ?? 0) > 1}>
            <button class="button small" onClick={() => split(props)}>
              {texts.cells.splitIntoCells}
            </button>
          </Show>
        </p>
      )}
    </Show>
  );
}

/** Explains why the cell's rows are out of date. */
function Late(props: ResultProps): JSX.Element {
  const at = (): string => props.run.at()?.toTimeString().slice(0, 8) ?? '–';
  return (
    <Show when={props.run.late()}>
      {(reason) => (
        <p class="cell-late">
          <Icon name="clock" />
          <span>
            {fillNodes(texts.cells.outdated, { reason: <bdi>{reason()}</bdi>, at: at() })}
          </span>
        </p>
      )}
    </Show>
  );
}
