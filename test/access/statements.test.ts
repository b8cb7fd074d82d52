/** Users, groups, accounts and grants through a real server. */
import { once } from 'node:events';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';
import type pg from 'pg';

import type { TestServer } from '../golden/server.js';
import { ADMIN, credentials, exec, rows, run, startAccessServer } from './harness.js';
import { brokenLine } from './audit-chain.js';
import { pgClient } from '../pg-client.js';

const TABLE =
  'CREATE TABLE t (ts TIMESTAMP, a INT, b INT, secret INT) TIMESTAMP(ts) PARTITION BY DAY';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    TABLE,
    "INSERT INTO t VALUES ('2026-01-01', 1, 2, 3)",
    'CREATE TABLE u (x INT)',
    "CREATE USER ann WITH PASSWORD 'ann1'",
    'GRANT HTTP, PGWIRE TO ann',
  );
});

test.after.always(async () => {
  await server.stop();
});

const ANN = 'ann:ann1';

async function errorOf(who: string, query: string): Promise<string> {
  return (await exec(server, who, query)).error ?? '';
}

async function connect(user: string, password: string): Promise<pg.Client> {
  const client = pgClient(server.pg, { user, password });
  await client.connect();
  return client;
}

test.serial('the error is the same whether or not the table exists', async (t) => {
  const { status, position } = await exec(server, ANN, 'SELECT * FROM t');
  t.deepEqual([status, position], [403, 14]);
  t.is(await errorOf(ANN, 'SELECT * FROM t'), 'Access denied [SELECT on t]');
  t.is(await errorOf(ANN, 'SELECT * FROM missing'), 'Access denied [SELECT on missing]');
  t.is(await errorOf(ANN, 'DROP TABLE missing'), 'Access denied [DROP TABLE on missing]');
  t.is(await errorOf(ANN, 'INSERT INTO u VALUES (1)'), 'Access denied [INSERT on u]');
  t.deepEqual(await rows(server, ANN, 'SHOW TABLES'), []);
});

test.serial('ungranted columns are refused; the timestamp is granted implicitly', async (t) => {
  await run(server, 'GRANT SELECT ON t(a) TO ann');
  t.deepEqual(await rows(server, ANN, 'SELECT a, ts FROM t'), [[1, '2026-01-01T00:00:00.000000Z']]);
  t.deepEqual(await rows(server, ANN, 'SELECT count() FROM t'), [[1]]);
  t.is(await errorOf(ANN, 'SELECT * FROM t'), 'Access denied [SELECT on t(b)]');
  t.is(
    await errorOf(ANN, 'SELECT a FROM t WHERE secret > 1'),
    'Access denied [SELECT on t(secret)]',
  );
  t.is(await errorOf(ANN, 'SELECT a FROM t ORDER BY b'), 'Access denied [SELECT on t(b)]');
  t.is(await errorOf(ANN, 'SELECT nothing FROM t'), 'Access denied [SELECT on t(nothing)]');
  t.deepEqual(
    (await rows(server, ANN, 'SHOW COLUMNS FROM t')).map(([name]) => name),
    ['ts', 'a'],
  );
  const listed = "SELECT column_name FROM information_schema.columns WHERE table_name = 't'";
  t.deepEqual(await rows(server, ANN, listed), [['ts'], ['a']]);
  t.deepEqual(await rows(server, ANN, "SELECT relname FROM pg_class WHERE relname IN ('t', 'u')"), [
    ['t'],
  ]);
  t.deepEqual(await rows(server, ANN, 'SHOW PERMISSIONS'), [
    ['HTTP', null, null, false, 'G', 'ann'],
    ['PGWIRE', null, null, false, 'G', 'ann'],
    ['SELECT', 't', 'a', false, 'G', 'ann'],
    ['SELECT', 't', 'ts', false, 'I', null],
  ]);
  await run(server, 'REVOKE SELECT ON t(a) FROM ann');
});

test.serial('a revoke applies to prepared statements', async (t) => {
  await run(server, 'GRANT SELECT ON t TO ann');
  const client = await connect('ann', 'ann1');
  const query = { name: 'q', text: 'SELECT a FROM t' };
  t.deepEqual((await client.query(query)).rows, [{ a: 1 }]);
  await run(server, 'REVOKE SELECT ON t FROM ann');
  await t.throwsAsync(() => client.query(query), { message: 'Access denied [SELECT on t]' });
  await client.end();
});

test.serial('a right inherited from a group cannot be revoked from a member', async (t) => {
  await run(server, 'CREATE GROUP readers', 'GRANT SELECT ON t TO readers');
  await run(server, 'ADD USER ann TO readers');
  t.deepEqual(await rows(server, ANN, 'SELECT a FROM t'), [[1]]);
  t.regex(
    await errorOf(ADMIN, 'REVOKE SELECT ON t FROM ann'),
    /^'ann' has 'SELECT' through group 'readers'/,
  );
  t.deepEqual(await rows(server, ADMIN, 'SHOW GROUPS ann'), [['readers', '']]);
  await run(server, 'GRANT SELECT ON t TO ann');
  t.deepEqual(
    (await rows(server, ADMIN, 'SHOW PERMISSIONS ann')).filter(([right]) => right === 'SELECT'),
    [['SELECT', 't', null, false, 'G', 'ann, readers']],
  );
  await run(server, 'REMOVE USER ann FROM readers', 'REVOKE SELECT ON t FROM ann');
  await run(server, 'DROP GROUP readers');
  t.is(await errorOf(ANN, 'SELECT a FROM t'), 'Access denied [SELECT on t]');
});

test.serial('WITH GRANT OPTION does not allow granting more than was granted', async (t) => {
  await run(server, "CREATE USER bob WITH PASSWORD 'b'", 'GRANT HTTP TO bob');
  await run(server, 'GRANT SELECT ON t(a) TO ann WITH GRANT OPTION');
  t.is(await errorOf(ANN, 'GRANT SELECT ON t(a) TO bob'), '');
  t.deepEqual(await rows(server, 'bob:b', 'SELECT a FROM t'), [[1]]);
  t.is(
    await errorOf(ANN, 'GRANT SELECT ON t TO bob'),
    'Access denied [SELECT on t WITH GRANT OPTION]',
  );
  await run(server, 'DROP USER bob', 'REVOKE ALL FROM ann', 'GRANT HTTP, PGWIRE TO ann');
});

test.serial(
  'the creator of a table owns it, and a re-created table inherits no grants',
  async (t) => {
    await run(server, 'GRANT CREATE TABLE TO ann');
    t.is(await errorOf(ANN, 'CREATE TABLE mine (x INT)'), '');
    t.is(await errorOf(ANN, 'CREATE TABLE IF NOT EXISTS u (x INT)'), '');
    t.is(await errorOf(ANN, 'SELECT * FROM u'), 'Access denied [SELECT on u]');
    t.is(await errorOf(ANN, 'INSERT INTO mine VALUES (1)'), '');
    t.is(await errorOf(ANN, "RENAME TABLE mine TO 'own'"), '');
    t.deepEqual(await rows(server, ANN, 'SELECT * FROM own'), [[1]]);
    await run(server, 'DROP TABLE own', 'CREATE TABLE own (x INT)');
    t.is(await errorOf(ANN, 'SELECT * FROM own'), 'Access denied [SELECT on own]');
    await run(server, 'DROP TABLE own');
  },
);

test.serial("a view reads with its owner's rights", async (t) => {
  await run(server, "CREATE USER eve WITH PASSWORD 'e'", 'GRANT HTTP, CREATE VIEW TO eve');
  await run(server, 'GRANT SELECT ON t TO eve');
  t.is(await errorOf('eve:e', 'CREATE VIEW v AS (SELECT a FROM t)'), '');
  t.is(await errorOf(ANN, 'SELECT * FROM v'), 'Access denied [SELECT on v]');
  await run(server, 'GRANT SELECT ON v TO ann');
  t.deepEqual(await rows(server, ANN, 'SELECT * FROM v'), [[1]]);
  await run(server, 'REVOKE SELECT ON t FROM eve');
  t.regex(await errorOf(ANN, 'SELECT * FROM v'), /^Access denied \[SELECT on v, whose owner/);
  await run(server, 'DROP VIEW v', 'DROP USER eve');
});

test.serial(
  'tokens are shown once; dropped tokens and tokens of disabled users are refused',
  async (t) => {
    const createToken = "ALTER USER ann CREATE TOKEN TYPE REST WITH TTL '1h' REFRESH";
    const [[name, token, , refresh] = []] = await rows(server, ADMIN, createToken);
    t.deepEqual([name, refresh], ['ann', 'true']);
    const bearer = String(token);
    t.deepEqual(await rows(server, bearer, 'SELECT current_user()'), [['ann']]);
    await run(server, 'ALTER USER ann DISABLE');
    t.is((await exec(server, bearer, 'SELECT 1')).status, 401);
    t.is((await exec(server, ANN, 'SELECT 1')).status, 401);
    await run(server, 'ALTER USER ann ENABLE', `ALTER USER ann DROP TOKEN TYPE REST '${bearer}'`);
    t.is((await exec(server, bearer, 'SELECT 1')).status, 401);
    t.regex(await errorOf(ADMIN, createToken.replace('1h', '59s')), /time to live/);
  },
);

test.serial('a service account is assumed and exited over the wire protocol', async (t) => {
  await run(server, 'CREATE SERVICE ACCOUNT feed OWNED BY ann', 'GRANT SELECT ON u TO feed');
  const client = await connect('ann', 'ann1');
  const who = async (): Promise<unknown> =>
    (await client.query<{ me: string }>('SELECT current_user() me')).rows[0]?.me;
  await client.query('ASSUME SERVICE ACCOUNT feed');
  t.is(await who(), 'feed');
  await client.query('SELECT * FROM u');
  await client.query('EXIT SERVICE ACCOUNT');
  t.is(await who(), 'ann');
  await t.throwsAsync(() => client.query('SELECT * FROM u'), {
    message: 'Access denied [SELECT on u]',
  });
  await client.end();
  await run(server, 'DROP SERVICE ACCOUNT feed');
});

test.serial('each protocol requires its own permission', async (t) => {
  await run(server, "CREATE USER out WITH PASSWORD 'o'");
  t.is((await exec(server, 'out:o', 'SELECT 1')).status, 403);
  await t.throwsAsync(() => connect('out', 'o'), { message: 'Access denied [PGWIRE]' });
  await t.throwsAsync(() => connect('out', 'wrong'), { message: 'invalid username/password' });
  await t.throwsAsync(() => connect('nobody', 'o'), { message: 'invalid username/password' });
  await run(server, 'DROP USER out');
});

test.serial('listing users requires LIST USERS', async (t) => {
  t.is(await errorOf(ANN, 'SHOW USERS'), 'Access denied [LIST USERS]');
  t.is(await errorOf(ANN, 'SHOW PERMISSIONS admin'), 'Access denied [USER DETAILS]');
  t.deepEqual(await rows(server, ANN, 'SHOW USER'), [
    ['Password', true],
    ['JWK Token', false],
    ['REST Token', false],
  ]);
  t.deepEqual(await rows(server, ADMIN, 'SHOW USERS'), [['admin'], ['ann']]);
  t.deepEqual(
    await rows(server, ANN, "SELECT count() FROM all_permissions() WHERE permission = 'SELECT'"),
    [[1]],
  );
});

test.serial('memberships of groups, users and service accounts cannot form cycles', async (t) => {
  const kinds = { group: 'g', user: 'm', 'service account': 's' } as const;
  for (const [kind, letter] of Object.entries(kinds)) {
    await run(server, ...[0, 1, 2].map((at) => `CREATE ${kind} ring_${letter}${at}`));
  }
  const joins = (letter: string, from: number, to: number): string =>
    letter === 's'
      ? `GRANT ASSUME SERVICE ACCOUNT ring_s${to} TO ring_s${from}`
      : `ADD USER ring_${letter}${from} TO ring_${letter}${to}`;
  for (const letter of Object.values(kinds)) {
    for (const length of [1, 2, 3]) {
      for (let at = 0; at < length; at += 1) {
        const said = await errorOf(ADMIN, joins(letter, at, (at + 1) % length));
        t.regex(
          said,
          /^no (?:user|group) '|^a service account cannot assume another service account$/,
        );
      }
    }
  }
  // The user assumes the account through a group. This does not add to the account's own
  // permissions.
  await run(
    server,
    'GRANT ASSUME SERVICE ACCOUNT ring_s0 TO ring_g0',
    'ADD USER ring_m0 TO ring_g0',
  );
  t.not(await errorOf(ADMIN, 'ADD USER ring_s0 TO ring_g0'), '');
  const permissions = await rows(server, ADMIN, 'SHOW PERMISSIONS ring_m0');
  t.deepEqual(permissions, [['ASSUME SERVICE ACCOUNT ring_s0', null, null, false, 'G', 'ring_g0']]);
});

test.serial('a user in 200 groups still gets the rights of the last one', async (t) => {
  const names = Array.from({ length: 200 }, (_, at) => `many_${at}`);
  await run(server, 'CREATE USER member', ...names.map((name) => `CREATE GROUP ${name}`));
  await run(server, `ADD USER member TO ${names.join(', ')}`, 'GRANT SELECT ON u TO many_199');
  const shown = await rows(server, ADMIN, 'SHOW PERMISSIONS member');
  t.true(shown.some((row) => row.includes('many_199') && row.includes('SELECT')));
  t.is((await rows(server, ADMIN, 'SHOW GROUPS member')).length, 200);
});

test.serial("other users' queries can be neither listed nor cancelled", async (t) => {
  const [[id] = []] = await rows(server, ADMIN, 'SELECT query_id FROM query_activity()');
  t.is(typeof id, 'number');
  const seen = await rows(server, ANN, 'SELECT username FROM query_activity()');
  t.deepEqual(seen, [['ann']]);
  t.is(await errorOf(ANN, 'SELECT reload_config()'), 'Access denied [SYSTEM ADMIN]');
});

test.serial('an import requires a right for each change it makes', async (t) => {
  const imp = async (table: string, query = ''): Promise<string> => {
    const form = new FormData();
    form.set('data', new Blob(['x\n5\n']), 'data.csv');
    const response = await fetch(`${server.url}/imp?name=${table}&forceHeader=true${query}`, {
      method: 'POST',
      headers: credentials(ANN),
      body: form,
    });
    return `${response.status} ${(await response.text()).trim()}`;
  };
  t.is(await imp('u'), '403 Access denied [INSERT on u]');
  t.is(await imp('missing', '&create=false'), '403 Access denied [INSERT on missing]');
  t.regex(await imp('fresh'), /^200/);
  t.deepEqual(await rows(server, ANN, 'SELECT x FROM fresh'), [[5]]);
  await run(server, 'GRANT INSERT ON u TO ann');
  t.regex(await imp('u'), /^200/);
  t.is(await imp('u', '&overwrite=true'), '403 Access denied [TRUNCATE TABLE on u]');
  const chk = await fetch(`${server.url}/chk?j=t`, { headers: credentials(ANN) });
  t.is((await chk.text()).trim(), 'Does not exist');
});

test.serial('users and rights survive a kill, and the log contains no secrets', async (t) => {
  await run(server, "CREATE USER canary WITH PASSWORD 'canary-7f3a9'", 'GRANT HTTP TO canary');
  const createToken = "ALTER USER canary CREATE TOKEN TYPE REST WITH TTL '1d'";
  const token = String((await rows(server, ADMIN, createToken))[0]?.[1]);
  t.not(await errorOf(ADMIN, "CREATE USER canary WITH PASSWORD 'canary-7f3a9' x"), '');
  const watched = await rows(
    server,
    ADMIN,
    `SELECT query FROM query_activity() WHERE query != '${token}'`,
  );
  t.is(watched.length, 1);
  server.process.kill('SIGKILL');
  await once(server.process, 'exit');
  const log = server.log();
  const { root } = server;
  server = await startAccessServer(root);
  t.deepEqual(await rows(server, token, 'SELECT current_user()'), [['canary']]);
  t.deepEqual(await rows(server, 'canary:canary-7f3a9', 'SELECT 1'), [[1]]);
  const audit = await readFile(join(root, 'audit.jsonl'), 'utf8');
  t.is(brokenLine(audit), null);
  t.true(audit.includes('CREATE USER canary WITH PASSWORD'));
  const metrics = await fetch(`${server.url}/metrics`, { headers: credentials(ADMIN) });
  const everything = [audit, log, server.log(), await metrics.text(), String(watched)].join('\n');
  t.false(everything.includes('canary-7f3a9'));
  t.false(everything.includes(token));
  t.teardown(() => rm(root, { recursive: true, force: true }));
});
