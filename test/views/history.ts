/**
 * Random histories of base tables with views. A failure names its history's seed and number.
 * `SEED=s FIRST=n HISTORIES=1` replays that history, together with the histories that share its
 * database.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import type { ExecutionContext } from 'ava';

import { restart, withServer } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { type Random, randomFrom } from '../sql/time-series/random-table.js';
import { DatabaseRunner, type Runner, serverRunner } from './runners.js';

/** A base with its views. */
export interface History {
  readonly base: string;
  /** Views in dependency order, with their queries. */
  readonly views: ReadonlyMap<string, string>;
  /** Statements executed so far. */
  readonly done: string[];
}

/** A kind of view, and the changes that may be made to the view's base. */
export interface Kind<H extends History> {
  /** Number of histories of this kind in the suite. */
  readonly histories: number;
  readonly steps: number;
  begin(runner: Runner, random: Random, number: number): Promise<H>;
  step(runner: Runner, random: Random, history: H): Promise<void>;
  /** Decides at random whether to compare now. */
  polls(random: Random): boolean;
  /** Waits until the views are up to date, and compares them with their queries. */
  compare(t: ExecutionContext, at: Environment, history: H): Promise<void>;
  /** Runs steps after the last comparison. */
  end?(t: ExecutionContext, at: Environment, random: Random, history: H): Promise<void>;
}

/** A history's database, and the states of all views in it. */
export interface Environment {
  readonly runner: Runner;
  readonly states: (query: string) => Promise<readonly (readonly unknown[])[]>;
}

/** Number of histories that share a database, with their steps interleaved. */
const CONCURRENT_HISTORIES = 16;
/** Number of databases that run concurrently. */
const AT_ONCE = 4;
const WAIT_MS = 60_000;
const POLL_MS = 25;

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)] as T;
}

/**
 * Identical requests made within a short time share one answer, which is computed after all of them
 * have arrived.
 */
function environment(runner: Runner): Environment {
  const coming = new Map<string, Promise<readonly (readonly unknown[])[]>>();
  const states = (query: string): Promise<readonly (readonly unknown[])[]> => {
    const shared = coming.get(query);
    if (shared !== undefined) {
      return shared;
    }
    const next = sleep(POLL_MS).then(() => {
      coming.delete(query);
      return runner.rows(query);
    });
    coming.set(query, next);
    return next;
  };
  return { runner, states };
}

/** Waits until a view's row, in a list of all views, reports that the view is up to date. */
export async function settled(
  at: Environment,
  list: string,
  view: string,
  isCurrent: (state: readonly unknown[]) => boolean,
): Promise<void> {
  const end = Date.now() + WAIT_MS;
  for (;;) {
    const state = (await at.states(list)).find(([name]) => name === view);
    if (state !== undefined && isCurrent(state)) {
      return;
    }
    if (Date.now() > end) {
      throw new Error(`${view} is not current within a minute: ${JSON.stringify(state)}`);
    }
  }
}

/** Returns sorted rows, because views keep no order within a bucket. */
export async function sorted(runner: Runner, query: string): Promise<readonly string[]> {
  return (await runner.rows(query)).map((row) => JSON.stringify(row)).sort();
}

/** Compares each view with the result of its query. */
export async function equal(t: ExecutionContext, at: Environment, history: History): Promise<void> {
  for (const [view, query] of history.views) {
    const what = `${view} after ${history.done.join('; ')}`;
    const [shown, expected] = [await sorted(at.runner, view), await sorted(at.runner, query)];
    t.deepEqual(shown, expected, `${what}: ${query}`);
  }
}

interface Playing<H extends History> {
  readonly history: H;
  readonly random: Random;
  readonly number: number;
}

/** Plays histories in one database, which is occasionally closed and reopened. */
async function playConcurrently<H extends History>(
  t: ExecutionContext,
  kind: Kind<H>,
  seed: number,
  numbers: readonly number[],
): Promise<void> {
  const runner = await DatabaseRunner.open();
  const at = environment(runner);
  const restarts = randomFrom(seed ^ ((numbers[0] ?? 0) + 1));
  const named = async (
    one: Pick<Playing<H>, 'number'>,
    work: () => Promise<void>,
    done: string[],
  ) => {
    try {
      await work();
    } catch (failure) {
      const what = `seed ${seed}, history ${one.number}: ${done.join('; ')}`;
      throw new Error(`${what}: ${(failure as Error).message}`, { cause: failure });
    }
  };
  try {
    const playing = await Promise.all(
      numbers.map(async (number): Promise<Playing<H>> => {
        const random = randomFrom(seed + number);
        return { history: await kind.begin(runner, random, number), random, number };
      }),
    );
    const all = async (work: (one: Playing<H>) => Promise<void>): Promise<void> => {
      await Promise.all(playing.map((one) => named(one, () => work(one), one.history.done)));
    };
    for (let step = 1; step <= kind.steps; step += 1) {
      await all((one) => kind.step(runner, one.random, one.history));
      if (restarts(5) === 0) {
        await runner.reopen();
        playing.forEach(({ history }) => history.done.push('a restart'));
      }
      await all(async ({ random, history }) => {
        if (kind.polls(random) || step === kind.steps) {
          await kind.compare(t, at, history);
        }
      });
    }
    await all(async ({ random, history }) => kind.end?.(t, at, random, history));
  } finally {
    await runner.remove();
  }
}

/**
 * Plays the number of histories that the suite sets, or `HISTORIES` of them, starting at number
 * `FIRST`.
 */
export async function playHistories<H extends History>(
  t: ExecutionContext,
  kind: Kind<H>,
): Promise<void> {
  const count = Number(process.env['HISTORIES'] ?? kind.histories);
  const first = Math.floor(Number(process.env['FIRST'] ?? 0) / CONCURRENT_HISTORIES);
  t.timeout(Math.max(600_000, count * 500));
  const seed = suiteSeed();
  const end = first + Math.ceil(count / CONCURRENT_HISTORIES);
  let next = first;
  const work = async (): Promise<void> => {
    while (next < end) {
      const begin = next * CONCURRENT_HISTORIES;
      next += 1;
      await playConcurrently(
        t,
        kind,
        seed,
        Array.from({ length: CONCURRENT_HISTORIES }, (_, at) => begin + at),
      );
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const took = ((performance.now() - began) / 1_000).toFixed(0);
  t.log(
    `${(end - first) * CONCURRENT_HISTORIES} histories of seed ${seed} in ${took} s, 0 differences`,
  );
}

/** Plays histories on a server that is killed after every second step. */
export async function playWithKills<H extends History>(
  t: ExecutionContext,
  kind: Kind<H>,
  rounds: number,
): Promise<void> {
  t.timeout(600_000);
  const seed = suiteSeed();
  const random = randomFrom(seed);
  await withServer(async (first) => {
    let server = first;
    const histories: H[] = [];
    for (let number = 0; number < 4; number += 1) {
      histories.push(await kind.begin(serverRunner(server), random, number));
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const history of histories) {
        await kind.step(serverRunner(server), random, history);
        await kind.step(serverRunner(server), random, history);
      }
      server = await restart(server);
      const at = environment(serverRunner(server));
      for (const history of histories) {
        await kind.compare(t, at, history);
      }
    }
    return server;
  });
}
