/** Histories of a base with materialized views: over the base, and over another view. */
import type { ExecutionContext } from 'ava';

import type { Random } from '../sql/time-series/random-table.js';
import type { Runner } from './runners.js';
import { equal, type History, type Kind, pick, type Environment, settled } from './history.js';

interface MaterializedHistory extends History {
  /** Timestamp up to which rows have been appended, in milliseconds since 1970. */
  end: number;
  /** Whether a statement may have invalidated the views. */
  isEnded: boolean;
}

const LIST = `SELECT view_name, view_status, refresh_base_table_txn, base_table_txn,
  invalidation_reason FROM materialized_views()`;

/** Start of the appended rows: either before the clock change or after all other rows. */
const STARTS = [Date.UTC(2024, 9, 27, 0, 30), Date.UTC(2024, 9, 28)] as const;
const UNITS = ['7m', '1h', '5h', '1d', '1w'] as const;
const ALIGNMENTS = [
  '',
  '',
  " ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'",
  " ALIGN TO CALENDAR TIME ZONE 'America/New_York' WITH OFFSET '00:45'",
] as const;
/** The views of a history; the second reads the first. */
const CHOSEN = [
  [0, 1],
  [0, 2],
  [0, 3],
  [2, 3],
] as const;
const AGGREGATES = [
  'sum(x) x, count() n, min(x) low, max(x) high',
  'avg(x) x, count(x) n, min(k) low, max(x) high, sum(k) total',
  'first(k) x, last_not_null(x) y, count() n, max(x) high',
  'count_distinct(k) x, count() n, max(x) high',
] as const;

/** Returns a timestamp within a few days of a clock change, or occasionally far away. */
function timestamp(random: Random): string {
  const day = random(12) === 0 ? random(4000) : 3948 + random(5);
  const at = Date.UTC(2014, 0, 1) + day * 86_400_000 + random(86_400) * 1000;
  return new Date(at).toISOString();
}

/** Returns rows a few seconds apart, after all rows appended so far. */
function ahead(random: Random, history: MaterializedHistory, count: number): string {
  const values = Array.from({ length: count }, () => {
    history.end += random(4) === 0 ? random(1_200_000) : random(3) * 1_000;
    const key = random(9) === 0 ? 'NULL' : `'${pick(random, ['a', 'b', 'c', 'd', 'e'])}'`;
    const value = random(9) === 0 ? 'NULL' : `${random(1000)}.0`;
    return `('${new Date(history.end).toISOString()}', ${key}, ${value}, ${random(9)})`;
  });
  return values.join(', ');
}

function values(random: Random, count: number): string {
  const row = (): string =>
    `('${timestamp(random)}', '${pick(random, ['a', 'b', 'c'])}', ${random(1000)}.0, ${random(9)})`;
  return Array.from({ length: count }, row).join(', ');
}

function queries(random: Random, base: string): ReadonlyMap<string, string> {
  const [zone, other] = [pick(random, ALIGNMENTS), pick(random, ALIGNMENTS)];
  const first = `SELECT ts, s, ${pick(random, AGGREGATES)} FROM ${base}
    SAMPLE BY ${pick(random, UNITS)}${zone}`;
  const second = `SELECT ts, sum(n) n, max(high) high FROM ${base}_a
    SAMPLE BY ${pick(random, ['5h', '1d', '1w', '1M'])}${other}`;
  const third = pick(random, [
    `SELECT timestamp_floor('${pick(random, ['1h', '1d'])}', ts) t, sum(k) k
       FROM ${base} WHERE x > 300 GROUP BY 1`,
    `SELECT ts, s, x, k FROM ${base} WHERE x > 300`,
  ]);
  const all: readonly (readonly [string, string])[] = [
    [`${base}_a`, first],
    [`${base}_b`, second],
    [`${base}_c`, third],
  ];
  const [from, until] = pick(random, CHOSEN);
  return new Map(all.slice(from, until));
}

async function begin(runner: Runner, random: Random, number: number): Promise<MaterializedHistory> {
  const base = `h${number}`;
  const dedup = random(3) === 0 ? ' DEDUP UPSERT KEYS(ts, s)' : '';
  await runner.run(
    `CREATE TABLE ${base} (ts TIMESTAMP, s SYMBOL, x DOUBLE, k LONG) TIMESTAMP(ts)
       PARTITION BY ${pick(random, ['DAY', 'MONTH', 'HOUR'])} WAL${dedup}`,
  );
  const views = queries(random, base);
  if (random(2) === 0) {
    await runner.run(`INSERT INTO ${base} VALUES ${values(random, 1 + random(40))}`);
  }
  for (const [view, query] of views) {
    await runner.run(`CREATE MATERIALIZED VIEW ${view} AS (${query})`);
  }
  return { base, views, end: pick(random, STARTS), isEnded: false, done: [] };
}

/**
 * Returns two kinds of statements: those after which views continue, and those after which views
 * are recomputed.
 */
function statements(random: Random, history: MaterializedHistory): readonly string[] {
  const { base } = history;
  const into = `INSERT INTO ${base} (ts, s, x, k)`;
  const day = timestamp(random).slice(0, 10);
  const view = pick(random, [...history.views.keys()]);
  const grow = (): readonly string[] => [`${into} VALUES ${ahead(random, history, 1 + random(9))}`];
  const ends = (...all: readonly string[]): readonly string[] => {
    history.isEnded = true;
    return all;
  };
  const choices: readonly (() => readonly string[])[] = [
    grow,
    grow,
    grow,
    grow,
    () => [`UPDATE ${base} SET x = 7.0 WHERE ts > '2024-10-27T00:30' AND k = 3`],
    () => [`${into} VALUES ${values(random, 1 + random(3))}`],
    () => [`${into} VALUES ${values(random, 1 + random(50))}`],
    () => [
      `${into} SELECT timestamp_sequence('${day}', ${1 + random(9_000)}00000), 'b', x::double, x
         FROM long_sequence(${1 + random(300)})`,
    ],
    () => [`UPDATE ${base} SET x = ${random(900)}.0, k = k + 1 WHERE ts IN '${day}'`],
    () => [`UPDATE ${base} SET x = x + 100 WHERE s = '${pick(random, ['a', 'b'])}' AND k > 5`],
    () => [`DELETE FROM ${base} WHERE ts IN '${day}' AND k < ${random(10)}`],
    () => [`DELETE FROM ${base} WHERE k = ${random(9)}`],
    () => [`ALTER TABLE ${base} ADD COLUMN IF NOT EXISTS unused INT`],
    () => [
      `ALTER TABLE ${base} ADD COLUMN other INT`,
      `ALTER TABLE ${base} RENAME COLUMN other TO another`,
      ...grow(),
      `ALTER TABLE ${base} DROP COLUMN another`,
    ],
    () => [`ALTER TABLE ${base} CONVERT PARTITION TO PARQUET WHERE ts > 0`],
    () => [`ALTER TABLE ${base} CONVERT PARTITION TO NATIVE WHERE ts > 0`],
    () => (random(4) === 0 ? [`ALTER TABLE ${base} SQUASH PARTITIONS`] : grow()),
    () => [`REFRESH MATERIALIZED VIEW ${view} RANGE FROM '${day}' TO '2024-10-28'`],
    () => ends(`ALTER TABLE ${base} DROP PARTITION WHERE ts < '${day}'`),
    () => ends(`TRUNCATE TABLE ${base}`),
    () =>
      ends(
        `ALTER TABLE ${base} RENAME COLUMN k TO gone`,
        `UPDATE ${base} SET gone = 5 WHERE ts IN '${day}'`,
        `ALTER TABLE ${base} RENAME COLUMN gone TO k`,
      ),
  ];
  return pick(random, choices)();
}

async function step(runner: Runner, random: Random, history: MaterializedHistory): Promise<void> {
  for (const statement of statements(random, history)) {
    history.done.push(statement);
    try {
      await runner.run(statement);
    } catch (failure) {
      // An unpartitioned table has no partitions to convert or drop, and an invalid view has no
      // ranges.
      if (!/CONVERT|DROP PARTITION|RANGE/.test(statement)) {
        throw failure;
      }
    }
  }
}

async function compare(
  t: ExecutionContext,
  at: Environment,
  history: MaterializedHistory,
): Promise<void> {
  for (const view of history.views.keys()) {
    if (history.isEnded) {
      history.done.push('FULL');
      await at.runner.run(`REFRESH MATERIALIZED VIEW ${view} FULL`);
    }
    await settled(
      at,
      LIST,
      view,
      ([, status, shown, last]) => status === 'valid' && shown !== null && shown === last,
    );
  }
  history.isEnded = false;
  await equal(t, at, history);
}

export const materialized: Kind<MaterializedHistory> = {
  histories: 1_200,
  steps: 6,
  begin,
  step,
  polls: (random) => random(3) === 0,
  compare,
};
