/** Line below the grid with the size and the aggregates of the selection. */
import { createMemo, Show, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import { isNumeric } from '../model/types.js';
import type { GridContext } from './context.js';
import { cellsIn, factsOf, type Facts } from './selection.js';
import { valuesIn } from './copying.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

/**
 * Maximum number of cells to sum. Larger selections are only counted, because the sum is recomputed
 * on every pointer move.
 */
const MAX_SUMMED = 1_000_000;
const DIGITS = 12;

export function SelectionFacts(props: GridContext): JSX.Element {
  const facts = createMemo((): Facts | undefined => {
    const { selection, layout, result } = props;
    if (!selection || cellsIn(selection) > MAX_SUMMED) {
      return undefined;
    }
    const types = valuesIn.columns(props, selection).map((column) => result.columns[column]?.type);
    void layout.rowCount();
    void result.windows?.edition();
    return factsOf(
      valuesIn.rows(props, selection),
      types.map((type) => isNumeric(type ?? '')),
    );
  });
  return (
    <Show when={props.selection}>
      {(selection) => (
        <p class="grid-facts" aria-label={texts.grid.selectedCells}>
          <span>
            {fill(texts.grid.selectionSize, {
              rows: grouped(String(selection().bottom - selection().top + 1)),
              columns: grouped(String(selection().right - selection().left + 1)),
            })}
          </span>
          <Show when={facts()} fallback={<span>{texts.grid.tooManyCells}</span>}>
            {(known) => (
              <>
                <Show when={known().cells < cellsIn(selection())}>
                  <span>
                    {fillNodes(texts.grid.loadedCells, {
                      count: <b>{grouped(String(known().cells))}</b>,
                    })}
                  </span>
                </Show>
                <Sums facts={known()} />
              </>
            )}
          </Show>
        </p>
      )}
    </Show>
  );
}

function Sums(props: { facts: Facts }): JSX.Element {
  const rounded = (value: number | undefined): string =>
    value === undefined ? '' : grouped(String(Number(value.toPrecision(DIGITS))));
  return (
    <>
      <Show when={props.facts.values < props.facts.cells}>
        <span>
          {fillNodes(texts.grid.nulls, {
            count: <b>{grouped(String(props.facts.cells - props.facts.values))}</b>,
          })}
        </span>
      </Show>
      <Show when={props.facts.sum}>
        {(sum) => (
          <>
            <span>
              {fillNodes(texts.grid.sum, {
                sum: <b>{grouped(sum().length > 20 ? sum() : exactOr(sum(), rounded))}</b>,
              })}
            </span>
            <span>
              {fillNodes(texts.grid.average, { value: <b>{rounded(props.facts.average)}</b> })}
            </span>
            <span>{fillNodes(texts.grid.min, { value: <b>{rounded(props.facts.min)}</b> })}</span>
            <span>{fillNodes(texts.grid.max, { value: <b>{rounded(props.facts.max)}</b> })}</span>
          </>
        )}
      </Show>
    </>
  );
}

/** Formats integer sums in full. Other sums are rounded to the precision of a double. */
function exactOr(sum: string, rounded: (value: number) => string): string {
  return /^-?\d+$/.test(sum) ? sum : rounded(Number(sum)).replaceAll(',', '');
}
