/** A queue that runs work one at a time, in the order of arrival. */
export function serialQueue(): (signal: AbortSignal) => Promise<() => void> {
  let last: Promise<void> = Promise.resolve();
  return async (signal) => {
    const before = last;
    let over = (): void => undefined;
    const own = new Promise<void>((resolve) => (over = resolve));
    last = before.then(() => own);
    // Aborted work does not block the work queued after it.
    signal.addEventListener('abort', over, { once: true });
    await before;
    return over;
  };
}
