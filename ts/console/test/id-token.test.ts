import { createHash } from 'node:crypto';
import test from 'ava';
import { readIdToken, type Expected } from '../src/signin/id-token.js';
import { challengeOf, randomText } from '../src/signin/random.js';

/** Tests the validation of ID tokens, and the page's random values. */
const NOW = 1_700_000_000;
const EXPECTED: Expected = {
  issuer: 'https://id.example',
  clientId: 'console',
  nonce: 'once',
  accessToken: 'access',
  now: NOW,
};
const CLAIMS = {
  iss: 'https://id.example',
  aud: 'console',
  sub: 'jö',
  nonce: 'once',
  exp: NOW + 60,
};

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function token(changes: object = {}, alg = 'RS256'): string {
  return `${encode({ alg })}.${encode({ ...CLAIMS, ...changes })}.c2lnbmF0dXJl`;
}

test('a valid token is accepted', async (t) => {
  t.is((await readIdToken(token(), EXPECTED))['sub'], 'jö');
  await t.notThrowsAsync(readIdToken(token({ aud: ['x', 'console'], azp: 'console' }), EXPECTED));
  await t.notThrowsAsync(readIdToken(token({ exp: NOW - 20 }), EXPECTED));
  const hash = createHash('sha256').update('access').digest().subarray(0, 16);
  await t.notThrowsAsync(readIdToken(token({ at_hash: hash.toString('base64url') }), EXPECTED));
  const long = createHash('sha512').update('access').digest().subarray(0, 32);
  const signed = token({ at_hash: long.toString('base64url') }, 'EdDSA');
  await t.notThrowsAsync(readIdToken(signed, EXPECTED));
});

test('a refreshed token is accepted without a nonce', async (t) => {
  const refreshed = { ...EXPECTED, nonce: undefined };
  await t.notThrowsAsync(readIdToken(token({ nonce: undefined }), refreshed));
});

const REFUSED: readonly (readonly [object, RegExp])[] = [
  [{ iss: 'https://evil.example' }, /different issuer/],
  [{ aud: 'other' }, /different application/],
  [{ aud: ['console', 'other'], azp: 'other' }, /different application/],
  [{ sub: '' }, /does not name a user/],
  [{ sub: 7 }, /does not name a user/],
  [{ exp: NOW - 31 }, /expired/],
  [{ exp: 'soon' }, /expired/],
  [{ nonce: 'twice' }, /different request/],
  [{ nonce: undefined }, /different request/],
  [{ at_hash: 'AAAA' }, /different access token/],
];
for (const [changes, why] of REFUSED) {
  test(`a token with ${JSON.stringify(changes)} is refused`, async (t) => {
    await t.throwsAsync(readIdToken(token(changes), EXPECTED), { message: why });
  });
}

test('a malformed or unsigned token is refused', async (t) => {
  for (const [text, why] of [
    ['', /malformed/],
    ['a.b.c', /malformed/],
    [`${encode({ alg: 'none' })}.${encode(CLAIMS)}.x`, /not signed/],
    [`${encode({ alg: 'RS256' })}.${encode(CLAIMS)}.`, /not signed/],
    [`${encode({ alg: 'RS256' })}.${encode(CLAIMS)}`, /not signed/],
  ] as const) {
    await t.throwsAsync(readIdToken(text, EXPECTED), { message: why }, text);
  }
});

test('random values are long and do not repeat', async (t) => {
  const values = Array.from({ length: 1000 }, randomText);
  t.is(new Set(values).size, 1000);
  t.true(values.every((value) => /^[\w-]{43}$/.test(value)));
  const [verifier = ''] = values;
  t.is(await challengeOf(verifier), createHash('sha256').update(verifier).digest('base64url'));
});
