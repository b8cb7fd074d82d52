/**
 * The first rows ordered by a number, after random filters. The results are compared with the
 * complete ordered table, which the test itself filters. Covers rows in memory, segments, Parquet
 * and late rows, with small scan chunks.
 */
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows as rowsOf } from '../line/harness.js';
import { suiteSeed } from '../seed.js';

/** Columns: ts, k, n (unique), d, l, i, s. */
type Row = readonly unknown[];
type Filter = readonly [sql: string, passes: (row: Row) => boolean];

const TOTAL = 36_000;
const K = 1;
const N = 2;
const D = 3;
const L = 4;
const S = 6;

/**
 * Doubles with nulls and few distinct values; integers with nulls; one column correlated with time.
 */
const rowsFrom = (first: number, count: number): string => `
  SELECT dateadd('s', ((x * 7919) % ${TOTAL} * 4)::int, '2024-01-01')::timestamp ts,
    (CASE WHEN x % 100 = 0 THEN 'rare' WHEN x % 3 = 0 THEN 'b' WHEN x % 7 = 0 THEN null
      ELSE 'a' END)::symbol k, x n,
    CASE WHEN x % 11 = 0 THEN null ELSE ((x * 104729) % 4001 - 2000) / 8.0 END d,
    CASE WHEN x % 13 = 0 THEN null ELSE (x * 7919) % ${TOTAL} - 5000 END l,
    ((x * 31) % 17)::int i, 'text ' || (x % 50) s
  FROM (SELECT x + ${first - 1} x FROM long_sequence(${count}))`;

const number = (row: Row, column: number): number => (row[column] ?? Number.NaN) as number;
const FILTERS: readonly ((random: () => number) => Filter)[] = [
  () => ["k = 'rare'", (row) => row[K] === 'rare'],
  () => ["k != 'a'", (row) => row[K] !== 'a'],
  () => ["k = 'none'", () => false],
  () => ['n > 0', () => true],
  (random) => {
    const minimum = Math.floor(random() * 500) - 250;
    return [`d > ${minimum + 0.03125}`, (row) => number(row, D) > minimum + 0.03125];
  },
  (random) => {
    const maximum = Math.floor(random() * TOTAL);
    return [`l < ${maximum}`, (row) => number(row, L) < maximum];
  },
  (random) => {
    const rest = Math.floor(random() * 50);
    return [`s = 'text ' || ${rest}`, (row) => row[S] === `text ${rest}`];
  },
  (random) => {
    const rest = Math.floor(random() * 5);
    return [`n % 5 != ${rest}`, (row) => number(row, N) % 5 !== rest];
  },
];
/** The last key is unique, which makes the ordering total. */
const KEYS = ['d', 'l', 'i', 'ts'];
const LIMITS: readonly (readonly [from: number, to: number])[] = [
  [0, 1],
  [0, 10],
  [0, 1_000],
  [5, 25],
  [0, 30_000],
];

const seed = suiteSeed();
/** Returns random numbers from 0 to 1. */
function randomOf(start: number): () => number {
  let state = start >>> 0 || 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const orders = (random: () => number): string => {
  const direction = (): string => (random() < 0.5 ? '' : ' DESC');
  const keys = KEYS.filter(() => random() < 0.4);
  const first = KEYS[Math.floor(random() * KEYS.length)];
  const all = [...new Set([first, ...keys])].map((key) => `${key}${direction()}`);
  return [...all, `n${direction()}`].join(', ');
};

async function check(t: ExecutionContext, server: TestServer, rounds: number): Promise<void> {
  const random = randomOf(seed);
  const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)] as T;
  for (let round = 0; round < rounds; round += 1) {
    const order = orders(random);
    const all = await rowsOf(server, `SELECT * FROM rows ORDER BY ${order}`);
    for (let case_ = 0; case_ < 4; case_ += 1) {
      const filters = [pick(FILTERS), pick(FILTERS)]
        .slice(random() < 0.5 ? 0 : 1)
        .map((filter) => filter(random));
      const [from, to] = pick(LIMITS);
      const passing = all.filter((row) => filters.every(([, passes]) => passes(row)));
      const where = filters.map(([sql]) => sql).join(' AND ');
      const limit = from === 0 ? `${to}` : `${from}, ${to}`;
      const sql = `SELECT * FROM rows WHERE ${where} ORDER BY ${order} LIMIT ${limit}`;
      t.deepEqual(await rowsOf(server, sql), passing.slice(from, to), `SEED=${seed} ${sql}`);
      // If a single key orders the rows, any rows with the last key value are valid, but each may
      // appear only once.
      const key = order.split(',')[0] ?? '';
      const one = await rowsOf(
        server,
        `SELECT * FROM rows WHERE ${where} ORDER BY ${key} LIMIT ${limit}`,
      );
      const column = ['ts', 'k', 'n', 'd', 'l', 'i', 's'].indexOf(key.split(' ')[0] ?? '');
      const keys = (rows: readonly Row[]): unknown[] => rows.map((row) => row[column]);
      t.deepEqual(keys(one), keys(passing.slice(from, to)), `SEED=${seed} ${key} of ${sql}`);
      const known = new Set(passing.map((row) => JSON.stringify(row)));
      const found = new Set(one.map((row) => JSON.stringify(row)));
      t.is(found.size, one.length, sql);
      t.true(
        [...found].every((row) => known.has(row)),
        `SEED=${seed} ${sql}`,
      );
    }
  }
}

test('LIMIT after a filter returns the first rows wherever they are stored', async (t) => {
  t.timeout(300_000);
  const root = await mkdtemp(join(tmpdir(), 'tidemark-first-rows-'));
  const set = ['shared.query.worker.count=3'];
  let server = await startTestServer({ root, set });
  const restart = async (more: readonly string[] = []): Promise<void> => {
    await server.stop();
    server = await startTestServer({ root, set: [...set, ...more] });
  };
  try {
    await rowsOf(
      server,
      `CREATE TABLE rows (ts TIMESTAMP, k SYMBOL, n LONG, d DOUBLE, l LONG, i INT, s VARCHAR)
        TIMESTAMP(ts) PARTITION BY DAY`,
    );
    await rowsOf(server, `INSERT INTO rows ${rowsFrom(1, TOTAL / 2)}`);
    await rowsOf(server, `INSERT INTO rows ${rowsFrom(TOTAL / 2 + 1, TOTAL / 3)}`);
    await check(t, server, 3);
    await restart();
    await check(t, server, 5);
    await rowsOf(server, "ALTER TABLE rows CONVERT PARTITION TO PARQUET LIST '2024-01-01'");
    await rowsOf(server, `INSERT INTO rows ${rowsFrom((TOTAL * 5) / 6 + 1, TOTAL / 6)}`);
    await check(t, server, 3);
    await restart(['query.scan.part.rows=700']);
    await check(t, server, 3);
    const plan = await rowsOf(
      server,
      "EXPLAIN (PHYSICAL) SELECT * FROM rows WHERE k = 'rare' ORDER BY d DESC LIMIT 10",
    );
    t.regex(plan.flat().join('\n'), /TopRowsExec: 10 by d DESC\n *FilteredScanExec/);
  } finally {
    await server.stop();
  }
});
