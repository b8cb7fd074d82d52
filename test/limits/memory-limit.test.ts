/** Behaviour when the whole process, rather than a single query, uses too much memory. */
import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { send, rowsOf } from './client.js';

/** A query with an endless number of groups, whose memory grows until it is stopped. */
const GREEDY = 'select x, count() c from long_sequence(1000000000000) order by c';
const SMALL = 'select count() from long_sequence(1000000) where x % 7 = 1';

test('above the limit, heavy queries and writes are refused; small queries run', async (t) => {
  // The limit is less than the program itself needs.
  const server = await startTestServer({ set: ['memory.limit=20M'] });
  try {
    const refused = /^memory is low: the server is using \d+ of 20 MiB$/;
    let query = await send(server, SMALL);
    // A query that started before the first measurement is stopped.
    for (let tries = 0; tries < 100 && !refused.test(query.error ?? ''); tries += 1) {
      query = await send(server, SMALL);
    }
    t.regex(query.error ?? '', refused);
    t.is(query.status, 503);
    await rowsOf(server, 'create table t (x long)');
    const write = await send(server, 'insert into t values (1)');
    t.is(write.status, 503);
    t.regex(write.error ?? '', /memory/);
    t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  } finally {
    await server.stop();
  }
});

test('only the largest query is cancelled', async (t) => {
  const set = ['memory.limit=500M', 'query.memory.pool=4G', 'query.memory.limit=4G'];
  const server = await startTestServer({ set });
  try {
    await rowsOf(server, 'create table t (x long)');
    const greedy = await send(server, GREEDY);
    t.regex(
      greedy.error ?? '',
      /^stopped as the largest query: the server is using \d+ of 500 MiB$/,
    );
    // The server recovers on its own.
    await until(async () => {
      const write = await send(server, 'insert into t values (1)');
      return write.error === undefined;
    }, 'writes are accepted again');
    t.deepEqual(await rowsOf(server, SMALL), [[142_858]]);
    t.deepEqual(await rowsOf(server, 'select count() from t'), [[1]]);
  } finally {
    await server.stop();
  }
});
