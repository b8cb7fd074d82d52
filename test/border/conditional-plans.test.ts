/**
 * Prepared statements with parameters in WHERE reuse their plan across executions. Whatever the
 * values and the writes in between, each answer or error matches that of a newly prepared
 * statement.
 */
import test from 'ava';

import {
  type Database,
  DatabaseError,
  type ParameterValues,
  type Statement,
} from '../../ts/engine/index.js';
import { suiteSeed } from '../seed.js';
import { Random } from '../torture/harness.js';
import { type ParameterTypes, prepare, run, withDatabase } from './database.js';

const DAYS = 12;

/** A statement and its number of parameters. */
const STATEMENTS: readonly (readonly [text: string, parameters: number, types?: ParameterTypes])[] =
  [
    ['SELECT x, s FROM t WHERE ts = $1', 1],
    ['SELECT x, s FROM t WHERE ts = $1', 1, ['TIMESTAMP']],
    ['SELECT * FROM t WHERE ts >= $1 AND ts < $2', 2],
    ['SELECT ts, x + 1 y FROM t WHERE ts BETWEEN $1 AND $2', 2],
    ['SELECT x FROM t WHERE ts BETWEEN $1 AND $2 LIMIT 5', 2],
    ['SELECT x FROM t WHERE ts BETWEEN $1 AND $2 LIMIT -5', 2],
    ['SELECT x FROM t WHERE ts > $1 LIMIT 3, 9', 1],
    ['SELECT count() FROM t WHERE ts IN $1', 1],
    ["SELECT x FROM t WHERE ts IN $1 AND s = 's3'", 1],
    ['SELECT x, s FROM t WHERE NOT ts < $1 AND d > 50', 1],
    ['SELECT x FROM t WHERE (ts < $1 OR ts > $2) AND x % 7 = 0', 2],
    ['SELECT x FROM t WHERE ts > $1 OR x = 3', 1],
    ["SELECT x FROM t WHERE ts > $1 AND ts > '2024-01-04' AND ts != $2", 2],
    ['SELECT x FROM t WHERE ts > $1 ORDER BY ts DESC LIMIT 3', 1],
    ['SELECT s, x FROM t WHERE ts < $1 ORDER BY x DESC LIMIT 3', 1],
    ['SELECT ts, sum(x), first(d), count() FROM t WHERE ts >= $1 AND ts < $2 SAMPLE BY 1h', 2],
    ['SELECT ts, s, avg(d) FROM t WHERE ts BETWEEN $1 AND $2 SAMPLE BY 6h FILL(PREV)', 2],
    ['SELECT ts, max(d) FROM t WHERE ts IN $1 SAMPLE BY 1d FILL(NULL)', 1],
    ['SELECT s, sum(x), count_distinct(d) FROM t WHERE ts > $1', 1],
    ['SELECT count(), min(ts), max(ts) FROM t WHERE ts > $1', 1],
    ['SELECT count() FROM t WHERE ts > $1', 1],
    ['SELECT DISTINCT s FROM t WHERE ts > $1', 1],
    ['SELECT * FROM t WHERE ts < $1 LATEST ON ts PARTITION BY s', 1],
    ["SELECT x FROM t WHERE ts > $1 AND s IN ('s1', 's2') LATEST ON ts PARTITION BY s", 1],
    ['SELECT x, row_number() OVER (ORDER BY ts) FROM t WHERE ts > $1', 1],
    ['SELECT sum(x) FROM (SELECT x FROM t WHERE ts > $1)', 1],
    ['SELECT x FROM t WHERE ts > $1 AND x = (SELECT max(x) FROM t WHERE ts < $2)', 2],
    ['SELECT a.x, b.x FROM t a ASOF JOIN t b WHERE a.ts > $1', 1],
    ['SELECT x FROM t WHERE ts > $1 UNION ALL SELECT x FROM t WHERE ts < $2', 2],
    ['SELECT $1, x FROM t WHERE ts > $2', 2],
    ['SELECT x FROM t WHERE ts > $1 AND x > $2', 2, ['TIMESTAMP', 'LONG']],
    ['SELECT x FROM t WHERE s = $1', 1],
    ['SELECT ts, x FROM t WHERE s = $1 AND ts > $2', 2],
    ['SELECT x FROM t WHERE s = $1 AND ts BETWEEN $2 AND $3', 3, ['VARCHAR', 'TIMESTAMP', null]],
    ['SELECT x, d FROM t WHERE x = $1', 1],
    ['SELECT x, d FROM t WHERE x = $1', 1, ['LONG']],
    ["SELECT x FROM t WHERE s IN ($1, $2) AND ts IN '2024-01-03'", 2],
    ['SELECT x FROM t WHERE s LIKE $1 AND ts < $2', 2],
    ['SELECT x FROM t WHERE s = $1 OR d > $2', 2],
    ['SELECT x FROM t WHERE d > $1 AND x < $2 LIMIT 9', 2, ['DOUBLE', 'INT']],
    ['SELECT x FROM t WHERE d = $1 AND NOT (s = $2)', 2],
    ['SELECT x FROM t WHERE x > 3 AND x < $1 AND ts > $2', 2],
    ['SELECT x FROM t WHERE $1 AND x < 5', 1, ['BOOLEAN']],
    ['SELECT x FROM t WHERE s = $1 AND x > $1::long', 1],
    ['SELECT ts, count() FROM t WHERE s = $1 AND ts > $2 SAMPLE BY 1d FILL(0)', 2],
    ["SELECT ts, count() FROM t WHERE s = $1 SAMPLE BY 1d FROM '2024-01-02' TO '2024-01-05'", 1],
    ['SELECT s, sum(d) FROM t WHERE d > $1 GROUP BY s HAVING sum(d) > 100', 1],
    ['SELECT max(x) FROM t WHERE s = $1', 1],
    ['SELECT x FROM (SELECT * FROM t WHERE s = $1) WHERE x < 50', 1],
    ['SELECT x FROM t WHERE s = $1 AND x IN (SELECT x FROM t WHERE x < $2)', 2],
    ['SELECT x, s = $1 FROM t WHERE s = $1 LIMIT 3', 1],
    ['SELECT x FROM t WHERE s = $1 LIMIT $2', 2],
    ['SELECT x FROM t WHERE s = $1 LATEST ON ts PARTITION BY s', 1],
    ['SELECT x FROM t WHERE s = $1 ORDER BY x DESC LIMIT 2', 1],
    ['SELECT x AS y, s z FROM t WHERE s = $1 AND d > 20 LATEST BY s', 1],
    ['SELECT x FROM t WHERE s IN ($1, $2) LATEST ON ts PARTITION BY s', 2],
    ['SELECT x FROM t WHERE s IN ($1, $1) OR s IS NULL LATEST ON ts PARTITION BY s', 1],
    ['SELECT x, ts FROM t WHERE s = $1 LIMIT -3', 1],
    ['SELECT x, ts FROM t WHERE s = $1 ORDER BY ts DESC LIMIT 3', 1],
    ['SELECT x FROM t WHERE s != $1 AND s != $2 LATEST ON ts PARTITION BY s', 2],
    ["SELECT x FROM t WHERE s = $1 AND 's1' != $1 LATEST ON ts PARTITION BY s", 1],
    ["SELECT x FROM t WHERE $1 IN ('s1', s) LATEST ON ts PARTITION BY s", 1],
    ['SELECT x FROM t WHERE s = $1 AND length($1) > 2 LATEST ON ts PARTITION BY s', 1],
    ['SELECT x FROM t WHERE s = $1 AND (x = 3 OR s = $2) LIMIT 9', 2],
    ["SELECT x FROM t WHERE CASE WHEN s = $1 THEN s = 's1' ELSE x = 3 END", 1],
    ['SELECT x FROM t WHERE s = $1 AND ts IN now()', 1],
    ['DECLARE @s := $1 SELECT x FROM t WHERE s = @s AND length(@s) > 2', 1],
    ['SELECT x FROM t WHERE s = $1 AND s IN ($2)', 2],
    ["SELECT x FROM t WHERE s = $1 OR 's1' = $2", 2],
    ['SELECT x FROM t WHERE s = $1 AND s = ANY($2)', 2],
    ['SELECT x FROM t WHERE s = $1 OR (s = $2 AND ts > $3) OR s = $1', 3],
    ['SELECT x FROM t WHERE s = $1', 1, ['CHAR']],
    ['SELECT x FROM t WHERE x = abs($1)', 1],
    ['SELECT x FROM t WHERE s = concat($1, $2)', 2],
    ['SELECT x FROM v WHERE ts > $1', 1],
    ['SELECT x FROM v WHERE s = $1', 1],
    ['WITH w AS (SELECT * FROM t WHERE ts > $1) SELECT count() FROM w', 1],
    ["SELECT x FROM t WHERE ts > dateadd('d', 1, $1)", 1],
  ];

/** Returns the rows, or the error with its position. */
async function outcome(statement: Statement, values: ParameterValues): Promise<string> {
  try {
    const { chunk, stream } = await statement.execute(values, { rows: { format: 'json' } });
    const parts = [chunk?.bytes.toString() ?? ''];
    for (let more = await stream?.next(); more != null; more = await stream?.next()) {
      parts.push(more.bytes.toString());
    }
    return parts.join('');
  } catch (error) {
    if (!(error instanceof DatabaseError)) {
      throw error;
    }
    return `${error.code} ${error.message} ${error.start ?? '-'}`;
  }
}

function timestamp(random: Random): string {
  const micros = Date.UTC(2024, 0, 1) + random.between(-1, DAYS * 24 * 60 + 1) * 60_000;
  return new Date(micros).toISOString().slice(0, -1);
}

function value(random: Random): string | null {
  const fate = random.next();
  if (fate < 0.5) {
    return timestamp(random);
  }
  if (fate < 0.92) {
    return random.pick(['s1', 's3', 's12', '7', '60', '1.5', '40.5', 'true', 's%']);
  }
  const others = ['2024-01-03', '2024-01', '2024-01-03;1h;1d;4', '2023-05-05', '2999-01-01', '7'];
  return random.pick([...others, '', 'yesterday', '2024-13-01', null]);
}

async function fill(database: Database): Promise<void> {
  const columns = "x, x % 97 * 1.5 d, ('s' || x % 11)::symbol s";
  await run(
    database,
    `CREATE TABLE t AS (SELECT dateadd('m', (x * 7 % ${DAYS * 24 * 60})::int, '2024-01-01') ts, ` +
      `${columns} FROM long_sequence(20000)) TIMESTAMP(ts) PARTITION BY DAY`,
  );
  await run(database, 'CREATE VIEW v AS (SELECT * FROM t WHERE d > 20)');
}

test('a plan cached for other parameter values returns the same rows as a new plan', async (t) => {
  const random = new Random(suiteSeed());
  await withDatabase(async (database) => {
    await fill(database);
    for (const [text, parameters, types] of STATEMENTS) {
      const cached = await prepare(database, text, types);
      const before: ParameterValues[] = [];
      for (let round = 0; round < 24; round += 1) {
        const values =
          before.length > 3 && random.next() < 0.5
            ? random.pick(before)
            : Array.from({ length: parameters }, () => value(random));
        before.push(values);
        if (random.next() < 0.1) {
          await run(
            database,
            `INSERT INTO t VALUES ('${timestamp(random)}', ${round}, 60.5, 's3')`,
          );
        }
        const fresh = await prepare(database, text, types);
        const expected = await outcome(fresh, values);
        t.is(await outcome(cached, values), expected, `${text} with ${JSON.stringify(values)}`);
        fresh.close();
      }
      cached.close();
    }
  });
});

/** Returns the answer with literals in place of the parameters. */
async function literally(database: Database, text: string, values: ParameterValues) {
  const quoted = (value: unknown): string =>
    typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : 'null';
  const literal = text.replace(/\$(\d)/g, (_, index: string) => quoted(values[Number(index) - 1]));
  const statement = await prepare(database, literal);
  const answer = await outcome(statement, []);
  statement.close();
  return answer;
}

const NAMING: readonly (readonly [text: string, parameters: number])[] = [
  ['SELECT * FROM t WHERE s = $1 AND ts >= $2 AND ts < $3', 3],
  ['SELECT x FROM t WHERE ts >= $2 AND (s = $1 OR s = $3) LIMIT -7', 3],
  ['SELECT x FROM t WHERE s != $1 AND ts > $2 LIMIT 9', 2],
  ['SELECT ts, s, avg(d) FROM t WHERE s = $1 AND ts > $2 SAMPLE BY 6h', 2],
  ['SELECT x FROM t WHERE s = $1 LATEST ON ts PARTITION BY s', 1],
];
const LONG_NAME = 'a name '.repeat(80);
const NAMES = ['s1', 's7', 'none', "it's", 's%', '{s1,s3}', LONG_NAME, '', null] as const;
const CHANGES = [
  "INSERT INTO t VALUES ('2024-01-02T03', -1, 60.5, 's7')",
  `INSERT INTO t VALUES ('2024-01-05T03', -2, null, '${LONG_NAME}')`,
  "INSERT INTO t VALUES ('2024-01-04T03', -3, 1.5, 'it''s'), ('2024-01-03', -4, 2.5, null)",
  "INSERT INTO t VALUES ('2024-01-02T03', -5, 3.5, 'none'), ('2024-01-02T04', -6, 2.5, '{s1,s3}')",
  "UPDATE t SET s = 's7' WHERE x % 50 = 1",
  'ALTER TABLE t ADD COLUMN late INT',
  'ALTER TABLE t DROP COLUMN late',
  'ALTER TABLE t RENAME COLUMN d TO e',
  'ALTER TABLE t RENAME COLUMN e TO d',
];

test('symbol parameters return the same rows as literals, despite concurrent writes', async (t) => {
  const random = new Random(suiteSeed());
  await withDatabase(async (database) => {
    await fill(database);
    const known = await Promise.all(
      NAMING.map(async ([text, parameters]) => {
        return { text, parameters, cached: await prepare(database, text) };
      }),
    );
    for (const change of ['SELECT 1', ...CHANGES]) {
      await run(database, change);
      if (change.includes('d TO e')) {
        continue;
      }
      for (const { text, parameters, cached } of known) {
        for (let round = 0; round < 12; round += 1) {
          const values = Array.from({ length: parameters }, (_, index) =>
            index === 0 || text.includes(`s = $${index + 1}`)
              ? random.pick(NAMES)
              : timestamp(random),
          );
          const expected = await literally(database, text, values);
          const answer = await outcome(cached, values);
          // A statement that was prepared when the columns were different is prepared again.
          if (!answer.startsWith('REPLAN') && !answer.includes('schema changed')) {
            t.is(answer, expected, `${change}: ${text} with ${JSON.stringify(values)}`);
          }
        }
      }
    }
    known.forEach(({ cached }) => cached.close());
  });
});

test('a plan cached for few rows is not reused for many rows, or vice versa', async (t) => {
  await withDatabase(async (database) => {
    await run(
      database,
      "CREATE TABLE t AS (SELECT timestamp_sequence('2024', 1000000) ts, x FROM " +
        'long_sequence(1000000)) TIMESTAMP(ts) PARTITION BY DAY',
    );
    const statement = await prepare(
      database,
      'SELECT sum(x), count(), first(x), last(x) FROM t WHERE ts >= $1 AND ts < $2',
    );
    const few = ['2024-01-01T00:00:10', '2024-01-01T00:00:14'];
    const many = ['2024-01-01', '2025-01-01'];
    for (const values of [few, many, few, many, many, few]) {
      const expected = values === few ? '[50,4,11,14]' : '[500000500000,1000000,1,1000000]';
      t.is(await outcome(statement, values), expected);
    }
    statement.close();
  });
});

test('a cached plan is dropped with its table', async (t) => {
  await withDatabase(async (database) => {
    await fill(database);
    const statement = await prepare(database, 'SELECT count() FROM t WHERE ts >= $1');
    t.is(await outcome(statement, ['2024-01-01']), '[20000]');
    t.is(await outcome(statement, ['2024-01-01']), '[20000]');
    await run(database, 'ALTER TABLE t DROP COLUMN d');
    t.is(await outcome(statement, ['2024-01-01']), '[20000]');
    await run(database, 'TRUNCATE TABLE t');
    t.is(await outcome(statement, ['2024-01-01']), '[0]');
    await run(database, 'DROP VIEW v');
    await run(database, 'DROP TABLE t');
    t.regex(await outcome(statement, ['2024-01-01']), /table does not exist/);
  });
});

/** Returns the number of results cached by parameter values since the database was opened. */
const cachedResults = (database: Database): number =>
  database.metrics()['cached_results_total'] ?? Number.NaN;

test('repeated parameter values reuse the cached result until the next commit', async (t) => {
  await withDatabase(async (database) => {
    await fill(database);
    const statement = await prepare(database, 'SELECT count(), max(x) FROM t WHERE s = $1');
    const expected = await outcome(statement, ['s1']);
    for (let round = 0; round < 4; round += 1) {
      t.is(await outcome(statement, ['s1']), expected);
    }
    const cached = cachedResults(database);
    t.true(cached >= 2, `${cached} cached results`);
    const rows = { rows: { format: 'csv' } } as const;
    const csv = (await statement.execute(['s1'], rows)).chunk?.bytes.toString();
    t.is(`[${csv?.trim()}]`, expected, 'a different format');
    await run(database, "INSERT INTO t VALUES ('2024-01-02', 99999, 1.5, 's1')");
    t.regex(await outcome(statement, ['s1']), /,99999]$/);
    statement.close();
  });
});

test('a parameter relative to the current time is evaluated at each execution', async (t) => {
  await withDatabase(async (database) => {
    await fill(database);
    const statement = await prepare(database, 'SELECT count() FROM t WHERE ts IN $1', ['VARCHAR']);
    for (let round = 0; round < 5; round += 1) {
      t.is(await outcome(statement, ['$today']), '[0]');
    }
    t.is(cachedResults(database), 0);
    statement.close();
  });
});

/** Returns a random change to `t` that moves, adds or removes the last rows. */
function change(random: Random): string {
  const s = `s${random.between(0, 6)}`;
  const at = timestamp(random);
  switch (random.between(0, 8)) {
    case 0:
      return `UPDATE t SET x = x + 1000 WHERE s = '${s}' AND ts > '${at}'`;
    case 1:
      return `UPDATE t SET s = '${s}' WHERE ts > '${at}' AND x % 50 = 0`;
    case 2:
      return `DELETE FROM t WHERE s = '${s}' AND ts > '${at}'`;
    case 3:
      return `ALTER TABLE t DROP PARTITION WHERE ts < '2024-01-02'`;
    case 4:
      return `ALTER TABLE t CONVERT PARTITION TO PARQUET WHERE ts < '2024-01-04'`;
    default:
      return (
        'INSERT INTO t VALUES ' +
        Array.from(
          { length: 3 },
          () => `('${timestamp(random)}', ${random.between(0, 99)}, 1.5, '${s}')`,
        ).join()
      );
  }
}

const rowsOf = async (statement: Statement, values: ParameterValues): Promise<unknown> =>
  JSON.parse(`[${await outcome(statement, values)}]`);

/** Returns the last row of each key, given rows in time order. */
function lastOf(rows: readonly unknown[][], keys: readonly number[]): unknown[][] {
  const last = new Map<string, unknown[]>();
  for (const row of rows) {
    const key = JSON.stringify(keys.map((index) => row[index]));
    last.delete(key);
    last.set(key, row);
  }
  return [...last.values()];
}

for (const dedup of [false, true]) {
  const keys = dedup ? 'upserted keys' : 'keys';
  test(`the latest row for each of the ${keys} matches a full scan`, async (t) => {
    const random = new Random(suiteSeed());
    await withDatabase(async (database) => {
      const upsert = dedup ? ' DEDUP UPSERT KEYS(ts, s)' : '';
      await run(
        database,
        'CREATE TABLE t (ts TIMESTAMP, x LONG, d DOUBLE, s SYMBOL) TIMESTAMP(ts) PARTITION BY DAY' +
          upsert,
      );
      await run(
        database,
        `INSERT INTO t SELECT dateadd('m', (x * 7 % ${DAYS * 24 * 60})::int, '2024-01-01'), x, ` +
          "x % 97 * 1.5, 's' || x % 5 FROM long_sequence(3000)",
      );
      const of = 'SELECT * FROM t WHERE s';
      const one = await prepare(database, `${of} = $1 LATEST ON ts PARTITION BY s`, ['VARCHAR']);
      const since = await prepare(database, `${of} = $1 AND ts < $2 LATEST ON ts PARTITION BY s`, [
        'VARCHAR',
        'TIMESTAMP',
      ]);
      const two = await prepare(database, `${of} != $1 LATEST ON ts PARTITION BY s, d`, [
        'VARCHAR',
      ]);
      for (let round = 0; round < 60; round += 1) {
        await run(database, change(random));
        const rows = JSON.parse(`[${await run(database, 'SELECT * FROM t')}]`) as unknown[][];
        const until = timestamp(random);
        for (let again = 0; again < 9; again += 1) {
          const s = `s${again % 3}`;
          const own = rows.filter((row) => row[3] === s);
          const early = own.filter((row) => String(row[0]) < until);
          const others = rows.filter((row) => row[3] !== s);
          t.deepEqual(await rowsOf(one, [s]), lastOf(own, [3]), `${round}: ${s}`);
          const found = await rowsOf(since, [s, until]);
          t.deepEqual(found, lastOf(early, [3]), `${round}: ${s} < ${until}`);
          t.deepEqual(await rowsOf(two, [s]), lastOf(others, [3, 2]), `${round}: other than ${s}`);
        }
      }
      t.true(cachedResults(database) > 60, `${cachedResults(database)} cached results`);
    });
  });
}

const MANY = 300;

/** Rows with many symbols, including null. */
const FILL =
  "INSERT INTO t (ts, x, s) SELECT dateadd('s', (x * 7)::int, '2024-01-01'), x, " +
  `CASE WHEN x % 9 = 0 THEN NULL ELSE 's' || x * x % ${MANY} END FROM long_sequence(35000)`;

/** Returns a random change to a table with many symbols. */
function changeOfManyRows(random: Random): string {
  const s = `s${random.between(0, MANY + 20)}`;
  const at = `2024-01-0${random.between(1, 4)}T${String(random.between(10, 24)).padStart(2, '0')}`;
  switch (random.between(0, 11)) {
    case 0:
      return `UPDATE t SET s = '${s}' WHERE ts > '${at}' AND x % 50 = 0`;
    case 1:
      return `UPDATE t SET x = x + 1000 WHERE s = '${s}'`;
    case 2:
      return `DELETE FROM t WHERE s = '${s}' OR (ts > '${at}' AND x % 97 = 3)`;
    case 3:
      return `ALTER TABLE t DROP PARTITION LIST '2024-01-02'`;
    case 4:
      return `ALTER TABLE t CONVERT PARTITION TO PARQUET WHERE ts < '2024-01-02'`;
    case 5:
      return 'ALTER TABLE t ADD COLUMN more LONG';
    case 6:
      return 'ALTER TABLE t DROP COLUMN more';
    case 7:
      return 'TRUNCATE TABLE t';
    default:
      return (
        `INSERT INTO t (ts, x, s) SELECT dateadd('s', (x * 7)::int, '${at}'), x, ` +
        `CASE WHEN x % 11 = 0 THEN NULL ELSE 's' || x % ${MANY + 30} END FROM long_sequence(900)`
      );
  }
}

for (const dedup of [false, true]) {
  test(`latest rows of many symbols match a full scan${dedup ? ' with dedup' : ''}`, async (t) => {
    const random = new Random(suiteSeed());
    await withDatabase(async (database) => {
      const upsert = dedup ? ' DEDUP UPSERT KEYS(ts, s)' : '';
      await run(
        database,
        `CREATE TABLE t (ts TIMESTAMP, x LONG, s SYMBOL) TIMESTAMP(ts) PARTITION BY DAY${upsert}`,
      );
      await run(database, FILL);
      const latest = 'LATEST ON ts PARTITION BY s';
      const of = 'SELECT ts, x, s FROM t WHERE s';
      const prepared = async (text: string, types: number): Promise<Statement> =>
        await prepare(
          database,
          `${of} ${text}`,
          Array.from({ length: types }, () => 'VARCHAR'),
        );
      const one = await prepared(`= $1 ${latest}`, 1);
      const two = await prepared(`IN ($1, $2) ${latest}`, 2);
      const even = await prepared(`= $1 AND x % 2 = 0 ${latest}`, 1);
      const three = await prepared('= $1 LIMIT -3', 1);
      const all = await prepare(database, 'SELECT ts, x, s FROM t');
      for (let round = 0; round < 14; round += 1) {
        const rows = (await rowsOf(all, [])) as unknown[][];
        const name = (): string | null =>
          random.next() < 0.05 ? null : `s${random.between(0, MANY + 40)}`;
        for (let query = 0; query < 100; query += 1) {
          const [s, other] = [name(), name()];
          const own = rows.filter((row) => row[2] === s);
          const both = rows.filter((row) => row[2] === s || row[2] === other);
          const where = `${round}: ${s}, ${other}`;
          t.deepEqual(await rowsOf(one, [s]), lastOf(own, [2]), where);
          t.deepEqual(await rowsOf(two, [s, other]), lastOf(both, [2]), where);
          const evens = own.filter((row) => Number(row[1]) % 2 === 0);
          t.deepEqual(await rowsOf(even, [s]), lastOf(evens, [2]), where);
          t.deepEqual(await rowsOf(three, [s]), own.slice(-3), where);
        }
        const change = changeOfManyRows(random);
        await run(database, change).catch((error: unknown) => {
          // The column or partition may already exist, or may already be gone.
          t.true(error instanceof DatabaseError, String(error));
        });
        if (change.startsWith('TRUNCATE')) {
          await run(database, FILL);
        }
      }
    });
  });
}
