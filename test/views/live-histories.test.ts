/**
 * Random histories of a base table: whatever happens to it, each live view over it equals its own
 * query over it. `HISTORIES=100000 npx ava build/test/views/live-histories.test.js` runs as many;
 * `SEED` repeats.
 */
import test, { type ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { restart, rows, run, withServer } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { type Random, randomFrom } from '../sql/time-series/random-table.js';
import { live, sorted } from './views.js';

const HISTORIES = Number(process.env['HISTORIES'] ?? 160);
/** Histories that run beside each other, on one server. */
const AT_ONCE = 8;
const STEPS = 10;

/** One base with its views. */
interface History {
  readonly base: string;
  readonly views: ReadonlyMap<string, string>;
  /** The latest instant that rows were added at, in minutes. */
  end: number;
}

const START = Date.UTC(2026, 2, 27) / 60_000;

/** Windows that look back some way or all the way. */
const WINDOWS = [
  'sum(x) OVER (PARTITION BY s ORDER BY ts) a, row_number() OVER (PARTITION BY s ORDER BY ts) b',
  'count() OVER (ORDER BY ts) a, max(x) OVER (PARTITION BY s ORDER BY ts CUMULATIVE) b',
  `sum(x) OVER (PARTITION BY s ORDER BY ts RANGE BETWEEN '40' MINUTE PRECEDING AND CURRENT ROW) a,
   min(x) OVER (ORDER BY ts RANGE BETWEEN '2' HOUR PRECEDING AND '7' MINUTE PRECEDING) b`,
  `avg(x) OVER (PARTITION BY s ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) a,
   first_value(k) OVER (PARTITION BY s ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) b`,
  `lag(x) OVER (PARTITION BY s ORDER BY ts) a, lag(k, 2, 7) OVER (ORDER BY ts) b,
   rank() OVER (PARTITION BY s ORDER BY ts) c`,
  `first_value(x) OVER (PARTITION BY s ORDER BY ts) a, x - last_value(x) IGNORE NULLS OVER (
     PARTITION BY s ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) b`,
  // Rows of one instant have no order in functions that do not run in one pass.
  `count(DISTINCT k) OVER (PARTITION BY s ORDER BY ts
     RANGE BETWEEN '3' HOUR PRECEDING AND '1' MINUTE PRECEDING) a`,
  'k * 2 a, upper(s) b',
] as const;

const ANCHORS = [
  "ANCHOR DAILY '02:30' 'Europe/Paris'",
  "ANCHOR DAILY '09:30'",
  "ANCHOR EXPRESSION timestamp_floor('3h', ts)",
  'ANCHOR EXPRESSION k',
] as const;

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random(from.length)] as T;
}

function query(random: Random, base: string): string {
  const filter = random(3) === 0 ? ' WHERE x > 150' : '';
  if (random(2) === 0) {
    return `SELECT ts, s, x, ${pick(random, WINDOWS)} FROM ${base}${filter}`;
  }
  return `SELECT ts, s, k, sum(x) OVER w a, row_number() OVER w b, lag(x) OVER w c, max(k) OVER w d
    FROM ${base}${filter} WINDOW w AS (PARTITION BY s ORDER BY ts ${pick(random, ANCHORS)})`;
}

function text(minute: number): string {
  return new Date((START + minute) * 60_000).toISOString();
}

/** Rows at the end of a base, some of them at one instant. */
function ahead(random: Random, history: History, count: number): string {
  const values = Array.from({ length: count }, () => {
    history.end += random(3) === 0 ? random(90) : random(2);
    return row(random, history.end);
  });
  return values.join(', ');
}

function row(random: Random, minute: number): string {
  const symbol = random(9) === 0 ? 'NULL' : `'${pick(random, ['a', 'b', 'c'])}'`;
  const value = random(9) === 0 ? 'NULL' : `${random(1000)}.0`;
  return `('${text(minute)}', ${symbol}, ${value}, ${random(4)})`;
}

async function begin(server: TestServer, random: Random, number: number): Promise<History> {
  const base = `l${number}`;
  const dedup = random(3) === 0 ? ' DEDUP UPSERT KEYS(ts, s)' : '';
  await run(
    server,
    `CREATE TABLE ${base} (ts TIMESTAMP, s SYMBOL, x DOUBLE, k LONG) TIMESTAMP(ts)
       PARTITION BY ${pick(random, ['DAY', 'MONTH', 'HOUR'])} WAL${dedup}`,
  );
  const views = new Map([1, 2, 3].map((view) => [`${base}_${view}`, query(random, base)]));
  const history: History = { base, views, end: 0 };
  if (random(2) === 0) {
    await run(server, `INSERT INTO ${base} VALUES ${ahead(random, history, 1 + random(30))}`);
  }
  for (const [view, definition] of views) {
    await run(
      server,
      `CREATE LIVE VIEW ${view} FLUSH EVERY 100ms START FROM BEGINNING AS (${definition})`,
    );
  }
  return history;
}

/** What may happen to a base without ending its views. */
async function step(server: TestServer, random: Random, history: History): Promise<string> {
  const { base } = history;
  const some = (): number => random(history.end + 1);
  const within = (): string => {
    const from = some();
    return `ts BETWEEN '${text(from)}' AND '${text(from + random(200))}'`;
  };
  const grow = (): string => `INSERT INTO ${base} VALUES ${ahead(random, history, 1 + random(9))}`;
  const choices: readonly (() => string)[] = [
    grow,
    grow,
    grow,
    () => `INSERT INTO ${base} VALUES ${row(random, history.end)}`,
    () => `INSERT INTO ${base} VALUES ${row(random, some())}, ${row(random, some())}`,
    () => `UPDATE ${base} SET x = ${random(900)}.0, k = 3 - k WHERE ${within()}`,
    () => `UPDATE ${base} SET s = 'b' WHERE k = ${random(4)} AND ${within()}`,
    () => `DELETE FROM ${base} WHERE k = ${random(4)} AND ${within()}`,
    () => `DELETE FROM ${base} WHERE ${within()}`,
    () => `ALTER TABLE ${base} ADD COLUMN IF NOT EXISTS unused INT`,
    () => `ALTER TABLE ${base} SQUASH PARTITIONS`,
    () => `ALTER TABLE ${base} CONVERT PARTITION TO PARQUET WHERE ts > 0`,
  ];
  const statement = pick(random, choices)().replace('VALUES', '(ts, s, x, k) VALUES');
  try {
    await run(server, statement);
  } catch (failure) {
    if (!statement.includes('CONVERT')) {
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
  await live(server, ...history.views.keys());
  for (const [view, definition] of history.views) {
    const [shown, expected] = [await sorted(server, view), await sorted(server, definition)];
    t.deepEqual(shown, expected, `${view}: ${definition}: ${what}`);
    const counted = await rows(server, `SELECT count(), max(ts) FROM ${view} WHERE ts > '2026'`);
    const wanted = await rows(server, `SELECT count(), max(ts) FROM (${definition})`);
    t.deepEqual(counted, wanted, `${view}: ${what}`);
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
    if (random(2) === 0 || index === STEPS - 1) {
      await compare(t, server, history, `seed ${seed}, history ${number}: ${done.join('; ')}`);
    }
  }
  for (const view of history.views.keys()) {
    await run(server, `DROP LIVE VIEW ${view}`);
  }
  await run(server, `DROP TABLE ${history.base}`);
}

test('live views equal their queries, whatever happens to their bases', async (t) => {
  t.timeout(Math.max(600_000, HISTORIES * 3_000));
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

test('live views equal their queries after kills', async (t) => {
  t.timeout(600_000);
  const seed = suiteSeed();
  const random = randomFrom(seed);
  await withServer(async (first) => {
    let server = first;
    const histories: History[] = [];
    for (let number = 0; number < 4; number += 1) {
      histories.push(await begin(server, random, number));
    }
    for (let round = 0; round < 6; round += 1) {
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
