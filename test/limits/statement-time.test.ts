/** All statements in one client message either stop at the client's timeout or are refused. */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from './client.js';
import { pgClient } from '../pg-client.js';

const TIMEOUT_MS = 500;
/**
 * Allowance in milliseconds, because the tests share the machine. Without a timeout the statements
 * below take much longer.
 */
const MARGIN_MS = 5_000;
const COLUMNS = 1_000;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['shared.query.worker.count=2'] });
  const columns = Array.from({ length: COLUMNS }, (_, at) => `c${at} int`);
  await rowsOf(server, `create table wide (${columns.join(', ')})`);
});

test.after.always(async () => {
  await server.stop();
});

/** Returns a statement's error, which must arrive within the time limit. */
async function failed(t: ExecutionContext, query: pg.QueryConfig): Promise<string> {
  const client = pgClient(server.pg, { options: `-c statement_timeout=${TIMEOUT_MS}` });
  await client.connect();
  try {
    const startedMs = performance.now();
    const error = await t.throwsAsync<Error & { code?: string }>(client.query(query));
    const tookMs = performance.now() - startedMs;
    t.true(tookMs < TIMEOUT_MS + MARGIN_MS, `${tookMs} ms`);
    return `${error.code ?? ''} ${error.message}`;
  } finally {
    await client.end();
  }
}

test('a message with 60,000 statements obeys the client’s time limit', async (t) => {
  const text = 'select 1;'.repeat(60_000);
  t.regex(await failed(t, { text }), /^57014 timeout, query aborted/);
});

for (const star of ['*', 'wide.*', '* exclude (c1)']) {
  test(`selecting ${star} 4,000 times is refused or obeys the time limit`, async (t) => {
    const text = `select ${Array.from({ length: 4_000 }, () => star).join(', ')} from wide`;
    const error = await failed(t, { text, name: 'list', values: [] });
    t.regex(error, /^57014 timeout, query aborted|too large/);
  });
}
