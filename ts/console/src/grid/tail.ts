/** A grid that stays with the rows that come in at its end, until the user looks back. */
import { createEffect, on, onCleanup, onMount } from 'solid-js';
import type { Cell } from './keys.js';
import { ROW_HEIGHT, type GridLayout } from './layout.js';
import type { GridProps } from './parts.js';

/** Keeps the last row in view, and the cursor on its row, while rows come and go. */
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
        // The canvas has its new height in the next turn.
        queueMicrotask(toEnd);
      },
    ),
  );
}

/** Takes over where the grid is scrolled to, and whether the user looks back. */
export function followScroll({ tail }: GridProps, layout: GridLayout, scroller: HTMLElement): void {
  layout.follow(scroller);
  const { scrollTop, clientHeight, scrollHeight } = scroller;
  tail?.setAtEnd(scrollTop + clientHeight >= scrollHeight - ROW_HEIGHT);
}
