/**
 * Verifying tokens by their signature: which tokens are accepted, and every kind of token that is
 * refused.
 */
import { createHmac } from 'node:crypto';

import test, { type ExecutionContext } from 'ava';
import type { JWTHeaderParameters, JWTPayload } from 'jose';

import { IdentityProvider, type Verdict } from '../../ts/auth/oidc/index.js';
import { SILENT } from '../silent.js';
import { FakeTransport, HandClock, ISSUER, settingsOf, type Signer, signer } from './fakes.js';

const IN_TOKEN = 'acl.oidc.groups.encoded.in.token=true';

interface Bench {
  readonly clock: HandClock;
  readonly transport: FakeTransport;
  readonly provider: IdentityProvider;
  readonly key: Signer;
  /** Returns a token that is valid except for `changes`. */
  readonly token: (changes?: JWTPayload, header?: Partial<JWTHeaderParameters>) => Promise<string>;
}

async function bench(...set: readonly string[]): Promise<Bench> {
  const clock = new HandClock();
  const transport = new FakeTransport();
  const key = await signer();
  transport.keys = [key.jwk];
  const parts = { transport, clocks: clock };
  const provider = new IdentityProvider(settingsOf(IN_TOKEN, ...set), SILENT, parts);
  const token = (changes: JWTPayload = {}, header = {}): Promise<string> => {
    const now = clock.seconds;
    const usual = { iss: ISSUER, aud: 'console', sub: 'jo', iat: now, exp: now + 60 };
    return key.sign({ ...usual, groups: ['writers'], ...changes }, header);
  };
  return { clock, transport, provider, key, token };
}

async function isRefused(t: ExecutionContext, verdict: Verdict | Promise<Verdict>, why: RegExp) {
  const found = await verdict;
  t.is(found.kind, 'refused');
  t.regex(found.kind === 'refused' ? found.reason : '', why);
}

test('a signed token identifies its user', async (t) => {
  const { provider, token } = await bench();
  const verdict = await provider.token(await token());
  t.like(verdict, { kind: 'known', identity: { name: 'jo', externalGroups: ['writers'] } });
});

test('the user name can be read from a different claim', async (t) => {
  const { provider, token } = await bench('acl.oidc.sub.claim=name');
  t.like(await provider.token(await token({ name: 'Jo B.' })), { identity: { name: 'Jo B.' } });
  t.like(await provider.token(await token({ name: '' })), { identity: { name: 'jo' } });
});

/** Names that could be mistaken for other names, or would be truncated, when displayed. */
const UNUSABLE = [
  '\ud800',
  'a\udc00b',
  'jo\0admin',
  'jo\r\nadmin',
  'jo\n',
  '\u001b[1m',
  'a\u2028b',
];

for (const name of UNUSABLE) {
  test(`${JSON.stringify(name)} is not a valid user name`, async (t) => {
    const { provider, token } = await bench('acl.oidc.sub.claim=name');
    await isRefused(t, provider.token(await token({ name })), /no user/);
    await isRefused(t, provider.token(await token({ sub: name, name: 'jo' })), /no user/);
    await isRefused(t, provider.token(await token({ sub: name })), /no user/);
  });
}

test('user names may be in any language', async (t) => {
  const { provider, token } = await bench('acl.oidc.sub.claim=name');
  for (const name of ['Zoë Ångström', '山田 太郎', "O'Neil, Jo", '👩‍🔬', 'a\u00a0b']) {
    t.like(await provider.token(await token({ name })), { identity: { name } });
  }
});

test('a token for the configured audience is accepted from any client', async (t) => {
  const { provider, token } = await bench('acl.oidc.audience=api');
  const given = await token({ aud: 'api', azp: 'batch' }, { typ: 'at+jwt' });
  t.is((await provider.token(given)).kind, 'known');
  await isRefused(t, provider.token(await token({ aud: 'other', azp: 'batch' })), /'aud'/);
});

const WRONG_CLAIMS: readonly (readonly [string, JWTPayload, RegExp])[] = [
  ['from a different issuer', { iss: 'https://evil.example' }, /'iss'/],
  ['for a different application', { aud: 'other' }, /'aud'/],
  ['without an audience', { aud: [] }, /'aud'/],
  [
    'for several applications, issued to a different one',
    { aud: ['console', 'other'], azp: 'other' },
    /'aud'/,
  ],
  ['issued to a different application', { azp: 'other' }, /'aud'/],
  [
    'for this application only, issued to a different one',
    { aud: ['console'], azp: 'other' },
    /'aud'/,
  ],
  ['issued to an empty name', { azp: '' }, /'aud'/],
  ['issued to a value that is not a string', { azp: ['console'] }, /'aud'/],
  ['with an empty subject', { sub: '' }, /no user/],
  ['without a subject', { sub: undefined as unknown as string }, /'sub'/],
  ['issued in the future', { iat: 4_000_000_000 }, /'iat'/],
  ['not yet valid', { nbf: 4_000_000_000 }, /'nbf'/],
  ['without an expiry', { exp: undefined as unknown as number }, /'exp'/],
];
for (const [name, claims, why] of WRONG_CLAIMS) {
  test(`a token ${name} is refused`, async (t) => {
    const { provider, token } = await bench();
    await isRefused(t, provider.token(await token(claims)), why);
  });
}

test('an access token issued to this client is accepted', async (t) => {
  const { provider, token } = await bench();
  const keycloak = await token({ aud: 'account', azp: 'console' });
  t.is((await provider.token(keycloak)).kind, 'known');
  const profile = await token({ aud: ['console', 'account'], azp: 'console' }, { typ: 'at+jwt' });
  t.is((await provider.token(profile)).kind, 'known');
});

test('tokens of other types are refused', async (t) => {
  const { provider, token } = await bench();
  for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt']) {
    await isRefused(t, provider.token(await token({}, { typ })), /'typ'/);
  }
});

test('clock skew of up to thirty seconds is tolerated', async (t) => {
  const { provider, token, clock } = await bench();
  const now = clock.seconds;
  t.is((await provider.token(await token({ exp: now - 20 }))).kind, 'known');
  await isRefused(t, provider.token(await token({ exp: now - 40 })), /expired/);
  t.is((await provider.token(await token({ nbf: now + 20 }))).kind, 'known');
  await isRefused(t, provider.token(await token({ nbf: now + 40 })), /'nbf'/);
});

test('a cached token is refused after it expires', async (t) => {
  const { provider, token, clock } = await bench('acl.oidc.cache.ttl=1h');
  const short = await token({ exp: clock.seconds + 10 });
  t.is((await provider.token(short)).kind, 'known');
  clock.pass(39_000);
  t.true(provider.remembers(short));
  clock.pass(2_000);
  await isRefused(t, provider.token(short), /expired/);
});

test('algorithms that are not allowed are refused', async (t) => {
  const { provider, key, token, clock } = await bench();
  const [head = '', body = '', signature = ''] = (await token()).split('.');
  const encode = (value: unknown): string =>
    Buffer.from(JSON.stringify(value)).toString('base64url');
  const unsigned = encode({ alg: 'none', kid: 'one' });
  await isRefused(t, provider.token(`${unsigned}.${body}.`), /cannot be verified/);
  await isRefused(t, provider.token(`${unsigned}.${body}.${signature}`), /cannot be verified/);
  // Uses the public key as if it were an HMAC secret.
  const symmetric = encode({ alg: 'HS256', kid: 'one' });
  const mac = createHmac('sha256', JSON.stringify(key.jwk)).update(`${symmetric}.${body}`);
  const forged = `${symmetric}.${body}.${mac.digest('base64url')}`;
  await isRefused(t, provider.token(forged), /cannot be verified/);
  const other = await bench();
  other.clock.pass(clock.monotonic() - other.clock.monotonic());
  await isRefused(t, provider.token(await other.token()), /cannot be verified/);
  const spoiled = `${head}.${body}.${signature.slice(0, -4)}AAAA`;
  await isRefused(t, provider.token(spoiled), /cannot be verified/);
});

test('malformed tokens are refused without verification', async (t) => {
  const { provider, token, transport } = await bench();
  const good = await token();
  const nested = await token({ nested: good });
  for (const text of [
    'x',
    '..',
    `${good}.more`,
    `${good}.a.b`,
    good.slice(0, 40),
    'é'.repeat(50),
    `${'a'.repeat(65_536)}.b.c`,
  ]) {
    t.is((await provider.token(text)).kind, 'refused', text.slice(0, 20));
  }
  t.is((await provider.token(nested)).kind, 'known', 'a nested token is treated as data');
  t.true(transport.count('/jwks') <= 1);
});

test('keys embedded in a token header are ignored', async (t) => {
  const { provider, token, transport } = await bench();
  const evil = await signer('one');
  const now = 1_700_000_000 + 1000;
  const claims = { iss: ISSUER, aud: 'console', sub: 'eve', iat: now, exp: now + 60 };
  for (const header of [
    { jku: 'https://evil.example/jwks' },
    { x5u: 'https://evil.example/x5u' },
    { jwk: evil.jwk as JWTHeaderParameters['jwk'] },
  ]) {
    await isRefused(
      t,
      provider.token(await evil.sign(claims, header as Partial<JWTHeaderParameters>)),
      /cannot be verified/,
    );
    const harmless = await token({}, header as Partial<JWTHeaderParameters>);
    t.is((await provider.token(harmless)).kind, 'known');
  }
  t.true(transport.calls.every(({ url }) => url.startsWith(ISSUER)));
});

test('an unknown key id triggers a key fetch', async (t) => {
  const { provider, token, transport, clock } = await bench();
  t.is((await provider.token(await token())).kind, 'known');
  const next = await signer('two');
  transport.keys = [next.jwk];
  const claims = { iss: ISSUER, aud: 'console', sub: 'jo', exp: clock.seconds + 600 };
  await isRefused(t, provider.token(await next.sign(claims)), /cannot be verified/);
  clock.pass(31_000);
  const verdict = await provider.token(await next.sign({ ...claims, jti: 'b' }));
  t.is(verdict.kind, 'known');
  t.is(transport.count('/jwks'), 2);
});

test('unknown key ids trigger at most one key fetch in thirty seconds', async (t) => {
  const { provider, token, transport, clock } = await bench();
  const flood = async (from: number): Promise<void> => {
    const tokens = Array.from({ length: 50 }, (_, index) =>
      token({ jti: `${from + index}` }, { kid: `guess ${from + index}` }),
    );
    for (const verdict of await Promise.all(tokens.map(async (one) => provider.token(await one)))) {
      t.is(verdict.kind, 'refused');
    }
  };
  await flood(0);
  t.is(transport.count('/jwks'), 1);
  clock.pass(31_000);
  await flood(100);
  t.is(transport.count('/jwks'), 2);
  await flood(200);
  t.is(transport.count('/jwks'), 2);
});

test('two keys with the same id are refused as ambiguous', async (t) => {
  const { provider, token, transport, key } = await bench();
  const twin = await signer('one');
  transport.keys = [key.jwk, twin.jwk];
  await isRefused(t, provider.token(await token()), /cannot be verified/);
});

test('a token cannot be verified without keys', async (t) => {
  const { provider, token, transport } = await bench();
  transport.json('/jwks', {}, 500);
  t.is((await provider.token(await token())).kind, 'unavailable');
  transport.json('/jwks', { keys: 'none' });
  t.is((await provider.token(await token())).kind, 'unavailable');
});
