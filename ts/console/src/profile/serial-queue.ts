/** Creates a queue that runs tasks one at a time, in order of arrival. */
export function serialQueue(): (signal: AbortSignal) => Promise<() => void> {
  let last: Promise<void> = Promise.resolve();
  return async (signal) => {
    const before = last;
    let release = (): void => undefined;
    const own = new Promise<void>((resolve) => (release = resolve));
    last = before.then(() => own);
    // An aborted task does not block the tasks queued after it.
    signal.addEventListener('abort', release, { once: true });
    await before;
    return release;
  };
}
