/**
 * Body of the grid, with the visible rows and cells. A single effect updates all of them after any
 * change.
 */
import { createEffect, createMemo, onMount, untrack, type JSX } from 'solid-js';
import { BodyView } from './body-view.js';
import { HEAD_HEIGHT } from './layout.js';
import type { Cell } from './keys.js';
import { cellAt, rowNumberAt, type GridContext } from './context.js';

export function GridBody(props: GridContext & { scroller: () => HTMLElement }): JSX.Element {
  let host!: HTMLDivElement;
  const edition = createMemo((): object => {
    const { result, revision, order, zone, layout } = props;
    const rows = result.windows?.edition();
    return { result, revision, rows, order, zone, arrangement: layout.arrangement() };
  });
  onMount(() => {
    const view = new BodyView(host);
    createEffect(() => {
      const { layout, cell, selection } = props;
      const at = { rows: layout.rows(), columns: layout.columns(), shift: layout.shift() };
      const now = { ...at, edition: edition() };
      // No tracking is needed here, because the values read per cell change only with the values
      // read above.
      untrack(() => view.show({ ...now, shown: props, layout, cell, selection }));
    });
  });
  const press = (event: PointerEvent): void => {
    if (event.button !== 0) {
      return;
    }
    const row = rowNumberAt(event.target);
    const last = props.result.columns.length - 1;
    const position = cellAt(event.target) ?? (row === undefined ? undefined : { row, column: 0 });
    if (!position) {
      return;
    }
    props.onSelect(position, event.shiftKey);
    if (row !== undefined) {
      props.onSelect({ row, column: last }, true);
    }
    dragOver(props.scroller(), (to, toRow) => {
      const far = row !== undefined && toRow !== undefined ? { row: toRow, column: last } : to;
      if (far) {
        props.onSelect(far, true);
        props.layout.reveal(props.scroller(), far);
      }
    });
  };
  return (
    <div
      ref={host}
      role="rowgroup"
      onPointerDown={press}
      onDblClick={(event) => cellAt(event.target) && props.state.inspected.set(true)}
    />
  );
}

/** Calls `over` while the pointer is pressed, with the cell or the row number under the pointer. */
function dragOver(
  scroller: HTMLElement,
  over: (cell: Cell | undefined, row: number | undefined) => void,
): void {
  const end = new AbortController();
  const { signal } = end;
  const move = (event: PointerEvent): void => {
    const { left, right, top, bottom } = scroller.getBoundingClientRect();
    // If the pointer is outside the grid, use the nearest cell. Revealing this cell scrolls the
    // grid.
    const x = Math.max(left + 2, Math.min(right - 20, event.clientX));
    const y = Math.max(top + HEAD_HEIGHT + 2, Math.min(bottom - 20, event.clientY));
    const target = document.elementFromPoint(x, y);
    const cell = cellAt(target);
    over(cell, cell?.row ?? rowNumberAt(target));
  };
  addEventListener('pointermove', move, { signal });
  addEventListener('pointerup', () => end.abort(), { signal });
  addEventListener('pointercancel', () => end.abort(), { signal });
}
