/** Recovering a damaged table with SQL, without its damaged segments, on real files. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { damageSegment } from './damaged-segment.js';

interface Answer {
  readonly ddl?: string;
  readonly error?: string;
  readonly dataset?: readonly (readonly unknown[])[];
}

async function exec(server: TestServer, query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return (await response.json()) as Answer;
}

test('RECOVER TABLE reports the damage, and SKIP drops the damaged data', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-recover-'));
  let server = await startTestServer({ root });
  try {
    const rows = 'timestamp_sequence(0, 86400000) ts from long_sequence(3000)';
    await exec(server, `create table t as (select x, ${rows}) timestamp(ts) partition by day`);
    t.deepEqual(await exec(server, 'recover table t'), { ddl: 'OK' });
    await server.stop();
    const segment = await damageSegment(root);
    // With this setting, the server verifies all files and finds the damage when it opens them;
    // otherwise the first query would find it.
    server = await startTestServer({ root, set: ['cairo.verify=open'] });
    const refused = await exec(server, "insert into t values (1, '1970-01-09')");
    t.regex(refused.error ?? '', /table 't' is damaged and cannot be modified/);
    const reported = await exec(server, 'recover table t');
    t.regex(reported.error ?? '', /table 't' is damaged; recovery would discard 1000 rows: /);
    t.regex(reported.error ?? '', /partition '1970-01-01': 1000 rows from 0 to 86313600000/);
    t.true((reported.error ?? '').includes(segment), reported.error);
    t.deepEqual(await exec(server, 'recover table t skip'), { ddl: 'OK' });
    t.true(server.log().includes(segment), 'the log names the discarded segment');
    t.deepEqual(await exec(server, 'check database'), { ddl: 'OK' });
    t.is((await exec(server, "insert into t values (1, '1970-01-09')")).error, undefined);
    t.deepEqual((await exec(server, 'select count() from t')).dataset, [[2001]]);
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

test('RECOVER TABLE refuses a table that does not exist', async (t) => {
  const server = await startTestServer();
  try {
    const answer = await exec(server, 'recover table nowhere skip');
    t.is(answer.error, 'table does not exist [table=nowhere]');
  } finally {
    await server.stop();
  }
});
