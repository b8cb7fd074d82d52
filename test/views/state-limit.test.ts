/**
 * A configuration key limits the state that views retain between refreshes. Views are correct even
 * with no state at all.
 */
import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { rows, run } from '../scenario/statements.js';
import { current, live } from './views.js';

const KEYS = 2_000;
const QUERIES = {
  candles: `SELECT ts, s, first(x) open, max(x) high, min(x) low, last(x) close, avg(x) mean,
    count() n FROM t SAMPLE BY 1d`,
  totals: `SELECT ts, s, sum(x) OVER (PARTITION BY s ORDER BY ts) total FROM t`,
  ranks: `SELECT ts, s, row_number() OVER (PARTITION BY s ORDER BY ts) number FROM t`,
} as const;

/** Returns an INSERT of rows one millisecond apart, with the numbers `from` to `to`. */
function insert(from: number, to: number): string {
  return `INSERT INTO t SELECT timestamp_sequence('2026-05-01'::timestamp + ${from} * 1000L, 1000L),
    's' || (x % ${KEYS}), x::double FROM long_sequence(${to - from})`;
}

for (const [limit, keeps] of [
  ['1K', 'none'],
  ['2M', 'some'],
  ['64M', 'all'],
] as const) {
  test(`with a state limit of ${limit}, views keep ${keeps} of their saved states`, async (t) => {
    const server = await startTestServer({ set: [`cairo.view.state.limit=${limit}`] });
    t.teardown(() => server.stop());
    await run(
      server,
      'CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
      insert(0, 50_000),
      `CREATE MATERIALIZED VIEW candles AS (${QUERIES.candles})`,
    );
    for (const view of ['totals', 'ranks'] as const) {
      const head = 'FLUSH EVERY 100ms IN MEMORY 1s START FROM BEGINNING';
      await run(server, `CREATE LIVE VIEW ${view} ${head} AS (${QUERIES[view]})`);
    }
    const maximum = Number.parseInt(limit, 10) * (limit.endsWith('K') ? 1_024 : 1_024 * 1_024);
    let used = 0;
    const steps = [
      insert(50_000, 90_000),
      insert(90_000, 90_010),
      // Late rows, both in the open bucket and before the state retained for it.
      insert(80_000, 80_003),
      insert(90_010, 90_020),
      "UPDATE t SET x = -5.0 WHERE s = 's7'",
      insert(90_020, 130_000),
      "DELETE FROM t WHERE ts > '2026-05-01T00:02'",
      insert(120_000, 120_500),
    ];
    for (const step of steps) {
      await run(server, step);
      await current(server, 'candles');
      await live(server, 'totals', 'ranks');
      for (const [view, query] of Object.entries(QUERIES)) {
        const differing = `SELECT count() FROM (SELECT * FROM ${view} EXCEPT ALL (${query}))`;
        t.deepEqual(await rows(server, differing), [[0]], `${view}: ${step}`);
        const counted = await rows(server, `SELECT count() FROM ${view}`);
        t.deepEqual(counted, await rows(server, `SELECT count() FROM (${query})`), view);
      }
      const [[bytes]] = (await rows(server, 'SELECT sum(in_mem_bytes) FROM live_views()')) as [
        [number],
      ];
      t.true(bytes <= maximum, `${bytes} bytes`);
      used = Math.max(used, bytes);
    }
    t.is(used === 0, keeps === 'none', `${used} bytes`);
    if (keeps === 'all') {
      t.true(used > 2 * 1_024 * 1_024, `${used} bytes`);
    }
  });
}
