/**
 * npm run view-speed -- [--rows N] [--turns N] [--only PART,…] [--set key=value]…
 *
 * Cost and freshness of views, on separate servers:
 * - `ingestion`: inserts rows into a table without views, with one-minute candles for each of 1,000
 *   symbols, and with a live view, in turn; both as lines over HTTP and by INSERT … SELECT, which
 *   needs no client;
 * - `freshness`: time from the response to an INSERT until a view shows the row, idle and under
 *   load;
 * - `late`: ten rows in ten buckets of a base of N rows;
 * - `full`: a full refresh compared with its query;
 * - `hundred`: one commit to a base with a hundred views, until all of them show it;
 * - `answers`: small queries over a base with 0, 1 and 20 views, each with new SQL text.
 */
import { Agent, request } from 'node:http';
import { parseArgs } from 'node:util';

import { startTestServer, type TestServer } from '../golden/server.js';
import { cpuSeconds } from '../limits/measure.js';
import { run } from '../scenario/statements.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '20000000' },
    turns: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    set: { type: 'string', multiple: true, default: [] },
  },
});
const ROWS = Number(values.rows);
const TURNS = Number(values.turns);
const SYMBOLS = 1_000;
const MINUTE = 60_000_000;
const START = Date.UTC(2026, 0, 1) * 1_000;
const CANDLES = `SELECT ts, sym, first(price) open, max(price) high, min(price) low,
  last(price) close, count() n FROM ticks SAMPLE BY 1m`;
const TABLE =
  'CREATE TABLE ticks (ts TIMESTAMP, sym SYMBOL, price DOUBLE) TIMESTAMP(ts) PARTITION BY DAY';
const VIEW = `CREATE MATERIALIZED VIEW candles AS (${CANDLES})`;
const LIVE = `CREATE LIVE VIEW totals FLUSH EVERY 100ms IN MEMORY 1s START FROM BEGINNING AS (
  SELECT ts, sym, sum(price) OVER (PARTITION BY sym ORDER BY ts) total FROM ticks)`;

const agent = new Agent({ keepAlive: true, maxSockets: 8 });

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function quantile(found: readonly number[], fraction: number): number {
  const sorted = [...found].sort((a, b) => a - b);
  const index = Math.min(sorted.length - 1, Math.floor(sorted.length * fraction));
  return sorted[index] ?? Number.NaN;
}

const median = (found: readonly number[]): number => quantile(found, 0.5);
const ms = (found: readonly number[], fraction: number): string => quantile(found, fraction).toFixed(1);

async function withServer(
  set: readonly string[],
  body: (server: TestServer) => Promise<void>,
): Promise<void> {
  const server = await startTestServer({ set: [...set, ...values.set] });
  try {
    await body(server);
  } finally {
    await server.stop();
  }
}

/** Sends one request over a kept-alive connection; resolves to the response body. */
function sendRequest(server: TestServer, method: string, path: string, body?: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${path}`, { method, agent }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      answer.on('end', () => {
        if ((answer.statusCode ?? 500) >= 300) {
          reject(new Error(text));
        } else {
          resolve(text);
        }
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function query(server: TestServer, text: string): Promise<readonly (readonly unknown[])[]> {
  const answer = await sendRequest(server, 'GET', `/exec?query=${encodeURIComponent(text)}`);
  return (JSON.parse(answer) as { dataset?: (readonly unknown[])[] }).dataset ?? [];
}

const POSITIONS = {
  candles: `SELECT base_table_txn, refresh_base_table_txn FROM materialized_views()
    WHERE view_name = 'candles'`,
  totals: `SELECT last_processed_seqtxn + lag_seqtxn, last_processed_seqtxn FROM live_views()
    WHERE view_name = 'totals'`,
};
type View = keyof typeof POSITIONS;

const pause = (time: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, time));

/**
 * Waits until a view shows the current rows of its base, and returns how many milliseconds this
 * took. Polls every other millisecond, because continuous polling would take up a core that
 * refreshes need.
 */
async function caughtUp(server: TestServer, view: View): Promise<number> {
  const began = performance.now();
  let expected: number | undefined;
  for (;;) {
    const [found] = await query(server, POSITIONS[view]);
    const [base, shown] = [Number(found?.[0]), found?.[1] ?? null];
    expected ??= base;
    if (shown !== null && Number(shown) >= expected) {
      return performance.now() - began;
    }
    await pause(2);
  }
}

/** Inserts rows a few microseconds apart, with INSERTs that the server generates. */
async function fill(
  server: TestServer,
  from: number,
  count: number,
  step: number,
  each = 5_000_000,
): Promise<void> {
  for (let done = 0; done < count; done += each) {
    const part = Math.min(each, count - done);
    await run(
      server,
      `INSERT INTO ticks SELECT timestamp_sequence(${from + done * step}, ${step}),
        's' || (x * 7919 % ${SYMBOLS}), (x * 31 % 10007)::double FROM long_sequence(${part})`,
    );
  }
}

/** Returns request bodies whose lines hold rows one microsecond apart. */
function lines(from: number, count: number, each: number): Buffer[] {
  const bodies: Buffer[] = [];
  for (let done = 0; done < count; done += each) {
    const part: string[] = [];
    for (let at = done; at < Math.min(done + each, count); at += 1) {
      const price = ((at * 31) % 10_007) / 8;
      part.push(`ticks,sym=s${(at * 7919) % SYMBOLS} price=${price} ${(from + at) * 1_000}`);
    }
    bodies.push(Buffer.from(part.join('\n') + '\n'));
  }
  return bodies;
}

/** Sends bodies one after another, so that the rows arrive in order. */
async function send(server: TestServer, bodies: readonly Buffer[]): Promise<void> {
  for (const body of bodies) {
    await sendRequest(server, 'POST', '/write', body);
  }
}

const KINDS = { none: [], candles: [VIEW], totals: [LIVE] } as const;

interface Ingested {
  readonly rate: number;
  readonly cpu: number;
  readonly behind: number;
}

/** Measures rows per second, the server's total CPU time, and the lag of the view. */
async function ingested(
  kind: keyof typeof KINDS,
  count: number,
  come: (server: TestServer) => Promise<void>,
): Promise<Ingested> {
  let found: Ingested = { rate: Number.NaN, cpu: Number.NaN, behind: Number.NaN };
  await withServer([], async (server) => {
    await run(server, TABLE, ...KINDS[kind]);
    const [began, cpu] = [performance.now(), await cpuSeconds(server)];
    await come(server);
    const rate = (count / (performance.now() - began)) * 1_000;
    const taken = (await cpuSeconds(server)) - cpu;
    found = { rate, cpu: taken, behind: kind === 'none' ? 0 : await caughtUp(server, kind) };
  });
  return found;
}

async function ingestion(): Promise<void> {
  const lined = Math.min(ROWS, 4_000_000);
  const bodies = lines(START, lined, 20_000);
  const selected = Math.min(ROWS, 20_000_000);
  const ways = [
    ['lines', lined, (server: TestServer) => send(server, bodies)],
    ['INSERT … SELECT', selected, (server: TestServer) => fill(server, START, selected, 1, 200_000)],
  ] as const;
  for (const [way, count, come] of ways) {
    const found = new Map<string, Ingested[]>();
    for (let round = 0; round <= TURNS; round += 1) {
      for (const kind of ['none', 'candles', 'totals'] as const) {
        const one = await ingested(kind, count, come);
        if (round > 0) {
          found.set(kind, [...(found.get(kind) ?? []), one]);
        }
      }
    }
    const without = median((found.get('none') ?? []).map(({ rate }) => rate));
    for (const [kind, all] of found) {
      const rate = median(all.map((one) => one.rate));
      say(
        `ingestion, ${way}, ${kind}: ${(rate / 1e6).toFixed(2)} M rows/s ` +
          `(${(rate / without).toFixed(2)} of none; ` +
          `${all.map((one) => (one.rate / 1e6).toFixed(2)).join(' ')}), ` +
          `${median(all.map((one) => one.cpu)).toFixed(2)} s of CPU time, current ` +
          `${median(all.map((one) => one.behind)).toFixed(0)} ms after the last row`,
      );
    }
  }
}

async function freshness(): Promise<void> {
  for (const view of ['candles', 'totals'] as const) {
    await withServer([], async (server) => {
      await run(server, TABLE, ...KINDS[view]);
      await fill(server, START, 1_000_000, 100);
      await caughtUp(server, view);
      let at = START + 100_000_000;
      const measure = async (times: number): Promise<number[]> => {
        const found: number[] = [];
        for (let number = 0; number < times; number += 1) {
          at += 10_000;
          const began = performance.now();
          await query(server, `INSERT INTO ticks VALUES (${at}, 's1', 1.0)`);
          await caughtUp(server, view);
          found.push(performance.now() - began);
        }
        return found;
      };
      const tell = (what: string, found: readonly number[]): void => {
        say(
          `freshness, ${view}, ${what}: p50 ${ms(found, 0.5)} ms, p99 ${ms(found, 0.99)} ms, ` +
            `most ${ms(found, 1)} ms`,
        );
      };
      await measure(20);
      tell('alone', await measure(TURNS * 60));
      // Sends a tenth of a second's worth of rows at 100,000 rows per second. With two writers, a
      // row may arrive up to 10 ms and 10,000 rows after later rows from the other writer.
      const state = { over: false, sent: 0 };
      const writer = (async () => {
        while (!state.over) {
          const next = new Promise((resolve) => setTimeout(resolve, 100));
          await sendRequest(server, 'POST', '/write', lines(at, 10_000, 10_000)[0]);
          at += 10_000;
          state.sent += 10_000;
          await next;
        }
      })();
      const began = performance.now();
      const found = await measure(TURNS * 60);
      const rate = state.sent / (performance.now() - began);
      state.over = true;
      await writer;
      tell(`while ${rate.toFixed(0)} k rows/s come`, found);
    });
  }
}

/** Creates a base with ROWS rows that span a thousand minutes, and its view. */
async function withBase(body: (server: TestServer, step: number) => Promise<void>): Promise<void> {
  await withServer(['query.answers.from.views=false'], async (server) => {
    const step = Math.max(1, Math.floor((1_000 * MINUTE) / ROWS));
    await run(server, TABLE, VIEW);
    const began = performance.now();
    await fill(server, START, ROWS, step);
    await caughtUp(server, 'candles');
    say(`${ROWS} rows and the view: ${((performance.now() - began) / 1_000).toFixed(1)} s`);
    await body(server, step);
  });
}

async function late(server: TestServer): Promise<void> {
  const found: number[] = [];
  const refreshes: number[] = [];
  for (let round = 0; round < TURNS * 4; round += 1) {
    const row = (bucket: number): string =>
      `(${START + ((round * 7 + bucket * 90) % 950) * MINUTE + 5}, 's2', 2.0)`;
    const values = Array.from({ length: 10 }, (_, bucket) => row(bucket));
    const began = performance.now();
    await query(server, `INSERT INTO ticks VALUES ${values.join(', ')}`);
    await caughtUp(server, 'candles');
    const took = performance.now() - began;
    found.push(took);
    const [[micros]] = (await query(
      server,
      "SELECT last_micros FROM jobs() WHERE name = 'candles'",
    )) as [[number]];
    refreshes.push(micros / 1_000);
    // After a refresh the view pauses for four times the duration of the refresh. Rows that arrive
    // during the pause would be delayed.
    await pause(Math.min(5_000, 5 * took));
  }
  say(
    `late, 10 buckets of ${ROWS} rows: median ${ms(found, 0.5)} ms, p90 ${ms(found, 0.9)}, ` +
      `least ${ms(found, 0)}; the refresh alone: median ${ms(refreshes, 0.5)} ms, ` +
      `p90 ${ms(refreshes, 0.9)}, least ${ms(refreshes, 0)}`,
  );
}

async function full(server: TestServer): Promise<void> {
  const job = "SELECT runs, last_micros FROM jobs() WHERE name = 'candles'";
  const alone: number[] = [];
  const stored: number[] = [];
  const refreshed: number[] = [];
  for (let round = 0; round <= TURNS; round += 1) {
    let began = performance.now();
    const columns = 'sum(open), sum(high), sum(low), sum(close), sum(n)';
    await query(server, `SELECT count(), ${columns} FROM (${CANDLES})`);
    alone.push(performance.now() - began);
    await run(server, 'DROP TABLE IF EXISTS copy');
    began = performance.now();
    await run(server, `CREATE TABLE copy AS (${CANDLES}) TIMESTAMP(ts) PARTITION BY DAY`);
    stored.push(performance.now() - began);
    const [[before]] = (await query(server, job)) as [[number]];
    await run(server, 'REFRESH MATERIALIZED VIEW candles FULL');
    for (;;) {
      await pause(100);
      const [[runs, micros]] = (await query(server, job)) as [[number, number]];
      if (runs > before) {
        refreshed.push(micros / 1_000);
        break;
      }
    }
  }
  const [query_, table, refresh] = [alone, stored, refreshed].map((one) => median(one.slice(1)));
  const ratio = (of: number | undefined): string => ((refresh ?? 0) / (of ?? 1)).toFixed(2);
  say(
    `full refresh of ${ROWS} rows: ${refresh?.toFixed(0)} ms; its query ${query_?.toFixed(0)} ms ` +
      `(${ratio(query_)} times), into a table ${table?.toFixed(0)} ms (${ratio(table)} times)`,
  );
}

async function hundred(): Promise<void> {
  await withServer([], async (server) => {
    await run(server, TABLE);
    await fill(server, START, 1_000_000, 100);
    for (let number = 0; number < 100; number += 1) {
      await run(server, VIEW.replace('candles', `candles${number}`));
    }
    const behind = `SELECT count() FROM materialized_views()
      WHERE coalesce(refresh_base_table_txn, -1) < base_table_txn`;
    const settled = async (): Promise<void> => {
      while ((await query(server, behind))[0]?.[0] !== 0) {
        await pause(5);
      }
    };
    await settled();
    const found: number[] = [];
    const cpus: number[] = [];
    for (let round = 0; round <= TURNS; round += 1) {
      const [began, cpu] = [performance.now(), await cpuSeconds(server)];
      await query(server, `INSERT INTO ticks VALUES (${START + (round + 200) * MINUTE}, 's1', 1.0)`);
      await settled();
      found.push(performance.now() - began);
      cpus.push((await cpuSeconds(server)) - cpu);
    }
    const cpu = await cpuSeconds(server);
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    const idle = ((await cpuSeconds(server)) - cpu) / 5;
    say(
      `100 views, one commit: all current after ${ms(found.slice(1), 0.5)} ms, ` +
        `${median(cpus.slice(1)).toFixed(2)} s of CPU time; idle ` +
        `${(idle * 100).toFixed(1)} % of a core`,
    );
  });
}

async function answers(): Promise<void> {
  for (const views of [0, 1, 20]) {
    await withServer([], async (server) => {
      await run(server, TABLE);
      await fill(server, START, 1_000_000, 100_000);
      for (let number = 0; number < views; number += 1) {
        const text = `CREATE MATERIALIZED VIEW v${number} AS (
          SELECT ts, max(price) high, min(price) low, count() n${number} FROM ticks SAMPLE BY 1h)`;
        await run(server, text);
      }
      for (;;) {
        const [[left]] = (await query(
          server,
          `SELECT count() FROM materialized_views()
            WHERE coalesce(refresh_base_table_txn, -1) < base_table_txn`,
        )) as [[number]];
        if (left === 0) {
          break;
        }
      }
      const texts = {
        'answered by a view': 'SELECT ts, max(price) FROM ticks SAMPLE BY 1d',
        'answered by none': `SELECT ts, avg(price) FROM ticks WHERE ts IN '2026-01-01' SAMPLE BY 6h`,
        'no aggregation': 'SELECT * FROM ticks LIMIT 1',
      };
      for (const [what, text] of Object.entries(texts)) {
        const medians: number[] = [];
        const cpus: number[] = [];
        for (let round = 0; round <= TURNS; round += 1) {
          const took: number[] = [];
          const cpu = await cpuSeconds(server);
          for (let number = 0; number < 300; number += 1) {
            const began = performance.now();
            await query(server, `${text} -- ${round} ${number}`);
            took.push((performance.now() - began) * 1_000);
          }
          medians.push(median(took));
          cpus.push((((await cpuSeconds(server)) - cpu) * 1e6) / 300);
        }
        say(
          `small queries, ${views} views, ${what}: median ` +
            `${median(medians.slice(1)).toFixed(0)} µs, CPU time ` +
            `${Math.min(...cpus.slice(1)).toFixed(0)} µs`,
        );
      }
    });
  }
}

const wants = (part: string): boolean => values.only === '' || values.only.split(',').includes(part);
if (wants('answers')) {
  await answers();
}
if (wants('hundred')) {
  await hundred();
}
if (wants('freshness')) {
  await freshness();
}
if (wants('ingestion')) {
  await ingestion();
}
if (wants('late') || wants('full')) {
  await withBase(async (server) => {
    if (wants('late')) {
      await late(server);
    }
    if (wants('full')) {
      await full(server);
    }
  });
}
agent.destroy();
