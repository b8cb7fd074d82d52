/**
 * The result as a grid. Only the rows and columns in view exist as elements; they are reused while
 * scrolling. One tab stop: the arrow keys move a cell cursor that is drawn, not focused.
 */
import {
  createEffect,
  createMemo,
  createSignal,
  Index,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { cellText, copyRows, copyText, type CellText, type Zone } from '../model/format.js';
import { typeName, type ColumnLayout, type Result } from '../model/result.js';
import { isNumeric } from '../model/types.js';
import { announce, copy } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import { moveCell, type Cell } from './keys.js';
import { columnWindow, edgesOf, rowWindow, scrollInto } from './window.js';

const ROW_HEIGHT = 26;
const HEAD_HEIGHT = 42;
const SPARE_ROWS = 8;
const CELL_PADDING = 24;
const NARROWEST = 56;
const WIDEST = 560;

interface GridProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
  readonly onLeave: () => void;
}

/** Width of one character of the data font, measured once. */
const charWidth = ((): (() => number) => {
  let width = 0;
  return () => {
    if (width > 0) {
      return width;
    }
    const context = document.createElement('canvas').getContext('2d');
    if (!context) {
      return 7.3;
    }
    const style = getComputedStyle(document.documentElement);
    context.font = `12px ${style.getPropertyValue('--font-data')}`;
    return (width = context.measureText('0'.repeat(20)).width / 20 || 7.3);
  };
})();

export function Grid(props: GridProps): JSX.Element {
  let scroller!: HTMLDivElement;
  const [scroll, setScroll] = createSignal({ top: 0, left: 0 });
  const [view, setView] = createSignal({ width: 800, height: 400 });
  const [cell, setCell] = createSignal<Cell>({ row: 0, column: 0 });
  const [dragged, setDragged] = createSignal<ReadonlyMap<number, number>>(new Map());

  const rowCount = createMemo(() => (props.revision, props.result.rows.length));
  const numberWidth = createMemo(() => Math.max(48, String(rowCount()).length * 8 + 20));
  const widths = createMemo(() => {
    props.revision;
    return props.result.layout.map((layout, index) => dragged().get(index) ?? naturalWidth(layout));
  });
  const edges = createMemo(() => edgesOf(widths()));
  const rows = createMemo(() =>
    rowWindow(scroll().top, view().height - HEAD_HEIGHT, ROW_HEIGHT, rowCount(), SPARE_ROWS),
  );
  const columns = createMemo(() =>
    columnWindow(scroll().left, view().width - numberWidth(), edges()),
  );
  const rowIndexes = createMemo(() => indexes(rows().first, rows().end));
  const columnIndexes = createMemo(() => indexes(columns().first, columns().end));
  const totalWidth = (): number => numberWidth() + (edges().at(-1) ?? 0);

  createEffect(
    on(
      () => props.result,
      () => {
        setCell({ row: 0, column: 0 });
        setDragged(new Map());
        scroller.scrollTo(0, 0);
      },
      { defer: true },
    ),
  );

  onMount(() => {
    const observer = new ResizeObserver(() =>
      setView({ width: scroller.clientWidth, height: scroller.clientHeight }),
    );
    observer.observe(scroller);
    onCleanup(() => observer.disconnect());
  });

  const reveal = (target: Cell): void => {
    const start = edges()[target.column] ?? 0;
    const end = edges()[target.column + 1] ?? start;
    const top = target.row * ROW_HEIGHT;
    scroller.scrollTo(
      scrollInto(scroller.scrollLeft, view().width - numberWidth(), start, end),
      scrollInto(scroller.scrollTop, view().height - HEAD_HEIGHT, top, top + ROW_HEIGHT),
    );
  };

  const copyCell = (): void => {
    const { row, column } = cell();
    void copy(copyText(props.result.cell(row, column)), 'Cell');
  };

  const copyRow = (): void => {
    const row = props.result.rows[cell().row];
    if (row) {
      void copy(copyRows(props.result.columns, [row]), 'Row with header');
    }
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const page = Math.max(1, Math.floor((view().height - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
    const bounds = { rows: rowCount(), columns: props.result.columns.length, page };
    const next = moveCell(cell(), event, bounds);
    if (next) {
      setCell(next);
      reveal(next);
      announceCell(props, next);
    } else if ((event.ctrlKey || event.metaKey) && event.code === 'KeyC') {
      if (event.shiftKey) {
        copyRow();
      } else if (getSelection()?.toString()) {
        return;
      } else {
        copyCell();
      }
    } else if (event.key === 'F2') {
      props.onLeave();
    } else {
      return;
    }
    event.preventDefault();
  };

  const drag = (index: number, event: PointerEvent): void => {
    event.preventDefault();
    const handle = event.currentTarget as HTMLElement;
    const from = event.clientX;
    const width = widths()[index] ?? NARROWEST;
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (move) => {
      const next = Math.max(NARROWEST, Math.min(1200, width + move.clientX - from));
      setDragged(new Map(dragged()).set(index, next));
    };
    handle.onpointerup = () => (handle.onpointermove = handle.onpointerup = null);
  };

  return (
    <div
      ref={scroller}
      class="grid"
      role="grid"
      tabindex="0"
      data-region="grid"
      aria-label={`Result, ${rowCount()} rows, ${props.result.columns.length} columns`}
      aria-rowcount={rowCount() + 1}
      aria-colcount={props.result.columns.length + 1}
      aria-activedescendant={rowCount() > 0 ? `cell-${cell().row}-${cell().column}` : undefined}
      onScroll={() => setScroll({ top: scroller.scrollTop, left: scroller.scrollLeft })}
      onKeyDown={onKeyDown}
    >
      <div
        class="grid-canvas"
        style={{
          width: `${totalWidth()}px`,
          height: `${HEAD_HEIGHT + rowCount() * ROW_HEIGHT}px`,
        }}
      >
        <div class="grid-head" role="row" aria-rowindex="1">
          <span
            class="grid-number"
            role="columnheader"
            aria-label="Row"
            style={{ width: `${numberWidth()}px` }}
          />
          <Index each={columnIndexes()}>
            {(index) => (
              <HeadCell
                layout={props.result.layout[index()]}
                index={index()}
                left={numberWidth() + (edges()[index()] ?? 0)}
                width={widths()[index()] ?? 0}
                designated={index() === props.result.timestamp}
                onDrag={(event) => drag(index(), event)}
              />
            )}
          </Index>
        </div>
        <Index each={rowIndexes()}>
          {(row) => (
            <div
              class="grid-row"
              role="row"
              aria-rowindex={row() + 2}
              classList={{ selected: row() === cell().row }}
              style={{ transform: `translateY(${HEAD_HEIGHT + row() * ROW_HEIGHT}px)` }}
            >
              <span class="grid-number" role="rowheader" style={{ width: `${numberWidth()}px` }}>
                {row() + 1}
              </span>
              <Index each={columnIndexes()}>
                {(index) => (
                  <BodyCell
                    {...props}
                    row={row()}
                    index={index()}
                    left={numberWidth() + (edges()[index()] ?? 0)}
                    width={widths()[index()] ?? 0}
                    focused={row() === cell().row && index() === cell().column}
                    onSelect={() => setCell({ row: row(), column: index() })}
                    onCopy={copyCell}
                  />
                )}
              </Index>
            </div>
          )}
        </Index>
      </div>
    </div>
  );
}

function naturalWidth({ chars, column }: ColumnLayout): number {
  const marks = isNumeric(column.type) ? 0 : 6;
  return Math.round(
    Math.max(NARROWEST, Math.min(WIDEST, chars * charWidth() + CELL_PADDING + marks)),
  );
}

function indexes(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
}

function announceCell(props: GridProps, { row, column }: Cell): void {
  const layout = props.result.layout[column];
  if (!layout) {
    return;
  }
  const shown = cellText(props.result.cell(row, column), layout.column, props.zone, layout.digits);
  announce(`${layout.column.name}, row ${row + 1}: ${shown.text}${shown.faint ?? ''}`);
}

function HeadCell(props: {
  layout: ColumnLayout | undefined;
  index: number;
  left: number;
  width: number;
  designated: boolean;
  onDrag: (event: PointerEvent) => void;
}): JSX.Element {
  const type = (): string => (props.layout ? typeName(props.layout.column) : '');
  const name = (): string => props.layout?.column.name ?? '';
  return (
    <span
      class="grid-head-cell"
      role="columnheader"
      aria-colindex={props.index + 2}
      classList={{ right: isNumeric(props.layout?.column.type ?? '') }}
      style={{ left: `${props.left}px`, width: `${props.width}px` }}
      title={`${name()} ${type()}`}
    >
      <span class="grid-head-name">
        <bdi>{name()}</bdi>
        <Show when={props.designated}>
          <Icon name="clock" />
        </Show>
      </span>
      <span class="grid-head-type">{type()}</span>
      <span class="grid-resize" aria-hidden="true" onPointerDown={(event) => props.onDrag(event)} />
    </span>
  );
}

interface BodyCellProps extends GridProps {
  readonly row: number;
  readonly index: number;
  readonly left: number;
  readonly width: number;
  readonly focused: boolean;
  readonly onSelect: () => void;
  readonly onCopy: () => void;
}

function BodyCell(props: BodyCellProps): JSX.Element {
  const shown = createMemo((): CellText => {
    props.revision;
    const layout = props.result.layout[props.index];
    if (!layout) {
      return { kind: 'plain', text: '' };
    }
    const value = props.result.cell(props.row, props.index);
    return cellText(value, layout.column, props.zone, layout.digits);
  });
  const overlong = (): boolean => shown().text.length * charWidth() > props.width - CELL_PADDING;
  return (
    <span
      id={`cell-${props.row}-${props.index}`}
      role="gridcell"
      aria-colindex={props.index + 2}
      class={`grid-cell is-${shown().kind}`}
      classList={{
        right: isNumeric(props.result.columns[props.index]?.type ?? ''),
        focused: props.focused,
        no: shown().text === 'false',
      }}
      style={{ left: `${props.left}px`, width: `${props.width}px` }}
      title={overlong() ? shown().text : undefined}
      onPointerDown={() => props.onSelect()}
      onDblClick={() => props.onCopy()}
    >
      <span class="grid-value">{shown().text}</span>
      <Show when={shown().faint}>
        <span class="grid-faint">{shown().faint}</span>
      </Show>
    </span>
  );
}
