/**
 * Shows a result as a grid. Only visible rows and columns have elements, and elements that stay
 * visible are not updated. The grid is a single tab stop. The arrow keys move a cell cursor, which
 * is drawn without moving the focus.
 */
import {
  batch,
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
import { announce } from '../page/notices.js';
import { openMenu, openMenuBelow } from '../ui/Menu.js';
import { columnMenu } from './column-menu.js';
import { copyByKey } from './copying.js';
import { GridBody } from './GridBody.js';
import { GridHead } from './GridHead.js';
import { Inspector } from './Inspector.js';
import { moveCell, type Cell } from './keys.js';
import { GridLayout } from './layout.js';
import { followScroll, followTail } from './tail.js';
import { cellId, shownCell, type GridContext, type GridProps } from './context.js';
import { Printed } from './Printed.js';
import { between, cellsIn, type Selection } from './selection.js';
import { SelectionFacts } from './SelectionFacts.js';
import { fill } from '../fill.js';
import { countText, rowsText } from '../model/format.js';
import { texts } from '../texts.js';

export function Grid(props: GridProps): JSX.Element {
  let scroller!: HTMLDivElement;
  const layout = new GridLayout(props);
  const { cell, select, selectTo, selection, setCell, deselect } = cursorOf(props, layout);
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
  const context = gridContext(props, { layout, cell, selection, select });
  const commands = (): void => {
    const focused = document.getElementById(cellId(cell(), props.name)) ?? scroller;
    openMenuBelow(texts.common.column, focused, columnMenu(context, cell().column, act));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const columns = props.result.columns.length;
    const next = moveCell(cell(), event, { rows: layout.rowCount(), columns, page: layout.page });
    if (next) {
      select(next, event.shiftKey);
      layout.reveal(scroller, next);
      announceCell(context, next);
    } else if (event.key === 'Escape' && selection()) {
      deselect();
    } else if (isSelectAll(event)) {
      selectTo({ row: layout.rowCount() - 1, column: columns - 1 });
    } else if (!copyByKey(event, context) && !arrangeByKey(event, context, { act, commands })) {
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
        aria-label={labelOf(props, layout)}
        aria-rowcount={layout.rowCount() + 1}
        aria-colcount={props.result.columns.length + 1}
        aria-multiselectable="true"
        aria-activedescendant={shownCellId(layout, cell(), props.name)}
        onScroll={() => followScroll(props, layout, scroller)}
        onKeyDown={onKeyDown}
      >
        <div class="grid-canvas" style={canvasSize(layout)}>
          <GridHead
            {...context}
            scroller={() => scroller}
            onMenu={(position, x, y) =>
              openMenu(texts.common.column, x, y, columnMenu(context, position, act))
            }
          />
          <GridBody {...context} scroller={() => scroller} />
        </div>
      </div>
      <BesideGrid {...context} scroller={() => scroller} />
    </div>
  );
}

function canvasSize({ totalWidth, totalHeight }: GridLayout): { width: string; height: string } {
  return { width: `${totalWidth}px`, height: `${totalHeight}px` };
}

function labelOf({ result }: GridProps, layout: GridLayout): string {
  return fill(texts.grid.label, {
    rows: rowsText(layout.rowCount()),
    columns: countText(result.columns.length, texts.counts.columns),
  });
}

function BesideGrid(props: GridContext & { readonly scroller: () => HTMLElement }): JSX.Element {
  return (
    <>
      <Printed {...props} />
      <SelectionFacts {...props} />
      <Show when={props.state.inspected()}>
        <Inspector {...props} onClose={() => leaveInspector(props, props.scroller())} />
      </Show>
    </>
  );
}

/**
 * Creates the state of the cursor and the selection. The selection extends from its anchor to the
 * cursor.
 */
function cursorOf(props: GridProps, layout: GridLayout) {
  const [moved, moveTo] = createSignal<Cell>({ row: 0, column: 0 });
  const cell = createMemo(() => withinRows(moved(), layout.rowCount()));
  // The corner of the selection that does not move.
  const [anchor, setAnchor] = createSignal<Cell>();
  const setCell = (to: Cell): void => select(to, false);
  const select = (to: Cell, extend = false): void =>
    batch(() => {
      setAnchor(extend ? (anchor() ?? cell()) : undefined);
      moveTo(to);
    });
  const selection = createMemo((): Selection | undefined => {
    const from = anchor();
    const chosen = from && between(withinRows(from, layout.rowCount()), cell());
    return chosen && cellsIn(chosen) > 1 ? chosen : undefined;
  });
  const deselect = (): void => {
    setAnchor(undefined);
  };
  createEffect(on([() => props.result, () => props.order], deselect));
  // Select all cells from the first one to `last`.
  const selectTo = (last: Cell): void => {
    setCell({ row: 0, column: 0 });
    select(last, true);
  };
  return { cell, select, selectTo, selection, setCell, deselect };
}

/**
 * Returns the element id of a cell, or `undefined` if the cell is not visible and so has no
 * element.
 */
function shownCellId(layout: GridLayout, cell: Cell, name?: string): string | undefined {
  const isShown = layout.rows().includes(cell.row) && layout.columns().includes(cell.column);
  return isShown ? cellId(cell, name) : undefined;
}

function leaveInspector({ state }: GridProps, scroller: HTMLElement): void {
  state.inspected.set(false);
  scroller.focus();
}

/** Moves a cell into the row range, because a filter may have reduced the number of rows. */
function withinRows({ row, column }: Cell, rows: number): Cell {
  return { row: Math.max(0, Math.min(row, rows - 1)), column };
}

/**
 * Adapts the layout to the element's size, and scrolls back to the start when the result changes.
 */
function follow(
  props: GridProps,
  layout: GridLayout,
  scroller: () => HTMLElement,
  select: (cell: Cell) => void,
): void {
  const reset = (): void => {
    if (!props.result.keepsPosition) {
      select({ row: 0, column: 0 });
      layout.scrollTo(scroller(), 0, 0);
    }
  };
  const toTop = (): void => layout.scrollTo(scroller(), scroller().scrollLeft, 0);
  createEffect(on(() => props.result, reset, { defer: true }));
  createEffect(on(() => props.order, toTop, { defer: true }));
  followRows(props, layout);
  onMount(() => {
    const observer = new ResizeObserver(() => layout.fit(scroller()));
    observer.observe(scroller());
    onCleanup(() => observer.disconnect());
  });
}

/** Loads the visible rows that are not loaded yet. */
function followRows(props: GridProps, layout: GridLayout): void {
  createEffect(() => {
    const positions = layout.rows();
    const [first] = positions;
    const { windows } = props.result;
    if (windows && !props.order && first !== undefined) {
      windows.setVisible(first, first + positions.length);
    }
  });
}

/** Scrolls to a row when another view requests it. If the filter hides the row, tells the user. */
function followSought(props: GridProps, layout: GridLayout, go: (position: number) => void): void {
  createEffect(
    on(
      () => props.state.sought(),
      (sought) => {
        if (!sought) {
          return;
        }
        props.state.found();
        const position = layout.positionOf(sought.row);
        if (position === undefined) {
          announce(texts.grid.filterHidesRow);
        } else {
          // Wait until the grid has its size, because it may have just become visible.
          queueMicrotask(() => go(position));
        }
      },
    ),
  );
}

interface Cursor {
  readonly layout: GridLayout;
  readonly cell: () => Cell;
  readonly selection: () => Selection | undefined;
  readonly select: (cell: Cell, extend?: boolean) => void;
}

/** Creates the context for the grid's components: properties, layout, cursor and selection. */
function gridContext(props: GridProps, { layout, cell, selection, select }: Cursor): GridContext {
  return mergeProps(props, {
    layout,
    onSelect: select,
    get cell() {
      return cell();
    },
    get selection() {
      return selection();
    },
  });
}

function isSelectAll(event: KeyboardEvent): boolean {
  return (event.ctrlKey || event.metaKey) && event.code === 'KeyA';
}

interface GridActions {
  readonly act: (position: number) => void;
  readonly commands: () => void;
}

/** Handles the keys that arrange columns, open the inspector or leave the grid. */
function arrangeByKey(
  event: KeyboardEvent,
  context: GridContext,
  { act, commands }: GridActions,
): boolean {
  const { state, result, cell, onLeave } = context;
  if ((event.ctrlKey || event.metaKey) && event.code === 'KeyB') {
    state.reset();
    announce(texts.grid.wasReset);
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
      state.inspected.set(true);
      return true;
    case 'Escape':
      state.inspected.set(false);
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

function announceCell({ result, layout, zone }: GridContext, cell: Cell): void {
  const position = { row: layout.rowAt(cell.row), column: layout.columnAt(cell.column) };
  const column = result.columns[position.column];
  if (column) {
    const { text, faint } = shownCell(result, position, zone);
    announce(
      fill(texts.grid.cellDescription, {
        column: column.name,
        number: layout.numberAt(cell.row),
        text,
        faint: faint ?? '',
      }),
    );
  }
}
