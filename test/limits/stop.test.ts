/** A clean shutdown under load: every client gets its response, or an error in its protocol. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { exitCode, startTestServer } from '../golden/server.js';
import { stopRound } from '../torture/stop-round.js';

const ROUNDS = 5;

for (let round = 0; round < ROUNDS; round += 1) {
  test.serial(`SIGTERM during a mixed workload stops the server cleanly: ${round}`, async (t) => {
    t.deepEqual(await stopRound(round * 150), []);
  });
}

test.serial('an idle server stops immediately, with exit code 0', async (t) => {
  const server = await startTestServer();
  t.is(await server.stop(), 0);
  t.notRegex(server.log(), /forced to stop/);
});

test.serial('a forced stop is logged and has its own exit code', async (t) => {
  const server = await startTestServer({ set: ['shutdown.timeout=1ms'] });
  server.process.kill('SIGTERM');
  t.is(await exitCode(server.process), 124);
  t.deepEqual(readdirSync(join(server.root, 'tmp')), []);
  t.regex(server.log(), /tidemark: forced to stop: .* \[limit=1 ms\]/);
  await server.stop();
});
