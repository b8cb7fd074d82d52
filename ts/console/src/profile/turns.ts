/** One after the other, in the order in which they come. */
export function turns(): (signal: AbortSignal) => Promise<() => void> {
  let last: Promise<void> = Promise.resolve();
  return async (signal) => {
    const before = last;
    let over = (): void => undefined;
    const own = new Promise<void>((resolve) => (over = resolve));
    last = before.then(() => own);
    // One that is not wanted any more does not hold up the next.
    signal.addEventListener('abort', over, { once: true });
    await before;
    return over;
  };
}
