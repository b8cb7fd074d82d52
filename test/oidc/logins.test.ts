/** Logins over HTTP with a real provider. */
import { execFile } from 'node:child_process';
import { Agent, get } from 'node:http';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

import { createAuthenticator, IdentityProvider } from '../../ts/auth/index.js';
import { createLogger } from '../../ts/observability/index.js';
import { SILENT } from '../silent.js';
import { type Harness, sendRaw, startHarness } from '../http/harness.js';
import { until } from '../until.js';
import { discovery, FakeDirectory, FakeTransport, settingsOf } from './fakes.js';
import { TestProvider } from './provider.js';

const OWN_PAGE = { 'Sec-Fetch-Site': 'same-origin' };

interface Setup {
  readonly provider: TestProvider;
  readonly directory: FakeDirectory;
  readonly harness: Harness;
  readonly lines: string[];
  exec(headers: Record<string, string>, parameters?: string): Promise<Response>;
  close(): Promise<void>;
}

/** Starts a server that is closed at the end of the test. */
async function setupFor(t: ExecutionContext, ...set: readonly string[]): Promise<Setup> {
  const here = await setup(...set);
  t.teardown(() => here.close());
  return here;
}

async function setup(...set: readonly string[]): Promise<Setup> {
  const provider = await TestProvider.start();
  provider.addPerson('jo', { groups: ['writers'] });
  provider.addPerson('al');
  const directory = new FakeDirectory();
  directory.setPassword('ann', 'pä:ss');
  directory.tokens.set('tdm_abc', 'ann');
  const lines: string[] = [];
  const logger = createLogger({ level: 'debug', write: (line) => lines.push(line) });
  const settings = settingsOf(...provider.settings(...set));
  const authenticator = createAuthenticator({
    directory,
    provider: new IdentityProvider(settings, logger),
    basicRealm: set.includes('acl.basic.auth.realm.enabled=true'),
  });
  const harness = await startHarness({ authenticator });
  return {
    provider,
    directory,
    harness,
    lines,
    exec: async (headers, parameters = '') => {
      const response = await fetch(`${harness.url}/exec?query=rows+1${parameters}`, { headers });
      await response.clone().text();
      return response;
    },
    close: async () => {
      await harness.server.close();
      await provider.close();
    },
  };
}

const basic = (user: string, password: string): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
});
const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

let usual: Setup;
test.before(async () => {
  usual = await setup();
  await usual.exec(bearer((await usual.provider.token('jo')).access));
});
test.after.always(() => usual.close());

test('a provider token logs its user in', async (t) => {
  const { access } = await usual.provider.token('jo');
  const response = await usual.exec(bearer(access));
  t.is(response.status, 200);
  t.is(response.headers.get('cache-control'), 'no-store');
  t.is((await usual.exec({ Authorization: `bEARER ${access}` })).status, 200);
});

test('curl logs in with a token', async (t) => {
  const { access } = await usual.provider.token('jo');
  const { stdout } = await promisify(execFile)('curl', [
    '-s',
    '-H',
    `Authorization: Bearer ${access}`,
    `${usual.harness.url}/exec?query=rows+1`,
  ]);
  t.regex(stdout, /"count":1/);
});

test('a user without groups is authenticated but has no rights', async (t) => {
  const { access } = await usual.provider.token('al');
  const response = await usual.exec(bearer(access));
  t.is(response.status, 403);
  t.is(response.headers.get('www-authenticate'), null);
  t.deepEqual(await response.json(), {
    query: 'rows 1',
    error: 'Access denied [HTTP]',
    position: 0,
  });
});

test('missing credentials get a challenge, and invalid credentials get an error', async (t) => {
  const challenge = async (headers: Record<string, string>): Promise<string> => {
    const response = await usual.exec(headers);
    t.is(response.status, 401);
    return response.headers.get('www-authenticate') ?? '';
  };
  t.is(await challenge({}), 'Bearer realm="tidemark"');
  t.is(
    await challenge(bearer('nonsense')),
    'Bearer realm="tidemark", error="invalid_token", ' +
      'error_description="unknown, expired or revoked token"',
  );
  t.regex(await challenge(bearer('tdm_unknown')), /error="invalid_token"/);
  const wrong = await challenge(basic('ann', 'guess'));
  t.is(wrong, await challenge(basic('nobody', 'guess')), 'both errors have the same text');
  for (const value of [
    '',
    'Bearer',
    'Basic',
    'Basic !!!',
    'Bearer a b',
    'Digest x',
    'Basic YQ==',
  ]) {
    t.regex(await challenge({ Authorization: value }), /^Bearer realm/, value);
  }
});

test('two Authorization headers are refused', async (t) => {
  const { access } = await usual.provider.token('jo');
  const line = `Authorization: Bearer ${access}`;
  const head = ['GET /exec?query=rows+1 HTTP/1.1', 'Host: x', 'Connection: close', line, line];
  const answer = await sendRaw(usual.harness.port, `${head.join('\r\n')}\r\n\r\n`);
  t.regex(answer, /^HTTP\/1\.1 400 /);
  t.regex(answer, /WWW-Authenticate: Bearer realm="tidemark", error="invalid_request"/i);
});

test('a token in the URL is ignored and not logged', async (t) => {
  const { access } = await usual.provider.token('jo');
  for (const name of ['access_token', 'token', 'Authorization']) {
    t.is((await usual.exec({}, `&${name}=${access}`)).status, 401);
  }
  t.false(usual.lines.join('').includes(access));
});

test('names and passwords are UTF-8, and passwords may contain colons', async (t) => {
  t.is((await usual.exec(basic('ann', 'pä:ss'))).status, 200);
  t.is((await usual.exec(basic('ann', 'pä'))).status, 401);
  t.is((await usual.exec(basic('', ''))).status, 401);
});

test('if configured, programs but not browsers get a password challenge', async (t) => {
  const here = await setupFor(t, 'acl.basic.auth.realm.enabled=true');
  const query = async (...lines: readonly string[]): Promise<boolean> => {
    const head = ['GET /exec?query=rows+1 HTTP/1.1', 'Host: x', 'Connection: close', ...lines];
    const answer = await sendRaw(here.harness.port, `${head.join('\r\n')}\r\n\r\n`);
    return /^WWW-Authenticate: Basic realm=/im.test(answer);
  };
  t.true(await query());
  t.false(await query('Accept: text/html'));
  t.false(await query('Sec-Fetch-Site: same-origin'));
});

test('tokens issued by this database are checked locally', async (t) => {
  const here = await setupFor(t);
  t.is((await here.exec(bearer('tdm_abc'))).status, 200);
  t.is(here.provider.count('/me'), 0);
});

test('a verified password is not checked again until it changes', async (t) => {
  const here = await setupFor(t);
  for (let round = 0; round < 5; round += 1) {
    t.is((await here.exec(basic('ann', 'pä:ss'))).status, 200);
  }
  t.is(here.directory.checks, 1);
  here.directory.setPassword('ann', 'new');
  t.is((await here.exec(basic('ann', 'pä:ss'))).status, 401);
  t.is((await here.exec(basic('ann', 'new'))).status, 200);
  here.directory.passwords.delete('ann');
  t.is((await here.exec(basic('ann', 'new'))).status, 401);
});

test('a thousand requests with one new token call the provider once', async (t) => {
  const here = await setupFor(t);
  const { access } = await here.provider.token('jo');
  here.provider.faults.set('/me', { kind: 'delay', ms: 50 });
  // A busy machine cannot open a thousand connections within the time limit.
  const agent = new Agent({ keepAlive: true, maxSockets: 200 });
  t.teardown(() => {
    agent.destroy();
  });
  const statusOf = (): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const address = `${here.harness.url}/exec?query=rows+1`;
      get(address, { agent, headers: bearer(access) }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).on('error', reject);
    });
  const statuses = await Promise.all(Array.from({ length: 1000 }, statusOf));
  t.true(statuses.every((status) => status === 200));
  t.is(here.provider.count('/me'), 1);
});

test('a provider outage does not end existing logins', async (t) => {
  const here = await setupFor(t, 'acl.oidc.http.timeout=3s');
  const { access } = await here.provider.token('jo');
  t.is((await here.exec(bearer(access))).status, 200);
  const html = '<h1>500</h1>';
  for (const fault of [
    { kind: 'answer', status: 500, type: 'text/html', body: html },
    { kind: 'answer', status: 429, type: 'text/plain', body: '' },
    { kind: 'redirect', to: 'http://169.254.169.254/' },
    { kind: 'hang' },
  ] as const) {
    here.provider.faults.set('/me', fault);
    const response = await here.exec(bearer((await here.provider.token('jo')).access));
    t.is(response.status, 503);
    t.regex(response.headers.get('retry-after') ?? '', /^\d+$/);
    t.is(response.headers.get('www-authenticate'), null);
    t.is((await here.exec(basic('ann', 'pä:ss'))).status, 200, 'local users can log in');
  }
  here.provider.faults.clear();
});

test('malformed provider responses never log a user in', async (t) => {
  const here = await setupFor(t);
  const bodies = ['<html>', '{}', '[]', 'x'.repeat(2_000_000)];
  for (const [index, body] of bodies.entries()) {
    here.provider.faults.set('/me', { kind: 'answer', status: 200, type: 'text/html', body });
    const { access } = await here.provider.token('jo');
    t.is((await here.exec(bearer(access))).status, index === 3 ? 503 : 401);
  }
});

test('a hanging provider does not delay other users', async (t) => {
  const here = await setupFor(t, 'acl.oidc.cache.ttl=1h');
  const { access } = await here.provider.token('jo');
  t.is((await here.exec(bearer(access))).status, 200);
  here.provider.faults.set('/me', { kind: 'hang' });
  const requests = here.provider.count('/me');
  const hanging = Array.from({ length: 50 }, (_, index) => here.exec(bearer(`new${index}`)));
  await until(() => here.provider.count('/me') - requests >= 32, 'all requests are in flight');
  t.is((await here.exec(bearer(access))).status, 200);
  t.is((await here.exec(basic('ann', 'pä:ss'))).status, 200);
  t.is(here.provider.count('/me') - requests, 32, 'the number of concurrent requests is limited');
  here.provider.faults.clear();
  here.provider.dropConnections();
  for (const { status } of await Promise.all(hanging)) {
    t.true(status === 503 || status === 401, String(status));
  }
});

test('a group removed at the provider loses effect when the cached response expires', async (t) => {
  const here = await setupFor(t, 'acl.oidc.cache.ttl=1s');
  const { access } = await here.provider.token('jo');
  t.is((await here.exec(bearer(access))).status, 200);
  here.provider.setGroups('jo', []);
  await until(
    async () => (await here.exec(bearer(access))).status !== 200,
    'the cached response has expired',
  );
  t.is((await here.exec(bearer(access))).status, 403);
});

test('changes to a group in the database apply immediately', async (t) => {
  const here = await setupFor(t);
  const { access } = await here.provider.token('jo');
  t.is((await here.exec(bearer(access))).status, 200);
  here.directory.allowedGroups.delete('writers');
  t.is((await here.exec(bearer(access))).status, 403);
  here.directory.allowedGroups.add('writers');
  t.is((await here.exec(bearer(access))).status, 200);
});

test('a session ends with the token that started it', async (t) => {
  const here = await setupFor(t, 'acl.oidc.cache.ttl=0');
  const { access } = await here.provider.token('jo');
  const { headers } = await here.exec(bearer(access), '&session=true');
  const Cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  t.regex(Cookie, /^qdb_session=[\w-]{43}$/);
  const status = async (): Promise<number> => (await here.exec({ Cookie, ...OWN_PAGE })).status;
  t.is(await status(), 200);
  here.provider.faults.set('/me', { kind: 'answer', status: 500, type: 'text/html', body: '' });
  t.is(await status(), 503, 'the provider cannot confirm the session');
  here.provider.faults.delete('/me');
  t.is(await status(), 200, 'the session was not ended');
  here.provider.users.delete('jo');
  t.is(await status(), 401);
  here.provider.addPerson('jo', { groups: ['writers'] });
  t.is(await status(), 401, 'the session has ended');
});

test('new credentials start a new session and end the previous one', async (t) => {
  const first = await usual.exec(basic('ann', 'pä:ss'), '&session=true');
  const Cookie = (first.headers.get('set-cookie') ?? '').split(';')[0] ?? '';
  const second = await usual.exec({ ...basic('ann', 'pä:ss'), Cookie }, '&session=true');
  t.regex(second.headers.get('set-cookie') ?? '', /^qdb_session=[\w-]{43};/);
  t.is((await usual.exec({ Cookie, ...OWN_PAGE })).status, 401);
});

test('provider passwords are refused by default', async (t) => {
  const here = await setupFor(t);
  t.is((await here.exec(basic('jo', 'secret'))).status, 401);
  t.is(here.provider.count('/token'), 0);
});

test('provider passwords are accepted when enabled', async (t) => {
  const here = await setupFor(t, 'acl.oidc.ropc.flow.enabled=true');
  t.is((await here.exec(basic('jo', 'secret'))).status, 200);
  t.is((await here.exec(basic('al', 'secret'))).status, 403);
  t.is((await here.exec(basic('jo', 'wrong'))).status, 401);
  const requests = here.provider.count('/token');
  t.is((await here.exec(basic('ann', 'pä:ss'))).status, 200);
  t.is((await here.exec(basic('ann', 'wrong'))).status, 401);
  t.is(
    here.provider.count('/token'),
    requests,
    'passwords of local users are not sent to the provider',
  );
  t.false(here.lines.join('').includes('secret'));
});

test('password guessing is throttled by name and by address', async (t) => {
  const here = await setupFor(t, 'acl.oidc.ropc.flow.enabled=true');
  for (let round = 0; round < 10; round += 1) {
    t.is((await here.exec(basic('jo', `guess ${round}`))).status, 401);
  }
  const late = await here.exec(basic('jo', 'secret'));
  t.is(late.status, 429);
  t.regex(late.headers.get('retry-after') ?? '', /^\d+$/);
  for (let round = 0; round < 50; round += 1) {
    await here.exec(basic(`name ${round}`, 'spring2026'));
  }
  const requests = here.provider.count('/token');
  t.is((await here.exec(basic('another', 'spring2026'))).status, 429);
  t.is(here.provider.count('/token'), requests);
  t.is((await here.exec(basic('ann', 'pä:ss'))).status, 200, 'local users are not throttled');
});

test('a token with too narrow a scope is refused with insufficient_scope', async (t) => {
  const here = await setupFor(t);
  const { access } = await here.provider.token('jo');
  // The provider requires openid for user information. This simulates a refusal for that reason.
  here.provider.narrow = true;
  const response = await here.exec(bearer(access));
  t.is(response.status, 403);
  t.regex(response.headers.get('www-authenticate') ?? '', /error="insufficient_scope"/);
});

test('a token is accepted only if the provider signed it', async (t) => {
  const here = await setupFor(t, 'acl.oidc.groups.encoded.in.token=true');
  const { id } = await here.provider.token('jo');
  t.is((await here.exec(bearer(id))).status, 200);
  const other = await TestProvider.start();
  t.teardown(() => other.close());
  other.addPerson('jo', { groups: ['writers'] });
  t.is((await here.exec(bearer((await other.token('jo')).id))).status, 401);
  t.is(here.provider.count('/me'), 0);
});

test('the settings that the console needs are public', async (t) => {
  const { provider, harness } = usual;
  const { config } = (await (await fetch(`${harness.url}/settings`)).json()) as {
    config: Record<string, unknown>;
  };
  t.like(config, {
    'acl.enabled': true,
    'acl.oidc.enabled': true,
    'acl.oidc.client.id': 'console',
    'acl.oidc.redirect.uri': null,
    'acl.oidc.scope': 'openid',
    'acl.oidc.pkce.required': true,
    'acl.oidc.state.required': true,
    'acl.oidc.groups.encoded.in.token': false,
    'acl.basic.auth.realm.enabled': false,
    'acl.oidc.issuer': provider.issuer,
    'acl.oidc.authorization.endpoint': `${provider.issuer}/auth`,
    'acl.oidc.token.endpoint': `${provider.issuer}/token`,
    'acl.oidc.end.session.endpoint': `${provider.issuer}/session/end`,
    'acl.oidc.pkce.supported': true,
  });
});

test('logins wait for slow discovery, but only until a timeout', async (t) => {
  let tell = (): void => undefined;
  const notified = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const transport = new FakeTransport();
  const document = '/.well-known/openid-configuration';
  transport.replies.set(document, async () => {
    await notified;
    return { body: JSON.stringify(discovery()) };
  });
  const harness = await startHarness({
    authenticator: createAuthenticator({
      directory: new FakeDirectory(),
      provider: new IdentityProvider(settingsOf(), SILENT, { transport }),
    }),
  });
  t.teardown(() => harness.server.close());
  const settings = async (): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${harness.url}/settings`);
    return ((await answer.json()) as { config: Record<string, unknown> }).config;
  };
  const early = await settings();
  t.is(early['acl.oidc.enabled'], true, 'a page does not wait for an unavailable provider');
  t.false('acl.oidc.token.endpoint' in early);
  const waiting = Promise.all([settings(), settings()]);
  await until(() => transport.count(document) > 0, 'the document is requested');
  setTimeout(tell, 200);
  for (const config of await waiting) {
    t.regex(String(config['acl.oidc.authorization.endpoint']), /\/auth$/);
    t.regex(String(config['acl.oidc.token.endpoint']), /\/token$/);
  }
  t.is(transport.count(document), 1, 'the document was requested once');
});

test('the redirect URI never depends on the Host header', async (t) => {
  const head = 'GET /settings HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n';
  const answer = await sendRaw(usual.harness.port, head);
  t.regex(answer, /"acl\.oidc\.redirect\.uri":null/);
  t.false(answer.includes('evil.example'));
});

test('the page connects only to the provider and loads no foreign scripts or frames', async (t) => {
  const page = {
    body: Buffer.from('<!doctype html>'),
    compressed: null,
    type: 'text/html',
    etag: '"x"',
    immutable: false,
  };
  const provider = await TestProvider.start();
  provider.addPerson('jo', { groups: ['writers'] });
  const signOn = new IdentityProvider(settingsOf(...provider.settings()), SILENT);
  const harness = await startHarness({
    authenticator: createAuthenticator({ directory: new FakeDirectory(), provider: signOn }),
    files: new Map([['/', page]]),
  });
  t.teardown(async () => {
    await harness.server.close();
    await provider.close();
  });
  await signOn.token((await provider.token('jo')).access);
  const response = await fetch(`${harness.url}/`);
  const policy = response.headers.get('content-security-policy') ?? '';
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    `connect-src 'self' ${provider.issuer}`,
    `form-action 'self' ${provider.issuer}`,
    "frame-ancestors 'none'",
    "object-src 'none'",
  ]) {
    t.true(policy.split('; ').includes(rule), policy);
  }
  t.is(response.headers.get('referrer-policy'), 'no-referrer');
  t.is(response.headers.get('x-frame-options'), 'DENY');
});

test('checking an unknown name takes as much work as checking a known one', async (t) => {
  const here = await setupFor(t);
  const work = async (user: string): Promise<number> => {
    const before = here.directory.checks;
    t.is((await here.exec(basic(user, 'guess'))).status, 401);
    return here.directory.checks - before;
  };
  t.is(await work('nobody'), await work('ann'));
  t.is(await work('ann'), 1);
});
