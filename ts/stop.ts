/** How the listeners stop: new work is refused, what runs gets its time, then it is stopped. */

/** What a listener does at its end. */
interface Stoppable {
  /** Refuses new work; resolves when what runs has ended. */
  drain(): Promise<void>;
  /** Running statements are cancelled; their clients receive an error. */
  interrupt(): void;
  /** Refuses new connections, and ends every open one. */
  close(): Promise<void>;
}

/** What a stop that takes too long was about. */
export type StopStep =
  'statements that run' | 'answers of stopped statements' | 'the last checkpoint';

interface Stop {
  /** By their names. */
  readonly listeners: ReadonlyMap<string, Stoppable>;
  /** Stops every statement. */
  readonly stopWork: () => void;
  /** From the signal to the end of the process. */
  readonly stopMs: number;
  readonly step: (what: StopStep) => void;
}

/** Of the whole time: for the answers of what was stopped, and 3 s for the last checkpoint. */
const REST_MS = 3_800;
const ANSWERS_MS = 400;

export async function stopServing({ listeners: named, ...stop }: Stop): Promise<void> {
  const { stopWork, stopMs, step } = stop;
  const listeners = [...named.values()];
  step('statements that run');
  const drained = Promise.all(listeners.map((listener) => listener.drain()));
  if (!(await within(drained, Math.max(stopMs - REST_MS, stopMs / 4)))) {
    step('answers of stopped statements');
    stopWork();
    for (const listener of listeners) {
      listener.interrupt();
    }
    await within(drained, Math.min(ANSWERS_MS, stopMs / 8));
  }
  await Promise.all(listeners.map((listener) => listener.close()));
}

/** False when `work` takes longer. */
async function within(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let late: NodeJS.Timeout | undefined;
  const timer = new Promise<false>((resolve) => {
    late = setTimeout(resolve, limitMs, false);
  });
  const isDone = await Promise.race([work.then(() => true), timer]);
  clearTimeout(late);
  return isDone;
}
