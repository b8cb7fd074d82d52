/**
 * Runs a statement for an agent, within the agent's limits. The statement is cancelled if the
 * client stops waiting. The response reports what was omitted.
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

/** Maximum number of characters to show from a value. */
const MAX_VALUE_LENGTH = 4096;

export type ParameterValue = string | number | boolean | null;

interface Question {
  readonly sql: string;
  readonly parameters?: readonly ParameterValue[] | undefined;
  readonly skip?: number | undefined;
  /** Maximum number of rows to return. */
  readonly take: number;
  /** Whether to count all rows, even those that are not returned. */
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
  /** Whether there are more rows than those returned. */
  readonly hasMore: boolean;
  /** Size in bytes of the first row, if that row alone exceeds the limit; otherwise `null`. */
  readonly largeRowBytes: number | null;
  /** Whether rows were omitted because the byte limit was reached. */
  readonly isFull: boolean;
  readonly shortened: number;
  /** Total number of rows, if they were counted. */
  readonly total: number | null;
  readonly affected: number;
}

/** The caller's limits: its timeout, and a signal that its client has disconnected. */
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

/** Requests one extra row, to detect whether more rows exist. */
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
        `but parameters has ${values.length} values`,
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
  const collected = new CollectedRows(description.columns, take, bytes);
  let continues = reply.chunk === null || collected.add(reply.chunk.bytes);
  let isOver = stream === null;
  while (stream !== null && !isOver && (continues || counts)) {
    const chunk = await stream.next();
    isOver = chunk === null;
    continues &&= chunk === null || collected.add(chunk.bytes);
  }
  const summary = isOver ? (reply.summary ?? stream?.summary() ?? null) : null;
  return {
    description,
    columns: description.columns.map(({ name, type, dimensions }) => ({
      name,
      type: dimensions > 0 ? `DOUBLE${'[]'.repeat(dimensions)}` : type,
    })),
    rows: collected.rows,
    hasMore: collected.hasMore,
    isFull: collected.isFull,
    largeRowBytes: collected.rows.length === 0 ? collected.largeRowBytes : null,
    shortened: collected.shortened,
    // The total is also known if all rows were read, even if counting was not requested.
    total: summary === null || (collected.hasMore && !counts) ? null : summary.rowsTotal,
    affected: summary?.rowsAffected ?? 0,
  };
}

/** Collects rows until a limit is reached. */
class CollectedRows {
  readonly rows: unknown[][] = [];
  hasMore = false;
  isFull = false;
  shortened = 0;
  largeRowBytes: number | null = null;
  readonly #columns: readonly ResultColumn[];
  readonly #take: number;
  #freeBytes: number;

  constructor(columns: readonly ResultColumn[], take: number, bytes: number) {
    this.#columns = columns;
    this.#take = take;
    this.#freeBytes = bytes;
  }

  /** Adds rows; returns false if no more rows are accepted. */
  add(bytes: Buffer): boolean {
    for (const row of parseRows(bytes)) {
      if (this.rows.length === this.#take) {
        this.hasMore = true;
        return false;
      }
      const shown = row.map((value, at) => this.#shown(value, this.#columns[at]));
      const size = Buffer.byteLength(JSON.stringify(shown)) + 1;
      if (size > this.#freeBytes) {
        this.hasMore = true;
        this.isFull = true;
        this.largeRowBytes = size;
        return false;
      }
      this.#freeBytes -= size;
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
    // Avoids splitting a surrogate pair.
    const end = /[\uD800-\uDBFF]/.test(text.charAt(MAX_VALUE_LENGTH - 1)) ? 1 : 0;
    return `${text.slice(0, MAX_VALUE_LENGTH - end)}… (${text.length} characters)`;
  }
}

/** Converts a string to a number; a number that JSON parsers would round remains a string. */
function numberOf(text: string): number | string {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : text;
}

/** Parses the rows of a chunk. The chunk starts with a comma if other rows precede it. */
function parseRows(bytes: Buffer): unknown[][] {
  const text = bytes.toString('utf8').replace(/^,/, '');
  return JSON.parse(`[${text}]`) as unknown[][];
}
