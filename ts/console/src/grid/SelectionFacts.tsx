/** Size and aggregates of the selected cells, in one line below the grid. */
import { createMemo, Show, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import { isNumeric } from '../model/types.js';
import type { GridParts } from './parts.js';
import { cellsIn, factsOf, type Facts } from './selection.js';
import { valuesIn } from './copying.js';

/**
 * Maximum cells to sum; larger selections are only counted, because the sum must keep up with the
 * pointer.
 */
const MAX_SUMMED = 1_000_000;
const DIGITS = 12;

export function SelectionFacts(props: GridParts): JSX.Element {
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
        <p class="grid-facts" aria-label="Selected cells">
          <span>
            {grouped(String(selection().bottom - selection().top + 1))} ×{' '}
            {grouped(String(selection().right - selection().left + 1))} cells
          </span>
          <Show when={facts()} fallback={<span>too many to aggregate</span>}>
            {(known) => (
              <>
                <Show when={known().cells < cellsIn(selection())}>
                  <span>
                    <b>{grouped(String(known().cells))}</b> loaded
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
          Null <b>{grouped(String(props.facts.cells - props.facts.values))}</b>
        </span>
      </Show>
      <Show when={props.facts.sum}>
        {(sum) => (
          <>
            <span>
              Sum <b>{grouped(sum().length > 20 ? sum() : exactOr(sum(), rounded))}</b>
            </span>
            <span>
              Average <b>{rounded(props.facts.average)}</b>
            </span>
            <span>
              Min <b>{rounded(props.facts.least)}</b>
            </span>
            <span>
              Max <b>{rounded(props.facts.greatest)}</b>
            </span>
          </>
        )}
      </Show>
    </>
  );
}

/** Integer sums in full; other sums without the digits beyond the precision of a double. */
function exactOr(sum: string, rounded: (value: number) => string): string {
  return /^-?\d+$/.test(sum) ? sum : rounded(Number(sum)).replaceAll(',', '');
}
