/** The examples on the errors page fail with the errors that the page shows. */
import test from 'ava';

import { execute } from '../golden/http-client.js';
import { startTestServer } from '../golden/server.js';
import { EXPLAINED } from './errors.js';

test('every documented error example fails with the documented message', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  const run = async (sql: string): Promise<string | undefined> => {
    const { body } = await execute(server.url, sql);
    return (JSON.parse(body.toString()) as { error?: string }).error;
  };
  t.is(await run('CREATE TABLE t (v INT, ts TIMESTAMP) TIMESTAMP(ts)'), undefined);
  t.is(await run('CREATE TABLE n (a INT NOT NULL)'), undefined);
  const expected: Record<string, string> = {};
  const found: Record<string, string | undefined> = {};
  for (const { example } of Object.values(EXPLAINED)) {
    if (example !== undefined) {
      expected[example.sql] = example.message;
      found[example.sql] = await run(example.sql);
    }
  }
  t.deepEqual(found, expected);
});
