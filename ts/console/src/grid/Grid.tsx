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
import { asOf, typeName, type Result } from '../model/result.js';
import { isNumeric } from '../model/types.js';
import { announce, copy } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import { moveCell, type Cell } from './keys.js';
import { GridLayout, HEAD_HEIGHT, ROW_HEIGHT } from './layout.js';

interface GridProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
  readonly onLeave: () => void;
}

interface GridParts extends GridProps {
  readonly layout: GridLayout;
  readonly cell: Cell;
  readonly onSelect: (cell: Cell) => void;
}

export function Grid(props: GridProps): JSX.Element {
  let scroller!: HTMLDivElement;
  const layout = new GridLayout(props);
  const [cell, setCell] = createSignal<Cell>({ row: 0, column: 0 });

  const startOver = (): void => {
    setCell({ row: 0, column: 0 });
    layout.forgetWidths();
    scroller.scrollTo(0, 0);
  };
  createEffect(on(() => props.result, startOver, { defer: true }));
  onMount(() => {
    const observer = new ResizeObserver(() => layout.follow(scroller));
    observer.observe(scroller);
    onCleanup(() => observer.disconnect());
  });

  const onKeyDown = (event: KeyboardEvent): void => {
    const columns = props.result.columns.length;
    const next = moveCell(cell(), event, { rows: layout.rowCount(), columns, page: layout.page });
    if (next) {
      setCell(next);
      layout.reveal(scroller, next);
      announceCell(props, next);
    } else if (!copyByKey(event, props.result, cell())) {
      if (event.key !== 'F2') {
        return;
      }
      props.onLeave();
    }
    event.preventDefault();
  };

  return (
    <div
      ref={scroller}
      class="grid"
      role="grid"
      tabindex="0"
      data-region="grid"
      aria-label={`Result, ${layout.rowCount()} rows, ${props.result.columns.length} columns`}
      aria-rowcount={layout.rowCount() + 1}
      aria-colcount={props.result.columns.length + 1}
      aria-activedescendant={layout.rowCount() > 0 ? cellId(cell()) : undefined}
      onScroll={() => layout.follow(scroller)}
      onKeyDown={onKeyDown}
    >
      <div
        class="grid-canvas"
        style={{ width: `${layout.totalWidth}px`, height: `${layout.totalHeight}px` }}
      >
        <Head {...props} layout={layout} />
        <Body {...props} layout={layout} cell={cell()} onSelect={setCell} />
      </div>
    </div>
  );
}

function cellId({ row, column }: Cell): string {
  return `cell-${row}-${column}`;
}

/** Ctrl+C copies the cell, with Shift the row and its header; a marked text copies itself. */
function copyByKey(event: KeyboardEvent, result: Result, cell: Cell): boolean {
  if (!(event.ctrlKey || event.metaKey) || event.code !== 'KeyC') {
    return false;
  }
  const row = result.rows[cell.row];
  if (row === undefined || getSelection()?.toString()) {
    return false;
  }
  if (event.shiftKey) {
    void copy(copyRows(result.columns, [row]), 'Row with header');
  } else {
    void copy(copyText(result.cell(cell.row, cell.column)), 'Cell');
  }
  return true;
}

function announceCell(props: GridProps, cell: Cell): void {
  const column = props.result.columns[cell.column];
  if (column) {
    const { text, faint } = shownCell(props.result, cell, props.zone);
    announce(`${column.name}, row ${cell.row + 1}: ${text}${faint ?? ''}`);
  }
}

function shownCell(result: Result, { row, column }: Cell, zone: Zone): CellText {
  const layout = result.layout[column];
  if (!layout) {
    return { kind: 'plain', text: '' };
  }
  return cellText(result.cell(row, column), layout.column, zone, layout.digits);
}

function Head(props: { result: Result; layout: GridLayout }): JSX.Element {
  return (
    <div class="grid-head" role="row" aria-rowindex="1">
      <span
        class="grid-number"
        role="columnheader"
        style={{ width: `${props.layout.numberWidth()}px` }}
      >
        <span class="visually-hidden">Row</span>
      </span>
      <Index each={props.layout.columns()}>
        {(index) => <HeadCell result={props.result} layout={props.layout} index={index()} />}
      </Index>
    </div>
  );
}

function HeadCell(props: { result: Result; layout: GridLayout; index: number }): JSX.Element {
  const column = () => props.result.columns[props.index];
  const type = (): string => {
    const known = column();
    return known ? typeName(known) : '';
  };
  const onPointerDown = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    event.preventDefault();
    const handle = event.currentTarget;
    const from = event.clientX;
    const { index, layout } = props;
    const width = layout.width(index);
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (move) => layout.setWidth(index, width + move.clientX - from);
    handle.onpointerup = () => (handle.onpointermove = handle.onpointerup = null);
  };
  return (
    <span
      class="grid-head-cell"
      role="columnheader"
      aria-colindex={props.index + 2}
      classList={{ right: isNumeric(column()?.type ?? '') }}
      style={{
        left: `${props.layout.left(props.index)}px`,
        width: `${props.layout.width(props.index)}px`,
      }}
      title={`${column()?.name ?? ''} ${type()}`}
    >
      <span class="grid-head-name">
        <bdi>{column()?.name}</bdi>
        <Show when={props.index === props.result.timestamp}>
          <Icon name="clock" />
        </Show>
      </span>
      <span class="grid-head-type">{type()}</span>
      <span class="grid-resize" aria-hidden="true" onPointerDown={onPointerDown} />
    </span>
  );
}

function Body(props: GridParts): JSX.Element {
  return (
    <Index each={props.layout.rows()}>
      {(row) => (
        <div
          class="grid-row"
          role="row"
          aria-rowindex={row() + 2}
          classList={{ selected: row() === props.cell.row }}
          style={{ transform: `translateY(${HEAD_HEIGHT + row() * ROW_HEIGHT}px)` }}
        >
          <span
            class="grid-number"
            role="rowheader"
            style={{ width: `${props.layout.numberWidth()}px` }}
          >
            {row() + 1}
          </span>
          <Index each={props.layout.columns()}>
            {(index) => <BodyCell {...props} row={row()} index={index()} />}
          </Index>
        </div>
      )}
    </Index>
  );
}

function BodyCell(props: GridParts & { row: number; index: number }): JSX.Element {
  const place = (): Cell => ({ row: props.row, column: props.index });
  const shown = createMemo(() =>
    shownCell(asOf(props.result, props.revision), place(), props.zone),
  );
  const isFocused = (): boolean =>
    props.row === props.cell.row && props.index === props.cell.column;
  return (
    <span
      id={cellId(place())}
      role="gridcell"
      aria-colindex={props.index + 2}
      class={`grid-cell is-${shown().kind}`}
      classList={{
        right: isNumeric(props.result.columns[props.index]?.type ?? ''),
        focused: isFocused(),
        no: shown().text === 'false',
      }}
      style={{
        left: `${props.layout.left(props.index)}px`,
        width: `${props.layout.width(props.index)}px`,
      }}
      title={props.layout.cuts(props.index, shown().text.length) ? shown().text : undefined}
      onPointerDown={() => props.onSelect(place())}
      onDblClick={() => void copy(copyText(props.result.cell(props.row, props.index)), 'Cell')}
    >
      <span class="grid-value">{shown().text}</span>
      <Show when={shown().faint}>
        <span class="grid-faint">{shown().faint}</span>
      </Show>
    </span>
  );
}
