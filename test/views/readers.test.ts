/**
 * Queries on views with EXPIRE ROWS, and queries answered from a view, with little memory and small
 * chunks. Whatever stops them, they must end immediately and release their memory.
 */
import { once } from 'node:events';
import { createConnection } from 'node:net';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { timed } from '../limits/measure.js';
import { rows, run } from '../scenario/statements.js';
import { until } from '../until.js';
import { current } from './views.js';

const ROWS = 1_000_000;
/** Maximum time in milliseconds, on a busy machine, for work that takes a few milliseconds. */
const SOON_MS = 3_000;

const POLICIES = [
  'WHEN v % 3 = 0',
  'WHEN row_number() OVER (PARTITION BY s ORDER BY ts DESC) > 100000',
  'KEEP LATEST PARTITION BY k',
  'KEEP LATEST PARTITION BY s',
  'KEEP HIGHEST ON v PARTITION BY s',
  'KEEP LOWEST ON v PARTITION BY k',
  'KEEP 3 HIGHEST ON v PARTITION BY k',
  'KEEP 100000 LOWEST ON v PARTITION BY s',
];
const LEFT: Readonly<Record<string, string>> = {
  'WHEN v % 3 = 0': 'SELECT * FROM t WHERE v % 3 <> 0',
  'KEEP LATEST PARTITION BY k': 'SELECT * FROM t LATEST ON ts PARTITION BY k',
  'KEEP LATEST PARTITION BY s': 'SELECT * FROM t LATEST ON ts PARTITION BY s',
};

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'memory.limit=1500M',
      'query.memory.pool=512M',
      'query.memory.limit=384M',
      'query.scan.part.rows=2000',
      'shared.query.worker.count=4',
    ],
  });
  await run(
    server,
    `CREATE TABLE t (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY`,
    `INSERT INTO t SELECT timestamp_sequence('2026-01-01', 500000), x / 4, 'one', x * 7919 % 1000003
      FROM long_sequence(${ROWS})`,
    'CREATE MATERIALIZED VIEW shown AS (SELECT * FROM t) PARTITION BY DAY',
    'CREATE MATERIALIZED VIEW moments AS (SELECT ts, s, max(v) hi, count() n FROM t SAMPLE BY 5s)',
  );
  await current(server, 'shown', 'moments');
});

test.after.always(async () => {
  await server.stop();
});

const running = async (mark: string): Promise<unknown> => {
  const found = await rows(server, 'SELECT query_id, query FROM query_activity()');
  return found.find(([, text]) => String(text).includes(mark))?.[0];
};

/** Waits until no query runs and only the newest snapshot exists. */
async function released(mark: string): Promise<void> {
  await until(async () => (await running(mark)) === undefined, `${mark} has ended`);
  await until(
    async () => (await rows(server, 'SELECT epoch FROM snapshots()')).length === 1,
    `${mark} holds no resources`,
  );
}

const post = (query: string, signal?: AbortSignal): Promise<Response> =>
  fetch(`${server.url}/exec`, {
    method: 'POST',
    body: new URLSearchParams({ query }),
    ...(signal === undefined ? {} : { signal }),
  });

/** A statement that runs for hours over rows of a view. */
const endless = (from: string, mark: string): string =>
  `SELECT count() ${mark} FROM ${from} a CROSS JOIN t b CROSS JOIN t c WHERE a.v + b.v + c.v = -1`;

/**
 * Ends a statement in every possible way. Each time it must end immediately and release everything.
 */
async function ends(
  t: {
    true: (value: boolean, what: string) => void;
    regex: (a: string, b: RegExp, c: string) => void;
  },
  of: (mark: string) => string,
  name: string,
): Promise<void> {
  const out = await timed(server, of('by_timeout'), 300);
  t.regex(out.answer, /^(?:4|5)\d\d .*(?:timeout|time)/i, `${name}: timeout`);
  t.true(out.ms < 300 + SOON_MS, `${name}: the timeout took ${out.ms} ms`);
  await released('by_timeout');

  const cancelled = post(of('by_cancel'));
  await until(async () => (await running('by_cancel')) !== undefined, 'the query is running');
  const id = await running('by_cancel');
  const began = performance.now();
  await run(server, `CANCEL QUERY ${String(id)}`);
  t.regex(await (await cancelled).text(), /cancelled/, `${name}: cancel`);
  t.true(performance.now() - began < SOON_MS, `${name}: cancellation took too long`);
  await released('by_cancel');

  const leaver = new AbortController();
  const left = post(of('by_leaving'), leaver.signal).catch(() => undefined);
  await until(async () => (await running('by_leaving')) !== undefined, 'the query is running');
  leaver.abort();
  await left;
  await released('by_leaving');
}

test.serial('each kind of EXPIRE ROWS shows the right rows to readers of a view', async (t) => {
  t.timeout(300_000);
  for (const policy of POLICIES) {
    await run(server, `ALTER MATERIALIZED VIEW shown SET EXPIRE ROWS ${policy}`);
    const left = LEFT[policy];
    if (left !== undefined) {
      const sums = 'count(), sum(v), sum(k), min(ts), max(ts)';
      t.deepEqual(
        await rows(server, `SELECT ${sums} FROM shown`),
        await rows(server, `SELECT ${sums} FROM (${left})`),
        policy,
      );
    }
    t.deepEqual(await rows(server, 'SELECT * FROM shown LIMIT 0'), [], policy);
    t.is((await rows(server, 'SELECT * FROM shown LIMIT 1')).length, 1, policy);
    await ends(t, (mark) => endless('shown', mark), policy);
  }
  await run(server, 'ALTER MATERIALIZED VIEW shown DROP EXPIRE');
});

test.serial('a view is released when a client disconnects while reading it', async (t) => {
  const { hostname, port } = new URL(server.url);
  const texts = [
    "SELECT ts, v, rpad('x', 200, 'y') in_mid FROM shown",
    `SELECT ts, v, rpad('x', 600, 'y') in_mid FROM (SELECT ts, s, max(v) v FROM t SAMPLE BY 5s)`,
  ];
  await run(server, 'ALTER MATERIALIZED VIEW shown SET EXPIRE ROWS WHEN v % 3 = 0');
  for (const text of texts) {
    const reader = createConnection({ host: hostname, port: Number(port) });
    reader.on('error', () => undefined);
    const query = encodeURIComponent(text);
    reader.write(`GET /exec?query=${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    // Reads the first chunk, pauses, and disconnects.
    const [first] = (await once(reader, 'data')) as [Buffer];
    reader.pause();
    t.regex(first.toString(), /^HTTP\/1.1 200/);
    t.not(await running('in_mid'), undefined, first.toString());
    reader.destroy();
    await released('in_mid');
  }
  await run(server, 'ALTER MATERIALIZED VIEW shown DROP EXPIRE');
});

test.serial('queries answered from a view return the right rows', async (t) => {
  const hours = (mark: string): string =>
    `(SELECT ts, s, max(v) v, count() ${mark} FROM t SAMPLE BY 1h)`;
  const explained = await rows(server, `EXPLAIN (PHYSICAL) ${hours('n').slice(1, -1)}`);
  t.regex(explained.flat().join('\n'), /TableScanExec: moments/);
  const twin = 'SELECT ts, s, max(v) v, count() n FROM (SELECT * FROM t WHERE v > -1) SAMPLE BY 1h';
  t.deepEqual(await rows(server, hours('n').slice(1, -1)), await rows(server, twin));
  t.deepEqual(await rows(server, `SELECT * FROM ${hours('n')} LIMIT 0`), []);
  await ends(t, (mark) => endless(hours(mark), ''), 'an answer');
});
