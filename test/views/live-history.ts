/** Histories of a base with live views, some of them over a materialized view. */
import type { ExecutionContext } from 'ava';

import type { Random } from '../sql/time-series/random-table.js';
import type { Runner } from './runners.js';
import {
  equal,
  type History,
  type Kind,
  pick,
  type Environment,
  settled,
  sorted,
} from './history.js';

interface LiveHistory extends History {
  /** The latest timestamp of appended rows, in minutes. */
  end: number;
  /** The materialized view between the base and the live views. */
  readonly between: string | undefined;
}

const LIVE = 'SELECT view_name, view_status, lag_seqtxn, last_processed_seqtxn FROM live_views()';
const BETWEEN = `SELECT view_name, view_status, refresh_base_table_txn, base_table_txn
  FROM materialized_views()`;
const START = Date.UTC(2026, 2, 27) / 60_000;

/** Windows with bounded and unbounded lookback. */
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
  // Functions that need several passes do not order rows with equal times.
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

/** Returns rows at the end of a base, some with equal timestamps. */
function ahead(random: Random, history: LiveHistory, count: number): string {
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

async function begin(runner: Runner, random: Random, number: number): Promise<LiveHistory> {
  const base = `l${number}`;
  const dedup = random(3) === 0 ? ' DEDUP UPSERT KEYS(ts, s)' : '';
  await runner.run(
    `CREATE TABLE ${base} (ts TIMESTAMP, s SYMBOL, x DOUBLE, k LONG) TIMESTAMP(ts)
       PARTITION BY ${pick(random, ['DAY', 'MONTH', 'HOUR'])} WAL${dedup}`,
  );
  const between = random(4) === 0 ? `${base}_m` : undefined;
  const count = 1 + random(2);
  const views = new Map(
    Array.from({ length: count }, (_, view) => [
      `${base}_${view + 1}`,
      query(random, between ?? base),
    ]),
  );
  const history: LiveHistory = { base, views, between, end: 0, done: [] };
  if (random(2) === 0) {
    await runner.run(`INSERT INTO ${base} VALUES ${ahead(random, history, 1 + random(30))}`);
  }
  if (between !== undefined) {
    const passed = `SELECT ts, s, x, k FROM ${base} WHERE k < 3`;
    await runner.run(`CREATE MATERIALIZED VIEW ${between} AS (${passed}) PARTITION BY DAY`);
  }
  for (const [view, definition] of views) {
    await runner.run(
      `CREATE LIVE VIEW ${view} FLUSH EVERY 100ms START FROM BEGINNING AS (${definition})`,
    );
  }
  return history;
}

/** Returns changes to a base that do not permanently invalidate its views. */
function statements(random: Random, history: LiveHistory): readonly string[] {
  const { base } = history;
  const into = `INSERT INTO ${base} (ts, s, x, k)`;
  const some = (): number => random(history.end + 1);
  const within = (): string => {
    const from = some();
    return `ts BETWEEN '${text(from)}' AND '${text(from + random(200))}'`;
  };
  const grow = (): readonly string[] => [`${into} VALUES ${ahead(random, history, 1 + random(9))}`];
  const choices: readonly (() => readonly string[])[] = [
    grow,
    grow,
    grow,
    () => [`${into} VALUES ${row(random, history.end)}`],
    () => [`${into} VALUES ${row(random, some())}, ${row(random, some())}`],
    () => [`UPDATE ${base} SET x = ${random(900)}.0, k = 3 - k WHERE ${within()}`],
    () => [`UPDATE ${base} SET s = 'b' WHERE k = ${random(4)} AND ${within()}`],
    () => [`DELETE FROM ${base} WHERE k = ${random(4)} AND ${within()}`],
    () => [`DELETE FROM ${base} WHERE ${within()}`],
    // Deletes rows at the end of the base, possibly only rows that the views filter out.
    () => {
      const from = Math.max(0, history.end - random(60));
      history.end = from;
      return [`DELETE FROM ${base} WHERE ts > '${text(from)}'`];
    },
    () => [`DELETE FROM ${base} WHERE x <= 150 AND ts > '${text(history.end - random(300))}'`],
    () => [`ALTER TABLE ${base} ADD COLUMN IF NOT EXISTS unused INT`],
    () => [
      `ALTER TABLE ${base} ADD COLUMN other INT`,
      `ALTER TABLE ${base} RENAME COLUMN other TO another`,
      ...grow(),
      `ALTER TABLE ${base} DROP COLUMN another`,
    ],
    // Makes a view over the base temporarily invalid.
    () =>
      history.between === undefined
        ? [
            `ALTER TABLE ${base} RENAME COLUMN x TO gone`,
            `UPDATE ${base} SET gone = 5.0 WHERE ${within()}`,
            `ALTER TABLE ${base} RENAME COLUMN gone TO x`,
          ]
        : grow(),
    () => (random(4) === 0 ? [`ALTER TABLE ${base} SQUASH PARTITIONS`] : grow()),
    () => [`ALTER TABLE ${base} CONVERT PARTITION TO PARQUET WHERE ts > 0`],
  ];
  return pick(random, choices)();
}

async function step(runner: Runner, random: Random, history: LiveHistory): Promise<void> {
  for (const statement of statements(random, history)) {
    history.done.push(statement);
    try {
      await runner.run(statement);
    } catch (failure) {
      // An unpartitioned table has nothing to convert.
      if (!statement.includes('CONVERT')) {
        throw failure;
      }
    }
  }
}

async function current(at: Environment, history: LiveHistory): Promise<void> {
  if (history.between !== undefined) {
    await settled(
      at,
      BETWEEN,
      history.between,
      ([, status, shown, last]) => status === 'valid' && shown !== null && shown === last,
    );
  }
  for (const view of history.views.keys()) {
    await settled(
      at,
      LIVE,
      view,
      ([, status, lag, last]) => status === 'active' && lag === 0 && last !== null,
    );
  }
}

async function compare(t: ExecutionContext, at: Environment, history: LiveHistory): Promise<void> {
  await current(at, history);
  await equal(t, at, history);
  for (const view of history.views.keys()) {
    const shown = await at.runner.rows(view);
    const counted = await at.runner.rows(`SELECT count(), max(ts) FROM ${view} WHERE ts > '2026'`);
    t.deepEqual(counted, [[shown.length, shown.at(-1)?.[0] ?? null]], view);
  }
}

/** Drops partitions, whose rows remain in the view, and appends new rows. */
async function end(
  t: ExecutionContext,
  at: Environment,
  random: Random,
  history: LiveHistory,
): Promise<void> {
  if (history.between !== undefined || random(2) === 0) {
    return;
  }
  const { runner } = at;
  const kept = new Map<string, readonly string[]>();
  for (const view of history.views.keys()) {
    kept.set(view, await sorted(runner, view));
  }
  history.done.push('DROP PARTITION');
  await runner
    .run(`ALTER TABLE ${history.base} DROP PARTITION WHERE ts < '${text(random(history.end + 1))}'`)
    // The statement fails if there is no partition, or only one.
    .catch(() => undefined);
  const last = text(history.end);
  history.end += 1;
  const added = ahead(random, history, 1 + random(9));
  await runner.run(`INSERT INTO ${history.base} (ts, s, x, k) VALUES ${added}`);
  await current(at, history);
  for (const [view, definition] of history.views) {
    const shown = await sorted(runner, `SELECT * FROM ${view} WHERE ts <= '${last}'`);
    t.deepEqual(shown, kept.get(view), `${view} keeps its earlier rows: ${definition}`);
    const after = `WHERE ts > '${last}'`;
    const counted = await runner.rows(`SELECT count() FROM ${view} ${after}`);
    const expected = await runner.rows(`SELECT count() FROM (${definition}) ${after}`);
    t.deepEqual(counted, expected, view);
  }
}

export const live: Kind<LiveHistory> = {
  histories: 600,
  steps: 6,
  begin,
  step,
  polls: (random) => random(3) === 0,
  compare,
  end,
};
