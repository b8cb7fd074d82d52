/**
 * Slows down guessing: after ten failures in a minute, a user name at an address waits, whichever
 * way it tries to come in. Others at the same name are not locked out.
 */
import { LRUCache } from 'lru-cache';

export const FAILURES_PER_MINUTE = 10;
const WINDOW_MS = 60_000;
/** Names and addresses remembered at once. */
const MOST_ENTRIES = 10_000;

interface Failures {
  readonly count: number;
  readonly since: number;
}

/** A clock that setting the machine's does not move. */
const monotonicMs = (): number => performance.now();

export class FailureLimiter {
  readonly #failures = new LRUCache<string, Failures>({ max: MOST_ENTRIES });
  readonly #now: () => number;
  readonly #most: number;

  constructor(now: () => number = monotonicMs, most = FAILURES_PER_MINUTE) {
    this.#now = now;
    this.#most = most;
  }

  /** Seconds to wait before the next try counts; 0 when it may come now. */
  waitSeconds(user: string, address: string): number {
    const failures = this.#current(user, address);
    if (failures === undefined || failures.count < this.#most) {
      return 0;
    }
    return Math.ceil((failures.since + WINDOW_MS - this.#now()) / 1000);
  }

  failed(user: string, address: string): void {
    const { count, since } = this.#current(user, address) ?? { count: 0, since: this.#now() };
    this.#failures.set(nameOf(user, address), { count: count + 1, since });
  }

  succeeded(user: string, address: string): void {
    this.#failures.delete(nameOf(user, address));
  }

  #current(user: string, address: string): Failures | undefined {
    const failures = this.#failures.get(nameOf(user, address));
    return failures !== undefined && this.#now() - failures.since < WINDOW_MS
      ? failures
      : undefined;
  }
}

function nameOf(user: string, address: string): string {
  // Of the same machine, whichever kind of socket it came by.
  return `${address.replace(/^::ffff:/, '')}\u0000${user}`;
}
