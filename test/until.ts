/** Polling for asynchronous conditions, with time limits that suit a busy machine. */
import { setTimeout as sleep } from 'node:timers/promises';

const WAIT_MS = 60_000;
const POLL_MS = 20;

/** Resolves as soon as `holds` returns true; rejects with `what` after a minute. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Error(`not within ${WAIT_MS / 1000} s: ${what}`);
    }
    await sleep(POLL_MS);
  }
}

/** Returns the result of `work`; rejects with `what` if it takes longer than a minute. */
export async function within<T>(work: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not within ${WAIT_MS / 1000} s: ${what()}`));
    }, WAIT_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
