/**
 * A columnar protocol login ends when its user, password or permission is removed, even on an open
 * connection.
 */
import test, { type ExecutionContext } from 'ava';

import { credentials, rows, run, startAccessServer } from '../access/harness.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { Refused, WebSocketClient } from '../http/websocket-client.js';
import { TestProvider } from '../oidc/provider.js';
import { until } from '../until.js';
import { answer, FLAG, message, row, STATUS } from './messages.js';
import { ReadClient } from './read-client.js';

const ADMIN = 'admin:quest';

async function start(t: ExecutionContext, ...set: readonly string[]): Promise<TestServer> {
  const server = await startAccessServer(undefined, ...set);
  t.teardown(() => server.stop());
  await run(server, 'CREATE TABLE feed (x LONG, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
  return server;
}

function portOf({ url }: TestServer): number {
  return Number(new URL(url).port);
}

/** A user's two connections, and the messages sent over them so far. */
class Both {
  readonly writer: WebSocketClient;
  readonly reader: ReadClient;
  #queries = 0;

  private constructor(writer: WebSocketClient, reader: ReadClient) {
    this.writer = writer;
    this.reader = reader;
  }

  static async open(
    t: ExecutionContext,
    server: TestServer,
    headers: Record<string, string>,
  ): Promise<Both> {
    const port = portOf(server);
    const writer = await WebSocketClient.open(port, '/write/v4', { headers });
    t.teardown(() => writer.socket.destroy());
    const reader = await ReadClient.open(port, headers);
    t.teardown(() => {
      reader.close();
    });
    return new Both(writer, reader);
  }

  async write(x: number): ReturnType<typeof answer> {
    this.writer.send(message(0, 1, row('feed', x)));
    return await answer(this.writer);
  }

  async read(): Promise<{ readonly kind: string; readonly status?: number; text?: string }> {
    this.#queries += 1;
    return (await this.reader.query(this.#queries, 'SELECT x FROM feed')).last;
  }
}

const GRANTS = ['GRANT HTTP TO ann', 'GRANT INSERT, SELECT ON feed TO ann'];
const ENDED = 'the login is no longer valid: log in again';

test('a connection ends when its password, user or permission is removed', async (t) => {
  const server = await start(t);
  const changes = [
    ["ALTER USER ann WITH PASSWORD 'another-1234'", ENDED],
    ['ALTER USER ann WITH NO PASSWORD', ENDED],
    ['ALTER USER ann DISABLE', ENDED],
    ['DROP USER ann', ENDED],
    ['REVOKE HTTP FROM ann', 'Access denied [HTTP]'],
  ] as const;
  for (const [index, [change, reason]] of changes.entries()) {
    await run(server, "CREATE USER ann WITH PASSWORD 'first-1234'", ...GRANTS);
    const ann = await Both.open(t, server, credentials('ann:first-1234'));
    t.like(await ann.write(index), { status: STATUS.ok, sequence: 0 }, change);
    t.like(await ann.read(), { kind: 'end' }, change);
    // Uncommitted rows are lost with the connection.
    ann.writer.send(message(FLAG.defer, 1, row('feed', -1)));
    await run(server, change);
    const refused = { status: STATUS.securityError, sequence: 2, reason };
    t.deepEqual(await ann.write(-2), refused, change);
    t.is(await ann.writer.receiveClose(), 1011, change);
    t.like(await ann.read(), { kind: 'error', status: STATUS.securityError, text: reason }, change);
    await run(server, ...(change.startsWith('DROP') ? [] : ['DROP USER ann']));
  }
  const written = await rows(server, ADMIN, 'SELECT x FROM feed ORDER BY x');
  t.deepEqual(written, [[0], [1], [2], [3], [4]]);
});

test('a connection ends when its token is dropped', async (t) => {
  const server = await start(t);
  await run(server, 'CREATE USER ann', ...GRANTS);
  const created = await rows(server, ADMIN, "ALTER USER ann CREATE TOKEN TYPE REST WITH TTL '1h'");
  const token = String(created[0]?.find((cell) => String(cell).startsWith('tdm_')));
  const ann = await Both.open(t, server, credentials(token));
  t.like(await ann.write(1), { status: STATUS.ok });
  await run(server, `ALTER USER ann DROP TOKEN TYPE REST '${token}'`);
  t.like(await ann.write(2), { status: STATUS.securityError, reason: ENDED });
  t.like(await ann.read(), { kind: 'error', status: STATUS.securityError, text: ENDED });
  t.deepEqual(await rows(server, ADMIN, 'SELECT x FROM feed'), [[1]]);
});

test('a connection ends when its provider login ends; outages are temporary errors', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  const server = await start(t, ...provider.settings('acl.oidc.cache.ttl=0'));
  provider.addPerson('jo', { groups: ['writers'] });
  await run(
    server,
    'CREATE GROUP writers WITH EXTERNAL ALIAS writers',
    'GRANT HTTP TO writers',
    'GRANT INSERT, SELECT ON feed TO writers',
  );
  const { access } = await provider.token('jo');
  const headers = { authorization: `Bearer ${access}` };
  const first = await Both.open(t, server, headers);
  t.like(await first.write(1), { status: STATUS.ok });
  provider.faults.set('/me', { kind: 'answer', status: 500, type: 'text/html', body: '' });
  // Clients retry after this status, whereas a permanent refusal would make them stop.
  t.like(await first.write(2), { status: STATUS.writeError });
  t.like(await first.read(), { kind: 'error', status: STATUS.limitExceeded });
  provider.faults.delete('/me');
  await until(async () => {
    const status = await fetch(`${server.url}/exec?query=SELECT+1`, { headers });
    return status.status === 200;
  }, 'the provider is called again');
  const second = await Both.open(t, server, headers);
  t.like(await second.write(3), { status: STATUS.ok });
  provider.users.delete('jo');
  t.like(await second.write(4), { status: STATUS.securityError });
  t.like(await second.read(), { kind: 'error', status: STATUS.securityError });
  const refused = await t.throwsAsync(Both.open(t, server, headers), { instanceOf: Refused });
  t.is(refused.status, 401);
  t.deepEqual(await rows(server, ADMIN, 'SELECT x FROM feed ORDER BY x'), [[1], [3]]);
});

test('provider passwords are accepted when enabled', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  const server = await start(t, ...provider.settings('acl.oidc.ropc.flow.enabled=true'));
  provider.addPerson('jo', { groups: ['writers'] });
  await run(
    server,
    'CREATE GROUP writers WITH EXTERNAL ALIAS writers',
    'GRANT HTTP TO writers',
    'GRANT INSERT, SELECT ON feed TO writers',
  );
  const basic = (password: string) => ({
    authorization: `Basic ${Buffer.from(`jo:${password}`).toString('base64')}`,
  });
  const jo = await Both.open(t, server, basic('secret'));
  t.like(await jo.write(1), { status: STATUS.ok });
  const lines = { method: 'POST', headers: basic('secret'), body: 'feed x=2i' };
  t.is((await fetch(`${server.url}/write`, lines)).status, 204);
  for (const path of ['/write', '/api/v2/write']) {
    const refused = { ...lines, headers: basic('wrong') };
    t.is((await fetch(`${server.url}${path}`, refused)).status, 401, path);
  }
  const refused = await t.throwsAsync(Both.open(t, server, basic('wrong')), {
    instanceOf: Refused,
  });
  t.is(refused.status, 401);
  t.deepEqual(await rows(server, ADMIN, 'SELECT x FROM feed ORDER BY x'), [[1], [2]]);
});

test('without access control, connections need no login and do not expire', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const anyone = await Both.open(t, server, {});
  t.like(await anyone.write(1), { status: STATUS.ok });
  t.like(await anyone.read(), { kind: 'end' });
});
