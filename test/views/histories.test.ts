/**
 * Random histories of a base table: whatever happens to it, each view over it equals its query over
 * it. `HISTORIES=100000 npx ava build/test/views/histories.test.js` runs as many; `SEED` repeats.
 */
import test, { type ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { restart, run, withServer } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { type Random, randomFrom } from '../sql/time-series/random-table.js';
import { current, sorted } from './views.js';

const HISTORIES = Number(process.env['HISTORIES'] ?? 400);
/** Histories that run beside each other, on one server. */
const AT_ONCE = 8;
const STEPS = 9;

/** One base with its views. */
interface History {
  readonly base: string;
  readonly views: ReadonlyMap<string, string>;
}

const UNITS = ['7m', '1h', '5h', '1d', '1w'] as const;

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)] as T;
}

/** An instant of some days around a change of clocks, some of them far away. */
function instant(random: Random): string {
  const day = random(12) === 0 ? random(4000) : 3953 + random(4);
  const at = Date.UTC(2014, 0, 1) + day * 86_400_000 + random(86_400) * 1000;
  return new Date(at).toISOString();
}

function values(random: Random, count: number): string {
  const row = (): string =>
    `('${instant(random)}', '${pick(random, ['a', 'b', 'c'])}', ${random(1000)}.0, ${random(9)})`;
  return Array.from({ length: count }, row).join(', ');
}

async function begin(server: TestServer, random: Random, number: number): Promise<History> {
  const base = `h${number}`;
  const dedup = random(3) === 0 ? ' DEDUP UPSERT KEYS(ts, s)' : '';
  await run(
    server,
    `CREATE TABLE ${base} (ts TIMESTAMP, s SYMBOL, x DOUBLE, k LONG) TIMESTAMP(ts)
       PARTITION BY ${pick(random, ['DAY', 'MONTH', 'HOUR'])} WAL${dedup}`,
  );
  const aggregates = 'sum(x) x, count() n, min(x) low, max(x) high';
  const zone = random(2) === 0 ? '' : ` ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'`;
  const first = `SELECT ts, s, ${aggregates} FROM ${base} SAMPLE BY ${pick(random, UNITS)}${zone}`;
  const second = `SELECT ts, sum(n) n, max(high) high FROM ${base}_a SAMPLE BY 1w`;
  const third = `SELECT timestamp_floor('${pick(random, ['1h', '1d'])}', ts) t, sum(k) k
    FROM ${base} WHERE x > 300 GROUP BY 1`;
  const views = new Map([
    [`${base}_a`, first],
    [`${base}_b`, second],
    [`${base}_c`, third],
  ]);
  if (random(2) === 0) {
    await run(server, `INSERT INTO ${base} VALUES ${values(random, 1 + random(40))}`);
  }
  for (const [view, query] of views) {
    await run(server, `CREATE MATERIALIZED VIEW ${view} AS (${query})`);
  }
  return { base, views };
}

/** What may happen to a base without ending its views. */
async function step(server: TestServer, random: Random, { base }: History): Promise<string> {
  const day = instant(random).slice(0, 10);
  const choices: readonly (() => string)[] = [
    () => `INSERT INTO ${base} VALUES ${values(random, 1 + random(3))}`,
    () => `INSERT INTO ${base} VALUES ${values(random, 1 + random(50))}`,
    () =>
      `INSERT INTO ${base} SELECT timestamp_sequence('${day}', ${1 + random(9_000)}00000), 'b',
         x::double, x FROM long_sequence(${1 + random(300)})`,
    () => `UPDATE ${base} SET x = ${random(900)}.0, k = k + 1 WHERE ts IN '${day}'`,
    () => `UPDATE ${base} SET x = x + 100 WHERE s = '${pick(random, ['a', 'b'])}' AND k > 5`,
    () => `DELETE FROM ${base} WHERE ts IN '${day}' AND k < ${random(10)}`,
    () => `DELETE FROM ${base} WHERE k = ${random(9)}`,
    () => `ALTER TABLE ${base} ADD COLUMN c${random(1_000_000)} INT`,
    () => `ALTER TABLE ${base} CONVERT PARTITION TO PARQUET WHERE ts > 0`,
    () => `ALTER TABLE ${base} CONVERT PARTITION TO NATIVE WHERE ts > 0`,
    () => `ALTER TABLE ${base} SQUASH PARTITIONS`,
  ];
  const statement = pick(random, choices)();
  try {
    await run(server, statement);
  } catch (failure) {
    // A table without partitions has none to convert; columns of later steps may be missing.
    if (!/CONVERT|VALUES|SELECT timestamp_sequence/.test(statement)) {
      throw failure;
    }
  }
  return statement;
}

async function compare(
  t: ExecutionContext,
  server: TestServer,
  history: History,
  what: string,
): Promise<void> {
  await current(server, ...history.views.keys());
  for (const [view, query] of history.views) {
    const [shown, expected] = [await sorted(server, view), await sorted(server, query)];
    t.deepEqual(shown, expected, `${view}: ${what}`);
  }
}

async function play(
  t: ExecutionContext,
  server: TestServer,
  seed: number,
  number: number,
): Promise<void> {
  const random = randomFrom(seed + number);
  const history = await begin(server, random, number);
  const done: string[] = [];
  for (let index = 0; index < STEPS; index += 1) {
    done.push(await step(server, random, history));
    if (random(3) === 0 || index === STEPS - 1) {
      const what = `seed ${seed}, history ${number}: ${done.join('; ')}`;
      await compare(t, server, history, what);
    }
  }
  for (const view of [...history.views.keys()].reverse()) {
    await run(server, `DROP MATERIALIZED VIEW ${view}`);
  }
  await run(server, `DROP TABLE ${history.base}`);
}

test('views equal their queries, whatever happens to their bases', async (t) => {
  t.timeout(Math.max(600_000, HISTORIES * 2_000));
  const seed = suiteSeed();
  await withServer(async (server) => {
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < HISTORIES) {
        const number = next;
        next += 1;
        await play(t, server, seed, number);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return server;
  });
});

test('views equal their queries after kills', async (t) => {
  t.timeout(600_000);
  const seed = suiteSeed();
  const random = randomFrom(seed);
  await withServer(async (first) => {
    let server = first;
    const histories: History[] = [];
    for (let number = 0; number < 4; number += 1) {
      histories.push(await begin(server, random, number));
    }
    for (let round = 0; round < 8; round += 1) {
      for (const history of histories) {
        await step(server, random, history);
        await step(server, random, history);
      }
      server = await restart(server);
      for (const history of histories) {
        await compare(t, server, history, `seed ${seed}, round ${round}`);
      }
    }
    return server;
  });
});
