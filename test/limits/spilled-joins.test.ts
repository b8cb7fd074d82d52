/**
 * Joins whose two inputs both exceed the query memory give the same answers as with enough memory.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';

import { Tidemark } from '../correctness/databases.js';
import { execute } from '../golden/http-client.js';
import { until } from '../until.js';

/** Too many rows for a shared build side, which is used for up to a million rows. */
const ROWS = 1_300_000;
const TABLES: readonly string[] = ['a', 'b'].flatMap((table, number) => [
  `CREATE TABLE ${table} (ts TIMESTAMP, k SYMBOL, n LONG, t VARCHAR, d DOUBLE, h INT)
    TIMESTAMP(ts) PARTITION BY DAY`,
  `INSERT INTO ${table} SELECT timestamp_sequence('2024-01-01', 100000) ts,
    CASE WHEN x % 11 = 0 THEN null ELSE 's' || (x * ${7 + number} % 97) END k,
    x * 7919 % ${ROWS + number} n, 'text ' || (x * 31 % 900007) t,
    CASE WHEN x % 1000 = 0 THEN null ELSE (x % 650000) / 4.0 END d,
    CASE WHEN x % 3 = 0 THEN ${number} ELSE 5 END h FROM long_sequence(${ROWS})`,
]);

const SUMS = 'SELECT count() c, sum(a.n) n, sum(b.n) m, count(a.k) k, count(b.t) t FROM a';
const STATEMENTS: readonly string[] = [
  `${SUMS} JOIN b ON a.k = b.k AND a.n = b.n`,
  `${SUMS} JOIN b ON a.t = b.t`,
  `${SUMS} JOIN b ON a.d = b.d AND a.k = b.k`,
  `${SUMS} JOIN b ON a.n = b.n AND a.d < b.d`,
  `${SUMS} LEFT JOIN b ON a.k = b.k AND a.n = b.n`,
  `${SUMS} LEFT JOIN b ON a.n = b.n AND a.t < b.t`,
  `${SUMS} RIGHT JOIN b ON a.k = b.k AND a.n = b.n`,
  `${SUMS} FULL JOIN b ON a.t = b.t AND a.k = b.k`,
  'SELECT count() c, sum(n) FROM a WHERE t IN (SELECT t FROM b WHERE b.n < 300000)',
  'SELECT count() c, sum(n) FROM a WHERE NOT EXISTS ' +
    '(SELECT 1 FROM b WHERE b.t = a.t AND b.n < 9000)',
  'SELECT count() c, sum(n) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.n = a.n)',
  'SELECT count() c, sum(n) FROM a WHERE h = 0 OR EXISTS ' +
    '(SELECT 1 FROM b WHERE b.t = a.t AND b.n = a.n)',
  'SELECT a.k, count() c, sum(b.n) n FROM a JOIN b ON a.n = b.n GROUP BY a.k ORDER BY a.k',
  'SELECT a.n, a.k, b.k l, b.t FROM a JOIN b ON a.t = b.t AND a.k = b.k ORDER BY 1, 4 LIMIT 20',
  // Results in the order of the streamed table.
  'SELECT a.ts, a.n, b.ts u, b.k l FROM a JOIN b ON a.n = b.n ORDER BY a.ts, b.ts LIMIT -20',
  'SELECT a.ts, a.k, b.n FROM a LEFT JOIN b ON a.n = b.n AND b.d > 9 ORDER BY a.ts, b.n LIMIT 20',
];
/**
 * Rows with a single key: one input has many blocks, each of which is joined with all rows of the
 * other input.
 */
const ONE_KEY =
  'SELECT count() c, count(a.t) t, count(b.t) u FROM a JOIN b ON a.h = b.h AND a.n + b.n < 0';

function spilled(server: Tidemark): readonly string[] {
  const folder = join(server.server.root, 'tmp');
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

async function withTables(set: readonly string[]): Promise<Tidemark> {
  const server = await Tidemark.start(set);
  for (const statement of TABLES) {
    await server.query(statement);
  }
  return server;
}

test('joins that exceed the query memory spill to files', async (t) => {
  const enough = await withTables([]);
  t.teardown(() => enough.close());
  // With a single worker no input is distributed. An input is either completely in memory or
  // spilled to a file.
  for (const workers of [2, 1]) {
    const set = ['query.memory.limit=64M', `shared.query.worker.count=${workers}`];
    const little = await withTables(set);
    t.teardown(() => little.close());
    for (const statement of STATEMENTS) {
      const { rows } = await little.query(statement);
      t.true(rows.length > 0, statement);
      t.deepEqual(rows, (await enough.query(statement)).rows, `${workers}: ${statement}`);
      t.deepEqual(spilled(little), [], statement);
    }
    const plans = await Promise.all(STATEMENTS.map((text) => little.query(`EXPLAIN ${text}`)));
    const plan = JSON.stringify(plans.map(({ rows }) => rows));
    t.regex(plan, /GraceHashJoinExec/);
    t.true(workers === 2 || plan.includes('LookupJoinExec'), plan);
    await endsInTime(t, little);
  }
});

test('a row batch that exceeds the memory is split', async (t) => {
  const [enough, little] = [await withTables([]), await withTables(['query.memory.limit=24M'])];
  t.teardown(() => enough.close());
  t.teardown(() => little.close());
  for (const statement of STATEMENTS.filter((text) => /EXISTS|IN \(SELECT/.test(text))) {
    const { rows } = await little.query(statement);
    t.deepEqual(rows, (await enough.query(statement)).rows, statement);
  }
});

/**
 * Checks that a statement that would take hours stops at its timeout while it reads its spill
 * files.
 */
async function endsInTime(t: ExecutionContext, server: Tidemark): Promise<void> {
  const request = execute(server.server.url, ONE_KEY, { 'Statement-Timeout': '3000' });
  let maximum = 0;
  for (let tries = 0; tries < 25; tries += 1) {
    await sleep(100);
    maximum = Math.max(maximum, spilled(server).length);
  }
  t.true(maximum > 0, 'nothing was spilled');
  const { body } = await request;
  t.regex(body.toString(), /timeout, query aborted/);
  await until(() => spilled(server).length === 0, 'the files are deleted');
}
