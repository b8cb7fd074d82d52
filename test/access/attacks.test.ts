/**
 * Regression tests for past access control bypasses. Each test reproduces the original bypass on a
 * real server.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { TestProvider } from '../oidc/provider.js';
import { until } from '../until.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

const PASSWORD = 'pw-12345678';

async function connect(target: TestServer, user: string, password: string): Promise<pg.Client> {
  const client = pgClient(target.pg, { user, password });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE sec (ts TIMESTAMP, pub INT, secret VARCHAR, sym SYMBOL) TIMESTAMP(ts)',
    "INSERT INTO sec VALUES ('2026-01-01', 1, 'SECRET1', 'A'), ('2026-01-01', 2, 'SECRET2', 'B')",
  );
});

test.after.always(async () => {
  await server.stop();
});

const error = async (who: string, query: string): Promise<string> =>
  (await exec(server, who, query)).error ?? '';

test('OWNED BY cannot give a view rights that its creator lacks', async (t) => {
  const mal = `mal:${PASSWORD}`;
  await run(
    server,
    `CREATE USER mal WITH PASSWORD '${PASSWORD}'`,
    'CREATE GROUP mates',
    'CREATE GROUP others',
    'CREATE SERVICE ACCOUNT bot',
    'CREATE SERVICE ACCOUNT foreign_bot',
    'ADD USER mal TO mates',
    'GRANT HTTP, CREATE VIEW, CREATE TABLE TO mal',
    'GRANT SELECT ON sec(pub) TO mal',
    'GRANT ASSUME SERVICE ACCOUNT bot TO mal',
  );
  t.is(await error(mal, 'CREATE VIEW w AS (SELECT pub FROM sec)'), '');
  const words = ['CREATE VIEW w2', 'CREATE OR REPLACE VIEW w'];
  for (const owner of ['admin', 'others', 'foreign_bot', 'nobody']) {
    for (const begin of words) {
      const refusal = await error(mal, `${begin} AS (SELECT pub FROM sec) OWNED BY ${owner}`);
      t.is(refusal, `Access denied [OWNED BY on ${owner}]`, `${begin} ${owner}`);
    }
  }
  for (const owner of ['mal', 'mates', 'bot']) {
    const created = await error(
      mal,
      `CREATE OR REPLACE VIEW w AS (SELECT pub FROM sec) OWNED BY ${owner}`,
    );
    t.is(created, '', owner);
  }
  t.regex(
    await error(mal, 'SELECT * FROM w'),
    /whose owner lacks a required permission/,
    'the view of bot reads nothing',
  );
});

test('a name in a view never resolves to an object created later', async (t) => {
  const eve = `eve:${PASSWORD}`;
  await run(
    server,
    `CREATE USER eve WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, CREATE VIEW, CREATE TABLE TO eve',
    'GRANT SELECT ON sec(pub) TO eve',
  );
  for (const statement of [
    'CREATE TABLE att (ts TIMESTAMP, secret VARCHAR) TIMESTAMP(ts)',
    "INSERT INTO att VALUES ('2026-01-01', 'x')",
    'CREATE TABLE future1 (i INT)',
    'CREATE VIEW over_future AS (SELECT * FROM future1)',
    'CREATE VIEW inner_name AS (SELECT pub, (SELECT secret FROM att LIMIT 1) x FROM sec)',
    'ALTER TABLE att DROP COLUMN secret',
    'DROP TABLE future1',
  ]) {
    t.is(await error(eve, statement), '', statement);
  }
  await run(server, 'GRANT SELECT ON inner_name TO admin').catch(() => undefined);
  t.regex(await error(ADMIN, 'SELECT * FROM inner_name'), /column 'secret' of 'att' was dropped/);
  await run(server, 'CREATE TABLE future1 (i INT)', 'INSERT INTO future1 VALUES (7)');
  t.regex(
    await error(ADMIN, 'SELECT * FROM over_future'),
    /table does not exist \[table=future1\]/,
  );
  t.not(await error(eve, 'SELECT * FROM over_future'), '');
});

test('rights are checked before any part of a query runs', async (t) => {
  const fay = `fay:${PASSWORD}`;
  await run(
    server,
    `CREATE USER fay WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP TO fay',
    'GRANT SELECT ON sec(pub) TO fay',
    "CREATE VIEW only_two AS (SELECT pub FROM sec WHERE secret = 'SECRET2')",
    'GRANT SELECT ON only_two TO fay',
  );
  const values = (query: string): string =>
    `SELECT * FROM (SELECT pub FROM sec) PIVOT (count() FOR pub IN (${query}))`;
  t.is(await error(fay, values('SELECT pub FROM sec')), '');
  // An error that depends on matching values would reveal the contents of the column.
  for (const guess of ['SECRET1', 'SECRET7']) {
    const refusal = await error(fay, values(`SELECT pub FROM sec WHERE secret = '${guess}'`));
    t.is(refusal, 'Access denied [SELECT on sec(secret)]', guess);
  }
  t.is(
    await error(fay, values('SELECT pub FROM only_two')),
    '',
    'the view needs no permission on the hidden column',
  );
  t.is(await error(ADMIN, values('SELECT pub FROM only_two')), '');
  await run(server, 'DROP VIEW only_two');
});

test('PIVOT evaluates its value query with the view owner’s rights', async (t) => {
  await run(
    server,
    'CREATE TABLE kinds (ts TIMESTAMP, kind SYMBOL, hidden VARCHAR) TIMESTAMP(ts)',
    "INSERT INTO kinds VALUES ('2026-01-01', 'K1', 'h'), ('2026-01-01', 'K2', 'h')",
  );
  const reader = `pia:${PASSWORD}`;
  const maker = `max:${PASSWORD}`;
  for (const name of ['pia', 'max', 'ole']) {
    await run(server, `CREATE USER ${name} WITH PASSWORD '${PASSWORD}'`, `GRANT HTTP TO ${name}`);
  }
  await run(
    server,
    'GRANT WRITE FILES TO pia',
    'GRANT CREATE VIEW TO max',
    'GRANT SELECT ON kinds(kind) TO max',
    "CREATE VIEW of_kinds AS (SELECT ts, kind FROM kinds WHERE hidden = 'h')",
    'CREATE VIEW over_views AS (SELECT kind FROM of_kinds)',
    `CREATE VIEW in_view AS
      (SELECT * FROM (SELECT kind FROM of_kinds) PIVOT (count() FOR kind IN
        (SELECT kind FROM over_views)))`,
  );
  const views = ['of_kinds', 'over_views', 'in_view'];
  const pivoted = (source: string, values: string): string =>
    `SELECT * FROM (SELECT kind FROM ${source}) PIVOT (count() FOR kind IN (${values}))`;
  const queries: readonly (readonly [string, readonly string[]])[] = [
    [pivoted('of_kinds', 'SELECT kind FROM of_kinds'), ['of_kinds']],
    [pivoted('of_kinds', 'SELECT kind FROM over_views'), ['of_kinds', 'over_views']],
    [pivoted('over_views', 'SELECT DISTINCT kind FROM of_kinds'), ['of_kinds', 'over_views']],
    ['SELECT * FROM in_view', ['in_view']],
    [`SELECT * FROM (${pivoted('of_kinds', 'SELECT kind FROM of_kinds')})`, ['of_kinds']],
  ];
  for (const [query, needed] of queries) {
    t.deepEqual(await rows(server, ADMIN, query), [[1, 1]], query);
    for (const view of needed) {
      const others = needed.filter((one) => one !== view);
      await run(server, ...others.map((one) => `GRANT SELECT ON ${one} TO pia`));
      const refusal = await error(reader, query);
      t.is(refusal, `Access denied [SELECT on ${view}]`, `${query} without ${view}`);
      // A permission other than SELECT makes the view visible but does not allow reading it.
      await run(server, `GRANT DROP VIEW ON ${view} TO pia`);
      t.regex(
        await error(reader, query),
        /^Access denied \[SELECT on /,
        `${query} with DROP VIEW only`,
      );
      await run(server, `GRANT SELECT ON ${view} TO pia`);
      t.deepEqual(await rows(server, reader, query), [[1, 1]], query);
      t.is(await error(reader, `COPY (${query}) TO 'pivoted' WITH FORMAT CSV`), '', query);
      const column =
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'in_view'";
      t.is((await rows(server, reader, column)).length, needed.includes('in_view') ? 2 : 0);
      for (const one of views) {
        await run(
          server,
          `REVOKE SELECT ON ${one} FROM pia`,
          `REVOKE DROP VIEW ON ${one} FROM pia`,
        );
      }
    }
  }
  // If the view's owner lacks the permission, the view reveals neither its rows nor whether they
  // exist.
  t.is(await error(maker, 'CREATE VIEW of_max AS (SELECT kind FROM kinds)'), '');
  await run(server, 'GRANT SELECT ON of_max TO pia', 'REVOKE SELECT ON kinds(kind) FROM max');
  const lacking = await error(reader, pivoted('of_max', 'SELECT kind FROM of_max'));
  t.regex(lacking, /^Access denied \[SELECT on of_max, whose owner lacks a required permission\]/);
});

test('a reader’s condition is not evaluated for rows that the view filters out', async (t) => {
  await run(
    server,
    'CREATE TABLE staff (ts TIMESTAMP, shown BOOLEAN, name VARCHAR, pay INT) TIMESTAMP(ts)',
    `INSERT INTO staff VALUES ('2026-01-01', true, 'ann', 1), ('2026-01-01', false, '[', 900),
      ('2026-01-01', true, 'bob', 2)`,
    `CREATE USER rob WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, CREATE VIEW TO rob',
    'CREATE VIEW shown_staff AS (SELECT ts, name, pay FROM staff WHERE shown)',
    'CREATE VIEW late_staff AS (SELECT * FROM shown_staff WHERE length(name) > 0)',
    `CREATE VIEW all_of_it AS (SELECT ts, name, pay FROM staff WHERE shown
      UNION SELECT ts, name, pay FROM staff WHERE shown AND pay > 1)`,
    'CREATE VIEW paid AS (SELECT max(name) name, pay FROM staff WHERE shown GROUP BY pay)',
  );
  const views = ['shown_staff', 'late_staff', 'all_of_it', 'paid'];
  await run(server, ...views.map((view) => `GRANT SELECT ON ${view} TO rob`));
  const rob = `rob:${PASSWORD}`;
  // Evaluating any of these conditions on the hidden row raises an error.
  const conditions = [
    "rpad('x', pay * 2000, 'y') = 'x'",
    "lpad('x', pay * 2000, 'y') = 'x'",
    "'a' ~ name",
    "regexp_replace('a', name, 'b') = 'b'",
    "CASE WHEN pay > 500 THEN 'a' ~ name ELSE false END",
  ];
  const forms: readonly ((condition: string, view: string) => string)[] = [
    (condition, view) => `SELECT count() FROM ${view} WHERE ${condition}`,
    (condition, view) => `SELECT count() FROM ${view} WHERE pay > 0 AND ${condition}`,
    (condition, view) => `SELECT count() FROM (SELECT * FROM ${view}) WHERE ${condition}`,
    (condition, view) => `SELECT count() FROM (SELECT ${condition} c FROM ${view}) WHERE c`,
    (condition, view) =>
      `WITH x AS (SELECT * FROM ${view}) SELECT count() FROM x WHERE ${condition}`,
    (condition, view) =>
      `SELECT count() FROM (SELECT * FROM ${view} UNION ALL SELECT * FROM ${view})
        WHERE ${condition}`,
    (condition, view) =>
      `SELECT count() FROM long_sequence(1) l JOIN ${view} v ON l.x > 0 AND ${condition}`,
    (condition, view) =>
      `SELECT count() FROM long_sequence(1) CROSS JOIN ${view} WHERE ${condition}`,
    (condition, view) =>
      `SELECT count() FROM long_sequence(1) LEFT JOIN ${view} ON x > 0 AND ${condition}`,
    (condition, view) =>
      `SELECT (SELECT count() FROM ${view} WHERE ${condition}) FROM long_sequence(1)`,
    (condition, view) =>
      `SELECT x FROM long_sequence(1) WHERE EXISTS (SELECT 1 FROM ${view} WHERE ${condition})`,
    (condition, view) =>
      `SELECT count() FROM ${view} v WHERE pay IN (SELECT pay FROM ${view} WHERE ${condition})`,
    (condition, view) => `SELECT sum(pay) FILTER (WHERE ${condition}) FROM ${view}`,
    (condition, view) => `SELECT sum(pay) FROM ${view} GROUP BY ${condition}`,
    (condition, view) => `SELECT pay FROM ${view} GROUP BY pay, name HAVING ${condition}`,
    (condition, view) => `SELECT name FROM ${view} ORDER BY ${condition}`,
    (condition, view) => `SELECT sum(pay) OVER (PARTITION BY ${condition}) FROM ${view}`,
    (condition, view) => `SELECT DISTINCT ${condition} FROM ${view}`,
  ];
  for (const view of views) {
    for (const condition of conditions) {
      for (const form of forms) {
        const query = form(condition, view);
        t.notRegex(await error(rob, query), /breached|invalid regular|unclosed/, query);
      }
    }
  }
  for (const condition of conditions) {
    const query = `SELECT * FROM shown_staff WHERE ${condition}`;
    const own = `CREATE OR REPLACE VIEW own_staff AS (${query})`;
    t.is(await error(rob, own), '', condition);
    t.is(await error(rob, 'SELECT * FROM own_staff'), '', condition);
  }
  t.not(await error(ADMIN, `SELECT count() FROM staff WHERE ${conditions[2] ?? ''}`), '');
});

test('EXPLAIN shows a view’s plan only to users who may read the view’s tables', async (t) => {
  const uma = `uma:${PASSWORD}`;
  await run(
    server,
    `CREATE USER uma WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP TO uma',
    'CREATE TABLE planned (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts)',
    'CREATE VIEW plans AS (SELECT a FROM planned WHERE b = 1)',
    'CREATE VIEW over_plans AS (SELECT a FROM plans)',
    'GRANT SELECT ON plans TO uma',
    'GRANT SELECT ON over_plans TO uma',
  );
  for (const view of ['plans', 'over_plans']) {
    for (const words of ['EXPLAIN', 'EXPLAIN ANALYZE', 'EXPLAIN (LOGICAL)', 'EXPLAIN (BOUND)']) {
      await run(server, 'REVOKE SELECT ON planned FROM uma');
      const query = `${words} SELECT * FROM ${view}`;
      const refusal = await error(uma, query);
      t.regex(refusal, /^Access denied \[SELECT on planned/, query);
      await run(server, 'GRANT SELECT ON planned(a, b) TO uma');
      t.is(await error(uma, query), '', query);
    }
  }
});

test('grants follow columns when one statement renames several columns', async (t) => {
  const ida = `ida:${PASSWORD}`;
  await run(
    server,
    `CREATE USER ida WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP TO ida',
    'CREATE TABLE many (a INT, b INT, c INT, d INT)',
    'INSERT INTO many VALUES (1, 2, 3, 4)',
    'GRANT SELECT ON many(a) TO ida',
    'GRANT RENAME COLUMN, DROP COLUMN ON many TO ida',
    'GRANT SELECT ON many(later) TO ida',
  );
  const names = new Map([1, 2, 3, 4].map((value) => [value, 'abcd'[value - 1] ?? '']));
  const check = async (what: string): Promise<void> => {
    for (const [value, column] of names) {
      const { dataset } = await exec(server, ida, `SELECT ${column} FROM many`);
      t.deepEqual(dataset, value === 1 ? [[1]] : undefined, `${what}: ${column}`);
    }
  };
  const turns: readonly (readonly [string, string])[][] = [
    [
      ['a', 'tmp'],
      ['b', 'a'],
      ['tmp', 'b'],
    ],
    [
      ['b', 'tmp'],
      ['a', 'b'],
      ['c', 'a'],
      ['tmp', 'c'],
    ],
    [
      ['c', 'x'],
      ['x', 'y'],
      ['y', 'c'],
    ],
    [
      ['c', 'later'],
      ['b', 'c'],
    ],
    [['a', 'A']],
    [
      ['later', 'gone'],
      ['d', 'later'],
      ['gone', 'd'],
    ],
  ];
  for (const round of turns) {
    for (const [from, to] of round) {
      const moved = [...names].find(([, column]) => column === from)?.[0] ?? 0;
      names.set(moved, to);
    }
    const list = round.map(([from, to]) => `${from} TO ${to}`).join(', ');
    t.is(await error(ida, `ALTER TABLE many RENAME COLUMN ${list}`), '', list);
    await check(list);
  }
});

test('a help-desk user cannot reset the password of an indirect administrator', async (t) => {
  await run(
    server,
    'CREATE SERVICE ACCOUNT last_one',
    'GRANT DATABASE ADMIN TO last_one',
    'CREATE SERVICE ACCOUNT first_one',
    `CREATE USER chained WITH PASSWORD '${PASSWORD}'`,
    'GRANT ASSUME SERVICE ACCOUNT first_one TO chained',
    `CREATE USER aide WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, ADD PASSWORD TO aide',
  );
  const steal = "ALTER USER chained WITH PASSWORD 'stolen-1234'";
  t.is(await error(`aide:${PASSWORD}`, steal), '');
  await run(server, 'DROP SERVICE ACCOUNT last_one');
  await run(server, 'CREATE SERVICE ACCOUNT last_one OWNED BY first_one');
  await run(server, 'GRANT DATABASE ADMIN TO last_one');
  t.is(await error(`aide:${PASSWORD}`, steal), 'Access denied [DATABASE ADMIN]');
});

test('a help-desk user cannot modify an administrator in any way', async (t) => {
  await run(
    server,
    'CREATE GROUP dbas',
    'GRANT DATABASE ADMIN TO dbas',
    'CREATE SERVICE ACCOUNT almighty',
    'GRANT DATABASE ADMIN TO almighty',
    'CREATE GROUP heirs',
    'GRANT ASSUME SERVICE ACCOUNT almighty TO heirs',
    `CREATE USER helpdesk WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, ADD PASSWORD, CREATE REST TOKEN, DISABLE USER, DROP USER TO helpdesk',
    'GRANT ADD USER, REMOVE PASSWORD, CREATE JWK, ADD EXTERNAL ALIAS TO helpdesk',
  );
  const ways: [string, string][] = [
    ['boss1', 'ADD USER boss1 TO dbas'],
    ['boss2', 'GRANT DATABASE ADMIN TO boss2'],
    ['boss3', 'GRANT ASSUME SERVICE ACCOUNT almighty TO boss3'],
    ['boss4', 'ADD USER boss4 TO heirs'],
  ];
  for (const [boss, way] of ways) {
    await run(server, `CREATE USER ${boss} WITH PASSWORD '${PASSWORD}'`, way);
    for (const statement of [
      `ALTER USER ${boss} WITH PASSWORD 'stolen-1234'`,
      `ALTER USER ${boss} WITH NO PASSWORD`,
      `ALTER USER ${boss} CREATE TOKEN TYPE REST WITH TTL '1d'`,
      `ALTER USER ${boss} CREATE TOKEN TYPE JWK`,
      `ALTER USER ${boss} DISABLE`,
      `DROP USER ${boss}`,
    ]) {
      const refusal = await error(`helpdesk:${PASSWORD}`, statement);
      t.is(refusal, 'Access denied [DATABASE ADMIN]', `${statement}, ${way}`);
    }
  }
  for (const statement of [
    'ADD USER helpdesk TO dbas',
    'ADD USER helpdesk TO heirs',
    "ALTER GROUP heirs WITH EXTERNAL ALIAS 'mine'",
    "ALTER SERVICE ACCOUNT almighty CREATE TOKEN TYPE REST WITH TTL '1d'",
  ]) {
    const refusal = await error(`helpdesk:${PASSWORD}`, statement);
    t.is(refusal, 'Access denied [DATABASE ADMIN]', statement);
  }
});

test('a session ends when its user, password or permission is removed', async (t) => {
  const setUp = [
    `CREATE USER carol WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, PGWIRE TO carol',
    'GRANT SELECT ON sec TO carol',
  ];
  const ends: [string, RegExp][] = [
    ['ALTER USER carol DISABLE', /login is no longer valid/],
    ['DROP USER carol', /login is no longer valid/],
    ['REVOKE PGWIRE FROM carol', /Access denied \[PGWIRE\]/],
    ["ALTER USER carol WITH PASSWORD 'another-1234'", /login is no longer valid/],
    ['ALTER USER carol WITH NO PASSWORD', /login is no longer valid/],
  ];
  for (const [change, message] of ends) {
    await run(server, ...setUp);
    const client = await connect(server, 'carol', PASSWORD);
    t.is((await client.query('SELECT pub FROM sec')).rowCount, 2);
    await run(server, change);
    await t.throwsAsync(client.query('SELECT 1'), { message }, change);
    await client.end().catch(() => undefined);
    await run(server, ...(change.startsWith('DROP') ? [] : ['DROP USER carol']));
  }
  await run(server, ...setUp);
  const old = await connect(server, 'carol', PASSWORD);
  await run(server, 'DROP USER carol', "CREATE USER carol WITH PASSWORD 'new-12345'");
  await run(server, 'GRANT PGWIRE TO carol', 'GRANT SELECT ON sec TO carol');
  await t.throwsAsync(old.query('SELECT pub FROM sec'), { message: /login is no longer valid/ });
  await run(server, 'DROP USER carol');
});

test('the ASSUME right is checked again at every statement', async (t) => {
  await run(
    server,
    'CREATE SERVICE ACCOUNT feed',
    'GRANT SELECT ON sec TO feed',
    `CREATE USER dan WITH PASSWORD '${PASSWORD}'`,
    'GRANT PGWIRE TO dan',
  );
  const changes: [string, string[]][] = [
    ['REVOKE ASSUME SERVICE ACCOUNT feed FROM dan', []],
    ['DROP SERVICE ACCOUNT feed', ['CREATE SERVICE ACCOUNT feed', 'GRANT SELECT ON sec TO feed']],
    ['ALTER SERVICE ACCOUNT feed DISABLE', []],
  ];
  for (const [change, undo] of changes) {
    await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO dan');
    const client = await connect(server, 'dan', PASSWORD);
    await client.query('ASSUME SERVICE ACCOUNT feed');
    t.is((await client.query('SELECT pub FROM sec')).rowCount, 2, change);
    await run(server, change, ...undo);
    await t.throwsAsync(client.query('SELECT pub FROM sec'), { message: /Access denied/ }, change);
    await client.end();
  }
});

test('a grant on an unused table name does not expose a table renamed to that name', async (t) => {
  const ann = `ann:${PASSWORD}`;
  await run(
    server,
    `CREATE USER ann WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP TO ann',
    'CREATE TABLE salaries (i INT, hidden INT)',
    'INSERT INTO salaries VALUES (99, 1)',
  );
  let isOver = false;
  const seen: unknown[] = [];
  const poll = async (query: string): Promise<void> => {
    while (!isOver) {
      const { dataset } = await exec(server, ann, query);
      if (dataset !== undefined) {
        seen.push(query, dataset);
      }
    }
  };
  const polls = ['SELECT i FROM u2', 'SELECT i FROM u2', 'SELECT shown FROM salaries'].map(poll);
  for (let round = 0; round < 15; round += 1) {
    await run(server, 'GRANT SELECT ON u2 TO ann', 'RENAME TABLE salaries TO u2');
    await run(server, 'RENAME TABLE u2 TO salaries', 'GRANT SELECT ON salaries(shown) TO ann');
    await run(server, 'ALTER TABLE salaries RENAME COLUMN hidden TO shown');
    await run(server, 'ALTER TABLE salaries RENAME COLUMN shown TO hidden');
  }
  isOver = true;
  await Promise.all(polls);
  t.deepEqual(seen, []);
});

test('COPY exports the same rows as /exec and never overwrites another user’s file', async (t) => {
  const wes = `wes:${PASSWORD}`;
  await run(
    server,
    `CREATE USER wes WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, WRITE FILES TO wes',
    'GRANT SELECT ON sec(pub) TO wes',
    'CREATE TABLE hidden_table (i INT)',
    'CREATE VIEW hidden_view AS (SELECT 1 one)',
  );
  const written = async (who: string, query: string, name: string): Promise<string> => {
    const path = join(server.root, 'export', `${name}.csv`);
    const { error: refusal } = await exec(
      server,
      who,
      `COPY (${query}) TO '${name}' WITH FORMAT CSV`,
    );
    t.is(refusal, undefined, query);
    await until(() => existsSync(path), `the file ${name} exists`);
    return readFileSync(path, 'utf8');
  };
  const own = await written(wes, 'SELECT table_name FROM tables()', 'own1');
  t.false(own.includes('hidden_table'), own);
  t.true(own.includes('sec'), own);
  t.false(
    (await written(wes, 'SELECT view_name FROM views()', 'own2')).includes('hidden'),
    'views',
  );
  const columns = 'SELECT column_name FROM information_schema.columns';
  t.false((await written(wes, columns, 'own3')).includes('secret'), 'columns');
  const mine = await written(ADMIN, 'SELECT 4711 mine', 'theirs');
  await exec(server, wes, "COPY (SELECT 1 x) TO 'theirs' WITH FORMAT CSV");
  const log = "SELECT status FROM sys.copy_export_log WHERE phase = 'move_files'";
  await until(async () => {
    const { dataset } = await exec(server, ADMIN, log);
    return JSON.stringify(dataset ?? []).includes('failed');
  }, 'the refusal is logged');
  t.is(readFileSync(join(server.root, 'export', 'theirs.csv'), 'utf8'), mine);
});

test('an external user is never treated as a local user of the same name', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  const target = await startTestServer({ set: ['acl.enabled=true', ...provider.settings()] });
  t.teardown(() => target.stop());
  await run(
    target,
    "CREATE GROUP readers WITH EXTERNAL ALIAS 'g1'",
    'GRANT HTTP, CREATE VIEW TO readers',
    `CREATE USER local WITH PASSWORD '${PASSWORD}'`,
    'GRANT HTTP, PGWIRE TO local',
    'CREATE TABLE sec (i INT)',
    'CREATE TABLE pub (i INT)',
    'GRANT SELECT ON pub TO readers',
    'CREATE VIEW shared AS (SELECT * FROM sec)',
    'GRANT ALTER VIEW ON shared TO readers',
    'GRANT SELECT ON shared TO readers',
  );
  const client = await connect(target, 'local', PASSWORD);
  t.teardown(() => client.end().catch(() => undefined));
  const { rows: backends } = await client.query<Record<string, number>>('SELECT pg_backend_pid()');
  const number = backends[0]?.['pg_backend_pid'];
  t.is(typeof number, 'number');
  for (const name of ['local', 'admin']) {
    provider.addPerson(name, { groups: ['g1'], password: PASSWORD });
    const { access } = await provider.token(name, PASSWORD);
    const send = async (query: string): Promise<string> => {
      const answer = await fetch(`${target.url}/exec?query=${encodeURIComponent(query)}`, {
        headers: { authorization: `Bearer ${access}` },
      });
      return await answer.text();
    };
    t.regex(await send('SELECT current_user()'), new RegExp(name));
    for (const query of [
      `SHOW GROUPS ${name}`,
      `SHOW USER ${name}`,
      `SHOW PERMISSIONS ${name}`,
      `SHOW SERVICE ACCOUNTS ${name}`,
      `SELECT pg_terminate_backend(${String(number)})`,
      `SELECT pg_cancel_backend(${String(number)})`,
      `SELECT has_table_privilege('${name}', 'sec', 'SELECT')`,
      'CREATE VIEW mine AS (SELECT * FROM pub)',
      'CREATE OR REPLACE VIEW shared AS (SELECT * FROM pub)',
      'ALTER VIEW shared AS (SELECT * FROM pub)',
      `CREATE OR REPLACE VIEW shared AS (SELECT * FROM pub) OWNED BY ${name}`,
    ]) {
      const answer = await send(query);
      t.regex(answer, /Access denied|missing owner/, query);
    }
    const heavy =
      'SELECT count() FROM long_sequence(1000000) a CROSS JOIN long_sequence(1000000) b';
    const running = exec(target, name === 'admin' ? ADMIN : `local:${PASSWORD}`, heavy);
    const queries = "SELECT query_id, query FROM query_activity() WHERE query LIKE '%CROSS%'";
    let id: unknown;
    await until(async () => {
      id = (await rows(target, ADMIN, queries)).find(([, text]) => text === heavy)?.[0];
      return id !== undefined;
    }, 'the query is listed');
    t.false((await send('SELECT query FROM query_activity()')).includes('long_sequence'), name);
    await send(`CANCEL QUERY ${String(id)}`);
    t.true(
      (await rows(target, ADMIN, queries)).some(([one]) => one === id),
      'the query still runs',
    );
    await exec(target, ADMIN, `CANCEL QUERY ${String(id)}`);
    t.is((await running).error, 'cancelled by user');
  }
  t.is((await client.query('SELECT 1 a')).rowCount, 1, 'the local session continues');
});

test('passwords are masked in every quoting style', async (t) => {
  const quotings = [
    `'CANARYPW4'`,
    `"CANARYPW4"`,
    '`CANARYPW4`',
    'CANARYPW4',
    `/* x */ "CANARYPW4"`,
  ];
  for (const [index, quoting] of quotings.entries()) {
    t.is(await error(ADMIN, `create user masked${index} with password ${quoting}`), '', quoting);
    t.is(await error(ADMIN, `alter user masked${index} with password ${quoting}`), '', quoting);
    t.not(await error(ADMIN, `create user masked${index} with password ${quoting} x`), '', quoting);
  }
  const audit = readFileSync(join(server.root, 'audit.jsonl'), 'utf8');
  t.true(audit.includes('create user masked4'));
  t.false(audit.includes('CANARYPW4'));
});
