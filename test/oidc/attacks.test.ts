/**
 * Sign-on attacks and faults, each with the tests that cover it. This test fails if a listed test
 * is renamed or removed.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import test from 'ava';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FILES = {
  logins: 'test/oidc/logins.test.ts',
  proof: 'test/oidc/token-proof.test.ts',
  asking: 'test/oidc/user-info.test.ts',
  settings: 'test/oidc/settings.test.ts',
  calls: 'test/oidc/transport.test.ts',
  browser: 'test/browser/sign-on.test.ts',
  idToken: 'ts/console/test/id-token.test.ts',
  guard: 'test/http/guard.test.ts',
  cookie: 'test/http/login-session.test.ts',
  wire: 'test/pgwire/provided-login.test.ts',
} as const;

type Proof = readonly [file: keyof typeof FILES, title: string];

const ATTACKS: readonly (readonly [attack: string, ...proofs: Proof[]])[] = [
  ['a token in the query string', ['logins', 'a token in the URL is ignored and not logged']],
  [
    'secrets in logs',
    ['asking', 'tokens are not logged'],
    ['asking', 'verified credentials are cached, and sent to the provider only once'],
  ],
  [
    'interception of the code',
    ['idToken', 'random values are long and do not repeat'],
    ['browser', 'signing on redirects to the provider, redeems the code and shows data'],
  ],
  ['PKCE downgrade', ['browser', 'a provider without S256 is refused']],
  ['forged redirect', ['browser', 'an authorization response that was not requested is refused']],
  ['injected ID token', ['idToken', '`a token with ${JSON.stringify(changes)} is refused`']],
  [
    'provider mix-up',
    ['browser', 'an authorization response from a different provider is refused'],
  ],
  [
    'open redirect',
    ['settings', '`${setting} is refused`'],
    ['browser', 'signing on redirects to the provider, redeems the code and shows data'],
  ],
  [
    'code in history or Referer',
    ['browser', 'signing on redirects to the provider, redeems the code and shows data'],
    ['guard', 'data responses carry the security headers'],
  ],
  [
    'stolen refresh token',
    ['browser', 'tokens are renewed only once, before they expire'],
    ['browser', 'a session ends when the provider ends it'],
  ],
  [
    'token stolen by a script',
    ['browser', 'signing on redirects to the provider, redeems the code and shows data'],
    ['logins', 'the page connects only to the provider and loads no foreign scripts or frames'],
  ],
  [
    'token of another application',
    ['asking', 'a decodable token is accepted only if it was issued for this service'],
  ],
  [
    'token algorithms and formats',
    ['proof', 'algorithms that are not allowed are refused'],
    ['proof', 'malformed tokens are refused without verification'],
    ['proof', 'two keys with the same id are refused as ambiguous'],
  ],
  ['keys chosen by the token', ['proof', 'keys embedded in a token header are ignored']],
  [
    'forged discovery and internal addresses',
    ['asking', 'a discovery document from a different issuer is refused'],
    ['calls', 'redirects are not followed, and large responses are not read'],
    ['calls', 'link-local addresses are recognized'],
  ],
  [
    'flood of unknown key ids',
    ['proof', 'unknown key ids trigger at most one key fetch in thirty seconds'],
  ],
  ['slow provider', ['logins', 'a hanging provider does not delay other users']],
  [
    'provider down',
    ['logins', 'a provider outage does not end existing logins'],
    ['asking', 'an outage does not extend the lifetime of a cached response by default'],
    ['asking', 'stale.if.error extends the lifetime of cached responses during an outage'],
  ],
  [
    'malformed provider responses',
    ['asking', '`a response without a user name is refused: ${index}`'],
    ['asking', '`groups in format ${index} are read`'],
    ['logins', 'malformed provider responses never log a user in'],
  ],
  ['two subjects', ['browser', 'a sign-on is refused if token and user info have different names']],
  ['stampede', ['logins', 'a thousand requests with one new token call the provider once']],
  [
    'memory growth through random tokens',
    ['asking', 'random tokens neither fill memory nor evict valid ones'],
  ],
  ['confusion of cached tokens', ['asking', 'tokens with a common prefix are distinguished']],
  ['disabled user', ['asking', 'a disabled user is accepted until the cached response expires']],
  ['clock skew', ['proof', 'clock skew of up to thirty seconds is tolerated']],
  [
    'group changes',
    ['logins', 'a group removed at the provider loses effect when the cached response expires'],
    ['logins', 'changes to a group in the database apply immediately'],
  ],
  ['password spraying', ['logins', 'password guessing is throttled by name and by address']],
  [
    'unusual Basic credentials',
    ['logins', 'names and passwords are UTF-8, and passwords may contain colons'],
    ['logins', 'missing credentials get a challenge, and invalid credentials get an error'],
  ],
  ['calls from other origins', ['guard', 'preflight requests succeed only for listed origins']],
  [
    'click-jacking',
    ['logins', 'the page connects only to the provider and loads no foreign scripts or frames'],
  ],
  [
    'sign-out',
    ['browser', 'signing on redirects to the provider, redeems the code and shows data'],
    ['cookie', 'session=false ends the session'],
  ],
  [
    'sessions that outlive their token',
    ['logins', 'a session ends with the token that started it'],
    ['wire', 'once the cache expires, a session is verified with the provider again'],
  ],
  [
    'two credentials',
    ['logins', 'two Authorization headers are refused'],
    ['cookie', 'only this server’s pages can use the cookie'],
  ],
  [
    'provider without encryption',
    ['settings', "`a configuration with ${set.join(' ') || 'nothing more'} is refused`"],
    ['settings', 'every insecure setting is reported'],
  ],
  [
    'unchecked certificate',
    ['calls', 'an untrusted certificate is refused'],
    ['calls', 'any certificate is accepted if validation is disabled'],
    ['settings', 'every insecure setting is reported'],
  ],
  ['poisoned Host header', ['logins', 'the redirect URI never depends on the Host header']],
];

for (const [index, [attack, ...proofs]] of ATTACKS.entries()) {
  test(`${index + 1}: ${attack}`, (t) => {
    t.true(proofs.length > 0);
    for (const [file, title] of proofs) {
      const source = readFileSync(ROOT + FILES[file], 'utf8');
      const quoted = title.startsWith('`') ? title : `'${title}'`;
      t.regex(
        source,
        new RegExp(`est(?:\\.serial)?\\(\\s*${escaped(quoted)}`),
        `${file}: ${title}`,
      );
    }
  });
}

test('the list has all 36 attacks', (t) => {
  t.is(ATTACKS.length, 36);
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
