/**
 * npm run login-speed -- [--rounds N]
 *
 * Cost of a login whose credentials have been verified before: a provider token, a database
 * password, or a database token. Shows nanoseconds per login, the median of ten runs.
 */
import { parseArgs } from 'node:util';

import { type Authenticator, createAuthenticator, IdentityProvider } from '../../ts/auth/index.js';
import { SILENT } from '../silent.js';
import { FakeDirectory, FakeTransport, settingsOf } from '../oidc/fakes.js';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '100000' } } });
const rounds = Number(values.rounds);
const RUNS = 10;

const transport = new FakeTransport();
transport.json('/me', { sub: 'jo', groups: ['writers'] });
const directory = new FakeDirectory();
directory.setPassword('ann', 'a good password');
directory.tokens.set('tdm_token', 'ann');
const provider = new IdentityProvider(settingsOf('acl.oidc.cache.ttl=1h'), SILENT, { transport });
const authenticator: Authenticator = createAuthenticator({ directory, provider });

async function measure(what: string, authorization: string): Promise<void> {
  const login = await authenticator.login(authorization, '127.0.0.1');
  if (login.kind !== 'known') {
    throw new Error(`${what}: ${login.kind}`);
  }
  const runs = Array.from({ length: RUNS }, () => {
    const start = process.hrtime.bigint();
    for (let round = 0; round < rounds; round += 1) {
      authenticator.login(authorization, '127.0.0.1');
    }
    return Number(process.hrtime.bigint() - start) / rounds;
  });
  runs.sort((a, b) => a - b);
  const median = (runs[RUNS >> 1] ?? 0) / 1000;
  process.stdout.write(`${what.padEnd(44)} ${median.toFixed(2)} µs\n`);
}

const basic = Buffer.from('ann:a good password').toString('base64');
await measure('token of the provider, 43 characters', `Bearer ${'a'.repeat(43)}`);
await measure('token of the provider, 4 kB', `Bearer ${'b'.repeat(4096)}`);
await measure('name and password', `Basic ${basic}`);
await measure('token of the database', 'Bearer tdm_token');
