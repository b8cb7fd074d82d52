/**
 * For any two types, `a.x = b.y` is executed as a join on keys, whether it occurs in ON, in WHERE,
 * or between a sub-query and its outer rows. Rows are not compared pair by pair, and the answers
 * are the same as with ON.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

/** A type's values for x = 1 to 4. */
const VALUES: Readonly<Record<string, string>> = {
  BOOLEAN: 'x % 2 = 0',
  BYTE: 'x::byte',
  SHORT: 'x::short',
  CHAR: 'x::string::char',
  INT: 'x::int',
  LONG: 'x',
  FLOAT: 'x::float',
  DOUBLE: 'x::double',
  'DECIMAL(9,2)': 'x::decimal(9, 2)',
  'DECIMAL(30,3)': 'x::decimal(30, 3)',
  DATE: 'x::date',
  TIMESTAMP: 'x::timestamp',
  TIMESTAMP_NS: 'x::timestamp_ns',
  SYMBOL: 'x::symbol',
  STRING: 'x::string',
  VARCHAR: 'x::varchar',
  UUID: "('11111111-2222-3333-4444-55555555555' || x)::uuid",
  LONG256: "('0x' || x)::long256",
  IPV4: "('10.0.0.' || x)::ipv4",
  'GEOHASH(1c)': 'x::string::geohash(1c)',
};
const TYPES = Object.keys(VALUES);

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  const columns = Object.values(VALUES).map((value, at) => `${value} c${at}`);
  // Each table has rows that the other table lacks, and a row with nulls.
  for (const [name, from] of [
    ['one', 1],
    ['other', 3],
  ] as const) {
    await exec(
      server,
      `CREATE TABLE ${name} AS (SELECT x id, ${columns.join(', ')} FROM ` +
        `(SELECT x + ${from - 1} x FROM long_sequence(4)))`,
    );
    await exec(server, `INSERT INTO ${name}(id) VALUES (0)`);
  }
});

test.after.always(async () => {
  await server.stop();
});

/** Returns a query's rows, or nothing if the query is refused. */
async function answer(query: string): Promise<readonly (readonly unknown[])[] | undefined> {
  const { dataset } = await exec(server, query).catch(() => ({ dataset: undefined }));
  return dataset;
}

test('joins in WHERE use the same keys and return the same rows as joins in ON', async (t) => {
  let compared = 0;
  for (const [i, left] of TYPES.entries()) {
    for (const [j, right] of TYPES.entries()) {
      const what = `${left} = ${right}`;
      const equal = `one.c${i} = other.c${j}`;
      const on = await answer(
        `SELECT one.id, other.id FROM one JOIN other ON ${equal} ORDER BY 1, 2`,
      );
      const where = `SELECT one.id, other.id FROM one, other WHERE ${equal} ORDER BY 1, 2`;
      const rows = `SELECT 1 FROM other WHERE ${equal}`;
      const exists = `SELECT id FROM one WHERE EXISTS (${rows}) ORDER BY 1`;
      const pairs = await answer(where);
      if (pairs === undefined) {
        continue;
      }
      compared += 1;
      t.deepEqual(pairs, on ?? pairs, what);
      const ids = [...new Set(pairs.map(([id]) => id))];
      t.deepEqual(
        await answer(exists),
        ids.map((id) => [id]),
        what,
      );
      for (const query of [where, exists]) {
        const plan = JSON.stringify(await answer(`EXPLAIN (PHYSICAL) ${query}`));
        t.notRegex(plan, /NestedLoop|CrossJoin/, `${what}: ${query}`);
      }
    }
  }
  t.true(compared > TYPES.length, `${compared} pairs of types`);
});

test('join keys are compared exactly in both WHERE and ON', async (t) => {
  await exec(server, 'CREATE TABLE a AS (SELECT 0.1 + 0.2 d, -0.0 z, NULL::double n)');
  await exec(server, 'CREATE TABLE b AS (SELECT 0.3 d, 0.0 z, NULL::double n)');
  const counts = async (column: string): Promise<unknown[]> => {
    const equal = `a.${column} = b.${column}`;
    const queries = [
      `SELECT count() FROM a JOIN b ON ${equal}`,
      `SELECT count() FROM a, b WHERE ${equal}`,
      `SELECT count() FROM a CROSS JOIN b WHERE ${equal}`,
      `SELECT count() FROM a WHERE EXISTS (SELECT 1 FROM b WHERE ${equal})`,
      `SELECT count() FROM a WHERE (SELECT count() FROM b WHERE ${equal}) > 0`,
      `SELECT count() FROM a WHERE ${column} IN (SELECT ${column} FROM b)`,
    ];
    return (await Promise.all(queries.map(answer))).map((rows) => rows?.[0]?.[0]);
  };
  t.deepEqual(await counts('d'), [0, 0, 0, 0, 0, 0]);
  t.deepEqual(await counts('z'), [1, 1, 1, 1, 1, 1]);
  t.deepEqual(await counts('n'), [1, 1, 1, 1, 1, 1]);
  // Comparisons within one source or with a constant have a tolerance.
  t.deepEqual(await answer('SELECT count() FROM a WHERE d = 0.3'), [[1]]);
  t.deepEqual(await answer('SELECT count() FROM (SELECT d, 0.3 e FROM a) WHERE d = e'), [[1]]);
});
