/**
 * Note below the grid that states which rows of a large result are loaded, and how to load others.
 */
import { Match, Switch, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import type { RowOrder } from '../model/order.js';
import { MAX_ROWS, type Result } from '../model/result.js';
import type { Windows } from '../model/windows.js';
import type { Statements } from '../state/statements.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface LoadedRowsProps {
  readonly statements: Statements;
  readonly result: Result;
  readonly order: RowOrder;
}

export function LoadedRows(props: LoadedRowsProps): JSX.Element {
  const why = (): string | undefined => {
    const lazyRows = props.result.lazyRows();
    return typeof lazyRows === 'string' ? lazyRows : undefined;
  };
  return (
    <Switch>
      <Match when={why()}>{(known) => <Pages {...props} why={known()} />}</Match>
      <Match when={props.result.windows}>
        {(windows) => <LazyRows {...props} windows={windows()} />}
      </Match>
    </Switch>
  );
}

/** Note for a result whose rows are loaded when they become visible. */
function LazyRows(props: LoadedRowsProps & { windows: Windows }): JSX.Element {
  const loaded = (): string => {
    const { skipped, rows } = props.result;
    return fill(texts.common.fromTo, {
      from: grouped(String(skipped + 1)),
      to: grouped(String(skipped + rows.length)),
    });
  };
  return (
    <Switch>
      <Match when={props.windows.failure()}>
        {(failure) => (
          <p class="grid-note" role="status">
            <span>{fill(texts.grid.notLoaded, { reason: failure() })}</span>
            <button class="button small" onClick={() => props.windows.retry()}>
              {texts.common.tryAgain}
            </button>
          </p>
        )}
      </Match>
      <Match when={props.order}>
        <p class="grid-note">
          {fill(texts.grid.filterOfPart, {
            loaded: loaded(),
            total: grouped(String(props.windows.total)),
          })}
        </p>
      </Match>
      <Match when={props.windows.notice}>{(notice) => <p class="grid-note">{notice()}</p>}</Match>
    </Switch>
  );
}

/**
 * Note with page buttons, for a query whose rows may differ between runs. Each button runs the
 * query again.
 */
function Pages(props: LoadedRowsProps & { why: string }): JSX.Element {
  const first = (): number => props.result.skipped;
  const end = (): number => first() + props.result.rows.length;
  const all = (): string => {
    const { total = 0, isCut } = props.result;
    return isCut ? texts.grid.more : grouped(String(total));
  };
  return (
    <p class="grid-note">
      <span>
        {fill(texts.grid.shownPart, {
          from: grouped(String(first() + 1)),
          to: grouped(String(end())),
          all: all(),
          reason: props.why,
        })}
      </span>
      <button
        class="button small"
        disabled={first() === 0}
        title={texts.grid.runsAgain}
        onClick={() => void props.statements.showRows(Math.max(0, first() - MAX_ROWS))}
      >
        {texts.grid.previousRows}
      </button>
      <button
        class="button small"
        disabled={!props.result.isCut && end() >= (props.result.total ?? 0)}
        title={texts.grid.runsAgain}
        onClick={() => void props.statements.showRows(end())}
      >
        {texts.grid.nextRows}
      </button>
    </p>
  );
}
