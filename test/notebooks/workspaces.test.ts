/**
 * Workspaces of console users on the server: who owns them, which changes take precedence, and
 * limits.
 */
import { once } from 'node:events';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

interface Workspace {
  readonly id: string;
  readonly key: string;
  readonly entries: Record<string, unknown>;
  readonly error?: string;
}

async function serverWith(
  t: ExecutionContext,
  set: readonly string[],
  root?: string,
): Promise<TestServer> {
  const options = { set: ['acl.enabled=true', ...set], ...(root === undefined ? {} : { root }) };
  const server = await startTestServer(options);
  t.teardown(() => server.stop());
  return server;
}

async function send(
  { url }: TestServer,
  login: string,
  changes?: { readonly id: string; readonly body: string },
): Promise<{ status: number; body: Workspace }> {
  const address = `${url}/api/v1/workspace${changes ? `?id=${changes.id}` : ''}`;
  const response = await fetch(address, {
    method: changes ? 'POST' : 'GET',
    headers: login === '' ? {} : { Authorization: `Basic ${btoa(login)}` },
    ...(changes ? { body: changes.body } : {}),
  });
  const text = await response.text();
  const body = text.startsWith('{') ? (JSON.parse(text) as Workspace) : undefined;
  return { status: response.status, body: body ?? { id: '', key: '', entries: {}, error: text } };
}

async function addUser({ url }: TestServer, name: string): Promise<void> {
  for (const statement of [`CREATE USER ${name} WITH PASSWORD 'p'`, `GRANT HTTP TO ${name}`]) {
    const headers = { Authorization: `Basic ${btoa('admin:quest')}` };
    await fetch(`${url}/exec?query=${encodeURIComponent(statement)}`, { headers });
  }
}

const putting = (name: string, entry: object): string =>
  JSON.stringify({ put: { [name]: entry }, remove: [] });

test('only its owner can access a workspace, and the latest change wins', async (t) => {
  const server = await serverWith(t, []);
  await addUser(server, 'ann');
  const { body: own } = await send(server, 'ann:p');
  t.deepEqual(own.entries, {});
  t.is(Buffer.from(own.key, 'base64').length, 32);
  const save = (entry: object, login = 'ann:p'): Promise<{ status: number; body: Workspace }> =>
    send(server, login, { id: own.id, body: putting('tab/1', entry) });
  t.is((await save({ changed: 20, tab: 'later' })).status, 200);
  t.is((await save({ changed: 10, tab: 'earlier' })).status, 200);
  t.deepEqual((await send(server, 'ann:p')).body, {
    ...own,
    entries: { 'tab/1': { changed: 20, tab: 'later' } },
  });
  // The administrator has their own workspace, which a page opened by ann cannot write to.
  const { body: admins } = await send(server, 'admin:quest');
  t.deepEqual(admins.entries, {});
  t.not(admins.key, own.key);
  t.is((await save({ changed: 30 }, 'admin:quest')).status, 403);
  t.deepEqual((await send(server, 'admin:quest')).body.entries, {});
  t.is((await send(server, '')).status, 401);
  const removal = { id: own.id, body: JSON.stringify({ put: {}, remove: ['tab/1'] }) };
  t.is((await send(server, 'ann:p', removal)).status, 200);
  t.deepEqual((await send(server, 'ann:p')).body, own);
});

test('a user re-created under an old name has an empty workspace', async (t) => {
  const server = await serverWith(t, []);
  await addUser(server, 'ann');
  const { body: first } = await send(server, 'ann:p');
  await send(server, 'ann:p', { id: first.id, body: putting('tab/1', { changed: 1 }) });
  const headers = { Authorization: `Basic ${btoa('admin:quest')}` };
  await fetch(`${server.url}/exec?query=${encodeURIComponent('DROP USER ann')}`, { headers });
  await addUser(server, 'ann');
  const { body: second } = await send(server, 'ann:p');
  t.deepEqual(second.entries, {});
  t.not(second.id, first.id);
});

test('invalid workspace changes are refused', async (t) => {
  const server = await serverWith(t, []);
  const { body: own } = await send(server, 'admin:quest');
  const bodies = [
    '',
    'null',
    '[]',
    '{}',
    '{"put":[],"remove":[]}',
    '{"put":{},"remove":[1]}',
    '{"put":{"tab/1":null},"remove":[]}',
    '{"put":{"tab/1":{"changed":-1}},"remove":[]}',
    '{"put":{"tab/1":{"changed":1.5}},"remove":[]}',
    '{"put":{"tab/1":{"changed":"1"}},"remove":[]}',
    ...['identity', 'tab/', 'tab/a/b', '../x', 'tab/\u0000', `tab/${'x'.repeat(81)}`].map((name) =>
      putting(name, { changed: 1 }),
    ),
    '{"put":{},"remove":["identity"]}',
  ];
  for (const body of bodies) {
    t.is((await send(server, 'admin:quest', { id: own.id, body })).status, 400, body);
  }
  t.deepEqual((await send(server, 'admin:quest')).body, own);
});

test('a full workspace evicts log entries before drafts and survives a restart', async (t) => {
  const limits = [
    'workspace.max.user.size=8K',
    'workspace.max.total.size=12K',
    'http.security.readonly=true',
  ];
  const server = await startTestServer({ set: ['acl.enabled=true', ...limits] });
  t.teardown(() => server.stop());
  const { body: own } = await send(server, 'admin:quest');
  // Random text that barely compresses.
  let seed = 1;
  const text = (length: number): string =>
    Array.from({ length }, () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return String.fromCharCode(33 + (seed % 90));
    }).join('');
  const save = async (name: string, length: number, changed: number): Promise<number> =>
    (
      await send(server, 'admin:quest', {
        id: own.id,
        body: putting(name, { changed, text: text(length) }),
      })
    ).status;
  for (let entry = 1; entry <= 6; entry += 1) {
    t.is(await save(`log/${entry}`, 1000, entry), 200);
  }
  t.is(await save('tab/1', 4000, 7), 200);
  const { entries } = (await send(server, 'admin:quest')).body;
  t.true('tab/1' in entries && 'log/6' in entries && !('log/1' in entries));
  t.is(await save('tab/2', 9000, 8), 507);
  t.deepEqual((await send(server, 'admin:quest')).body.entries, entries);
  const ended = once(server.process, 'exit');
  server.process.kill('SIGKILL');
  await ended;
  const restarted = await serverWith(t, limits, server.root);
  t.deepEqual((await send(restarted, 'admin:quest')).body, { ...own, entries });
});
