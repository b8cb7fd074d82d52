/**
 * Gate S18: regardless of the number and length of one user's queries, other users get their share
 * of slots, CPU time and memory.
 */
import test, { type ExecutionContext } from 'ava';

import { credentials, rows, run, startAccessServer } from '../access/harness.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { timed } from './measure.js';

const HEAVY_USER = 'heavy:pw-12345678';
const OTHER = 'other:pw-12345678';
const MANY = 40;
/** Each row matches a thousand others and none passes the filter, so the query runs for hours. */
const JOIN = 'select count() from big a join big b on a.k = b.k where a.x + b.x < 0';
const SMALL = "select count() from big where v ~ '(1|2|3)+.*(7|8|9)$' and k % 7 = 3";
/**
 * Each of the two users should get half of the CPU time, so queries take twice as long. A busy
 * machine may add to that.
 */
const MAX_TIMES = 4;

let server: TestServer;

test.before(async () => {
  server = await startAccessServer(
    undefined,
    'shared.query.worker.count=2',
    'query.queue.wait=60s',
    'query.memory.pool=512M',
    'query.memory.limit=128M',
  );
  await run(
    server,
    "create table big as (select x, x%1000 k, 'v'||(x%100000) v from long_sequence(1000000))",
    "create user heavy with password 'pw-12345678'",
    "create user other with password 'pw-12345678'",
    'grant http to heavy',
    'grant http to other',
    'grant select on big to heavy',
    'grant select on big to other',
  );
});

test.after.always(async () => {
  await server.stop();
});

async function secondsOf(t: ExecutionContext, query: string): Promise<number> {
  const { answer, ms } = await timed(server, query, 60_000, credentials(OTHER));
  t.regex(answer, /^200 /, answer.slice(0, 200));
  return ms / 1000;
}

async function median(t: ExecutionContext, query: string): Promise<number> {
  const times = [];
  for (let round = 0; round < 5; round += 1) {
    times.push(await secondsOf(t, query));
  }
  return times.sort((a, b) => a - b)[2] ?? Infinity;
}

test.serial("a user's many joins leave half of the CPU time for another user", async (t) => {
  const alone = await median(t, SMALL);
  const stop = new AbortController();
  const all = Array.from({ length: MANY }, async () => {
    const headers = { ...credentials(HEAVY_USER), 'Statement-Timeout': '3600000' };
    const body = new URLSearchParams({ query: JOIN });
    const call = fetch(`${server.url}/exec`, {
      method: 'POST',
      body,
      headers,
      signal: stop.signal,
    });
    await call.then((response) => response.text()).catch(() => undefined);
  });
  const activity = "select count() from query_activity() where username = 'heavy'";
  await until(async () => {
    const [row] = await rows(server, 'admin:quest', activity);
    return Number(row?.[0]) >= 4;
  }, 'the joins are running');
  const beside = await median(t, SMALL);
  const tiny = await median(t, 'select 1');
  stop.abort();
  await Promise.all(all);
  await until(async () => {
    const [row] = await rows(server, 'admin:quest', activity);
    return Number(row?.[0]) === 0;
  }, 'the joins end with their clients');
  const shown = `${alone.toFixed(2)} s alone, ${beside.toFixed(2)} s beside ${MANY} joins`;
  t.true(beside < MAX_TIMES * Math.max(alone, 0.25), shown);
  t.log(`${shown}; select 1 in ${(tiny * 1000).toFixed(0)} ms`);
});
