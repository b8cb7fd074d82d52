/**
 * LATERAL sub-queries that find the last row before each row's time, and are therefore ASOF JOINs,
 * and similar queries that are not. They run on random tables, and the results are compared with a
 * simple evaluation. Prints its seed; SEED=n repeats a run.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { suiteSeed } from '../../seed.js';
import {
  fetchRows,
  type Cell,
  createTable,
  type Random,
  randomFrom,
  randomShape,
  type Row,
} from './random-table.js';

const seed = suiteSeed();
const RUNS = Number(process.env['RUNS'] ?? 12);

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});
test.after.always(async () => {
  await server.stop();
});

interface Form {
  /** The condition that relates row `c` to row `a`, and a function that evaluates it. */
  readonly where: string;
  readonly meets: (a: Row, c: Row) => boolean;
  readonly isAsof: boolean;
  readonly order?: string;
  /** Number of rows to skip, counted from the last row. */
  readonly skipped?: number;
}

const FORMS: readonly Form[] = [
  { where: 'c.ts <= a.ts', meets: (a, c) => c.ts <= a.ts, isAsof: true },
  { where: 'c.ts < a.ts', meets: (a, c) => c.ts < a.ts, isAsof: true },
  {
    where: 'a.ts >= c.ts AND c.k = a.k',
    meets: (a, c) => c.ts <= a.ts && a.k === c.k,
    isAsof: true,
  },
  {
    where: 'a.k = c.k AND c.g = a.g AND a.ts > c.ts',
    meets: (a, c) => c.ts < a.ts && a.k === c.k && a.g === c.g,
    isAsof: true,
  },
  {
    where: 'c.ts <= a.ts AND c.k = a.k AND c.n > 0',
    meets: (a, c) => c.ts <= a.ts && a.k === c.k && c.n !== null && c.n > 0,
    isAsof: true,
  },
  {
    where: 'c.ts <= a.ts AND c.g < a.g',
    meets: (a, c) => c.ts <= a.ts && a.g !== null && c.g !== null && c.g < a.g,
    isAsof: false,
  },
  { where: 'c.ts >= a.ts', meets: (a, c) => c.ts >= a.ts, isAsof: false },
  { where: 'c.k = a.k', meets: (a, c) => a.k === c.k, isAsof: false },
  {
    where: 'c.ts <= a.ts AND c.k = a.k',
    meets: (a, c) => c.ts <= a.ts && a.k === c.k,
    isAsof: false,
    order: 'c.ts DESC, c.id DESC',
  },
  { where: 'c.ts <= a.ts', meets: (a, c) => c.ts <= a.ts, isAsof: false, skipped: 1 },
];

/** Returns rows with distinct timestamps, so the last one is always unique. */
function apart(rows: readonly Row[]): Row[] {
  const taken = new Set<number>();
  return rows.filter(({ ts }) => !taken.has(ts) && taken.add(ts).size > 0);
}

async function table(random: Random, name: string): Promise<Row[]> {
  const rows = await createTable(server.url, name, random, randomShape(random));
  const kept = apart(rows);
  const gone = rows.filter((row) => !kept.includes(row)).map(({ id }) => id);
  if (gone.length > 0) {
    await fetchRows(server.url, `DELETE FROM ${name} WHERE id IN (${gone.join(', ')})`);
  }
  return kept;
}

for (let run = 0; run < RUNS; run += 1) {
  test(`lookups of the last earlier row match the model, run ${run}`, async (t) => {
    const random = randomFrom(seed * 1_000 + run);
    const [left, right] = [`a${run}`, `c${run}`];
    const these = await table(random, left);
    const those = await table(random, right);
    for (const form of FORMS) {
      const { where, meets, isAsof, order = 'c.ts DESC', skipped = 0 } = form;
      const limit = skipped === 0 ? 'LIMIT 1' : `LIMIT ${skipped}, ${skipped + 1}`;
      const inner = `SELECT id AS found, y FROM (SELECT id, ts, k, g, n, x AS y FROM ${right}) c`;
      const query = (join: string, on: string): string =>
        `SELECT a.id, q.found, q.y FROM ${left} a ${join} LATERAL
           (${inner} WHERE ${where} ORDER BY ${order} ${limit}) q ${on}`;
      const found = these.map((a): Cell[] => {
        const met = those.filter((c) => meets(a, c)).sort((one, other) => other.ts - one.ts);
        const last = met[skipped];
        return [a.id, last?.id ?? null, last?.x ?? null];
      });
      const inOrder = (rows: readonly Cell[][]): Cell[][] =>
        [...rows].sort(([one], [other]) => Number(one) - Number(other));
      for (const [join, on, expected] of [
        ['LEFT JOIN', 'ON true', found],
        ['CROSS JOIN', '', found.filter(([, id]) => id !== null)],
      ] as const) {
        const sql = query(join, on);
        t.deepEqual(inOrder(await fetchRows(server.url, sql)), inOrder(expected), sql);
        const plan = (await fetchRows(server.url, `EXPLAIN ${sql}`)).flat().join('\n');
        t.is(plan.includes('AsofJoin'), isAsof, `${sql}\n${plan}`);
      }
    }
  });
}

test('expressions over a missing row are null', async (t) => {
  await fetchRows(server.url, 'CREATE TABLE one AS (SELECT 0::timestamp ts, 1 n) TIMESTAMP(ts)');
  const last = (item: string): string =>
    `LATERAL (SELECT ${item} v FROM one c WHERE c.ts < a.ts ORDER BY c.ts DESC LIMIT 1) q`;
  for (const item of ['coalesce(c.n, 7)', '7', 'a.n + 1']) {
    const rows = await fetchRows(
      server.url,
      `SELECT a.n, q.v FROM one a LEFT JOIN ${last(item)} ON true`,
    );
    t.deepEqual(rows, [[1, null]], item);
    t.deepEqual(
      await fetchRows(server.url, `SELECT q.v FROM one a CROSS JOIN ${last(item)}`),
      [],
      item,
    );
  }
});
