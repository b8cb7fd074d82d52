/**
 * PREPARE, EXECUTE and DEALLOCATE, locking clauses and LOCK TABLE. The expected values are those of
 * PostgreSQL 15 unless a comment says otherwise.
 */
import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { withPgClient } from '../pg-client.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['acl.enabled=true', 'pg.auth.method=cleartext'] });
  await connected(async (client) => {
    await client.query('CREATE TABLE t (a INT, b VARCHAR)');
    await client.query("INSERT INTO t VALUES (1, 'x'), (2, 'y')");
    await client.query('CREATE TABLE u (a INT); CREATE TABLE once (a INT)');
    const users = [
      ['joe', 'SELECT (a) ON t'],
      ['eve', 'INSERT ON t'],
    ] as const;
    for (const [user, permission] of users) {
      await client.query(`CREATE USER ${user} WITH PASSWORD 'secret'`);
      await client.query(`GRANT PGWIRE TO ${user}`);
      const [right = '', table = ''] = permission.split(' ON ');
      const columns = /\((.*)\)/.exec(right)?.[0] ?? '';
      await client.query(`GRANT ${right.replace(columns, '')} ON ${table}${columns} TO ${user}`);
    }
  });
});

test.after.always(() => server.stop());

function connected<T>(
  work: (client: pg.Client) => Promise<T>,
  config: pg.ClientConfig = {},
): Promise<T> {
  return withPgClient(server.pg, work, config);
}

/** Returns a statement's rows as arrays, or its SQLSTATE and message. */
async function answer(client: pg.Client, sql: string): Promise<unknown> {
  try {
    const result = await client.query<unknown[]>({ text: sql, rowMode: 'array' });
    return result.fields.length > 0 ? result.rows : result.command;
  } catch (error) {
    return `${(error as pg.DatabaseError).code ?? ''}: ${(error as Error).message}`;
  }
}

const PREPARED: readonly (readonly [sql: string, expected: unknown])[] = [
  ['PREPARE p(int) AS SELECT $1 + 1', 'PREPARE'],
  ['EXECUTE p(2)', [[3]]],
  ["EXECUTE p('5')", [[6]]],
  ['EXECUTE p(1 + (2 * 3))', [[8]]],
  ['EXECUTE p(null)', [[null]]],
  ['PREPARE p AS SELECT 1', '42P05: prepared statement "p" already exists'],
  ['PREPARE q(text, int) AS INSERT INTO u SELECT $2 WHERE $1 = $$it,s)$$', 'PREPARE'],
  ["EXECUTE q('it,s)', 7)", 'INSERT'],
  ['PREPARE up(int) AS UPDATE u SET a = $1 RETURNING a', 'PREPARE'],
  ['EXECUTE up(8)', [[8]]],
  ['PREPARE f AS SELECT a FROM t WHERE b = $1', 'PREPARE'],
  ["EXECUTE f('y')", [[2]]],
  ['PREPARE w(int[]) AS SELECT a FROM t WHERE a = ANY($1)', 'PREPARE'],
  ['EXECUTE w(ARRAY[2, 7])', [[2]]],
  ["EXECUTE w('{1}')", [[1]]],
  ['EXECUTE w(null)', []],
  ['PREPARE l(bigint[]) AS SELECT x FROM long_sequence(10000001) WHERE x = ANY($1)', 'PREPARE'],
  ['EXECUTE l(ARRAY[10000000, 7])', [['7'], ['10000000']]],
  ['PREPARE "A b"(varchar(3), double precision, numeric) AS SELECT $1, $2, $3 + 1', 'PREPARE'],
  [`EXECUTE "A b"('abcd', 1.5, 2.5)`, [['abcd', 1.5, 3.5]]],
  ['PREPARE v AS VALUES (1), (2)', 'PREPARE'],
  ['EXECUTE v', [[1], [2]]],
];

test('PREPARE and EXECUTE run statements with typed values', async (t) => {
  await connected(async (client) => {
    for (const [sql, expected] of PREPARED) {
      t.deepEqual(await answer(client, sql), expected, sql);
    }
  });
});

const WRONG = 'wrong number of parameters for prepared statement "p"';

const REFUSED: readonly (readonly [sql: string, expected: RegExp])[] = [
  ['EXECUTE p', new RegExp(`^42601: ${WRONG}: expected 1, found 0$`)],
  ['EXECUTE p(1, 2)', new RegExp(`^42601: ${WRONG}`)],
  ["EXECUTE p('abc')", /^22P02/],
  ['EXECUTE p(true)', /^22P02/],
  ['EXECUTE p(a)', /^42703/],
  ['EXECUTE p($1)', /^42P02: there is no parameter \$1$/],
  ['EXECUTE p(1 FROM t)', /^42601/],
  ['EXECUTE p(generate_series(1, 1000000000))', /^0A000: EXECUTE requires single values$/],
  ['EXECUTE p((1)', /^42601/],
  ['EXECUTE p(1) + 1', /^42601/],
  ['EXECUTE p()', /^42601/],
  ['EXECUTE no', /^26000: prepared statement "no" does not exist$/],
  ['PREPARE x(nosuch) AS SELECT $1', /^42704: type "nosuch" does not exist/],
  ['PREPARE x(constructor) AS SELECT $1', /^42704: type "constructor" does not exist/],
  ['PREPARE x AS', /^42601/],
  ['PREPARE x AS SHOW search_path', /^42601: query, INSERT, UPDATE or DELETE expected$/],
  ['PREPARE x AS/**/show TABLES', /^42601/],
  ['PREPARE x AS EXPLAIN SELECT 1', /^42601/],
  ['PREPARE x AS BEGIN', /^42601/],
  ['PREPARE x AS EXECUTE x', /^42601/],
  ['PREPARE x AS PREPARE x AS SELECT 1', /^42601/],
  ['PREPARE x AS CREATE TABLE z (a INT)', /^42601/],
  ['PREPARE x AS DECLARE c CURSOR FOR SELECT 1', /^42601/],
  ['PREPARE x AS SELECT no', /^42703/],
  ['PREPARE "" AS SELECT 1', /^42601/],
  ["PREPARE TRANSACTION 'x'", /^0A000/],
];

test('PREPARE and EXECUTE refuse what they cannot run', async (t) => {
  await connected(async (client) => {
    await client.query("PREPARE p(int) AS SELECT $1 + 1; SET statement_timeout = '5s'");
    for (const [sql, expected] of REFUSED) {
      t.regex(String(await answer(client, sql)), expected, sql);
    }
    t.deepEqual(await answer(client, 'EXECUTE p(1)'), [[2]]);
  });
});

test('names are shared with the protocol, and end with DEALLOCATE or DISCARD', async (t) => {
  await connected(async (client) => {
    await client.query({ name: 'mine', text: 'SELECT $1::int + 1 AS n', values: [1] });
    t.deepEqual(await answer(client, 'EXECUTE mine(41)'), [[42]]);
    t.regex(String(await answer(client, 'PREPARE mine AS SELECT 1')), /^42P05/);
    await client.query('PREPARE p AS SELECT 1 AS one');
    t.deepEqual(
      (await client.query({ text: 'EXECUTE p', rowMode: 'array' })).fields[0]?.name,
      'one',
    );
    // The extended protocol describes EXECUTE.
    const extended = { text: 'EXECUTE p', values: [], queryMode: 'extended' };
    t.deepEqual((await client.query(extended as pg.QueryConfig)).rows, [{ one: 1 }]);
    t.is(await answer(client, 'DEALLOCATE p'), 'DEALLOCATE');
    t.regex(String(await answer(client, 'EXECUTE p')), /^26000/);
    for (const end of ['DEALLOCATE ALL', 'DEALLOCATE PREPARE ALL', 'DISCARD ALL']) {
      await client.query('PREPARE p AS SELECT 1');
      await client.query(end);
      t.regex(String(await answer(client, 'EXECUTE p')), /^26000/, end);
    }
    // As in PostgreSQL, ROLLBACK does not undo PREPARE.
    await client.query('BEGIN; PREPARE p AS SELECT 1; ROLLBACK');
    t.deepEqual(await answer(client, 'EXECUTE p'), [[1]]);
    await client.query('BEGIN');
    t.regex(String(await answer(client, 'SELECT no')), /^42703/);
    t.regex(String(await answer(client, 'EXECUTE p')), /^25P02/);
    await client.query('ROLLBACK');
    await client.query('BEGIN READ ONLY; PREPARE i AS INSERT INTO u VALUES (1)');
    t.regex(String(await answer(client, 'EXECUTE i')), /^25006: cannot execute INSERT/);
  });
});

test('the portal of an EXECUTE has formats, a fetch size and a single run', async (t) => {
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  client.send(clientMessage('Q', "PREPARE q AS SELECT x::int, 'a' FROM long_sequence(3)"));
  await client.until('Z');
  const bind = (...formats: readonly (readonly [number])[]): Buffer =>
    clientMessage('B', '', '', [0], [0], [formats.length], ...formats);
  const describe = clientMessage('D', Buffer.from('P'), '');
  const execute = clientMessage('E', '', 2);
  const sync = clientMessage('S');
  client.send(clientMessage('P', '', 'EXECUTE q', [0]), bind([1]), describe, execute, execute);
  client.send(execute, sync);
  const messages = await client.until('Z');
  t.is(messages.map(({ type }) => type).join(''), '12TDDsDCEZ');
  const formats = messages[2]?.body ?? Buffer.alloc(0);
  t.is(formats.readInt16BE(formats.length - 2), 1);
  t.is(messages[3]?.body.toString('hex'), '00020000000400000001' + '0000000161');
  t.is(errorFields(messages[8])['C'], '55000');
  for (const wrong of [describe, execute]) {
    client.send(bind([0], [1], [0]), wrong, sync);
    const answers = await client.until('Z');
    t.is(errorFields(answers[1])['C'], '08P01');
  }
  client.send(clientMessage('Q', 'PREPARE one(int) AS INSERT INTO once VALUES ($1)'));
  await client.until('Z');
  const insert = clientMessage('P', '', 'EXECUTE one(1)', [0]);
  client.send(insert, bind(), clientMessage('E', '', 0), clientMessage('E', '', 0), sync);
  t.is(await client.types(), '12CEZ');
  client.close();
  await connected(async (other) => {
    t.deepEqual(await answer(other, 'SELECT count() FROM once'), [['1']]);
  });
});

test('a session cannot prepare more statements than the limit', async (t) => {
  await connected(async (client) => {
    const all = Array.from(
      { length: 10_000 },
      (_, index) => `PREPARE p${index} AS SELECT ${index}`,
    );
    const error = String(await answer(client, all.join(';')));
    t.is(error, '53400: too many prepared statements [limit=1000]');
    t.deepEqual(await answer(client, 'EXECUTE p999'), [[999]]);
    t.regex(String(await answer(client, 'EXECUTE p1000')), /^26000/);
  });
});

test('EXECUTE checks the permissions of the user who runs it', async (t) => {
  await connected(
    async (client) => {
      t.regex(String(await answer(client, 'PREPARE p AS SELECT b FROM t')), /^42501/);
      t.is(await answer(client, 'PREPARE p(int) AS SELECT a FROM t WHERE a = $1'), 'PREPARE');
      t.deepEqual(await answer(client, 'EXECUTE p(1)'), [[1]]);
      const stolen = await answer(client, 'EXECUTE p((SELECT b FROM t WHERE a = 1))');
      t.regex(String(stolen), /^42501/);
    },
    { user: 'joe', password: 'secret' },
  );
});

const LOCKING: readonly (readonly [sql: string, expected: unknown])[] = [
  ['SELECT a FROM t FOR UPDATE', [[1], [2]]],
  ['SELECT a FROM t ORDER BY a FOR NO KEY UPDATE NOWAIT', [[1], [2]]],
  ['SELECT a FROM t WHERE a = 1 FOR SHARE SKIP LOCKED', [[1]]],
  ['SELECT a FROM t x FOR KEY SHARE OF x', [[1], [2]]],
  ['SELECT a FROM t FOR UPDATE LIMIT 1', [[1]]],
  ['SELECT a FROM t LIMIT 1 FOR UPDATE', [[1]]],
  ['SELECT t.a FROM t JOIN u ON t.a = u.a WHERE t.a = 0 FOR UPDATE OF t, u FOR SHARE', []],
  ['SELECT * FROM (SELECT a FROM t FOR UPDATE) x', [[1], [2]]],
  ['WITH x AS (SELECT a FROM t FOR SHARE) SELECT * FROM x', [[1], [2]]],
  ['(SELECT a FROM t) FOR UPDATE', [[1], [2]]],
  ['(SELECT a FROM t) FOR UPDATE OF t', [[1], [2]]],
  ['((SELECT a FROM t) ORDER BY a LIMIT 1) FOR UPDATE OF t', [[1]]],
  ['SELECT a, (SELECT count() FROM u WHERE a = 0) FROM t LIMIT 1 FOR UPDATE', [[1, '0']]],
  ['SELECT abs(a), 2 FROM t LIMIT 1 FOR UPDATE', [[1, 2]]],
  ['SELECT 1 FOR UPDATE', [[1]]],
  ['SELECT a for FROM t LIMIT 1', [[1]]], // PostgreSQL requires AS
  ['SELECT a, count() FROM t GROUP BY a FOR UPDATE', /^0A000: FOR UPDATE .* GROUP BY clause$/],
  ['SELECT DISTINCT a FROM t FOR SHARE', /^0A000: FOR SHARE is not allowed with DISTINCT clause$/],
  ['SELECT a FROM t UNION SELECT a FROM u FOR UPDATE', /^0A000: .*UNION\/INTERSECT\/EXCEPT$/],
  ['SELECT a, row_number() OVER () FROM t FOR UPDATE', /^0A000: .* window functions$/],
  ['SELECT a + row_number() OVER () FROM t FOR UPDATE', /^0A000: .* window functions$/],
  ['SELECT a, coalesce(sum(a) OVER (), 1) b FROM t FOR UPDATE', /^0A000: .* window functions$/],
  ['SELECT count() FROM t FOR UPDATE', /^0A000: .* aggregate functions$/],
  ['SELECT 1 + MAX(a), (SELECT 1) FROM t FOR SHARE', /^0A000: .* aggregate functions$/],
  ['(SELECT DISTINCT a FROM t) FOR UPDATE', /^0A000: .* DISTINCT clause$/],
  ['(SELECT a FROM t UNION SELECT a FROM u) FOR UPDATE', /^0A000: .*UNION\/INTERSECT\/EXCEPT$/],
  ['((SELECT count() FROM t)) FOR UPDATE', /^0A000: .* aggregate functions$/],
  ['VALUES (1) FOR UPDATE', /^0A000/],
  ['SELECT a FROM t x FOR UPDATE OF t', /^42P01: relation "t" in FOR UPDATE clause not found/],
  ['SELECT a FROM t FOR UPDATE WAIT 5', /^42601/],
];

test('locking clauses have no effect, and are refused where PostgreSQL refuses them', async (t) => {
  await connected(async (client) => {
    for (const [sql, expected] of LOCKING) {
      const found = await answer(client, sql);
      if (expected instanceof RegExp) {
        t.regex(String(found), expected, sql);
      } else {
        t.deepEqual(found, expected, sql);
      }
    }
    const refused = '25006: cannot execute SELECT FOR UPDATE in a read-only transaction';
    await client.query('PREPARE p(int) AS SELECT $1');
    for (const sql of [
      'SELECT a FROM t FOR UPDATE',
      'DECLARE c CURSOR FOR SELECT a FROM t FOR UPDATE',
      'COPY (SELECT a FROM t FOR UPDATE) TO STDOUT',
      'EXECUTE p((SELECT a FROM t LIMIT 1 FOR UPDATE))',
    ]) {
      await client.query('BEGIN READ ONLY');
      t.is(await answer(client, sql), refused, sql);
      await client.query('ROLLBACK');
    }
  });
});

test('LOCK TABLE requires a block and a readable table', async (t) => {
  await connected(async (client) => {
    const outside = '25P01: LOCK TABLE can only be used in transaction blocks';
    t.is(await answer(client, 'LOCK TABLE t'), outside);
    await client.query('BEGIN');
    for (const sql of [
      'LOCK t',
      'LOCK TABLE public.t, u IN ACCESS EXCLUSIVE MODE NOWAIT',
      'lock table only "t" * in share row exclusive mode',
    ]) {
      t.is(await answer(client, sql), 'LOCK', sql);
    }
    t.regex(String(await answer(client, 'LOCK TABLE t, nope')), /^42P01/);
    t.regex(String(await answer(client, 'LOCK TABLE t')), /^25P02/);
    await client.query('ROLLBACK; BEGIN');
    t.regex(String(await answer(client, 'LOCK TABLE t IN WRONG MODE')), /^42601/);
    await client.query('ROLLBACK');
  });
  for (const [user, table, expected] of [
    ['joe', 't', 'LOCK'],
    ['joe', 'u', /^42P01|^42501/],
    ['eve', 't', /^42501/],
  ] as const) {
    await connected(
      async (client) => {
        await client.query('BEGIN');
        const found = String(await answer(client, `LOCK TABLE ${table}`));
        t.true(typeof expected === 'string' ? found === expected : expected.test(found), found);
      },
      { user, password: 'secret' },
    );
  }
});
