/**
 * Header of the grid, where the user sorts, moves and resizes columns. Each column has a menu with
 * the same actions.
 */
import { createSignal, For, Show, type JSX } from 'solid-js';
import type { Column } from '../api/answer.js';
import { typeName } from '../model/result.js';
import { isNumeric } from '../model/types.js';
import { Icon } from '../ui/icons.js';
import type { GridContext } from './context.js';
import { texts } from '../texts.js';

/** Pointer movement in pixels above which a press is a drag. */
const DRAG_FROM = 5;

interface HeadProps extends GridContext {
  readonly scroller: () => HTMLElement;
  readonly onMenu: (position: number, x: number, y: number) => void;
}

export function GridHead(props: HeadProps): JSX.Element {
  const [gap, setGap] = createSignal<number>();
  return (
    <div class="grid-head" role="row" aria-rowindex="1">
      <span
        class="grid-number"
        role="columnheader"
        style={{ width: `${props.layout.numberWidth()}px` }}
      >
        <span class="visually-hidden">{texts.grid.row}</span>
      </span>
      <For each={props.layout.columns()}>
        {(position) => <HeadCell {...props} position={position} gap={gap()} setGap={setGap} />}
      </For>
    </div>
  );
}

interface HeadCellProps extends HeadProps {
  readonly position: number;
  /** Position at which the dragged column would be dropped. */
  readonly gap: number | undefined;
  readonly setGap: (gap: number | undefined) => void;
}

function HeadCell(props: HeadCellProps): JSX.Element {
  const index = (): number => props.layout.columnAt(props.position);
  const column = (): Column | undefined => props.result.columns[index()];
  const type = (): string => {
    const known = column();
    return known ? typeName(known) : '';
  };
  const sorted = (): 'ascending' | 'descending' | undefined => {
    const sort = props.state.sort();
    if (sort?.column !== index()) {
      return undefined;
    }
    return sort.descending ? 'descending' : 'ascending';
  };
  return (
    <span
      class="grid-head-cell"
      role="columnheader"
      aria-colindex={props.position + 2}
      aria-sort={sorted()}
      classList={{
        right: isNumeric(column()?.type ?? ''),
        frozen: props.layout.isFrozen(props.position),
        'frozen-last': props.layout.isLastFrozen(props.position),
        'gap-before': props.gap === props.position,
        'gap-after': props.gap === props.position + 1,
        sorted: sorted() !== undefined,
      }}
      style={{
        left: `${props.layout.left(props.position)}px`,
        width: `${props.layout.width(props.position)}px`,
      }}
      title={`${column()?.name ?? ''} ${type()}`}
      onPointerDown={(event) => dragColumn(event, props, index())}
      onContextMenu={(event) => {
        event.preventDefault();
        props.onMenu(props.position, event.clientX, event.clientY);
      }}
    >
      <span class="grid-head-name">
        <bdi>{column()?.name}</bdi>
        <Show when={index() === props.result.timestamp}>
          <Icon name="clock" />
        </Show>
        <Show when={sorted()}>
          {(direction) => <Icon name={direction() === 'descending' ? 'down' : 'up'} />}
        </Show>
      </span>
      <span class="grid-head-type">{type()}</span>
      <span
        class="grid-resize"
        aria-hidden="true"
        onPointerDown={(event) => dragWidth(event, props)}
      />
    </span>
  );
}

/**
 * Handles a press on a column header. A click sorts by the column, and a drag moves the column to
 * the nearest gap.
 */
function dragColumn(
  event: PointerEvent & { currentTarget: HTMLElement },
  props: HeadCellProps,
  column: number,
): void {
  if (event.button !== 0 || event.defaultPrevented) {
    return;
  }
  const handle = event.currentTarget;
  const from = props.position;
  let dragged = false;
  handle.setPointerCapture(event.pointerId);
  handle.onpointermove = (move) => {
    dragged ||= Math.abs(move.clientX - event.clientX) > DRAG_FROM;
    if (dragged) {
      const scroller = props.scroller();
      const x = move.clientX - scroller.getBoundingClientRect().left;
      props.setGap(props.layout.gapNear(x, scroller.scrollLeft));
    }
  };
  const end = (): void => {
    handle.onpointermove = handle.onpointerup = handle.onpointercancel = null;
    props.setGap(undefined);
  };
  handle.onpointercancel = end;
  handle.onpointerup = () => {
    const gap = props.gap;
    end();
    if (!dragged) {
      props.state.cycleSort(column);
    } else if (gap !== undefined) {
      props.state.move(props.result.columns.length, from, gap > from ? gap - 1 : gap);
    }
  };
}

function dragWidth(
  event: PointerEvent & { currentTarget: HTMLElement },
  props: HeadCellProps,
): void {
  event.preventDefault();
  event.stopPropagation();
  const handle = event.currentTarget;
  const from = event.clientX;
  const { position, layout } = props;
  const width = layout.width(position);
  handle.setPointerCapture(event.pointerId);
  handle.onpointermove = (move) => layout.setWidth(position, width + move.clientX - from);
  handle.onpointerup = () => (handle.onpointermove = handle.onpointerup = null);
}
