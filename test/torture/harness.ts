/**
 * Shared by the harnesses that run the server: a seed, pass and fail counts, and the closing line.
 */
import { parseArgs } from 'node:util';

import { internalErrorReport } from '../internal-errors.js';

/** Seeded random numbers (SplitMix64, upper 32 bits). */
export class Random {
  #state: bigint;

  constructor(seed: number) {
    this.#state = BigInt(seed);
  }

  /** Returns a random number in `0 <= x < 1`. */
  next(): number {
    this.#state = BigInt.asUintN(64, this.#state + 0x9e3779b97f4a7c15n);
    let mixed = this.#state;
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n);
    mixed = BigInt.asUintN(64, (mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn);
    return Number(mixed >> 32n) / 2 ** 32;
  }

  /** Returns an integer in `low <= x <= high`. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(list: readonly T[]): T {
    const item = list[Math.floor(this.next() * list.length)];
    if (item === undefined) {
      throw new Error('nothing to choose from');
    }
    return item;
  }

  /** Returns a separate generator, so concurrent users do not affect each other's numbers. */
  fork(): Random {
    return new Random(this.between(0, 2 ** 31));
  }
}

/** One run of a harness. */
export class Harness {
  readonly seed: number;
  readonly random: Random;
  readonly #numbers: ReadonlyMap<string, number>;
  readonly #started = Date.now();
  readonly #failures: string[] = [];
  #passed = 0;

  /** Parses `--NAME N` for each name; `--seed` defaults to the time. */
  constructor(name: string, numbers: readonly string[]) {
    const options = Object.fromEntries(
      ['seed', ...numbers].map((option) => [option, { type: 'string' as const }]),
    );
    const { values } = parseArgs({ options });
    this.#numbers = new Map(
      Object.entries(values).map(([option, text]) => [option, Number(text)] as const),
    );
    this.seed = this.number('seed', Math.floor(Date.now() / 1000));
    this.random = new Random(this.seed);
    this.say(`${name}: seed ${this.seed}`);
    // An interrupted run reports what it has tried so far.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        this.say(`interrupted by ${signal}`);
        this.finish();
      });
    }
  }

  number(name: string, fallback: number): number {
    const number = this.#numbers.get(name) ?? fallback;
    if (!Number.isSafeInteger(number) || number < 0) {
      throw new Error(`--${name} takes a number`);
    }
    return number;
  }

  say(line: string): void {
    process.stdout.write(`${line}\n`);
  }

  pass(): void {
    this.#passed += 1;
  }

  fail(what: string): void {
    this.#failures.push(what);
    this.say(`FAILED ${what} (--seed ${this.seed})`);
  }

  /** Records one check; prints the problem, if any. */
  judge(problem: string | undefined): void {
    if (problem === undefined) {
      this.pass();
    } else {
      this.fail(problem);
    }
  }

  get failures(): number {
    return this.#failures.length;
  }

  /**
   * Prints the closing line. The run fails if nothing was attempted, or if a server had an internal
   * error.
   */
  finish(): never {
    const internal = internalErrorReport();
    if (internal !== undefined) {
      this.fail(internal);
    }
    this.say(`time: ${((Date.now() - this.#started) / 1000).toFixed(1)} s`);
    this.say(`${this.#passed} passed, ${this.failures} failed`);
    process.exit(this.failures === 0 && this.#passed > 0 ? 0 : 1);
  }

  /** Ends the run with a notice, but not a failure, if the test is impossible here. */
  skip(why: string): never {
    this.say(`SKIPPED: ${why}`);
    this.say('0 passed, 0 failed');
    process.exit(0);
  }
}

/** Returns the quantile below which this fraction of the values lies. */
export function quantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? 0;
}

export function sleep(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
