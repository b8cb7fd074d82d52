/**
 * Attacks and faults around sign-on, each with the tests that show what happens: a row whose test
 * is renamed or removed fails here.
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
  [
    'a token in the query string',
    ['logins', 'a token in the address counts for nothing and is not logged'],
  ],
  [
    'secrets in logs',
    ['asking', 'nothing is logged of a token'],
    ['asking', 'names and passwords go to the provider once'],
  ],
  [
    'interception of the code',
    ['idToken', 'values nobody guesses are long, and never the same'],
    ['browser', 'ten steps: to the provider, back with a code, and to the data'],
  ],
  ['downgrade of PKCE', ['browser', 'a provider without S256 is not used']],
  ['forged redirect', ['browser', 'an answer nobody asked for is not taken']],
  ['injected ID token', ['idToken', '`${JSON.stringify(changes)} is refused`']],
  ['mix-up of providers', ['browser', 'an answer of another provider is not taken']],
  [
    'open redirect',
    ['settings', '`${setting} is refused`'],
    ['browser', 'ten steps: to the provider, back with a code, and to the data'],
  ],
  [
    'code in history or Referer',
    ['browser', 'ten steps: to the provider, back with a code, and to the data'],
    ['guard', 'data answers carry the security headers'],
  ],
  [
    'stolen refresh token',
    ['browser', 'tokens are renewed in time, and once'],
    ['browser', 'a sign-on that ended at the provider ends here'],
  ],
  [
    'token stolen by a script',
    ['browser', 'ten steps: to the provider, back with a code, and to the data'],
    ['logins', 'the page talks to the provider alone, runs its own scripts, has no frame'],
  ],
  ['token of another application', ['asking', 'a token that can be read must be ours']],
  [
    'algorithms and shapes of tokens',
    ['proof', 'algorithms nobody agreed on are refused'],
    ['proof', 'what is no token is refused without work'],
    ['proof', 'two keys of one name are told apart by nothing'],
  ],
  ['keys named by the token', ['proof', 'keys that a token brings along are not looked at']],
  [
    'forged discovery, and addresses inside',
    ['asking', 'a discovery document of somebody else is not used'],
    ['calls', 'redirects are not followed, nor are large answers read'],
    ['calls', 'addresses of the own link are known'],
  ],
  ['flood of key names', ['proof', 'names of keys nobody has ask for keys once in thirty seconds']],
  ['slow provider', ['logins', 'others are not held up by a provider that hangs']],
  [
    'provider down',
    ['logins', 'a provider that is down is no reason to log anybody out'],
    ['asking', 'while the provider is down nothing counts beyond its time'],
    ['asking', 'a longer time for outages has to be asked for'],
  ],
  [
    'nonsense of the provider',
    ['asking', '`an answer that names no user is refused, ${index}`'],
    ['asking', '`groups in form ${index}`'],
    ['logins', 'a provider that answers nonsense lets nobody in'],
  ],
  ['two subjects', ['browser', 'two names for one person are not believed']],
  ['stampede', ['logins', 'a thousand requests with one new token ask the provider once']],
  [
    'growth by random tokens',
    ['asking', 'random tokens do not fill memory, nor push good ones out'],
  ],
  ['confusion of cached tokens', ['asking', 'tokens that begin alike are told apart']],
  ['disabled user', ['asking', 'somebody disabled counts until the answer is too old']],
  ['skew of clocks', ['proof', 'thirty seconds of skew are forgiven, more are not']],
  [
    'groups that change',
    ['logins', 'a group that is taken away at the provider is gone when the answer is too old'],
    ['logins', 'what the database says of a group counts at once'],
  ],
  [
    'spraying of passwords',
    ['logins', 'guessing through this server is slowed down, by name and by address'],
  ],
  [
    'odd Basic credentials',
    ['logins', 'names and passwords are UTF-8, and passwords have colons'],
    ['logins', 'without credentials the answer says how, with bad ones what is wrong'],
  ],
  [
    'calls from other origins',
    ['guard', 'a listed origin gets its preflight answered, others do not'],
  ],
  [
    'click-jacking',
    ['logins', 'the page talks to the provider alone, runs its own scripts, has no frame'],
  ],
  [
    'sign-out',
    ['browser', 'ten steps: to the provider, back with a code, and to the data'],
    ['cookie', 'session=false ends the session'],
  ],
  [
    'sessions that outlive their token',
    ['logins', 'a session ends with the token that began it'],
    ['wire', 'a session is asked again at its next statement'],
  ],
  [
    'two credentials',
    ['logins', 'two Authorization headers are refused'],
    ['cookie', 'the cookie opens the data to pages of this server alone'],
  ],
  [
    'provider without encryption',
    ['settings', "`${set.join(' ') || 'nothing more'} is refused`"],
    ['settings', 'every weakening is reported'],
  ],
  [
    'unchecked certificate',
    ['calls', 'a certificate nobody vouches for is refused'],
    ['calls', 'without validation anyone is believed'],
    ['settings', 'every weakening is reported'],
  ],
  [
    'poisoned Host header',
    ['logins', 'where people are sent back to never depends on the Host header'],
  ],
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

test('every row of the list has its place', (t) => {
  t.is(ATTACKS.length, 36);
});

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
