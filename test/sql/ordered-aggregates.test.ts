/** Order-dependent aggregates follow the ordering of a sub-query. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await rowsOf(
    server,
    `create table t as (select 'text ' || (x * 7919 % 100003) s, (x % 3)::int k,
      (x * 31 % 5)::symbol y, x, timestamp_sequence(0, 1000000) ts from long_sequence(200000))
      timestamp(ts) partition by day`,
  );
});

test.after.always(async () => {
  await server.stop();
});

for (const direction of ['asc', 'desc'] as const) {
  const sorted = `(select k, y, s, x from t order by s ${direction}, x)`;
  const [first, last] = direction === 'asc' ? ['min', 'max'] : ['max', 'min'];

  test(`first and last follow the row order (${direction})`, async (t) => {
    t.deepEqual(
      await rowsOf(server, `select first(s), last(s) from ${sorted}`),
      await rowsOf(server, `select ${first}(s), ${last}(s) from t`),
    );
    for (const key of ['k', 'y']) {
      t.deepEqual(
        await rowsOf(server, `select ${key}, first(s), last(s) from ${sorted} order by ${key}`),
        await rowsOf(server, `select ${key}, ${first}(s), ${last}(s) from t order by ${key}`),
      );
    }
  });

  test(`string_agg follows the row order (${direction}) of an unselected column`, async (t) => {
    const few = `(select x from (select s, x from t where x <= 50) order by s ${direction})`;
    const rows = await rowsOf(server, few.slice(1, -1));
    const joined = rows.map(([x]) => String(x)).join(',');
    t.deepEqual(await rowsOf(server, `select string_agg(x::string, ',') from ${few}`), [[joined]]);
  });
}

test('an ORDER BY inside an aggregate call orders the aggregated rows', async (t) => {
  for (const rows of ['t', '(select x, x::string s from long_sequence(3))']) {
    for (const order of ['asc', 'desc']) {
      const inside = `select string_agg(s, ',' order by x ${order}) from ${rows}`;
      const before = `select string_agg(s, ',') from (select * from ${rows} order by x ${order})`;
      const [first, second] = [await send(server, inside), await send(server, before)];
      t.is(first.status, 200, inside);
      t.deepEqual(first.rows, second.rows, inside);
    }
  }
});
