/**
 * npm run column-messages -- [--messages N] [--seed S]
 *
 * Sends mutated columnar protocol messages to a running server, over many concurrent connections.
 * Some connections are aborted; others send frames that violate the WebSocket protocol. Each
 * connection must end, and be answered according to the protocol: ascending OKs, then at most one
 * refusal, after which the server closes it with 1011. After each group of connections the tables
 * must contain exactly the committed rows: all rows of complete messages, and none of refused or
 * later messages. The server must survive, answer other clients, and use at most 64 MiB more.
 */
import { once } from 'node:events';

import { startTestServer } from '../golden/server.js';
import { KIND, maskedFrame, WebSocketClient } from '../http/websocket-client.js';
import { rows } from '../line/harness.js';
import { answer, message, STATUS } from '../qwp/messages.js';
import { newNumber, numbered, type Script, SCRIPTS, malformed } from '../qwp/malformed-messages.js';
import { until, within } from '../until.js';
import { Harness, type Random, sleep } from './harness.js';
import { residentBytes } from './process.js';

/** Number of concurrent connections. */
const WIDTH = 16;
/** Number of messages after which the tables are checked and then dropped. */
const GROUP = 4_000;
const GROWTH_BYTES = 64 * 1024 * 1024;
/**
 * Number of warm-up groups, in which caches fill and code is compiled. Memory is measured only
 * afterwards.
 */
const WARM_UP = 3;
const MEMORY_LIMIT_MIB = 512;
/** MiB by which the process may exceed its memory limit before it is killed. */
const SLACK_MIB = 512;
const MALFORMED_FRACTION = 0.4;
/** Refusals that clients understand: they give up, retry, or send the dictionary. */
const REFUSALS: ReadonlySet<number> = new Set([
  STATUS.schemaMismatch,
  STATUS.parseError,
  STATUS.writeError,
  STATUS.dictionaryGap,
]);
/** Protocol violation, text, abrupt end, an oversized message, and normal closes. */
const BROKEN_CLOSES: ReadonlySet<number | null> = new Set([
  null,
  1000,
  1002,
  1003,
  1007,
  1009,
  1011,
]);

const harness: Harness = new Harness('column-messages', ['messages']);
const total = harness.number('messages', 1_000_000);
const server = await startTestServer({
  set: [
    `memory.limit=${MEMORY_LIMIT_MIB}M`,
    'metrics.enabled=true',
    'http.receive.buffer.size=64K',
    'log.level=error',
    'cairo.commit.mode=nosync',
  ],
});
const port = Number(new URL(server.url).port);
/** Expected number of rows in each table, keyed by script message. */
const expected = new Map<Buffer, ReadonlyMap<string, number>>();
/** Outcome of each message; absent if the client cannot know the outcome. */
const fates = new Map<number, { readonly bytes: Buffer | null; isThere: boolean }>();
const answers = new Map<string, number>();
let sent = 0;
let connections = 0;
/** Maximum number of message characters shown with a failure. */
const SHOWN = 3_000;
const watchdog = setInterval(() => {
  const limit = (MEMORY_LIMIT_MIB + SLACK_MIB) * 2 ** 20;
  if (server.process.exitCode === null && residentBytes(server) > limit) {
    harness.fail(`the server is using ${residentBytes(server)} bytes`);
    server.process.kill('SIGKILL');
  }
}, 250);

let visibleRows = 0;
await learn();
const memory: number[] = [];
while (sent < total && harness.failures < 10) {
  const end = Math.min(total, sent + GROUP);
  // Creates the tables first, because messages with mutated types would create different columns.
  await sendAll();
  const work = Array.from({ length: WIDTH }, () => converse(end, harness.random.fork()));
  await Promise.all(work);
  harness.judge(await judgeTables().catch(String));
  memory.push(residentBytes(server));
  if (Math.floor(sent / 100_000) > Math.floor(Math.max(0, end - GROUP) / 100_000)) {
    harness.say(`${sent} mutated messages`);
  }
}
clearInterval(watchdog);
report();
const code = await server.stop();
harness.judge(code === 0 ? undefined : `the server ended with code ${code}`);
harness.finish();

function report(): void {
  const grown = Math.max(...memory.slice(WARM_UP), 0) - (memory[WARM_UP - 1] ?? Infinity);
  const [first = 0, last = 0] = [memory[WARM_UP - 1], memory.at(-1)];
  const mib = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
  harness.say(`${sent} mutated messages over ${connections} connections`);
  harness.say(`memory: ${mib(first)} MiB after ${WARM_UP} groups, ${mib(last)} at the end`);
  const kinds = [...answers].sort(([one], [other]) => one.localeCompare(other));
  harness.say(`answers: ${kinds.map(([kind, count]) => `${kind} ${count}`).join(', ')}`);
  harness.judge(grown <= GROWTH_BYTES ? undefined : `memory grew by ${grown} bytes`);
  // If connections ended before they got under way, the run would prove nothing.
  const isDeep = (answers.get('ok') ?? 0) > sent / 2 && (answers.get('status 5') ?? 0) > sent / 50;
  harness.judge(isDeep ? undefined : 'few messages were answered');
}

function count(kind: string): void {
  answers.set(kind, (answers.get(kind) ?? 0) + 1);
}

// ---- table contents ----

/** Sends every script unmodified. */
async function sendAll(): Promise<void> {
  for (const script of SCRIPTS) {
    const numbers = script.map(() => newNumber(harness.random));
    const said = script.map((bytes, at) => numbered(bytes, numbers[at] ?? 0));
    harness.judge(await politely(said, numbers, script));
  }
}

/** Determines the rows of each message. */
async function learn(): Promise<void> {
  await sendAll();
  const found = await rowsByMessage();
  for (const [number, { bytes }] of fates) {
    if (bytes !== null) {
      expected.set(bytes, found.get(number) ?? new Map());
    }
  }
  const marked = [...expected.values()].filter(({ size }) => size > 0).length;
  harness.judge(marked >= 14 ? undefined : `${marked} messages have marked rows`);
  harness.judge(await judgeTables());
}

async function tableNames(): Promise<readonly string[]> {
  const found = await rows(server, 'select table_name from tables()');
  return found.map(([name]) => String(name));
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Returns the rows of each table by message number. */
async function rowsByMessage(): Promise<Map<number, Map<string, number>>> {
  const found = new Map<number, Map<string, number>>();
  for (const table of await tableNames()) {
    const name = table.replaceAll("'", "''");
    const query = `select type from table_columns('${name}') where "column" = 'm'`;
    const [[type] = []] = await rows(server, query);
    if (type !== 'LONG') {
      continue;
    }
    const numbers = `select m / 65536 number, count() from ${quoted(table)}`;
    for (const [number, many] of await rows(server, numbers)) {
      const tables = found.get(Number(number)) ?? new Map<string, number>();
      tables.set(table, Number(many));
      found.set(Number(number), tables);
    }
  }
  return found;
}

/** Returns how many rows the server has reported as committed since the previous call. */
async function committedRows(): Promise<number> {
  const text = await fetch(`${server.url}/metrics`).then((response) => response.text());
  return Number(/^tidemark_ingest_rows_total\{protocol="qwp"\} (\d+)$/m.exec(text)?.[1] ?? NaN);
}

async function judgeTables(): Promise<string | undefined> {
  let [inTables, committed] = [0, 0];
  const agree = async (): Promise<boolean> => {
    const tables = await tableNames();
    const counts = await Promise.all(
      tables.map((table) => rows(server, `select count() from ${quoted(table)}`)),
    );
    inTables = counts.reduce((sum, [first]) => sum + Number(first?.[0]), 0);
    committed = (await committedRows()) - visibleRows;
    return inTables === committed;
  };
  // Commits from aborted connections may still be in progress.
  await until(agree, 'tables and commits agree').catch(() => undefined);
  if (inTables !== committed) {
    return `${inTables} rows in tables, ${committed} committed`;
  }
  visibleRows += committed;
  const found = await rowsByMessage();
  const problems = [...fates].flatMap(([number, { bytes, isThere }]) => {
    const here = found.get(number);
    if (!isThere) {
      return here === undefined ? [] : [`rows of message ${number}, which was refused`];
    }
    const expectedRows = bytes === null ? undefined : expected.get(bytes);
    const isWhole = expectedRows === undefined || sameRows(expectedRows, here ?? new Map());
    const [had, has] = [expectedRows, here].map((tables) => JSON.stringify([...(tables ?? [])]));
    return isWhole ? [] : [`message ${number} has ${has ?? ''}, not ${had ?? ''}`];
  });
  fates.clear();
  await rows(server, 'drop all tables');
  return problems[0];
}

function sameRows(one: ReadonlyMap<string, number>, other: ReadonlyMap<string, number>): boolean {
  return one.size === other.size && [...one].every(([table, many]) => other.get(table) === many);
}

// ---- conversations ----

async function converse(end: number, random: Random): Promise<void> {
  while (sent < end && harness.failures < 10) {
    connections += 1;
    const script = random.pick(SCRIPTS);
    const numbers = script.map(() => newNumber(random));
    const plain: (Buffer | null)[] = [...script];
    const said = script.map((bytes, at) => {
      const mine = numbered(bytes, numbers[at] ?? 0);
      if (random.next() >= MALFORMED_FRACTION) {
        return mine;
      }
      plain[at] = null;
      return malformed(mine, random);
    });
    const kind = random.next();
    const talk =
      kind < 0.9
        ? politely(said, numbers, plain, random)
        : kind < 0.95
          ? cutOff(said, random)
          : brokenFrames(said, random);
    const problem = await talk.catch(String);
    const shown = said.map((bytes) => bytes.toString('hex')).join(' ');
    harness.judge(problem === undefined ? undefined : `${problem}: ${shown.slice(0, SHOWN)}`);
  }
}

/** Returns a frame, or the fragments of one. */
function framed(bytes: Buffer, random: Random | undefined): Buffer {
  if (random === undefined || random.next() < 0.9 || bytes.length < 2) {
    return maskedFrame(KIND.binary, bytes);
  }
  const offset = random.between(1, bytes.length - 1);
  return Buffer.concat([
    maskedFrame(KIND.binary, bytes.subarray(0, offset), false),
    maskedFrame(KIND.ping, Buffer.from('between')),
    maskedFrame(0, bytes.subarray(offset)),
  ]);
}

/**
 * Sends all messages and a final commit, and reads the responses. `plain` is the unmodified script
 * message; null if the message was mutated.
 */
async function politely(
  said: Script,
  numbers: readonly number[],
  plain: readonly (Buffer | null)[],
  random?: Random,
): Promise<string | undefined> {
  const client = await WebSocketClient.open(port, '/write/v4');
  const all = [...said, message(0, 0)];
  client.socket.write(Buffer.concat(all.map((bytes) => framed(bytes, random))));
  let next = 0;
  let refusal: number | null = null;
  while (next < all.length && refusal === null) {
    const heard = await answer(client);
    const { status, sequence = -1, reason } = heard ?? {};
    if (status === STATUS.ok && sequence >= next && sequence < all.length) {
      next = sequence + 1;
      count('ok');
    } else if (status !== undefined && REFUSALS.has(status) && sequence >= next && reason !== '') {
      refusal = sequence;
      count(`status ${status}`);
    } else {
      return `answered ${JSON.stringify(heard)} after ${next}`;
    }
  }
  numbers.forEach((number, at) => {
    fates.set(number, { bytes: plain[at] ?? null, isThere: at < next });
  });
  const taken = plain.slice(0, refusal === null ? said.length : refusal + 1);
  sent += taken.filter((bytes) => bytes === null).length;
  count(refusal === null ? 'polite ends' : 'refused');
  if (refusal === null) {
    client.send(Buffer.from([0x03, 0xe8]), KIND.close);
  }
  const close = await client.receiveClose();
  return close === (refusal === null ? 1000 : 1011) ? undefined : `closed with ${close}`;
}

/** Disconnects abruptly. */
async function cutOff(said: Script, random: Random): Promise<undefined> {
  const { socket } = await WebSocketClient.open(port, '/write/v4');
  const bytes = Buffer.concat(said.map((one) => framed(one, random)));
  const closed = once(socket, 'close').catch(() => undefined);
  socket.write(bytes.subarray(0, random.between(0, bytes.length)));
  await sleep(random.between(0, 5));
  socket.resetAndDestroy();
  await within(closed, () => 'an aborted connection ends');
  count('cut');
}

/** Sends invalid frames: wrong headers, missing masks, lengths whose data never arrives. */
async function brokenFrames(said: Script, random: Random): Promise<string | undefined> {
  const client = await WebSocketClient.open(port, '/write/v4');
  const bytes = Buffer.concat(said.map((one) => framed(one, random)));
  for (let times = random.between(1, 4); times > 0; times -= 1) {
    const offset = random.next() < 0.5 ? random.between(0, 9) : random.between(0, bytes.length - 1);
    bytes[offset] = random.between(0, 255);
  }
  client.socket.end(bytes);
  let close: number | null = null;
  for (let frame = await client.receive(); frame !== null; frame = await client.receive()) {
    close = frame.kind === KIND.close ? frame.payload.readUInt16BE(0) : null;
  }
  count('broken frames');
  return BROKEN_CLOSES.has(close) || isApplicationCode(close) ? undefined : `closed with ${close}`;
}

/** Whether the code is one that only a client sends. A mutated frame can be a close frame, which
 * the server answers with the same code. */
function isApplicationCode(close: number | null): boolean {
  return close !== null && close >= 3000 && close < 5000;
}
