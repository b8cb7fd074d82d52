/**
 * Runs a statement for an agent: within the limits, cancelled when its client waits no more.
 * What an answer leaves out, it says.
 */
import {
  type ExecuteReply,
  type ParameterValues,
  type PreparedStatement,
  type ResultColumn,
  type ResultStream,
  type RowOptions,
  type Session,
  type StatementDescription,
  timeBounds,
} from '../session/index.js';
import { ToolError } from './failure.js';
import type { Limits } from './setting.js';

/** Units of a value that are shown. */
const MAX_VALUE_LENGTH = 4096;

export type ParameterValue = string | number | boolean | null;

interface Question {
  readonly sql: string;
  readonly parameters?: readonly ParameterValue[] | undefined;
  readonly skip?: number | undefined;
  /** Rows at most. */
  readonly take: number;
  /** Whether all rows are counted. */
  readonly counts?: boolean | undefined;
}

export interface Column {
  readonly name: string;
  readonly type: string;
}

export interface Rows {
  readonly description: StatementDescription;
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly unknown[])[];
  /** Whether there are more rows than these. */
  readonly hasMore: boolean;
  /** Bytes of a row that alone does not fit, null where all that was asked for fits. */
  readonly largeRowBytes: number | null;
  /** Whether rows were left out because of their bytes. */
  readonly isFull: boolean;
  readonly shortened: number;
  /** All rows, where they were counted. */
  readonly total: number | null;
  readonly affected: number;
}

/** What a caller has of a statement: its time, and whether its client still waits. */
export interface Waiting {
  readonly limits: Limits;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function run(session: Session, question: Question, waiting: Waiting): Promise<Rows> {
  const sinceMs = performance.now();
  const bounds = (): ReturnType<typeof timeBounds> => timeBounds(waiting.timeoutMs, sinceMs);
  const { signal } = waiting;
  const prepared = await session.prepare(question.sql, undefined, { ...bounds(), signal });
  let stream: ResultStream | null = null;
  const cancel = (): void => {
    stream?.cancel();
    prepared.cancel();
  };
  signal.addEventListener('abort', cancel);
  try {
    signal.throwIfAborted();
    const values = textsOf(question.parameters ?? [], prepared);
    const reply = await prepared.execute(values, () => rowOptions(question), bounds());
    ({ stream } = reply);
    if (signal.aborted) {
      cancel();
    }
    return await collect(prepared.description, reply, question, waiting.limits);
  } finally {
    signal.removeEventListener('abort', cancel);
    stream?.cancel();
    prepared.close();
  }
}

/** One row more than are shown tells whether there are more. */
function rowOptions({ skip, take, counts }: Question): RowOptions {
  return {
    rows: { format: 'json', quoteLargeNumbers: true },
    take: take + 1,
    ...(skip === undefined ? {} : { skip }),
    ...(counts === true ? { countAll: true } : {}),
  };
}

function textsOf(values: readonly ParameterValue[], prepared: PreparedStatement): ParameterValues {
  const { length } = prepared.description.parameters;
  if (values.length !== length) {
    throw new ToolError(
      `the statement has ${length} placeholders ($1, $2, …), ` +
        `parameters has ${values.length} values`,
    );
  }
  return values.map((value) => (value === null ? null : String(value)));
}

async function collect(
  description: StatementDescription,
  reply: ExecuteReply,
  { take, counts = false }: Question,
  { bytes }: Limits,
): Promise<Rows> {
  const { stream } = reply;
  const kept = new KeptRows(description.columns, take, bytes);
  let goesOn = reply.chunk === null || kept.add(reply.chunk.bytes);
  let isOver = stream === null;
  while (stream !== null && !isOver && (goesOn || counts)) {
    const chunk = await stream.next();
    isOver = chunk === null;
    goesOn &&= chunk === null || kept.add(chunk.bytes);
  }
  const summary = isOver ? (reply.summary ?? stream?.summary() ?? null) : null;
  return {
    description,
    columns: description.columns.map(({ name, type, dimensions }) => ({
      name,
      type: dimensions > 0 ? `DOUBLE${'[]'.repeat(dimensions)}` : type,
    })),
    rows: kept.rows,
    hasMore: kept.hasMore,
    isFull: kept.isFull,
    largeRowBytes: kept.rows.length === 0 ? kept.largeRowBytes : null,
    shortened: kept.shortened,
    // Where not all were counted, the end of the rows tells how many there are.
    total: summary === null || (kept.hasMore && !counts) ? null : summary.rowsTotal,
    affected: summary?.rowsAffected ?? 0,
  };
}

/** The rows that fit. */
class KeptRows {
  readonly rows: unknown[][] = [];
  hasMore = false;
  isFull = false;
  shortened = 0;
  largeRowBytes: number | null = null;
  readonly #columns: readonly ResultColumn[];
  readonly #take: number;
  #bytesLeft: number;

  constructor(columns: readonly ResultColumn[], take: number, bytes: number) {
    this.#columns = columns;
    this.#take = take;
    this.#bytesLeft = bytes;
  }

  /** False when nothing more is taken. */
  add(bytes: Buffer): boolean {
    for (const row of parseRows(bytes)) {
      if (this.rows.length === this.#take) {
        this.hasMore = true;
        return false;
      }
      const shown = row.map((value, at) => this.#shown(value, this.#columns[at]));
      const size = Buffer.byteLength(JSON.stringify(shown)) + 1;
      if (size > this.#bytesLeft) {
        this.hasMore = true;
        this.isFull = true;
        this.largeRowBytes = size;
        return false;
      }
      this.#bytesLeft -= size;
      this.rows.push(shown);
    }
    return true;
  }

  #shown(value: unknown, column: ResultColumn | undefined): unknown {
    if (typeof value === 'string') {
      return column?.type === 'LONG' ? numberOf(value) : this.#short(value);
    }
    if (typeof value === 'object' && value !== null) {
      const text = JSON.stringify(value);
      return text.length > MAX_VALUE_LENGTH ? this.#short(text) : value;
    }
    return value;
  }

  #short(text: string): string {
    if (text.length <= MAX_VALUE_LENGTH) {
      return text;
    }
    this.shortened += 1;
    // Half of a pair is no character.
    const end = /[\uD800-\uDBFF]/.test(text.charAt(MAX_VALUE_LENGTH - 1)) ? 1 : 0;
    return `${text.slice(0, MAX_VALUE_LENGTH - end)}… (${text.length} characters)`;
  }
}

/** Where JSON's readers would round it, it stays a text. */
function numberOf(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

/** A piece of rows begins with a comma where rows were before it. */
function parseRows(bytes: Buffer): unknown[][] {
  const text = bytes.toString('utf8').replace(/^,/, '');
  return JSON.parse(`[${text}]`) as unknown[][];
}
