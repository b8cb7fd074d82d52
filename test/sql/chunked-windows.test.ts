/**
 * `lag` without PARTITION BY over a scan in several chunks. Chunks are processed separately. Each
 * also reads the rows that it needs from earlier chunks, however far back they are.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows as rowsOf } from '../line/harness.js';

const TOTAL = 61;
/** Returns the value of a row; every seventh is null. */
const value = (row: number): number | null => (row % 7 === 3 ? null : row * 10);
const VALUES = Array.from({ length: TOTAL }, (_, row) => value(row));
const back = (row: number, distance: number, otherwise: number | null = null): number | null =>
  row < distance ? otherwise : (VALUES[row - distance] ?? null);

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.scan.part.rows=2', 'shared.query.worker.count=4'],
  });
  const rows = `SELECT dateadd('h', (x - 1)::int, '2024-01-01')::timestamp ts,
    CASE WHEN (x - 1) % 7 = 3 THEN null ELSE (x - 1) * 10 END n FROM long_sequence(${TOTAL})`;
  await query('CREATE TABLE rows (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
  await query(`INSERT INTO rows ${rows}`);
  await query('CREATE TABLE none (ts TIMESTAMP, n LONG) TIMESTAMP(ts) PARTITION BY DAY');
});
test.after.always(() => server.stop());

const query = (sql: string): Promise<readonly (readonly unknown[])[]> => rowsOf(server, sql);

test('lag and lead read rows across storage partitions', async (t) => {
  for (const distance of [1, 2, 3, 5, 17, 60, 61, 1_000]) {
    const expected = VALUES.map((n, row) => [n, back(row, distance)]);
    const lag = `lag(n, ${distance}) OVER (ORDER BY ts)`;
    t.deepEqual(await query(`SELECT n, ${lag} FROM rows`), expected, lag);
    const unordered = `lag(n, ${distance}) OVER ()`;
    t.deepEqual(await query(`SELECT n, ${unordered} FROM rows`), expected, unordered);
    const filled = `SELECT lag(n, ${distance}, -1) OVER (ORDER BY ts) FROM rows`;
    t.deepEqual(
      await query(filled),
      VALUES.map((_, row) => [back(row, distance, -1)]),
      filled,
    );
  }
});

test('lag and lead accept several offsets and can be used within expressions', async (t) => {
  const both = `SELECT n, lag(n, 1) OVER (ORDER BY ts) a, lag(n, 4) OVER (ORDER BY ts) b FROM rows`;
  const expected = VALUES.map((n, row) => [n, back(row, 1), back(row, 4)]);
  t.deepEqual(await query(both), expected);
  t.deepEqual(await query(`SELECT * FROM (${both}) LIMIT 5`), expected.slice(0, 5));
  t.deepEqual(await query(`SELECT * FROM (${both}) LIMIT -5`), expected.slice(-5));
  t.deepEqual(await query(`SELECT * FROM (${both}) LIMIT 9, 31`), expected.slice(9, 31));
  const step = 'SELECT ts, n - lag(n) OVER (ORDER BY ts) d FROM rows';
  const steps = VALUES.map((n, row) => {
    const before = back(row, 1);
    return n === null || before === null ? null : n - before;
  });
  const known = steps.filter((of): of is number => of !== null);
  const sum = known.reduce((all, of) => all + of, 0);
  t.deepEqual(await query(`SELECT count(), count(d), sum(d) FROM (${step})`), [
    [TOTAL, known.length, sum],
  ]);
  // Order-independent aggregates read the chunks in parallel.
  const plan = await query(`EXPLAIN (PHYSICAL) SELECT count(), sum(d) FROM (${step})`);
  t.false(JSON.stringify(plan).includes('TimeConcatExec'), JSON.stringify(plan));
  const ordered = `SELECT first(d), last(d) FROM (SELECT d FROM (${step}) ORDER BY ts DESC)`;
  t.deepEqual(await query(ordered), [[steps.at(-1), steps[0]]]);
  t.deepEqual(
    await query(`SELECT d FROM (${step}) ORDER BY ts DESC`),
    steps.toReversed().map((of) => [of]),
  );
  t.deepEqual(
    await query(`SELECT lag(d, 3) OVER (ORDER BY ts) FROM (${step})`),
    steps.map((_, row) => [row < 3 ? null : (steps[row - 3] ?? null)]),
  );
});

test('lag and lead respect filters, time ranges and empty inputs', async (t) => {
  const lag = 'lag(n, 2) OVER (ORDER BY ts)';
  const kept = VALUES.filter((n) => n !== null && n > 100);
  t.deepEqual(
    await query(`SELECT n, ${lag} FROM rows WHERE n > 100`),
    kept.map((n, row) => [n, row < 2 ? null : (kept[row - 2] ?? null)]),
  );
  const day = VALUES.slice(24, 48);
  t.deepEqual(
    await query(`SELECT n, ${lag} FROM rows WHERE ts IN '2024-01-02'`),
    day.map((n, row) => [n, row < 2 ? null : (day[row - 2] ?? null)]),
  );
  t.deepEqual(await query(`SELECT n, ${lag} FROM none`), []);
  t.deepEqual(await query(`SELECT n, lag(n) IGNORE NULLS OVER (ORDER BY ts) FROM rows LIMIT 5`), [
    [0, null],
    [10, 0],
    [20, 10],
    [null, 20],
    [40, 20],
  ]);
});
