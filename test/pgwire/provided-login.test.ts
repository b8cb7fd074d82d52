/** External users over the wire protocol: tokens and passwords, and their expiry. */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { TestProvider } from '../oidc/provider.js';
import { CertificateFolder } from '../tls/certificates.js';
import { until } from '../until.js';
import { pgClient } from '../pg-client.js';

const TOKENS = 'acl.oidc.pg.token.as.password.enabled=true';
const PASSWORDS = 'acl.oidc.ropc.flow.enabled=true';

interface Place {
  readonly provider: TestProvider;
  readonly server: TestServer;
  readonly connect: (user: string, password: string, more?: pg.ClientConfig) => Promise<pg.Client>;
}

async function placeFor(t: ExecutionContext, ...set: readonly string[]): Promise<Place> {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  provider.addPerson('jo', { groups: ['writers'] });
  provider.addPerson('al');
  const server = await startTestServer({
    set: ['acl.enabled=true', ...provider.settings('acl.oidc.cache.ttl=200ms', ...set)],
  });
  t.teardown(() => server.stop());
  const connect: Place['connect'] = async (user, password, more = {}) => {
    const client = pgClient(server.pg, { user, password, ...more });
    client.on('error', () => undefined);
    t.teardown(() => client.end().catch(() => undefined));
    await client.connect();
    return client;
  };
  const admin = await connect('admin', 'quest');
  await admin.query('create table prices (x int)');
  await admin.query('insert into prices values (7)');
  await admin.query("create group readers with external alias 'writers'");
  await admin.query('grant pgwire to readers');
  await admin.query('grant select on all tables to readers');
  return { provider, server, connect };
}

async function isRefused(t: ExecutionContext, work: Promise<unknown>, code: string): Promise<void> {
  const error = await t.throwsAsync<Error & { code?: string }>(work);
  t.is(error.code, code, error.message);
}

test('user _sso logs in with a token as the password', async (t) => {
  const { provider, connect } = await placeFor(t, TOKENS);
  const { access } = await provider.token('jo');
  const jo = await connect('_sso', access);
  t.deepEqual((await jo.query('select x from prices')).rows, [{ x: 7 }]);
  await isRefused(t, jo.query('insert into prices values (8)'), '42501');
  await isRefused(t, connect('_sso', 'nonsense'), '28P01');
  await isRefused(t, connect('_sso', 'x'.repeat(60_000)), '28P01');
  await isRefused(t, connect('jo', 'secret'), '28P01');
  await isRefused(t, connect('_sso', (await provider.token('al')).access), '42501');
});

test('tokens are refused as passwords by default', async (t) => {
  const { provider, connect } = await placeFor(t);
  await isRefused(t, connect('_sso', (await provider.token('jo')).access), '28P01');
  t.is(provider.count('/me'), 0);
});

test('provider passwords are accepted when enabled', async (t) => {
  const { provider, connect } = await placeFor(t, PASSWORDS);
  const jo = await connect('jo', 'secret');
  t.deepEqual((await jo.query('select current_user() who')).rows, [{ who: 'jo' }]);
  await isRefused(t, connect('jo', 'wrong'), '28P01');
  await isRefused(t, connect('nobody', 'wrong'), '28P01');
  const requests = provider.count('/token');
  await isRefused(t, connect('admin', 'secret'), '28P01');
  t.is(provider.count('/token'), requests, 'passwords of local users are not sent to the provider');
});

test('password guessing is throttled', async (t) => {
  const { provider, connect } = await placeFor(t, PASSWORDS);
  for (let round = 0; round < 10; round += 1) {
    await isRefused(t, connect('jo', `guess ${round}`), '28P01');
  }
  const requests = provider.count('/token');
  await isRefused(t, connect('jo', 'secret'), '28000');
  t.is(provider.count('/token'), requests);
});

test('once the cache expires, a session is verified with the provider again', async (t) => {
  const { provider, connect } = await placeFor(t, TOKENS);
  const jo = await connect('_sso', (await provider.token('jo')).access);
  provider.faults.set('/me', {
    kind: 'answer',
    status: 500,
    type: 'text/plain',
    body: '',
  });
  const isRefusedNow = (): Promise<boolean> =>
    jo.query('select x from prices').then(
      () => false,
      () => true,
    );
  await until(isRefusedNow, 'the cached response has expired');
  await isRefused(t, jo.query('select x from prices'), '57P03');
  await isRefused(t, jo.query('select x from prices where x = $1', [7]), '57P03');
  provider.faults.clear();
  t.is(
    (await jo.query('select x from prices where x = $1', [7])).rowCount,
    1,
    'the session was not ended',
  );

  provider.setGroups('jo', ['others']);
  await until(isRefusedNow, 'the group was removed');
  await isRefused(t, connect('_sso', (await provider.token('jo')).access), '42501');

  provider.setGroups('jo', ['writers']);
  const again = await connect('_sso', (await provider.token('jo')).access);
  provider.users.delete('jo');
  let code: unknown;
  await until(
    () =>
      again.query('select x from prices').then(
        () => false,
        (error: unknown) => {
          code = (error as { code?: string }).code;
          return true;
        },
      ),
    "jo's session ends",
  );
  t.is(code, '28000');
});

test('tokens are accepted only over encrypted connections', async (t) => {
  const folder = new CertificateFolder();
  t.teardown(() => {
    folder.remove();
  });
  folder.make('server');
  const { provider, connect } = await placeFor(t, TOKENS, ...folder.settings('server'));
  const { access } = await provider.token('jo');
  const jo = await connect('_sso', access, {
    ssl: { rejectUnauthorized: false },
  });
  t.is((await jo.query('select x from prices')).rowCount, 1);
});
