/** Scrolls a grid to follow new rows at its end, until the user scrolls back. */
import { createEffect, on, onCleanup, onMount } from 'solid-js';
import type { Cell } from './keys.js';
import { ROW_HEIGHT, type GridLayout } from './layout.js';
import type { GridProps } from './context.js';

/** Keeps the last row visible while rows are added and removed. The cursor stays on its row. */
export function followTail(
  props: GridProps,
  scroller: () => HTMLElement,
  cell: () => Cell,
  select: (cell: Cell) => void,
): void {
  let first = props.result.skipped;
  let count = 0;
  const toEnd = (): void => {
    const element = scroller();
    if (props.tail?.isAtEnd()) {
      element.scrollTo(element.scrollLeft, element.scrollHeight);
    }
  };
  onMount(() => {
    const observer = new ResizeObserver(toEnd);
    observer.observe(scroller());
    onCleanup(() => observer.disconnect());
  });
  createEffect(
    on(
      () => [props.result, props.revision] as const,
      ([result]) => {
        if (!props.tail) {
          return;
        }
        const { row, column } = cell();
        const isLast = row >= count - 1;
        const moved = Math.max(0, row - (result.skipped - first));
        first = result.skipped;
        count = result.rows.length;
        select({ row: isLast ? Math.max(0, count - 1) : moved, column });
        // Scroll in the next microtask, when the canvas has its new height.
        queueMicrotask(toEnd);
      },
    ),
  );
}

/**
 * Updates the layout from the grid's scroll position, and records whether the grid is scrolled to
 * its end.
 */
export function followScroll({ tail }: GridProps, layout: GridLayout, scroller: HTMLElement): void {
  layout.follow(scroller);
  const { scrollTop, clientHeight, scrollHeight } = scroller;
  tail?.setAtEnd(scrollTop + clientHeight >= scrollHeight - ROW_HEIGHT);
}
