/**
 * Verifying tokens by user information requests: the meaning of the responses, and the number of
 * requests.
 */
import test from 'ava';

import { IdentityProvider, type Verdict } from '../../ts/auth/oidc/index.js';
import { ProviderUnavailable } from '../../ts/auth/oidc/transport.js';
import { createLogger } from '../../ts/observability/index.js';
import { discovery, FakeTransport, HandClock, ISSUER, settingsOf, signer } from './fakes.js';

function bench(...set: readonly string[]) {
  const clock = new HandClock();
  const transport = new FakeTransport();
  transport.json('/me', { sub: 'jo', groups: ['writers'] });
  const lines: string[] = [];
  const logger = createLogger({ level: 'debug', write: (line) => lines.push(line) });
  const provider = new IdentityProvider(settingsOf(...set), logger, { transport, clocks: clock });
  return { clock, transport, provider, lines };
}

test('a user info response is cached until it expires', async (t) => {
  const { provider, transport, clock } = bench();
  t.like(await provider.token('opaque'), { identity: { name: 'jo', kind: 'external' } });
  clock.pass(29_000);
  t.false(
    provider.token('opaque') instanceof Promise,
    'the cached response is returned synchronously',
  );
  t.is(transport.count('/me'), 1);
  clock.pass(2_000);
  await provider.token('opaque');
  t.is(transport.count('/me'), 2);
});

test('a thousand requests with one new token make one user info call', async (t) => {
  const { provider, transport } = bench();
  const all = Array.from({ length: 1000 }, () => Promise.resolve(provider.token('new')));
  const verdicts = await Promise.all(all);
  t.true(verdicts.every(({ kind }) => kind === 'known'));
  t.is(transport.count('/me'), 1);
  t.is(transport.count('/.well-known/openid-configuration'), 1);
});

test('tokens with a common prefix are distinguished', async (t) => {
  const { provider, transport } = bench();
  transport.replies.set('/me', ({ headers }) => ({
    body: JSON.stringify({ sub: headers?.['Authorization']?.slice(-1) }),
  }));
  const start = 'x'.repeat(64);
  t.like(await provider.token(`${start}a`), { identity: { name: 'a' } });
  t.like(await provider.token(`${start}b`), { identity: { name: 'b' } });
});

test('the refusal of a token is cached briefly', async (t) => {
  const { provider, transport, clock } = bench();
  transport.json('/me', { error: 'invalid_token' }, 401);
  for (let round = 0; round < 3; round += 1) {
    t.is((await provider.token('bad')).kind, 'refused');
  }
  t.is(transport.count('/me'), 1);
  clock.pass(5_001);
  t.is((await provider.token('bad')).kind, 'refused');
  t.is(transport.count('/me'), 2);
});

test('random tokens neither fill memory nor evict valid ones', async (t) => {
  const { provider, transport } = bench('acl.oidc.cache.max.entries=100');
  await provider.token('good');
  transport.json('/me', {}, 401);
  for (let count = 0; count < 1000; count += 1) {
    await provider.token(`random ${count}`);
  }
  t.true(provider.remembered <= 200, String(provider.remembered));
  t.true(provider.remembers('good'));
});

const ANSWERS: readonly (readonly [number, string, Verdict['kind']])[] = [
  [400, '', 'refused'],
  [401, '', 'refused'],
  [403, '', 'refused'],
  [403, 'Bearer error="insufficient_scope"', 'insufficient scope'],
  [404, '', 'unavailable'],
  [302, '', 'unavailable'],
  [429, '', 'unavailable'],
  [500, '', 'unavailable'],
  [503, '', 'unavailable'],
];
for (const [status, challenge, kind] of ANSWERS) {
  test(`a provider response ${status} ${challenge} means ${kind}`, async (t) => {
    const { provider, transport } = bench();
    transport.replies.set('/me', () => ({ status, challenge, body: '{"sub":"jo"}' }));
    t.is((await provider.token('opaque')).kind, kind);
  });
}

const NAMELESS: readonly string[] = [
  '{}',
  '{"sub":""}',
  '{"sub":7}',
  '{"sub":null,"groups":["writers"]}',
  '<html><body>Sign in</body></html>',
  '',
  '[]',
  '"jo"',
  'null',
  `{"sub":"${'x'.repeat(256)}"}`,
  '{"__proto__":{"sub":"jo"}}',
];
for (const [index, body] of NAMELESS.entries()) {
  test(`a response without a user name is refused: ${index}`, async (t) => {
    const { provider, transport, lines } = bench();
    transport.replies.set('/me', () => ({ body }));
    t.is((await provider.token('one')).kind, 'refused');
    t.is((await provider.token('two')).kind, 'refused');
    t.is(
      lines.filter((line) => line.includes('user_info_unusable')).length,
      1,
      'the error is logged once',
    );
  });
}

const GROUPS: readonly (readonly [unknown, readonly string[]])[] = [
  [
    ['a', 'b'],
    ['a', 'b'],
  ],
  ['one', ['one']],
  ['cn=a,ou=b,dc=c', ['cn=a,ou=b,dc=c']],
  [undefined, []],
  [null, []],
  [[], []],
  ['', []],
  [7, []],
  [{ a: 1 }, []],
  [['a', 7], []],
  [['a', ['b']], []],
  [['x'.repeat(257)], []],
  [Array.from({ length: 1001 }, (_, index) => `${index}`), []],
  [['a', 'a'], ['a']],
];
for (const [index, [groups, expected]] of GROUPS.entries()) {
  test(`groups in format ${index} are read`, async (t) => {
    const { provider, transport } = bench();
    transport.json('/me', { sub: 'jo', groups });
    t.like(await provider.token('one'), { kind: 'known', identity: { externalGroups: expected } });
  });
}

test('groups can be read from a claim with any name', async (t) => {
  const { provider, transport } = bench('acl.oidc.groups.claim=constructor');
  t.like(await provider.token('one'), { identity: { externalGroups: [] } });
  transport.replies.set('/me', () => ({ body: '{"sub":"jo","constructor":["g"]}' }));
  t.like(await provider.token('two'), { identity: { externalGroups: ['g'] } });
});

test('an outage does not extend the lifetime of a cached response by default', async (t) => {
  const { provider, transport, clock } = bench();
  await provider.token('opaque');
  transport.replies.set('/me', () => new ProviderUnavailable('down'));
  clock.pass(20_000);
  t.is((await provider.token('opaque')).kind, 'known');
  clock.pass(11_000);
  t.is((await provider.token('opaque')).kind, 'unavailable');
  t.is((await provider.token('opaque')).kind, 'unavailable', 'the failure is not cached');
  transport.json('/me', { sub: 'jo' });
  t.is((await provider.token('opaque')).kind, 'known');
});

test('stale.if.error extends the lifetime of cached responses during an outage', async (t) => {
  const { provider, transport, clock } = bench('acl.oidc.stale.if.error=60s');
  await provider.token('opaque');
  transport.replies.set('/me', () => new ProviderUnavailable('down'));
  clock.pass(60_000);
  t.is((await provider.token('opaque')).kind, 'known');
  clock.pass(31_000);
  t.is((await provider.token('opaque')).kind, 'unavailable');
  transport.json('/me', {}, 401);
  t.is((await provider.token('opaque')).kind, 'refused', 'a refusal by the provider is final');
});

test('a disabled user is accepted until the cached response expires', async (t) => {
  const { provider, transport, clock } = bench('acl.oidc.cache.ttl=1s');
  await provider.token('opaque');
  transport.json('/me', {}, 401);
  t.is((await provider.token('opaque')).kind, 'known');
  clock.pass(1_001);
  t.is((await provider.token('opaque')).kind, 'refused');
});

test('a decodable token is accepted only if it was issued for this service', async (t) => {
  const { provider, transport, clock } = bench();
  const key = await signer();
  const token = (claims: object): Promise<string> =>
    key.sign({ iss: ISSUER, exp: clock.seconds + 60, aud: 'console', ...claims });
  t.is((await provider.token(await token({}))).kind, 'known');
  t.is((await provider.token(await token({ aud: 'account', azp: 'console' }))).kind, 'known');
  t.is((await provider.token(await token({ aud: 'x', client_id: 'console' }))).kind, 'known');
  const requests = transport.count('/me');
  for (const claims of [
    { aud: 'other' },
    { aud: ['other', 'third'], azp: 'other' },
    { iss: 'https://evil.example' },
    { exp: clock.seconds - 31 },
  ]) {
    t.is((await provider.token(await token(claims))).kind, 'refused', JSON.stringify(claims));
  }
  t.is(transport.count('/me'), requests, 'no request was sent');
  t.is((await provider.token(await token({ exp: clock.seconds - 20 }))).kind, 'known');
});

test('a signed response is accepted when its signature is valid', async (t) => {
  const { provider, transport, clock } = bench();
  const [key, evil] = [await signer(), await signer()];
  transport.keys = [key.jwk];
  const claims = { iss: ISSUER, aud: 'console', sub: 'jo', exp: clock.seconds + 60 };
  const answer = async (signed: Promise<string>): Promise<void> => {
    const body = await signed;
    transport.replies.set('/me', () => ({ contentType: 'application/jwt; charset=utf-8', body }));
  };
  await answer(key.sign(claims));
  t.like(await provider.token('one'), { identity: { name: 'jo' } });
  await answer(evil.sign(claims));
  t.is((await provider.token('two')).kind, 'refused');
  await answer(key.sign({ ...claims, aud: 'other' }));
  t.is((await provider.token('three')).kind, 'refused');
});

test('a discovery document from a different issuer is refused', async (t) => {
  for (const [changes, why] of [
    [{ issuer: 'https://evil.example' }, /different issuer/],
    [{ issuer: undefined }, /does not contain 'issuer'/],
    [{ token_endpoint: undefined }, /does not contain 'token_endpoint'/],
    [{ userinfo_endpoint: 'http://id.example/me' }, /expected https/],
    [{ jwks_uri: 'file:///etc/passwd' }, /expected https/],
    [{ token_endpoint: 'https://user:pw@id.example/' }, /expected a URL/],
    [{ userinfo_endpoint: 'https://169.254.169.254/latest' }, /link-local/],
    [{ userinfo_endpoint: 'https://[fe80::1]/me' }, /link-local/],
    [{ end_session_endpoint: 'javascript:alert(1)' }, /expected https/],
  ] as const) {
    const { provider, transport, lines } = bench();
    transport.json('/.well-known/openid-configuration', discovery(changes));
    t.is((await provider.token('one')).kind, 'unavailable', JSON.stringify(changes));
    t.regex(lines.join(''), why);
    t.is(transport.count('/me'), 0);
  }
});

test('a malformed discovery document is refused, and fetched again later', async (t) => {
  for (const reply of [
    { status: 500 },
    { status: 302 },
    { body: '<html>' },
    { body: '[]' },
    { body: 'null' },
  ]) {
    const { provider, transport } = bench();
    transport.replies.set('/.well-known/openid-configuration', () => reply);
    t.is((await provider.token('one')).kind, 'unavailable');
    t.is((await provider.token('two')).kind, 'unavailable');
    t.is(
      transport.count('/.well-known/openid-configuration'),
      1,
      'the document is not requested again immediately',
    );
    t.is(await provider.metadata(1_000), null);
  }
});

test('verified credentials are cached, and sent to the provider only once', async (t) => {
  const { provider, transport, clock, lines } = bench('acl.oidc.ropc.flow.enabled=true');
  transport.replies.set('/token', ({ form }) =>
    form?.get('password') === 'right'
      ? { body: JSON.stringify({ access_token: 'a', refresh_token: 'never kept' }) }
      : { status: 400, body: '{"error":"invalid_grant"}' },
  );
  t.like(await provider.password('jo', 'right'), { identity: { name: 'jo' } });
  t.like(await provider.password('jo', 'right'), { kind: 'known' });
  t.is(transport.count('/token'), 1);
  t.is((await provider.password('jo', 'wrong')).kind, 'refused');
  t.is(
    (await provider.password('jo\u0000', 'right')).kind,
    'known',
    'a different name is not throttled',
  );
  t.is(transport.count('/token'), 3);
  clock.pass(30_001);
  await provider.password('jo', 'right');
  t.is(transport.count('/token'), 4);
  transport.json('/token', { error: 'unauthorized_client' }, 400);
  t.is(
    (await provider.password('jo', 'other')).kind,
    'unavailable',
    'a configuration error is not a wrong password',
  );
  t.false(lines.join('').includes('right'));
});

test('tokens are not logged', async (t) => {
  const { provider, transport, lines } = bench();
  const canary = 'canary-4711';
  await provider.token(canary);
  transport.json('/me', { error: 'no' }, 500);
  await provider.token(`${canary}-two`);
  t.false(lines.join('').includes('4711'));
});
