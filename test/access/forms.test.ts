/** Every form of the user and permission statements, tested by its effect. */
import test, { type ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { ITEMS } from '../sql/grammar/index.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

/** The section of the grammar table that contains these items. */
const SECTION = '29.';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
  );
});

test.after.always(async () => {
  await server.stop();
});

/**
 * Each test starts with an administrator, a password user, a group and a service account, all with
 * fixed names.
 */
test.beforeEach(async () => {
  for (const kind of ['USER', 'GROUP', 'SERVICE ACCOUNT']) {
    for (const [name] of await rows(server, ADMIN, `SHOW ${kind}S`)) {
      if (name !== 'admin') {
        await run(server, `DROP ${kind} "${String(name)}"`);
      }
    }
  }
  await run(
    server,
    "CREATE USER ann WITH PASSWORD 'p'",
    'GRANT HTTP, PGWIRE TO ann',
    'CREATE GROUP ops',
    'GRANT HTTP TO ops',
    "CREATE SERVICE ACCOUNT feed WITH PASSWORD 'p'",
    'GRANT HTTP TO feed',
  );
});

const names = async (list: string): Promise<unknown[]> =>
  (await rows(server, ADMIN, list)).map(([name]) => name);
const logsIn = async (who: string): Promise<boolean> =>
  (await exec(server, who, 'SELECT 1')).status === 200;
const error = async (who: string, query: string): Promise<string> =>
  (await exec(server, who, query)).error ?? '';
const permissions = async (who: string): Promise<string[]> =>
  (await rows(server, ADMIN, `SHOW PERMISSIONS ${who}`)).map((row) => row.slice(0, 4).join(' '));
const ways = async (kind: string, who: string): Promise<unknown[]> =>
  (await rows(server, ADMIN, `SHOW ${kind} ${who}`)).map(([, has]) => has);
const token = async (kind: string, who: string, rest = ''): Promise<string> => {
  const statement = `ALTER ${kind} ${who} CREATE TOKEN TYPE REST WITH TTL '1h'${rest}`;
  return String((await rows(server, ADMIN, statement))[0]?.[1]);
};

type Show = (t: ExecutionContext) => Promise<void>;

/** Tests by grammar table item. */
const FORMS: Readonly<Record<string, Show>> = {
  '29.1': async (t) => {
    await run(server, 'CREATE USER bob', 'CREATE USER IF NOT EXISTS bob');
    t.deepEqual(await names('SHOW USERS'), ['admin', 'ann', 'bob']);
    t.regex(await error(ADMIN, 'CREATE USER bob'), /'bob' is already in use \[kind=user/);
    t.regex(await error(ADMIN, 'CREATE USER ops'), /'ops' is already in use \[kind=group/);
  },
  '29.2': async (t) => {
    await run(server, "CREATE USER bob WITH PASSWORD 'q'", 'GRANT HTTP TO bob');
    await run(server, "CREATE USER IF NOT EXISTS bob WITH PASSWORD 'r'");
    t.deepEqual([await logsIn('bob:q'), await logsIn('bob:r')], [true, false]);
  },
  '29.3': async (t) => {
    await run(server, 'CREATE USER bob WITH NO PASSWORD', 'GRANT HTTP TO bob');
    t.false(await logsIn('bob:'));
    t.deepEqual(await ways('USER', 'bob'), [false, false, false]);
  },
  '29.4': async (t) => {
    await run(server, 'DROP USER ann', 'DROP USER IF EXISTS ann');
    t.false(await logsIn('ann:p'));
    t.regex(await error(ADMIN, 'DROP USER ann'), /no user 'ann'/);
  },
  '29.5': async (t) => {
    await run(server, 'ALTER USER ann DISABLE', 'ALTER USER ann ENABLE');
    t.true(await logsIn('ann:p'));
  },
  '29.6': async (t) => {
    await run(server, 'ALTER USER ann DISABLE');
    t.false(await logsIn('ann:p'));
    t.deepEqual(
      await permissions('ann'),
      ['HTTP   false', 'PGWIRE   false'],
      'the grants are unchanged',
    );
  },
  '29.7': async (t) => {
    await run(server, "ALTER USER ann WITH PASSWORD 'q'");
    t.deepEqual([await logsIn('ann:q'), await logsIn('ann:p')], [true, false]);
    t.not(await error(ADMIN, "ALTER USER ann WITH PASSWORD ''"), '');
  },
  '29.8': async (t) => {
    await run(server, 'ALTER USER ann WITH NO PASSWORD');
    t.false(await logsIn('ann:p'));
  },
  '29.9': async (t) => {
    const [created = []] = await rows(server, ADMIN, 'ALTER USER ann CREATE TOKEN TYPE JWK');
    t.is(created[0], 'ann');
    t.true(created.slice(1).every((part) => /^[\w-]{43}$/.test(String(part))));
    t.deepEqual(await ways('USER', 'ann'), [true, true, false]);
  },
  '29.10': async (t) => {
    const [one, two] = [await token('USER', 'ann'), await token('USER', 'ann', ' REFRESH')];
    t.deepEqual([await logsIn(one), await logsIn(two)], [true, true]);
    t.deepEqual(await ways('USER', 'ann'), [true, false, true]);
  },
  '29.11': async (t) => {
    await run(server, 'ALTER USER ann CREATE TOKEN TYPE JWK', 'ALTER USER ann DROP TOKEN TYPE JWK');
    t.deepEqual(await ways('USER', 'ann'), [true, false, false]);
  },
  '29.12': async (t) => {
    const [one, two] = [await token('USER', 'ann'), await token('USER', 'ann')];
    await run(server, `ALTER USER ann DROP TOKEN TYPE REST '${one}'`);
    t.deepEqual([await logsIn(one), await logsIn(two)], [false, true]);
    await run(server, 'ALTER USER ann DROP TOKEN TYPE REST');
    t.false(await logsIn(two));
  },
  '29.13': async (t) => {
    await run(server, 'CREATE GROUP g', 'CREATE GROUP IF NOT EXISTS g');
    t.deepEqual(await names('SHOW GROUPS'), ['g', 'ops']);
  },
  '29.14': async (t) => {
    await run(server, "CREATE GROUP g WITH EXTERNAL ALIAS 'CN=g'");
    t.deepEqual(await rows(server, ADMIN, 'SHOW GROUPS'), [
      ['g', 'CN=g'],
      ['ops', ''],
    ]);
    t.regex(
      await error(ADMIN, "CREATE GROUP h WITH EXTERNAL ALIAS 'CN=g'"),
      /belongs to group 'g'/,
    );
  },
  '29.15': async (t) => {
    await run(server, "ALTER GROUP ops WITH EXTERNAL ALIAS 'a'");
    await run(server, "ALTER GROUP ops WITH EXTERNAL ALIAS 'b'");
    t.deepEqual(await rows(server, ADMIN, 'SHOW GROUPS'), [['ops', 'a, b']]);
  },
  '29.16': async (t) => {
    await run(server, "ALTER GROUP ops WITH EXTERNAL ALIAS 'a'");
    await run(server, "ALTER GROUP ops DROP EXTERNAL ALIAS 'a'");
    t.deepEqual(await rows(server, ADMIN, 'SHOW GROUPS'), [['ops', '']]);
    t.regex(await error(ADMIN, "ALTER GROUP ops DROP EXTERNAL ALIAS 'a'"), /no external alias 'a'/);
  },
  '29.17': async (t) => {
    await run(server, 'GRANT SELECT ON t TO ops', 'ADD USER ann TO ops', 'DROP GROUP ops');
    await run(server, 'DROP GROUP IF EXISTS ops');
    t.regex(await error('ann:p', 'SELECT a FROM t'), /^Access denied/);
  },
  '29.18': async (t) => {
    await run(server, 'CREATE GROUP g', 'GRANT SELECT ON t TO g', 'ADD USER ann TO ops, g');
    t.deepEqual(await names('SHOW GROUPS ann'), ['g', 'ops']);
    t.is(await error('ann:p', 'SELECT a FROM t'), '');
    t.regex(await error(ADMIN, 'ADD USER feed TO g'), /no user 'feed'/);
  },
  '29.19': async (t) => {
    await run(server, 'GRANT SELECT ON t TO ops', 'ADD USER ann TO ops');
    await run(server, 'REMOVE USER ann FROM ops');
    t.regex(await error('ann:p', 'SELECT a FROM t'), /^Access denied/);
    t.regex(await error(ADMIN, 'REMOVE USER ann FROM ops'), /is not in group 'ops'/);
  },
  '29.20': async (t) => {
    await run(server, "CREATE SERVICE ACCOUNT bot WITH PASSWORD 'b' OWNED BY ann");
    await run(server, 'CREATE SERVICE ACCOUNT IF NOT EXISTS bot', 'GRANT HTTP TO bot');
    t.true(await logsIn('bot:b'));
    t.deepEqual(await rows(server, ADMIN, 'SHOW SERVICE ACCOUNTS ann'), [['bot', true]]);
  },
  '29.21': async (t) => {
    await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO ann', 'DROP SERVICE ACCOUNT feed');
    await run(server, 'DROP SERVICE ACCOUNT IF EXISTS feed');
    t.false(await logsIn('feed:p'));
    t.deepEqual(await rows(server, ADMIN, 'SHOW SERVICE ACCOUNTS ann'), []);
  },
  '29.22': async (t) => {
    await run(server, 'ALTER SERVICE ACCOUNT feed DISABLE');
    t.false(await logsIn('feed:p'));
    await run(server, 'ALTER SERVICE ACCOUNT feed ENABLE');
    t.true(await logsIn('feed:p'));
  },
  '29.23': async (t) => {
    await run(server, "ALTER SERVICE ACCOUNT feed WITH PASSWORD 'q'");
    t.deepEqual([await logsIn('feed:q'), await logsIn('feed:p')], [true, false]);
    await run(server, 'ALTER SERVICE ACCOUNT feed WITH NO PASSWORD');
    t.false(await logsIn('feed:q'));
  },
  '29.24': async (t) => {
    t.true(await logsIn(await token('SERVICE ACCOUNT', 'feed')));
    await run(server, 'ALTER SERVICE ACCOUNT feed CREATE TOKEN TYPE JWK');
    t.deepEqual(await ways('SERVICE ACCOUNT', 'feed'), [true, true, true]);
  },
  '29.25': async (t) => {
    const created = await token('SERVICE ACCOUNT', 'feed');
    await run(server, 'ALTER SERVICE ACCOUNT feed CREATE TOKEN TYPE JWK');
    await run(server, 'ALTER SERVICE ACCOUNT feed DROP TOKEN TYPE JWK');
    await run(server, `ALTER SERVICE ACCOUNT feed DROP TOKEN TYPE REST '${created}'`);
    t.deepEqual(await ways('SERVICE ACCOUNT', 'feed'), [true, false, false]);
  },
  '29.26': async (t) => {
    t.deepEqual(await sessionNames('ASSUME SERVICE ACCOUNT feed'), ['ann', 'feed']);
  },
  '29.27': async (t) => {
    const after = await sessionNames('ASSUME SERVICE ACCOUNT feed', 'EXIT SERVICE ACCOUNT feed');
    t.deepEqual(after, ['ann', 'feed', 'ann']);
    await t.throwsAsync(sessionNames('EXIT SERVICE ACCOUNT'), { message: /has not assumed/ });
  },
  '29.28': async (t) => {
    await run(server, 'GRANT CREATE TABLE TO ann WITH GRANT OPTION WITH VERIFICATION');
    t.is(await error('ann:p', 'GRANT CREATE TABLE TO ops'), '');
    t.deepEqual(await permissions('ops'), ['CREATE TABLE   false', 'HTTP   false']);
    const missing = 'GRANT CREATE TABLE TO nobody WITH VERIFICATION';
    t.regex(await error(ADMIN, missing), /'nobody'/);
  },
  '29.29': async (t) => {
    await run(
      server,
      'GRANT SELECT ON t(* EXCLUDE (b)) TO ann',
      'GRANT INSERT ON ALL TABLES TO ann',
    );
    t.is(await error('ann:p', 'SELECT ts, a FROM t'), '');
    t.regex(await error('ann:p', 'SELECT b FROM t'), /t\(b\)/);
    t.is(await error('ann:p', 'INSERT INTO t (ts, a) VALUES (0, 1)'), '');
  },
  '29.30': async (t) => {
    await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO ops WITH GRANT OPTION');
    await run(server, 'ADD USER ann TO ops', 'CREATE USER bob');
    t.is(await error('ann:p', 'GRANT ASSUME SERVICE ACCOUNT feed TO bob'), '');
    t.deepEqual(await rows(server, ADMIN, 'SHOW SERVICE ACCOUNTS bob'), [['feed', false]]);
    t.not(await error(ADMIN, 'GRANT ASSUME SERVICE ACCOUNT feed TO feed'), '');
    const right = ['ASSUME SERVICE ACCOUNT feed', null, null, true, 'G'];
    const assumed = async (): Promise<unknown> =>
      (await rows(server, ADMIN, 'SHOW PERMISSIONS ann')).find(([name]) => name === right[0]);
    t.deepEqual(await assumed(), [...right, 'ops']);
    await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO ann');
    t.deepEqual(await assumed(), [...right, 'ann, ops'], 'the group keeps the grant option');
  },
  '29.31': async (t) => {
    await run(server, 'REVOKE PGWIRE FROM ann');
    t.deepEqual(await permissions('ann'), ['HTTP   false']);
    await run(server, 'REVOKE HTTP FROM ann');
    t.false(await logsIn('ann:p'));
  },
  '29.32': async (t) => {
    await run(server, 'GRANT SELECT ON t TO ann', 'REVOKE SELECT ON t(b) FROM ann');
    t.is(await error('ann:p', 'SELECT a FROM t'), '');
    t.regex(await error('ann:p', 'SELECT b FROM t'), /t\(b\)/);
    await run(server, 'GRANT INSERT ON ALL TABLES TO ann', 'REVOKE INSERT ON ALL TABLES FROM ann');
    t.regex(await error('ann:p', 'INSERT INTO t (ts) VALUES (0)'), /INSERT on t/);
  },
  '29.33': async (t) => {
    await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO ann');
    await run(server, 'REVOKE ASSUME SERVICE ACCOUNT feed FROM ann');
    t.deepEqual(await rows(server, ADMIN, 'SHOW SERVICE ACCOUNTS ann'), []);
  },
  '29.34': async (t) => {
    await run(server, 'ADD USER ann TO ops', 'GRANT ASSUME SERVICE ACCOUNT feed TO ops');
    t.deepEqual(await names('SHOW USERS'), ['admin', 'ann']);
    t.deepEqual(await names('SHOW GROUPS'), ['ops']);
    t.deepEqual(await names('SHOW SERVICE ACCOUNTS'), ['feed']);
    t.deepEqual(await names('SHOW GROUPS ann'), ['ops']);
    t.deepEqual(
      await names('SHOW SERVICE ACCOUNTS ann'),
      ['feed'],
      'accounts assumed through the group are listed',
    );
  },
  '29.35': async (t) => {
    const password = [
      ['Password', true],
      ['JWK Token', false],
      ['REST Token', false],
    ];
    t.deepEqual(await rows(server, 'ann:p', 'SHOW USER'), password);
    t.deepEqual(await rows(server, ADMIN, 'SHOW USER ann'), password);
    t.deepEqual(await rows(server, ADMIN, 'SHOW SERVICE ACCOUNT feed'), password);
  },
  '29.36': async (t) => {
    await run(server, 'ADD USER ann TO ops', 'GRANT SELECT ON t(a) TO ops');
    const granted = ['HTTP   false', 'PGWIRE   false', 'SELECT t a false', 'SELECT t ts false'];
    t.deepEqual(await permissions('ann'), granted, 'the permissions of the group are included');
    const own = await rows(server, 'ann:p', 'SHOW PERMISSIONS');
    t.deepEqual(
      own.map(([, , , , origin]) => origin),
      ['G', 'G', 'G', 'I'],
    );
  },
};

/** Returns the current user of ann's session before and after each statement. */
async function sessionNames(...statements: readonly string[]): Promise<unknown[]> {
  await run(server, 'GRANT ASSUME SERVICE ACCOUNT feed TO ann');
  const client = pgClient(server.pg, { user: 'ann', password: 'p' });
  await client.connect();
  try {
    const found: unknown[] = [];
    for (const statement of ['SELECT 1', ...statements]) {
      await client.query(statement);
      const { rows: answer } = await client.query<{ me: string }>('SELECT current_user() me');
      found.push(answer[0]?.me);
    }
    return found;
  } finally {
    await client.end();
  }
}

const items = ITEMS.filter(({ id }) => id.startsWith(SECTION));

test.serial('every grammar form has a test', (t) => {
  t.deepEqual(
    Object.keys(FORMS),
    items.map(({ id }) => id),
  );
});

for (const { id, title } of items) {
  test.serial(`${id} ${title}`, async (t) => {
    await FORMS[id]?.(t);
  });
}
