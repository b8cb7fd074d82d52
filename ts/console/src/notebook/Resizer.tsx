/** Handle in a cell's corner that resizes the cell with the pointer or the arrow keys. */
import { createSignal, type JSX } from 'solid-js';
import { announce } from '../page/notices.js';
import type { CellProps } from './context.js';
import { COLUMNS, type CellSize } from '../cells/model.js';
import { allowed, ROW_PX, shownSize } from '../cells/sizes.js';
import { fill } from '../fill.js';
import { rowsText } from '../model/format.js';
import { texts } from '../texts.js';

export function Resizer(props: CellProps & { host: () => HTMLElement }): JSX.Element {
  const [dragged, setDragged] = createSignal<CellSize>();
  const resize = (size: CellSize): void => {
    const next = allowed(size);
    const before = shownSize(props.cell);
    if (next.width !== before.width || next.height !== before.height) {
      props.document.change({ kind: 'change', id: props.cell.id, patch: { size: next } });
      announce(
        fill(texts.cells.size, {
          width: next.width,
          columns: COLUMNS,
          rows: rowsText(next.height),
        }),
      );
    }
  };
  const begin = (event: PointerEvent & { currentTarget: HTMLElement }): void => {
    const { currentTarget: handle, clientX, clientY, pointerId } = event;
    event.preventDefault();
    handle.setPointerCapture(pointerId);
    const size = shownSize(props.cell);
    const column = props.host().getBoundingClientRect().width / size.width;
    const sizeAt = (at: PointerEvent): CellSize =>
      allowed({
        width: size.width + (at.clientX - clientX) / column,
        height: size.height + (at.clientY - clientY) / ROW_PX,
      });
    const onMove = (at: PointerEvent): void => {
      const next = sizeAt(at);
      setDragged(next);
      props.host().style.gridColumn = `span ${next.width}`;
      props.host().style.gridRow = `span ${next.height}`;
    };
    const onEnd = (at: PointerEvent): void => {
      handle.removeEventListener('pointermove', onMove);
      handle.removeEventListener('pointerup', onEnd);
      handle.removeEventListener('pointercancel', onEnd);
      setDragged(undefined);
      resize(sizeAt(at));
    };
    handle.addEventListener('pointermove', onMove);
    handle.addEventListener('pointerup', onEnd);
    handle.addEventListener('pointercancel', onEnd);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const by: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    };
    const step = by[event.key];
    if (step && !event.altKey) {
      event.preventDefault();
      const { width, height } = shownSize(props.cell);
      resize({ width: width + step[0], height: height + step[1] });
    }
  };
  return (
    <button
      class="cell-resize"
      classList={{ dragging: dragged() !== undefined }}
      aria-label={texts.cells.sizeLabel}
      title={texts.cells.sizeHint}
      onPointerDown={begin}
      onKeyDown={onKeyDown}
    />
  );
}
