/**
 * Repeated small queries without parameters. Their results are cached in the requested format until
 * the next commit; results of larger queries are not cached.
 */
import test from 'ava';

import type { Database, Statement } from '../../ts/engine/index.js';
import { prepare, run, withDatabase } from './database.js';

const ROUNDS = 1000;

const cachedResults = (database: Database): number =>
  database.metrics()['cached_results_total'] ?? Number.NaN;

async function fill(database: Database): Promise<void> {
  await run(
    database,
    "CREATE TABLE t AS (SELECT dateadd('s', x::int, '2024-01-01') ts, x, " +
      "('s' || x % 5)::symbol s FROM long_sequence(40000)) TIMESTAMP(ts) PARTITION BY HOUR",
  );
}

async function answer(statement: Statement, format: 'csv' | 'json' = 'json'): Promise<string> {
  const { chunk, stream } = await statement.execute([], { rows: { format } });
  return `${chunk?.bytes.toString() ?? ''}${stream == null ? '' : ' and more'}`;
}

/** Repeats the query until its result is cached. Slow runs on a busy machine are not cached. */
async function untilCached(database: Database, statement: Statement): Promise<string[]> {
  const before = cachedResults(database);
  const answers: string[] = [];
  while (cachedResults(database) === before && answers.length < ROUNDS) {
    answers.push(await answer(statement));
  }
  return answers;
}

const CHANGES = [
  "INSERT INTO t VALUES ('2024-01-03', -1, 's1')",
  "INSERT INTO t VALUES ('2024-01-02T12', -2, 's6')",
  "UPDATE t SET x = 7 WHERE s = 's1'",
  "DELETE FROM t WHERE ts > '2024-01-01T03'",
  "ALTER TABLE t DROP PARTITION WHERE ts > '2024-01-01T02'",
  'TRUNCATE TABLE t',
];

test('the result of a small query is cached until the next commit', async (t) => {
  await withDatabase(async (database) => {
    await fill(database);
    const small = await prepare(database, 'SELECT * FROM t LATEST ON ts PARTITION BY s');
    const again = await prepare(database, 'SELECT ts, x, s FROM t LATEST ON ts PARTITION BY s');
    for (const change of ['', ...CHANGES]) {
      if (change !== '') {
        await run(database, change);
      }
      const answers = await untilCached(database, small);
      t.true(answers.length > 2 && answers.length < ROUNDS, `${change}: ${answers.length} runs`);
      const fresh = await run(database, 'SELECT * FROM (t LATEST ON ts PARTITION BY s)');
      t.deepEqual([...new Set(answers)], [fresh], change);
      t.is(await answer(small, 'csv'), await answer(again, 'csv'), `${change}: a different format`);
    }
    small.close();
    again.close();
  });
});

const NEVER = [
  // This query reads more rows than a small query may.
  "SELECT count() FROM t WHERE x > 100 AND s != 's3'",
  'SELECT rnd_long() FROM t LIMIT 3',
  'SELECT now(), x FROM t LIMIT 3',
  'SELECT x FROM t WHERE ts > now() LIMIT 3',
  'SELECT query FROM query_activity()',
];

test('large and volatile results are not cached', async (t) => {
  await withDatabase(async (database) => {
    await fill(database);
    for (const text of NEVER) {
      const statement = await prepare(database, text);
      for (let round = 0; round < 30; round += 1) {
        await answer(statement);
      }
      t.is(cachedResults(database), 0, text);
      statement.close();
    }
  });
});
