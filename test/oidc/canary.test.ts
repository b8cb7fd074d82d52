/**
 * Sign-on secrets must not appear anywhere: log, metrics, audit log, running queries, responses.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { TestProvider } from './provider.js';
import { pgClient } from '../pg-client.js';

const CANARY = 'canary4711';
const PASSWORD = `pass-${CANARY}`;

test('tokens, passwords and cookies appear in no log or file', async (t) => {
  const provider = await TestProvider.start();
  t.teardown(() => provider.close());
  provider.addPerson('jo', { groups: ['writers'], password: PASSWORD });
  const set = [
    'acl.enabled=true',
    'metrics.enabled=true',
    'log.level=debug',
    ...provider.settings(
      'acl.oidc.ropc.flow.enabled=true',
      'acl.oidc.pg.token.as.password.enabled=true',
      'acl.oidc.cache.ttl=0',
    ),
  ];
  const server = await startTestServer({ set });
  t.teardown(() => server.stop());
  const answers: string[] = [];
  const cookies: string[] = [];
  const exec = async (
    query: string,
    headers: Record<string, string>,
    more = '',
  ): Promise<number> => {
    const address = `${server.url}/exec?query=${encodeURIComponent(query)}${more}`;
    const response = await fetch(address, { headers });
    answers.push(await response.text());
    cookies.push(response.headers.get('set-cookie')?.split(/[=;]/)[1] ?? '');
    return response.status;
  };
  const basic = (user: string, password: string): Record<string, string> => ({
    Authorization: `Basic ${btoa(`${user}:${password}`)}`,
  });
  const admin = basic('admin', 'quest');
  await exec("create group readers with external alias 'writers'", admin);
  t.is(await exec('grant http to readers', admin), 200);
  t.is(await exec('grant pgwire to readers', admin), 200);

  const { access, id } = await provider.token('jo', PASSWORD);
  const bearer = { Authorization: `Bearer ${access}` };
  t.is(await exec('select 1', bearer, '&session=true'), 200);
  t.is(await exec('select 1', basic('jo', PASSWORD)), 200);
  t.is(await exec('select 1', basic('jo', `wrong-${CANARY}`)), 401);
  t.is(await exec('select 1', { Authorization: `Bearer ${CANARY}` }), 401);
  t.is(await exec('select 1', { Authorization: `Bearer ${id}` }), 401);
  t.is(await exec('select 1', {}, `&access_token=${access}`), 401);
  t.is(await exec('select nonsense', bearer), 400);
  provider.faults.set('/me', { kind: 'answer', status: 500, type: 'text/plain', body: CANARY });
  t.is(await exec('select 1', bearer), 503);
  provider.faults.clear();
  const client = pgClient(server.pg, { user: '_sso', password: access });
  await client.connect();
  await client.query('select query from query_activity()').then(
    ({ rows }) => answers.push(JSON.stringify(rows)),
    () => undefined,
  );
  await client.end();
  answers.push(await (await fetch(`${server.url}/metrics`, { headers: admin })).text());

  const files = readdirSync(server.root, { recursive: true, encoding: 'utf8' })
    .map((name) => join(server.root, name))
    .filter((name) => statSync(name).isFile())
    .map((name) => readFileSync(name, 'latin1'));
  const written = [server.log(), ...answers, ...files];
  const cookie = cookies.find((value) => value !== '') ?? '';
  t.regex(cookie, /^[\w-]{43}$/);
  for (const secret of [CANARY, access, id, cookie, btoa(`jo:${PASSWORD}`)]) {
    t.deepEqual(written.filter((text) => text.includes(secret)).length, 0, secret.slice(0, 12));
  }
  t.true(server.log().includes('provider_unavailable'), 'the log contains the event itself');
});
