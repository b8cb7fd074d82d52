/**
 * npm run statement-speed -- [--runs N] [--rows N]
 *
 * Cost of the statements themselves rather than their data: long INSERTs of literals over HTTP and
 * the wire protocol, a pipeline of prepared INSERTs, and compiling a new and a repeated SAMPLE BY.
 * Shows the median and minimum of the runs. `nosync` is set to keep the disk out of the
 * measurement.
 */
import { parseArgs } from 'node:util';

import { startTestServer } from '../golden/server.js';
import { clientMessage, RawClient } from '../pgwire/raw-client.js';
import { exec } from '../torture/client.js';
import { cpuTicks } from '../torture/process.js';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '60' },
    rows: { type: 'string', default: '10000' },
    only: { type: 'string', default: '' },
  },
});
const runs = Number(values.runs);
const rowCount = Number(values.rows);
const TICK_MS = 10;
const READY = Buffer.from('Z\0\0\0\x05I', 'latin1');

const server = await startTestServer({
  set: ['pg.auth.method=cleartext', 'cairo.commit.mode=nosync'],
});
const port = Number(server.pg.split(':')[1]);

function report(what: string, millis: readonly number[], rows = 0): void {
  const sorted = [...millis].sort((a, b) => a - b);
  const p50 = sorted[sorted.length >> 1] ?? Number.NaN;
  const minimum = sorted[0] ?? Number.NaN;
  const shown = (value: number): string =>
    value < 1 ? `${(value * 1000).toFixed(1)} µs` : `${value.toFixed(2)} ms`;
  const rate = rows === 0 ? '' : `, ${Math.round(rows / p50)}k rows/s`;
  process.stdout.write(`${what.padEnd(44)} p50 ${shown(p50)}, least ${shown(minimum)}${rate}\n`);
}

/** Returns the duration of each prepared run in milliseconds, after several warm-up runs. */
async function timed(prepare: (run: number) => () => Promise<void>): Promise<number[]> {
  const millis: number[] = [];
  const warm = Math.ceil(runs / 5);
  let ticks = 0;
  for (let run = -warm; run < runs; run += 1) {
    if (run === 0) {
      ticks = cpuTicks(server);
    }
    const step = prepare(run);
    const started = performance.now();
    await step();
    if (run >= 0) {
      millis.push(performance.now() - started);
    }
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const cpu = ((cpuTicks(server) - ticks) * TICK_MS) / runs;
  process.stdout.write(`  (${cpu.toFixed(2)} ms of CPU time each)\n`);
  return millis;
}

const SYMBOLS = ['BTC-USD', 'ETH-USD', 'SOL-USD', 'ADA-USD', 'XRP-USD'];
const base = Date.UTC(2026, 0, 1);

function row(index: number): readonly string[] {
  const time = new Date(base + index * 250).toISOString().replace('Z', '000Z');
  const symbol = SYMBOLS[(index * 7) % SYMBOLS.length] ?? '';
  const price = (100 + ((index * 7919) % 100_003) / 7).toFixed(4);
  return [time, symbol, index % 2 === 0 ? 'buy' : 'sell', price, String((index * 31) % 5000)];
}

function insertText(run: number): string {
  const rows = Array.from({ length: rowCount }, (_, index) => {
    const [time, symbol, side, price, amount] = row((run + runs) * rowCount + index);
    return `('${time}', '${symbol}', '${side}', ${price}, ${amount})`;
  });
  return `INSERT INTO trades VALUES ${rows.join(', ')}`;
}

const wants = (part: string): boolean => values.only === '' || values.only.includes(part);

async function post(body: string, type: string): Promise<void> {
  const headers = { 'content-type': type };
  const response = await fetch(`${server.url}/exec`, { method: 'POST', body, headers });
  const text = await response.text();
  if (!text.includes(`"inserted":${rowCount}`)) {
    throw new Error(text.slice(0, 200));
  }
}

async function insertsOverHttp(): Promise<void> {
  const boundary = 'x-tidemark-x';
  const multipart = await timed((run) => {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="query"\r\n\r\n`;
    const body = `${head}${insertText(run)}\r\n--${boundary}--\r\n`;
    return () => post(body, `multipart/form-data; boundary=${boundary}`);
  });
  report(`INSERT of ${rowCount} × 5, POST, parts`, multipart, rowCount);
  const encoded = await timed((run) => {
    const body = `query=${encodeURIComponent(insertText(run)).replaceAll('%20', '+')}`;
    return () => post(body, 'application/x-www-form-urlencoded');
  });
  report(`INSERT of ${rowCount} × 5, POST, urlencoded`, encoded, rowCount);
}

async function insertsOverPgWire(): Promise<void> {
  const client = await RawClient.login(port);
  const send = async (messages: readonly Buffer[]): Promise<void> => {
    client.send(...messages);
    const failure = (await client.until('Z')).find(({ type }) => type === 'E');
    if (failure !== undefined) {
      throw new Error(String(failure.body));
    }
  };
  const simple = await timed((run) => {
    const message = clientMessage('Q', insertText(run));
    return () => send([message]);
  });
  report(`INSERT of ${rowCount} × 5, simple query`, simple, rowCount);
  const text = 'INSERT INTO trades VALUES ($1, $2, $3, $4, $5)';
  await send([clientMessage('P', 'ins', text, [0]), clientMessage('S')]);
  // Responses are not collected from here on.
  client.socket.removeAllListeners('data');
  const pipeline = await timed((run) => {
    const bytes = Buffer.concat([...pipelined(run), clientMessage('S')]);
    return () => exchange(client, bytes);
  });
  report(`pipeline of ${rowCount} prepared INSERTs`, pipeline, rowCount);
  client.close();
}

/** Sends bytes and waits for ReadyForQuery, without decoding the messages that precede it. */
function exchange({ socket }: RawClient, bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      if (chunk.subarray(-6).equals(READY)) {
        socket.off('data', take);
        resolve();
      } else if (chunk.includes('SERROR')) {
        reject(new Error(chunk.toString('latin1')));
      }
    };
    socket.on('data', take);
    socket.write(bytes);
  });
}

function pipelined(run: number): Buffer[] {
  return Array.from({ length: rowCount }, (_, index) => {
    const cells = row((run + runs) * rowCount + index);
    const given = cells.flatMap((cell): [number, Buffer] => [cell.length, Buffer.from(cell)]);
    return Buffer.concat([
      clientMessage('B', '', 'ins', [0], [cells.length], ...given, [0]),
      clientMessage('E', '', 0),
    ]);
  });
}

interface Timed {
  readonly timings: { readonly compiler: number };
}

/** Runs a SAMPLE BY repeatedly; `limit` makes each SQL text different. */
async function sampleBy(what: string, limit: (index: number) => number): Promise<void> {
  const compiler: number[] = [];
  const complete: number[] = [];
  const count = 10 * runs;
  let ticks = 0;
  for (let index = -count / 2; index < count; index += 1) {
    if (index === 0) {
      ticks = cpuTicks(server);
    }
    const sql = `SELECT ts, symbol, first(price) open, max(price) high, min(price) low,
      last(price) close, sum(amount) volume FROM trades
      WHERE symbol = 'BTC-USD' AND ts IN '2025-01-01'
      SAMPLE BY 1h FILL(PREV) ALIGN TO CALENDAR LIMIT ${limit(index)}`;
    const url = `${server.url}/exec?timings=true&query=${encodeURIComponent(sql)}`;
    const started = performance.now();
    const { timings } = (await (await fetch(url)).json()) as Timed;
    if (index >= 0) {
      complete.push(performance.now() - started);
      compiler.push(timings.compiler / 1e6);
    }
  }
  const micros = ((cpuTicks(server) - ticks) * TICK_MS * 1000) / count;
  process.stdout.write(`  (${micros.toFixed(0)} µs of CPU time for a whole request)\n`);
  report(`SAMPLE BY, ${what}: parse and bind`, compiler);
  report(`SAMPLE BY, ${what}: the whole request`, complete);
}

async function compilation(): Promise<void> {
  await sampleBy('kept', () => 7);
  await sampleBy('new', (index) => 1_000_000 + index);
}

await exec(
  server,
  `CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, side SYMBOL, price DOUBLE, amount LONG)
   TIMESTAMP(ts) PARTITION BY DAY`,
);
await exec(server, "INSERT INTO trades VALUES ('2025-01-01', 'a', 'b', 1, 1)");
if (wants('http')) {
  await insertsOverHttp();
}
if (wants('pg')) {
  await insertsOverPgWire();
}
if (wants('compile')) {
  await compilation();
}
await server.stop();
