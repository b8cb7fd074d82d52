/** The rows and cells in view. What stays in view while scrolling is left alone. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import { asOf } from '../model/result.js';
import { isNumeric } from '../model/types.js';
import type { Cell } from './keys.js';
import { HEAD_HEIGHT, ROW_HEIGHT } from './layout.js';
import { cellId, shownCell, type GridParts } from './parts.js';

export function GridBody(props: GridParts): JSX.Element {
  return (
    <For each={props.layout.rows()}>
      {(row) => (
        <div
          class="grid-row"
          role="row"
          aria-rowindex={row + 2}
          classList={{ selected: row === props.cell.row }}
          style={{ transform: `translateY(${HEAD_HEIGHT + row * ROW_HEIGHT}px)` }}
        >
          <span
            class="grid-number"
            role="rowheader"
            style={{ width: `${props.layout.numberWidth()}px` }}
          >
            {props.layout.rowAt(row) + 1}
          </span>
          <For each={props.layout.columns()}>
            {(column) => <BodyCell {...props} row={row} column={column} />}
          </For>
        </div>
      )}
    </For>
  );
}

function BodyCell(props: GridParts & { row: number; column: number }): JSX.Element {
  const place = (): Cell => ({ row: props.row, column: props.column });
  const index = (): number => props.layout.columnAt(props.column);
  const shown = createMemo(() =>
    shownCell(
      asOf(props.result, props.revision),
      { row: props.layout.rowAt(props.row), column: index() },
      props.zone,
    ),
  );
  const isFocused = (): boolean =>
    props.row === props.cell.row && props.column === props.cell.column;
  return (
    <span
      id={cellId(place())}
      role="gridcell"
      aria-colindex={props.column + 2}
      class={`grid-cell is-${shown().kind}`}
      classList={{
        right: isNumeric(props.result.columns[index()]?.type ?? ''),
        held: props.layout.isFrozen(props.column),
        focused: isFocused(),
        no: shown().text === 'false',
      }}
      style={{
        left: `${props.layout.left(props.column)}px`,
        width: `${props.layout.width(props.column)}px`,
      }}
      title={props.layout.cuts(props.column, shown().text.length) ? shown().text : undefined}
      onPointerDown={() => props.onSelect(place())}
      onDblClick={() => props.state.inspect(true)}
    >
      <span class="grid-value">{shown().text}</span>
      <Show when={shown().faint}>
        <span class="grid-faint">{shown().faint}</span>
      </Show>
    </span>
  );
}
