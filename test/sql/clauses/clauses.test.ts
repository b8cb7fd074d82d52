/** No clause is parsed and ignored: removing it changes the answer or the error. */
import test from 'ava';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { run } from '../../scenario/statements.js';
import { unchanged } from './compare.js';
import { FILTERED, STATEMENTS, TABLES } from './statements.js';

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await run(server, ...TABLES);
});
test.after.always(async () => {
  await server.stop();
});

test('each clause of the chosen statements changes the answer', async (t) => {
  t.deepEqual(await unchanged(server, STATEMENTS), []);
});

test('FILTER changes the result of every aggregate over every frame', async (t) => {
  t.deepEqual(await unchanged(server, FILTERED, /^Call\.filter$/), []);
});
