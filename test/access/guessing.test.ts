/** Password guessing: failures are counted across all protocols. */
import test from 'ava';
import pg from 'pg';

import { FailureLimiter } from '../../ts/auth/index.js';

import type { TestServer } from '../golden/server.js';
import { exec, run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

const MAX_FAILURES = 10;

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    "CREATE USER ann WITH PASSWORD 'a'",
    "CREATE USER bob WITH PASSWORD 'b'",
    "CREATE USER eve WITH PASSWORD 'e'",
    'GRANT HTTP, PGWIRE TO ann',
    'GRANT HTTP TO bob',
    'GRANT HTTP TO eve',
  );
});

test.after.always(async () => {
  await server.stop();
});

/** Returns the SQLSTATE of a refused login; null on success. */
async function wireLogin(user: string, password: string): Promise<string | null> {
  const client = pgClient(server.pg, { user, password });
  try {
    await client.connect();
    await client.end();
    return null;
  } catch (error) {
    return error instanceof pg.DatabaseError ? (error.code ?? '') : String(error);
  }
}

async function httpLogin(user: string, password: string): Promise<number> {
  return (await exec(server, `${user}:${password}`, 'SELECT 1')).status;
}

test('failed logins are counted across protocols', async (t) => {
  for (let round = 0; round < MAX_FAILURES / 2; round += 1) {
    t.is(await httpLogin('ann', 'wrong'), 401);
    t.is(await wireLogin('ann', 'wrong'), '28P01');
  }
  t.is(await httpLogin('ann', 'a'), 429);
  t.is(await wireLogin('ann', 'a'), '28000');
});

test('a correct password without login permission does not count as a failed login', async (t) => {
  for (let round = 0; round <= MAX_FAILURES; round += 1) {
    t.is(await wireLogin('bob', 'b'), '42501');
  }
  t.is(await httpLogin('bob', 'b'), 200);
});

test('concurrent attempts count the same as sequential attempts', async (t) => {
  const tries = Array.from({ length: 4 * MAX_FAILURES }, () => httpLogin('eve', 'wrong'));
  const statuses = await Promise.all(tries);
  t.is(statuses.filter((status) => status === 401).length, MAX_FAILURES);
  t.is(statuses.filter((status) => status === 429).length, 3 * MAX_FAILURES);
});

test('addresses in one IPv6 network share a login failure limit', (t) => {
  const limiter = new FailureLimiter(() => 0);
  for (let round = 0; round < MAX_FAILURES; round += 1) {
    limiter.failed('admin', `2001:db8:1:2::${round.toString(16)}`);
  }
  t.is(limiter.waitSeconds('admin', '2001:db8:1:2:ffff:ffff:ffff:ffff'), 60);
  t.is(limiter.waitSeconds('admin', '2001:db8:1:3::1'), 0);
  t.is(limiter.waitSeconds('admin', '::1'), 0);
});

test('a flood of junk names does not evict failure counters or lock out others', (t) => {
  let now = 0;
  const limiter = new FailureLimiter(() => now);
  const guess = (): void => {
    for (let round = 0; round < MAX_FAILURES + 2; round += 1) {
      limiter.failed('admin', '10.0.0.1');
    }
  };
  guess();
  t.is(limiter.waitSeconds('admin', '10.0.0.1'), 60);
  for (let junk = 0; junk < 100_000; junk += 1) {
    now += 0.5;
    limiter.failed(`junk${junk}`, '10.0.0.1');
  }
  t.is(limiter.waitSeconds('admin', '10.0.0.1'), 10);
  for (let name = 0; name < 1_000; name += 1) {
    t.is(limiter.waitSeconds(`user${name}`, '10.0.0.1'), 0);
  }
  t.is(limiter.waitSeconds('admin', '10.0.0.2'), 0);
  now = 60_000;
  t.is(limiter.waitSeconds('admin', '10.0.0.1'), 0, 'the limit ends after a minute');
  guess();
  limiter.succeeded('admin', '10.0.0.1');
  t.is(limiter.waitSeconds('admin', '10.0.0.1'), 0);
  guess();
  t.is(limiter.waitSeconds('admin', '::ffff:10.0.0.1'), 60);
});
