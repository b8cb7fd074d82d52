/**
 * Limits password guessing. After ten failures within a minute, further logins from that address
 * with that user name must wait, on every endpoint. Other addresses can still log in with the name.
 *
 * Names and addresses are mapped to shared counter cells by two keyed hashes, and the lower of the
 * two counts applies. A client cannot fill all cells within a minute, so no count is evicted early.
 * Unrelated attempts between two guesses can only increase a count.
 */
import { createHmac, randomBytes } from 'node:crypto';

import { machineOf } from '../config/index.js';

const FAILURES_PER_MINUTE = 10;
const WINDOW_MS = 60_000;
const CELLS = 2 ** 18;
const MAX_COUNTED = 255;

/** A monotonic clock, which is unaffected by system time changes. */
const monotonicMs = (): number => performance.now();

/** One of the two rows of cells. Pages that were never written take up no memory. */
class Cells {
  readonly #counts = new Uint8Array(CELLS);
  readonly #since = new Float64Array(CELLS);

  /** Returns the number of failures that still count at `now`. */
  count(cell: number, now: number): number {
    return now < this.endOf(cell) ? (this.#counts[cell] ?? 0) : 0;
  }

  endOf(cell: number): number {
    return (this.#since[cell] ?? 0) + WINDOW_MS;
  }

  add(cell: number, now: number): void {
    const before = this.count(cell, now);
    if (before === 0) {
      this.#since[cell] = now;
    }
    this.#counts[cell] = Math.min(before + 1, MAX_COUNTED);
  }

  clear(cell: number): void {
    this.#counts[cell] = 0;
  }
}

export class FailureLimiter {
  readonly #now: () => number;
  readonly #maxFailures: number;
  readonly #key = randomBytes(32);
  /** The cells, allocated on the first failure. */
  #rows: readonly [Cells, Cells] | null = null;
  #last = -Infinity;

  constructor(now: () => number = monotonicMs, maxFailures = FAILURES_PER_MINUTE) {
    this.#now = now;
    this.#maxFailures = maxFailures;
  }

  /** Returns the seconds until the next attempt is allowed; 0 if it is allowed now. */
  waitSeconds(user: string, address: string): number {
    const now = this.#now();
    if (this.#rows === null || now - this.#last >= WINDOW_MS) {
      return 0;
    }
    const [first, second] = this.#rows;
    const [byUser, byAddress] = this.#cellsOf(user, address);
    const count = Math.min(first.count(byUser, now), second.count(byAddress, now));
    const end = Math.min(first.endOf(byUser), second.endOf(byAddress));
    return count < this.#maxFailures ? 0 : Math.ceil((end - now) / 1000);
  }

  failed(user: string, address: string): void {
    const now = this.#now();
    this.#rows ??= [new Cells(), new Cells()];
    const [first, second] = this.#rows;
    const [byUser, byAddress] = this.#cellsOf(user, address);
    first.add(byUser, now);
    second.add(byAddress, now);
    this.#last = now;
  }

  succeeded(user: string, address: string): void {
    if (this.#rows !== null && this.#now() - this.#last < WINDOW_MS) {
      const [first, second] = this.#rows;
      const [byUser, byAddress] = this.#cellsOf(user, address);
      first.clear(byUser);
      second.clear(byAddress);
    }
  }

  #cellsOf(user: string, address: string): readonly [number, number] {
    const name = `${machineOf(address)}\u0000${user}`;
    const digest = createHmac('sha256', this.#key).update(name).digest();
    return [digest.readUInt32LE(0) % CELLS, digest.readUInt32LE(4) % CELLS];
  }
}
