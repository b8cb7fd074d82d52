/** A provider that is down must not delay every login. */
import test from 'ava';

import { IdentityProvider } from '../../ts/auth/index.js';
import { ProviderUnavailable } from '../../ts/auth/oidc/transport.js';
import { SILENT } from '../silent.js';
import { FakeTransport, HandClock, settingsOf } from './fakes.js';

const MAX_FAILURES = 5;

function setup(): {
  readonly transport: FakeTransport;
  readonly clocks: HandClock;
  readonly provider: IdentityProvider;
} {
  const transport = new FakeTransport();
  const clocks = new HandClock();
  const provider = new IdentityProvider(settingsOf(), SILENT, { transport, clocks });
  transport.json('/me', { sub: 'jo', groups: [] });
  return { transport, clocks, provider };
}

const DOWN = [
  new ProviderUnavailable('down'),
  { status: 502 },
  { status: 503 },
  { status: 504 },
] as const;

for (const [index, failure] of DOWN.entries()) {
  test(`repeated failures pause calls to the provider: ${index}`, async (t) => {
    const { transport, clocks, provider } = setup();
    t.is((await provider.token('first')).kind, 'known');
    transport.replies.set('/me', () => failure);
    for (let round = 0; round < MAX_FAILURES; round += 1) {
      t.is((await provider.token(`a${round}`)).kind, 'unavailable');
    }
    const requests = transport.count('/me');
    t.like(await provider.token('b'), { kind: 'unavailable', seconds: 10 });
    clocks.pass(9_500);
    t.like(await provider.token('c'), { kind: 'unavailable', seconds: 1 });
    t.is(transport.count('/me'), requests);
    t.is((await provider.token('first')).kind, 'known', 'cached logins remain valid');

    clocks.pass(500);
    t.is((await provider.token('d')).kind, 'unavailable');
    t.is((await provider.token('e')).kind, 'unavailable');
    t.is(
      transport.count('/me'),
      requests + 1,
      'one request probes the provider, later ones are not sent',
    );

    clocks.pass(10_000);
    transport.json('/me', { sub: 'jo', groups: [] });
    t.is((await provider.token('f')).kind, 'known');
    t.is((await provider.token('g')).kind, 'known');
  });
}

test('one request probes the provider while the others are refused immediately', async (t) => {
  const { transport, clocks, provider } = setup();
  transport.replies.set('/me', () => new ProviderUnavailable('down'));
  for (let round = 0; round < MAX_FAILURES; round += 1) {
    await provider.token(`a${round}`);
  }
  clocks.pass(10_000);
  const requests = transport.count('/me');
  let answer = (): void => undefined;
  const blocked = new Promise<void>((resolve) => {
    answer = resolve;
  });
  transport.replies.set('/me', async () => {
    await blocked;
    return { body: JSON.stringify({ sub: 'jo' }) };
  });
  const trying = provider.token('b');
  const others = await Promise.all(
    ['c', 'd', 'e'].map(async (token) => await provider.token(token)),
  );
  t.deepEqual(
    others.map(({ kind }) => kind),
    ['unavailable', 'unavailable', 'unavailable'],
  );
  answer();
  t.is((await trying).kind, 'known');
  t.is(transport.count('/me'), requests + 2, 'one probe request, then the request itself');
});

test('failed calls for some tokens do not block other tokens', async (t) => {
  const { transport, provider } = setup();
  const failures = [...DOWN, new ProviderUnavailable('no response within 5000 ms')];
  // A proxy in front of the provider fails for the `bad` tokens and succeeds for `good`.
  transport.replies.set('/me', ({ headers }) => {
    const token = headers?.['Authorization'] ?? '';
    const at = /^Bearer bad(\d+)$/.exec(token)?.[1];
    if (token === 'Bearer good') {
      return { body: JSON.stringify({ sub: 'jo' }) };
    }
    return at === undefined ? { status: 401 } : (failures[Number(at) % failures.length] ?? {});
  });
  for (let round = 0; round < 10 * MAX_FAILURES; round += 1) {
    t.is((await provider.token(`bad${round}`)).kind, 'unavailable');
  }
  t.is((await provider.token('good')).kind, 'known');
});

test('concurrent failures trigger a single probe', async (t) => {
  const { transport, provider } = setup();
  transport.replies.set('/me', () => ({ status: 503 }));
  const tokens = Array.from({ length: 4 * MAX_FAILURES }, (_, index) => `a${index}`);
  await Promise.all(tokens.map(async (token) => await provider.token(token)));
  t.is(transport.count('/me'), tokens.length + 1);
  t.like(await provider.token('b'), { kind: 'unavailable', seconds: 10 });
});

test('errors that a single token can cause do not open the circuit breaker', async (t) => {
  const { transport, provider } = setup();
  const statuses = [400, 401, 429, 500];
  for (const status of statuses) {
    transport.replies.set('/me', () => ({ status }));
    for (let round = 0; round < 2 * MAX_FAILURES; round += 1) {
      await provider.token(`t${status}-${round}`);
    }
  }
  t.is(transport.count('/me'), statuses.length * 2 * MAX_FAILURES);
});
