/** A queue that runs work one at a time, in the order of arrival. */
export function serialQueue(): (signal: AbortSignal) => Promise<() => void> {
  let last: Promise<void> = Promise.resolve();
  return async (signal) => {
    const before = last;
    let release = (): void => undefined;
    const own = new Promise<void>((resolve) => (release = resolve));
    last = before.then(() => own);
    // Aborted work does not block the work queued after it.
    signal.addEventListener('abort', release, { once: true });
    await before;
    return release;
  };
}
