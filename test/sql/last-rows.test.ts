/**
 * LIMIT with bounds from either end returns the rows between them, whatever the source: a table
 * read from its end, a filter, chunks of two rows, groups, joins.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows as rowsOf } from '../line/harness.js';

/** Queries with ordered results. */
const QUERIES = [
  'SELECT * FROM rows',
  'SELECT ts, n + 1 FROM rows',
  "SELECT * FROM rows WHERE k = 'a'",
  "SELECT n FROM rows WHERE k != 'a' AND n > 3",
  "SELECT * FROM rows WHERE ts >= '2024-01-02' AND n % 3 = 1",
  "SELECT * FROM rows WHERE k = 'none'",
  'SELECT ts, k, sum(n) FROM rows SAMPLE BY 1h',
  'SELECT k, count() FROM rows GROUP BY k ORDER BY k',
  'SELECT * FROM rows ORDER BY ts DESC',
  'SELECT * FROM rows ORDER BY n % 7, n',
  'SELECT * FROM (SELECT * FROM rows LIMIT -20) WHERE n > 2',
  'SELECT * FROM (SELECT * FROM rows LIMIT 30)',
  'SELECT a.n, b.n m FROM rows a ASOF JOIN rows b ON k',
  'SELECT * FROM rows LATEST ON ts PARTITION BY k',
  'SELECT n FROM rows UNION ALL SELECT n FROM plain',
  'SELECT * FROM plain',
  'SELECT n, count() OVER (PARTITION BY k ORDER BY ts) c FROM rows',
  'SELECT x FROM long_sequence(17)',
];
const OFFSETS = [0, 1, 2, 3, 7, 50, 1_000, 9_223_372_036_854_775_807n];
const TOTAL = 60;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.scan.part.rows=2', 'shared.query.worker.count=3'],
  });
  const rows = `SELECT dateadd('m', (x * 61)::int, '2024-01-01')::timestamp ts,
    (CASE WHEN x % 5 = 0 THEN 'a' WHEN x % 3 = 0 THEN 'b' ELSE null END)::symbol k, x n
    FROM long_sequence(${TOTAL})`;
  for (const statement of [
    'CREATE TABLE rows (ts TIMESTAMP, k SYMBOL, n LONG) TIMESTAMP(ts) PARTITION BY DAY',
    `INSERT INTO rows ${rows}`,
    `CREATE TABLE plain AS (SELECT x n, 'row ' || x v FROM long_sequence(${TOTAL}))`,
  ]) {
    await rowsFor(statement);
  }
});
test.after.always(() => server.stop());

const rowsFor = (sql: string): Promise<readonly (readonly unknown[])[]> => rowsOf(server, sql);

/** Returns the rows between two bounds; negative bounds count from the end. */
function between(rows: readonly unknown[], from: bigint, to: bigint): readonly unknown[] {
  const of = (offset: bigint): number =>
    Number(offset < 0n ? BigInt(rows.length) + offset : offset);
  return rows.slice(Math.max(0, of(from)), Math.max(0, of(to)));
}

test('LIMIT with two bounds returns the rows between them', async (t) => {
  t.timeout(300_000);
  for (const query of QUERIES) {
    const all = await rowsFor(query);
    for (const one of OFFSETS.map(BigInt)) {
      const last = between(all, -one, BigInt(all.length));
      t.deepEqual(
        await rowsFor(`${query} LIMIT -${one}`),
        one === 0n ? [] : last,
        `${query} -${one}`,
      );
      for (const other of OFFSETS.map(BigInt)) {
        const [far, near] = one > other ? [one, other] : [other, one];
        const inner =
          near === 0n ? between(all, -far, BigInt(all.length)) : between(all, -far, -near);
        const found = await rowsFor(`${query} LIMIT -${far}, -${near}`);
        t.deepEqual(found, far === 0n ? [] : inner, `${query} -${far}, -${near}`);
        const ends = other === 0n ? [] : between(all, one, -other);
        if (other !== 0n) {
          const cut = await rowsFor(`${query} LIMIT ${one}, -${other}`);
          t.deepEqual(cut, ends, `${query} ${one}, -${other}`);
        }
      }
    }
  }
});

test('the last rows of a table are read from the end', async (t) => {
  const plan = async (sql: string): Promise<string> =>
    (await rowsFor(`EXPLAIN (PHYSICAL) ${sql}`)).flat().join('\n');
  for (const sql of [
    'SELECT * FROM rows LIMIT -5',
    "SELECT n + 1 FROM rows WHERE k = 'a' LIMIT -5",
  ]) {
    const found = await plan(sql);
    t.regex(found, /LastRowsExec: skip=0, last=5, without=0\n *(?:TableScan|FilteredScan)Exec/);
    t.notRegex(found, /Window/);
  }
  const [first] = await rowsFor("SELECT n FROM rows WHERE k = 'a' AND n < 60 LIMIT -1");
  t.deepEqual(first, [55]);
});

test('LIMIT in a correlated sub-query applies to each outer row', async (t) => {
  const counted = async (last: string): Promise<unknown> => {
    const of = `SELECT max(b.n) FROM (SELECT n FROM rows c WHERE c.n <= a.n ${last}) b`;
    return (await rowsFor(`SELECT n, (${of}) FROM rows a LIMIT 40`)).map(([, maximum]) => maximum);
  };
  const numbers = Array.from({ length: 40 }, (_, at) => at + 1);
  const maximum = (n: number): number => Math.min(n, 2);
  for (const [last, expected] of [
    ['LIMIT -2', (n: number) => n],
    ['LIMIT 2', maximum],
    ['ORDER BY c.n DESC LIMIT -2', maximum],
    ['ORDER BY -c.n LIMIT -2', maximum],
    ['ORDER BY c.ts DESC LIMIT -2', maximum],
    ['LIMIT -3, -1', (n: number) => (n === 1 ? null : n - 1)],
  ] as const) {
    t.deepEqual(await counted(last), numbers.map(expected), last);
  }
});
