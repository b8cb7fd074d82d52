/**
 * The result as a grid. Only the rows and columns in view exist as elements; what stays in view
 * is left alone. One tab stop: the arrow keys move a cell cursor that is drawn, not focused.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  mergeProps,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { copyRows, copyText } from '../model/format.js';
import { announce, copy } from '../shell/announce.js';
import { openMenu, openMenuBelow } from '../shell/Menu.js';
import { columnMenu } from './column-menu.js';
import { GridBody } from './GridBody.js';
import { GridHead } from './GridHead.js';
import { Inspector } from './Inspector.js';
import { moveCell, type Cell } from './keys.js';
import { GridLayout } from './layout.js';
import { followScroll, followTail } from './tail.js';
import { cellId, shownCell, type GridParts, type GridProps } from './parts.js';

export function Grid(props: GridProps): JSX.Element {
  let scroller!: HTMLDivElement;
  const layout = new GridLayout(props);
  const [moved, setCell] = createSignal<Cell>({ row: 0, column: 0 });
  const cell = createMemo(() => withinRows(moved(), layout.rowCount()));

  const go = (to: Partial<Cell>): void => {
    setCell({ ...cell(), ...to });
    layout.reveal(scroller, cell());
  };
  const act = (column: number): void => go({ column });
  follow(props, layout, () => scroller, setCell);
  followTail(props, () => scroller, cell, setCell);
  followSought(props, layout, (row) => {
    go({ row });
    scroller.focus();
  });
  const parts = gridParts(props, layout, cell, setCell);
  const commands = (): void => {
    const focused = document.getElementById(cellId(cell(), props.name));
    openMenuBelow('Column', focused ?? scroller, columnMenu(parts, cell().column, act));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const columns = props.result.columns.length;
    const next = moveCell(cell(), event, { rows: layout.rowCount(), columns, page: layout.page });
    if (next) {
      setCell(next);
      layout.reveal(scroller, next);
      announceCell(parts, next);
    } else if (!copyByKey(event, parts) && !arrangeByKey(event, parts, { act, commands })) {
      return;
    }
    event.preventDefault();
  };

  return (
    <div class="grid-and-inspector" classList={{ inspecting: props.state.inspected() }}>
      <div
        ref={scroller}
        class="grid"
        role="grid"
        tabindex="0"
        data-region="grid"
        aria-label={`Result, ${layout.rowCount()} rows, ${props.result.columns.length} columns`}
        aria-rowcount={layout.rowCount() + 1}
        aria-colcount={props.result.columns.length + 1}
        aria-activedescendant={shownCellId(layout, cell(), props.name)}
        onScroll={() => followScroll(props, layout, scroller)}
        onKeyDown={onKeyDown}
      >
        <div
          class="grid-canvas"
          style={{ width: `${layout.totalWidth}px`, height: `${layout.totalHeight}px` }}
        >
          <GridHead
            {...parts}
            scroller={() => scroller}
            onMenu={(place, x, y) => openMenu('Column', x, y, columnMenu(parts, place, act))}
          />
          <GridBody {...parts} />
        </div>
      </div>
      <Show when={props.state.inspected()}>
        <Inspector {...parts} onClose={() => leaveInspector(props, scroller)} />
      </Show>
    </div>
  );
}

/** A cell that is scrolled out of view has no element to point at. */
function shownCellId(layout: GridLayout, cell: Cell, name?: string): string | undefined {
  const isShown = layout.rows().includes(cell.row) && layout.columns().includes(cell.column);
  return isShown ? cellId(cell, name) : undefined;
}

function leaveInspector({ state }: GridProps, scroller: HTMLElement): void {
  state.inspect(false);
  scroller.focus();
}

/** A filter may leave fewer rows than the cursor has come to. */
function withinRows({ row, column }: Cell, rows: number): Cell {
  return { row: Math.max(0, Math.min(row, rows - 1)), column };
}

/** Keeps the scroll in step: with the element's size, back to the start for another result. */
function follow(
  props: GridProps,
  layout: GridLayout,
  scroller: () => HTMLElement,
  select: (cell: Cell) => void,
): void {
  const startOver = (): void => {
    select({ row: 0, column: 0 });
    scroller().scrollTo(0, 0);
  };
  const toTop = (): void => scroller().scrollTo(scroller().scrollLeft, 0);
  createEffect(on(() => props.result, startOver, { defer: true }));
  createEffect(on(() => props.order, toTop, { defer: true }));
  onMount(() => {
    const observer = new ResizeObserver(() => layout.fit(scroller()));
    observer.observe(scroller());
    onCleanup(() => observer.disconnect());
  });
}

/** Goes to the row that something else points at, where the filter has left it. */
function followSought(props: GridProps, layout: GridLayout, go: (place: number) => void): void {
  createEffect(
    on(
      () => props.state.sought(),
      (sought) => {
        if (!sought) {
          return;
        }
        props.state.found();
        const place = props.order?.indexOf(sought.row) ?? sought.row;
        if (place < 0) {
          announce('The filter hides this row.');
        } else if (place < layout.rowCount()) {
          // What is sought is found before the grid has its size, when it comes to the front.
          queueMicrotask(() => go(place));
        }
      },
    ),
  );
}

/** What the parts read: the grid's properties as they are now, its layout and cursor. */
function gridParts(
  props: GridProps,
  layout: GridLayout,
  cell: () => Cell,
  onSelect: (cell: Cell) => void,
): GridParts {
  return mergeProps(props, {
    layout,
    onSelect,
    get cell() {
      return cell();
    },
  });
}

/** Ctrl+C copies the cell, with Shift the row and its header; a marked text copies itself. */
function copyByKey(event: KeyboardEvent, { result, layout, cell, state }: GridParts): boolean {
  if (!(event.ctrlKey || event.metaKey) || event.code !== 'KeyC') {
    return false;
  }
  const row = layout.rowAt(cell.row);
  if (result.rows[row] === undefined || getSelection()?.toString()) {
    return false;
  }
  if (event.shiftKey) {
    const order = state.order(result.columns.length);
    const columns = order.flatMap((column) => result.columns[column] ?? []);
    const values = order.map((column) => result.cell(row, column));
    void copy(copyRows(columns, [values]), 'Row with header');
  } else {
    void copy(copyText(result.cell(row, layout.columnAt(cell.column))), 'Cell');
  }
  return true;
}

interface Ways {
  readonly act: (place: number) => void;
  readonly commands: () => void;
}

/** The keys that arrange columns, open the inspector or leave. */
function arrangeByKey(event: KeyboardEvent, parts: GridParts, { act, commands }: Ways): boolean {
  const { state, result, cell, onLeave } = parts;
  if ((event.ctrlKey || event.metaKey) && event.code === 'KeyB') {
    state.reset();
    announce('Columns, order and filter of the grid are reset.');
    return true;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) {
    return false;
  }
  switch (event.key) {
    case '/':
      state.move(result.columns.length, cell.column, 0);
      act(0);
      return true;
    case 'Enter':
      state.inspect(true);
      return true;
    case 'Escape':
      state.inspect(false);
      return true;
    case 'ContextMenu':
      commands();
      return true;
    case 'F10':
      if (event.shiftKey) {
        commands();
      }
      return event.shiftKey;
    case 'F2':
      onLeave();
      return true;
    default:
      return false;
  }
}

function announceCell({ result, layout, zone }: GridParts, cell: Cell): void {
  const place = { row: layout.rowAt(cell.row), column: layout.columnAt(cell.column) };
  const column = result.columns[place.column];
  if (column) {
    const { text, faint } = shownCell(result, place, zone);
    announce(`${column.name}, row ${layout.numberAt(cell.row)}: ${text}${faint ?? ''}`);
  }
}
