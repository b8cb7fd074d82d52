/**
 * Stops the listeners. New work is refused; running work may continue for a limited time and is
 * then cancelled.
 */

/** Operations that stop a listener. */
interface Stoppable {
  /** Refuses new work; resolves when running work has ended. */
  drain(): Promise<void>;
  /** Cancels running statements; their clients receive an error. */
  interrupt(): void;
  /** Refuses new connections, and closes every open one. */
  close(): Promise<void>;
}

/** The shutdown steps, for the message shown if one takes too long. */
export type StopStep =
  'running statements' | 'responses to cancelled statements' | 'the last checkpoint';

interface Stop {
  /** Listeners, keyed by name. */
  readonly listeners: ReadonlyMap<string, Stoppable>;
  /** Cancels every statement. */
  readonly stopWork: () => void;
  /** Milliseconds from the signal to the process exit. */
  readonly stopMs: number;
  readonly step: (what: StopStep) => void;
}

/**
 * Milliseconds reserved from the total time: 3 s for the last checkpoint, and the remaining time
 * for responses to cancelled statements.
 */
const RESERVED_MS = 3_800;
const RESPONSES_MS = 400;

export async function stopServing({ listeners: named, ...stop }: Stop): Promise<void> {
  const { stopWork, stopMs, step } = stop;
  const listeners = [...named.values()];
  step('running statements');
  const drained = Promise.all(listeners.map((listener) => listener.drain()));
  if (!(await within(drained, Math.max(stopMs - RESERVED_MS, stopMs / 4)))) {
    step('responses to cancelled statements');
    stopWork();
    for (const listener of listeners) {
      listener.interrupt();
    }
    await within(drained, Math.min(RESPONSES_MS, stopMs / 8));
  }
  await Promise.all(listeners.map((listener) => listener.close()));
}

/** Waits for `work`. Resolves to false if it takes longer than `limitMs`. */
async function within(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let late: NodeJS.Timeout | undefined;
  const timer = new Promise<false>((resolve) => {
    late = setTimeout(resolve, limitMs, false);
  });
  const isDone = await Promise.race([work.then(() => true), timer]);
  clearTimeout(late);
  return isDone;
}
