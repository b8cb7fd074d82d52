/** LISTEN: notifications of commits and of other sessions, through ordinary clients. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { pgClient } from '../pg-client.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { startAccessServer, run as administer } from '../access/harness.js';
import { run } from '../scenario/statements.js';
import { until } from '../until.js';

interface Reported {
  readonly table: string;
  readonly txn: number;
  readonly kind: string;
  readonly rows: number | null;
  readonly from: string | null;
  readonly to: string | null;
  readonly error?: string;
}

interface Client {
  readonly client: pg.Client;
  readonly heard: pg.Notification[];
}

async function connect(
  t: ExecutionContext,
  { pg: address }: TestServer,
  user = 'admin',
  password = 'quest',
): Promise<Client> {
  const client = pgClient(address, { user, password });
  const heard: pg.Notification[] = [];
  client.on('notification', (one) => heard.push(one));
  client.on('error', () => undefined);
  await client.connect();
  t.teardown(() => client.end().catch(() => undefined));
  return { client, heard };
}

function reported({ heard }: Client): Reported[] {
  return heard.map(({ payload }) => JSON.parse(payload ?? '') as Reported);
}

const TABLE = 'CREATE TABLE Trades (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY WAL';

test('a channel named after a table reports each commit and its changes', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  await run(server, TABLE, "INSERT INTO trades VALUES ('2023-01-01', 0)");
  const one = await connect(t, server);
  await one.client.query('LISTEN trades');
  await run(server, "INSERT INTO trades VALUES ('2024-01-02', 1), ('2024-01-01', 2)");
  await until(() => one.heard.length === 1, 'a commit');
  await run(server, 'UPDATE trades SET x = 3 WHERE x = 1');
  await until(() => one.heard.length === 2, 'the update is reported');
  const [added, changed] = reported(one);
  t.like(added, {
    table: 'Trades',
    kind: 'rows',
    rows: 2,
    from: '2024-01-01T00:00:00.000000Z',
    to: '2024-01-02T00:00:00.000000Z',
  });
  t.like(changed, { kind: 'range', rows: null, from: added?.to, to: added?.to });
  t.true((changed?.txn ?? 0) > (added?.txn ?? 0));
  t.like(one.heard[0], { channel: 'trades', processId: 0 });
  // Inside a block, notifications are delivered when the block ends.
  await one.client.query('BEGIN');
  await run(server, "INSERT INTO trades VALUES ('2024-01-03', 4)");
  await one.client.query('SELECT 1');
  t.is(one.heard.length, 2);
  await one.client.query('COMMIT');
  await until(() => one.heard.length === 3, 'the commit during the block is reported');
  // A session is also notified of its own commits.
  await one.client.query("INSERT INTO trades VALUES ('2024-01-04', 5)");
  await until(() => one.heard.length === 4, "the session's own commit is reported");
  await one.client.query('UNLISTEN trades');
  await run(server, "INSERT INTO trades VALUES ('2024-01-05', 6)");
  await one.client.query('LISTEN trades');
  await run(server, 'DROP TABLE trades');
  await until(
    () => reported(one).some(({ error }) => error !== undefined),
    'the end of the feed is reported',
  );
  t.is(one.heard.length, 5, 'no notification between UNLISTEN and LISTEN');
});

test('sessions can exchange messages with NOTIFY', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const [one, two] = [await connect(t, server), await connect(t, server)];
  await one.client.query('LISTEN jobs; LISTEN "Odd one"');
  await two.client.query("NOTIFY jobs, 'it''s'; NOTIFY \"Odd one\"; NOTIFY other, 'x'");
  await until(() => one.heard.length === 2, 'both notifications arrive');
  const pid = (two.client as unknown as { processID: number }).processID;
  t.deepEqual(
    one.heard.map(({ channel, payload, processId }) => [channel, payload, processId]),
    [
      ['jobs', "it's", pid],
      ['Odd one', '', pid],
    ],
  );
  for (const end of ['ROLLBACK', 'COMMIT']) {
    await two.client.query(`BEGIN; NOTIFY jobs, '${end}'`);
    await one.client.query('SELECT 1');
    t.is(one.heard.length, 2);
    await two.client.query(end);
  }
  await until(() => one.heard.length === 3, 'the commit is reported');
  t.is(one.heard[2]?.payload, 'COMMIT');
  await one.client.query('DISCARD ALL');
  await two.client.query("NOTIFY jobs, 'unheard'");
  await one.client.query('SELECT 1');
  t.is(one.heard.length, 3);
  await t.throwsAsync(two.client.query(`NOTIFY jobs, '${'x'.repeat(8_000)}'`), { code: '22023' });
  await t.throwsAsync(two.client.query(`LISTEN ${'x'.repeat(64)}`), { code: '22023' });
});

test('a listening connection does not time out, and can be closed normally', async (t) => {
  const server = await startTestServer({ set: ['pg.net.connection.timeout=1s'] });
  t.teardown(() => server.stop());
  await run(server, TABLE);
  const one = await connect(t, server);
  await one.client.query('LISTEN trades');
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  await run(server, "INSERT INTO trades VALUES ('2024-01-02', 1)");
  await until(() => one.heard.length === 1, 'the commit after the idle period is reported');
  const ended = new Promise((resolve) => one.client.once('end', resolve));
  await one.client.query('UNLISTEN *');
  await ended;
  const two = await connect(t, server);
  await two.client.query('LISTEN trades');
  t.is(await server.stop(), 0);
});

test('notifications about a table require SELECT on it', async (t) => {
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  await administer(
    server,
    TABLE,
    "CREATE USER ann WITH PASSWORD 'first-1234'",
    'GRANT PGWIRE TO ann',
  );
  const ann = await connect(t, server, 'ann', 'first-1234');
  await ann.client.query('LISTEN trades; LISTEN done');
  await administer(server, "INSERT INTO trades VALUES ('2024-01-02', 1)");
  const admin = await connect(t, server);
  await admin.client.query('NOTIFY done');
  await until(() => ann.heard.length > 0, 'a message');
  t.is(ann.heard[0]?.channel, 'done', 'the commit to the table is not reported');
  await administer(server, 'GRANT SELECT ON trades TO ann');
  await ann.client.query('UNLISTEN trades; LISTEN trades');
  await administer(server, "INSERT INTO trades VALUES ('2024-01-03', 1)");
  await until(() => ann.heard.length === 2, 'a commit');
  await administer(server, 'REVOKE SELECT ON trades FROM ann');
  await administer(server, "INSERT INTO trades VALUES ('2024-01-04', 1)");
  await until(() => ann.heard.length === 3, 'the end of the feed is reported');
  t.regex(reported({ ...ann, heard: ann.heard.slice(2) })[0]?.error ?? '', /Access denied/);
});

test('psycopg receives notifications through notifies()', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  await run(server, TABLE);
  const port = server.pg.split(':')[1] ?? '';
  const program = `
import json, psycopg
of = "host=127.0.0.1 port=${port} user=admin password=quest dbname=qdb"
one, two = psycopg.connect(of, autocommit=True), psycopg.connect(of, autocommit=True)
one.execute("LISTEN trades")
for x in range(50):
    two.execute("INSERT INTO trades VALUES (%s::timestamp, %s)", (f"2024-01-01T00:00:{x:02}Z", x))
rows = 0
for heard in one.notifies(timeout=30):
    rows += json.loads(heard.payload)["rows"]
    if rows == 50:
        break
print(rows)
`;
  const { stdout } = await promisify(execFile)('python3', ['-c', program]);
  t.is(stdout.trim(), '50');
});
