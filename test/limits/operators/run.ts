/**
 * Runs the statements of `entries.ts` over the shapes of `shapes.ts`: with little and with normal
 * memory, with and without a timeout, and with LIMIT 0, LIMIT 1 and no LIMIT. Each result must be
 * correct, or a refusal that names a limit. Each statement must stop at its timeout and keep the
 * process within its memory limit, and other clients must be answered in the meantime.
 */
import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

import { startTestServer, type TestServer } from '../../golden/server.js';
import { internalWord } from '../../internal-words.js';
import { peakMegabytes } from '../measure.js';
import { ENTRIES, type Entry, type Statement, type Totals } from './entries.js';
import { Pings, workTicks } from './pings.js';
import { makeTables, type Shape, shapesOf, sizeOf } from './shapes.js';

export type Pool = 'small' | 'usual';
type Limit = '0' | '1' | 'all' | 'terms';

/** One run of a statement. */
export interface Case {
  readonly operator: string;
  readonly shape: Shape;
  readonly statement: Statement;
  /** Timeout in milliseconds; `null` for the server's default. */
  readonly timeoutMs: number | null;
  readonly limit: Limit;
}

export interface Outcome {
  readonly name: string;
  readonly answer: string;
  readonly isAnswered: boolean;
  readonly wallMs: number;
  /** CPU time that the server used after the timeout, in milliseconds. */
  readonly lateMs: number;
  readonly peakMebibytes: number;
  /** The problem; `undefined` if there is none. */
  readonly problem: string | undefined;
}

const MEMORY_LIMIT_MEBIBYTES = 1_024;
const SLACK_MEBIBYTES = 512;
const POOLS: Readonly<Record<Pool, readonly string[]>> = {
  small: ['query.memory.pool=48M', 'query.memory.limit=32M'],
  usual: ['query.memory.pool=512M', 'query.memory.limit=384M'],
};
const TIMEOUT_MS = 200;
/** Maximum CPU time in milliseconds that a statement may use after its timeout. */
const STOP_MS = 100;
/** Maximum CPU time in milliseconds before other clients are answered. */
const PING_MS = 50;
/** The same limit while a statement with 100,000 terms is parsed, as in `../sweep.ts`. */
const READING_MS = 1_000;
/** Maximum number of runs for a case that takes too long. */
const MAX_TRIES = 3;
/** Maximum time to create a table, in milliseconds. */
const PREPARING_MS = 120_000;
/** Length of a clock tick in milliseconds; a measured time may be one tick too long. */
const TICK_MS = 10;
/** Milliseconds after the timeout at which a statement is abandoned. */
const ABANDON_MS = 30_000;
const SHOWN = 240;

/** Limits that an error may name. */
const NAMED = new RegExp(
  [
    'out of memory for queries',
    'memory is low',
    'stopped as the largest query',
    'timeout, query aborted',
    String.raw`\d+ (?:MiB|bytes)`,
    '(?:most|more than|too many|too deep|too long|too large|too complex|limit)',
  ].join('|'),
);

/** Tables of all shapes in their own folder, with one server per memory size. */
export class Ground {
  readonly shapes: readonly Shape[];
  readonly #queryTimeoutMs: number;
  #server: TestServer;
  readonly #stopFirst: () => Promise<unknown>;

  private constructor(shapes: readonly Shape[], server: TestServer, queryTimeoutMs: number) {
    this.shapes = shapes;
    this.#server = server;
    this.#stopFirst = () => server.stop();
    this.#queryTimeoutMs = queryTimeoutMs;
  }

  static async prepare(rows: number, queryTimeoutMs: number): Promise<Ground> {
    const shapes = shapesOf(rows);
    const server = await startTestServer({ set: settings('usual', PREPARING_MS) });
    await makeTables(server, shapes);
    return new Ground(shapes, server, queryTimeoutMs);
  }

  get server(): TestServer {
    return this.#server;
  }

  /** Restarts the server on the same tables with a different amount of memory for queries. */
  async use(pool: Pool): Promise<void> {
    const { root } = this.#server;
    this.#server.process.kill('SIGTERM');
    while (isAlive(this.#server)) {
      await sleep(10);
    }
    this.#server = await startTestServer({ root, set: settings(pool, this.#queryTimeoutMs) });
  }

  async end(): Promise<void> {
    await this.#server.stop();
    await this.#stopFirst();
  }
}

function settings(pool: Pool, queryTimeoutMs: number): readonly string[] {
  return [
    `memory.limit=${MEMORY_LIMIT_MEBIBYTES}M`,
    `query.timeout=${queryTimeoutMs}ms`,
    'cairo.commit.mode=nosync',
    'shared.query.worker.count=2',
    'query.scan.part.rows=20000',
    'log.level=error',
    ...POOLS[pool],
  ];
}

/** Returns all operator cases; these do not depend on the memory size. */
export function casesOf(
  shapes: readonly Shape[],
  terms: number,
  isChosen: (operator: string) => boolean,
): readonly Case[] {
  return Object.entries(ENTRIES)
    .filter(([operator]) => isChosen(operator))
    .flatMap(([operator, entry]) => [
      ...shapes
        .filter(({ name }) => entry.without?.includes(name) !== true)
        .flatMap((shape) => casesOfShape(operator, entry, shape)),
      ...termsOf(operator, entry, shapes, terms),
    ]);
}

const TIMEOUTS = [TIMEOUT_MS, null] as const;

function casesOfShape(operator: string, entry: Entry, shape: Shape): readonly Case[] {
  return entry.of(shape).flatMap((statement) =>
    TIMEOUTS.flatMap((timeoutMs) =>
      (['0', '1', 'all'] as const).map((limit) => {
        return { operator, shape, statement, timeoutMs, limit };
      }),
    ),
  );
}

function termsOf(
  operator: string,
  entry: Entry,
  shapes: readonly Shape[],
  count: number,
): readonly Case[] {
  const [shape] = shapes;
  if (entry.terms === undefined || shape === undefined) {
    return [];
  }
  const statement = { rows: entry.terms(count), totals: null };
  return TIMEOUTS.map((timeoutMs) => {
    return { operator, shape, statement, timeoutMs, limit: 'terms' as const };
  });
}

/** Returns the SQL to send. Ordered rows are read in order. */
export function textOf({
  statement,
  shape,
  limit,
}: Pick<Case, 'statement' | 'shape' | 'limit'>): string {
  const { rows, first, isPlain } = statement;
  if (limit === 'terms') {
    return rows;
  }
  if (limit !== 'all') {
    return `select * from (${rows}) limit ${limit}`;
  }
  const size = isPlain === true ? 'p' : sizeOf(shape, 'p');
  return first === undefined
    ? `select count() c, sum(v) v, sum(${size}) s from (${rows})`
    : `select v, ${size} s from (${rows})`;
}

/** The response properties that are judged. */
interface Answer {
  readonly status: number;
  readonly error: string | undefined;
  readonly rows: readonly (readonly unknown[])[];
  /** Whether the reader disconnected before the end. */
  readonly isAbandoned?: true;
}

/**
 * Runs one case and judges it. If a measured time was too long, the case is repeated, because a
 * single measurement is unreliable on a busy machine. Never rejects.
 */
export async function run(server: TestServer, one: Case): Promise<Outcome> {
  for (let tries = 1; ; tries += 1) {
    const [outcome, isSlow] = await runOnce(server, one);
    if (!isSlow || tries === MAX_TRIES) {
      return outcome;
    }
  }
}

async function runOnce(server: TestServer, one: Case): Promise<[Outcome, boolean]> {
  await writeFile(`/proc/${server.process.pid ?? 0}/clear_refs`, '5').catch(() => undefined);
  const pings = await Pings.start(server);
  const timer = new Timer(server, one.timeoutMs);
  const began = performance.now();
  const answer = await runQuery(server, textOf(one), one.timeoutMs);
  const wallMs = performance.now() - began;
  const lateMs = timer.end(wallMs);
  const deafMs = await pings.end();
  const peakMebibytes = isAlive(server) ? await peakMegabytes(server) : 0;
  const slow = tooSlow(one, lateMs, deafMs);
  const problem = !isAlive(server)
    ? `the server died [${server.process.signalCode ?? server.process.exitCode ?? ''}]`
    : peakMebibytes > MEMORY_LIMIT_MEBIBYTES + SLACK_MEBIBYTES
      ? `it took ${peakMebibytes} MiB`
      : (wrong(one, answer) ?? slow);
  const isAnswered = answer.error === undefined;
  const figures = { isAnswered, wallMs, lateMs, peakMebibytes };
  const outcome = { name: nameOf(one), answer: shown(answer), ...figures, problem };
  return [outcome, problem !== undefined && problem === slow];
}

export function isAlive({ process: child }: TestServer): boolean {
  return child.exitCode === null && child.signalCode === null;
}

function tooSlow({ limit }: Case, lateMs: number, deafMs: number): string | undefined {
  const pingMs = limit === 'terms' ? READING_MS : PING_MS;
  return lateMs > STOP_MS + TICK_MS
    ? `it used ${Math.round(lateMs)} ms of CPU time after its limit`
    : deafMs > pingMs + TICK_MS
      ? `others waited for ${Math.round(deafMs)} ms`
      : undefined;
}

function nameOf({ operator, shape, timeoutMs, limit }: Case): string {
  const time = timeoutMs === null ? 'no timeout' : `${timeoutMs} ms`;
  return `${operator}, ${limit === 'terms' ? limit : `${shape.name}, LIMIT ${limit}`}, ${time}`;
}

function shown({ status, error, rows }: Answer): string {
  const text = error ?? JSON.stringify(rows.slice(0, 2));
  return `${status} ${text.replaceAll(/\s+/g, ' ').slice(0, SHOWN)}`;
}

/** Returns what is wrong with a response. */
function wrong(one: Case, { status, error, rows, isAbandoned }: Answer): string | undefined {
  if (isAbandoned === true) {
    // Only endless results are abandoned; all others have a known number of rows.
    const isEndless = one.limit === 'all' && one.statement.totals === null;
    return isEndless ? undefined : 'more rows than expected';
  }
  if (error !== undefined) {
    const inner = internalWord(error);
    return inner !== null
      ? `the error names an internal term: ${inner}`
      : status === 0
        ? 'there is no answer'
        : NAMED.test(error)
          ? undefined
          : 'the error names no limit';
  }
  const { statement, shape, limit } = one;
  const totals = statement.totals?.(shape.rows);
  const first = statement.first?.(shape.rows);
  switch (limit) {
    case 'terms':
      return undefined;
    case '0':
      return rows.length === 0 ? undefined : `${rows.length} rows`;
    case '1': {
      const maximum = totals === undefined ? rows.length : Math.min(1, totals.count);
      return rows.length > 1 || rows.length !== maximum
        ? `${rows.length} rows, expected ${maximum}`
        : differs('the first row', rows[0]?.at(-1), first ?? rows[0]?.at(-1));
    }
    case 'all':
      return statement.first === undefined
        ? wrongTotals(totals, rows[0] ?? [])
        : wrongRows(totals, first, rows);
  }
}

function differs(what: string, found: unknown, expected: unknown): string | undefined {
  return found === expected || Number(found ?? 0) === Number(expected ?? 0)
    ? undefined
    : `${what}: found ${String(found)}, expected ${String(expected)}`;
}

function wrongTotals(totals: Totals | undefined, row: readonly unknown[]): string | undefined {
  return totals === undefined
    ? undefined
    : (differs('rows', row[0], totals.count) ??
        differs('sum', row[1], totals.v) ??
        differs('sizes', row[2], totals.size));
}

function wrongRows(
  totals: Totals | undefined,
  first: number | null | undefined,
  rows: readonly (readonly unknown[])[],
): string | undefined {
  const sum = (column: number): number =>
    rows.reduce((all, row) => all + Number(row[column] ?? 0), 0);
  return (
    differs('the first row', rows[0]?.[0], first) ??
    wrongTotals(totals, [rows.length, sum(0), sum(1)])
  );
}

async function runQuery(
  server: TestServer,
  query: string,
  timeoutMs: number | null,
): Promise<Answer> {
  try {
    const response = await fetch(`${server.url}/exec`, {
      method: 'POST',
      body: new URLSearchParams({ query }),
      // A decompressor would lose its buffered data when the connection ends.
      headers: {
        'Accept-Encoding': 'identity',
        ...(timeoutMs === null ? {} : { 'Statement-Timeout': String(timeoutMs) }),
      },
      signal: AbortSignal.timeout(ABANDON_MS + (timeoutMs ?? 0)),
    });
    const { text, isWhole, isAbandoned } = await textIn(response);
    if (isAbandoned) {
      return { status: response.status, error: undefined, rows: [], isAbandoned: true };
    }
    // If the result is aborted, the response ends with the error.
    const reason = isWhole ? null : /"error":("(?:[^"\\]|\\.)*"),"position":\d+\}$/.exec(text);
    const answer = JSON.parse(reason === null ? text : `{"error":${reason[1] ?? ''}}`) as {
      dataset?: unknown[][];
      error?: string;
    };
    return { status: response.status, error: answer.error, rows: answer.dataset ?? [] };
  } catch (error) {
    return { status: 0, error: `no answer: ${String(error)}`, rows: [] };
  }
}

/**
 * Maximum number of bytes to read from a response, because endless rows would not fit into a
 * string.
 */
const MAX_READ_BYTES = 256 * 1024 * 1024;

interface Read {
  readonly text: string;
  readonly isWhole: boolean;
  /** Whether the reader disconnected before the end. */
  readonly isAbandoned: boolean;
}

/** Returns the received bytes of a body as a string, and whether the body is complete. */
async function textIn(response: Response): Promise<Read> {
  const chunks: Uint8Array[] = [];
  let [bytes, isWhole] = [0, true];
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > MAX_READ_BYTES) {
        // Exiting the loop closes the connection.
        return { text: '', isWhole: false, isAbandoned: true };
      }
    }
  } catch {
    isWhole = false;
  }
  return { text: Buffer.concat(chunks).toString(), isWhole, isAbandoned: false };
}

/** Measures the CPU time that a server spends on a statement after its time limit. */
class Timer {
  readonly #server: TestServer;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #timeoutMs: number;
  #ticks: number | undefined;

  constructor(server: TestServer, timeoutMs: number | null) {
    this.#server = server;
    this.#timeoutMs = timeoutMs ?? Infinity;
    if (timeoutMs !== null) {
      this.#timer = setTimeout(() => {
        this.#ticks = workTicks(server.process.pid);
      }, timeoutMs);
    }
  }

  /**
   * Called when the response arrives. CPU time is measured only if the response is late by
   * wall-clock time.
   */
  end(wallMs: number): number {
    clearTimeout(this.#timer);
    const isLate = this.#ticks !== undefined && wallMs > this.#timeoutMs + STOP_MS;
    return isLate ? (workTicks(this.#server.process.pid) - (this.#ticks ?? 0)) * TICK_MS : 0;
  }
}
