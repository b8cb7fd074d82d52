/** No clause is parsed and then ignored: removing it must change the answer or the error. */
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

test('removing any clause from a statement changes the result', async (t) => {
  t.deepEqual(await unchanged(server, STATEMENTS), []);
});

test('FILTER changes the result of every aggregate over every window frame', async (t) => {
  t.deepEqual(await unchanged(server, FILTERED, /^Call\.filter$/), []);
});
