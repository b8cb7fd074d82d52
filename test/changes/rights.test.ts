/** The permissions required to follow a table; a feed ends if one of them is lost. */
import test, { type ExecutionContext } from 'ava';

import { credentials, rows, run, startAccessServer } from '../access/harness.js';
import type { TestServer } from '../golden/server.js';
import { EventReader, type FeedRequest } from './event-reader.js';

const ADMIN = 'admin:quest';
const ANN = 'ann:first-1234';

async function start(t: ExecutionContext): Promise<TestServer> {
  const server = await startAccessServer(undefined, 'changes.heartbeat=100ms');
  t.teardown(() => server.stop());
  await run(
    server,
    'CREATE TABLE feed (x LONG, secret LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
  );
  return server;
}

async function open(
  t: ExecutionContext,
  server: TestServer,
  request: FeedRequest,
  who: string | null = ANN,
): Promise<EventReader> {
  const headers = who === null ? {} : credentials(who);
  const reader = await EventReader.open(server, { ...request, headers });
  t.teardown(() => {
    reader.close();
  });
  return reader;
}

test('a feed requires a login, the HTTP permission, and SELECT on its table', async (t) => {
  const server = await start(t);
  t.is((await open(t, server, { table: 'feed' }, null)).status, 401);
  await run(server, "CREATE USER ann WITH PASSWORD 'first-1234'");
  const all = { table: 'feed' };
  const part = { table: 'feed', columns: 'ts, x' };
  const refused = async (request: FeedRequest, status: number, why: RegExp): Promise<void> => {
    const reader = await open(t, server, request);
    t.is(reader.status, status);
    t.regex(await reader.body(), why);
  };
  t.is((await open(t, server, all)).status, 403);
  await run(server, 'GRANT HTTP TO ann');
  await refused(all, 403, /Access denied.*SELECT/);
  await run(server, 'GRANT SELECT ON feed(ts, x) TO ann');
  await refused(all, 403, /Access denied.*SELECT/);
  await refused({ ...part, where: 'secret > 0' }, 403, /Access denied.*SELECT/);
  await refused({ ...part, where: 'x IN (SELECT secret FROM feed)' }, 403, /Access denied/);
  await refused({ table: 'no_such_table' }, 403, /Access denied|does not exist/);
  const reader = await open(t, server, part);
  await reader.find('position');
  await run(server, "INSERT INTO feed VALUES (1, 2, '2024-01-01')");
  t.deepEqual((await reader.find('rows')).data.dataset, [['2024-01-01T00:00:00.000000Z', 1]]);
});

test('a feed ends and reports nothing more after its login or permission is revoked', async (t) => {
  const server = await start(t);
  const changes = [
    ["ALTER USER ann WITH PASSWORD 'another-1234'", /login is no longer valid/],
    ['ALTER USER ann DISABLE', /login is no longer valid|Access denied/],
    ['DROP USER ann', /login is no longer valid|Access denied/],
    ['REVOKE HTTP FROM ann', /Access denied/],
    ['REVOKE SELECT ON feed FROM ann', /Access denied/],
  ] as const;
  for (const [change, reason] of changes) {
    await run(
      server,
      "CREATE USER ann WITH PASSWORD 'first-1234'",
      'GRANT HTTP TO ann',
      'GRANT SELECT ON feed TO ann',
    );
    const reader = await open(t, server, { table: 'feed' });
    await reader.find('position');
    await run(server, change);
    const event = await reader.find('error');
    t.regex(event.data.error ?? '', reason, change);
    t.is(await reader.next(), null, change);
    await run(server, ...(change.startsWith('DROP') ? [] : ['DROP USER ann']));
  }
});

test('a row committed after the revoke is not reported', async (t) => {
  const server = await startAccessServer(undefined, 'changes.heartbeat=30s');
  t.teardown(() => server.stop());
  await run(
    server,
    'CREATE TABLE feed (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
    "CREATE USER ann WITH PASSWORD 'first-1234'",
    'GRANT HTTP TO ann',
    'GRANT SELECT ON feed TO ann',
  );
  const reader = await open(t, server, { table: 'feed' });
  await reader.find('position');
  await run(server, 'REVOKE SELECT ON feed FROM ann', "INSERT INTO feed VALUES (1, '2024-01-01')");
  const event = await reader.next();
  t.is(event?.name, 'error');
  t.regex(event?.data.error ?? '', /Access denied/);
});

test('an API token can open a feed, and dropping the token ends the feed', async (t) => {
  const server = await start(t);
  await run(server, 'CREATE USER ann', 'GRANT HTTP TO ann', 'GRANT SELECT ON feed TO ann');
  const created = await rows(server, ADMIN, "ALTER USER ann CREATE TOKEN TYPE REST WITH TTL '1h'");
  const token = String(created[0]?.find((cell) => String(cell).startsWith('tdm_')));
  const reader = await open(t, server, { table: 'feed' }, token);
  await reader.find('position');
  await run(server, `ALTER USER ann DROP TOKEN TYPE REST '${token}'`);
  t.regex((await reader.find('error')).data.error ?? '', /login is no longer valid/);
});
