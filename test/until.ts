/** Waiting for what comes by itself, however long that takes on a machine that is busy. */
import { setTimeout as sleep } from 'node:timers/promises';

const WAIT_MS = 60_000;
const LOOK_MS = 20;

/** Resolves as soon as `holds` answers true; rejects, with `what`, when it does not in a minute. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + WAIT_MS;
  while (!(await holds())) {
    if (Date.now() > end) {
      throw new Error(`not within ${WAIT_MS / 1000} s: ${what}`);
    }
    await sleep(LOOK_MS);
  }
}
