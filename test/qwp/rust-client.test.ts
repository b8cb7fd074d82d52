/** The official Rust client: rows in, results out, with nothing changed but the address. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { run, skip, TOOLS } from '../clients/tools.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { columns, rows } from '../line/harness.js';

const CLIENT = join(TOOLS, 'bin', 'questdb-rs-client');

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

test('rows of every type, and a query with a parameter', async (t) => {
  if (!existsSync(CLIENT)) {
    skip(t, 'the client is not built: node scripts/setup-tests.mjs');
    return;
  }
  const { port } = new URL(server.url);
  const { stdout } = await run(CLIENT, [`ws::addr=127.0.0.1:${port};`, 'from_rust', '3']);
  t.deepEqual(stdout.trim().split('\n'), [
    'x y,=1|1.5|1|true|2us|1700000000000000001ns',
    'x y,=2|2.5|2|true|3us|1700000000000000002ns',
    'sent',
  ]);
  t.deepEqual(await columns(server, 'from_rust'), [
    ...['s SYMBOL', 'f DOUBLE', 'i LONG', 'b BOOLEAN', 'v VARCHAR', 'm TIMESTAMP', 'a DOUBLE[][]'],
    ...['d DECIMAL(18,3)', 'timestamp TIMESTAMP_NS'],
  ]);
  t.deepEqual(await rows(server, 'select v, a, d from from_rust where i = 1'), [
    [
      'a "quoted"\nline \\ 1',
      [
        [1, 1.5],
        [2.5, 3.5],
      ],
      '-123.450',
    ],
  ]);
});
