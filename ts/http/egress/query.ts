/**
 * Runs one client statement: binds it, executes it, and sends its messages within the client's
 * credit. The client can stop it at any time.
 */
import {
  DatabaseError,
  type ExecuteReply,
  ParameterBatch,
  parameterHeader,
  type PreparedStatement,
  type ResultStream,
  type RowFormat,
  type Session,
  type StatementDescription,
  type Summary,
  type TimeBounds,
  timeBounds,
} from '../../session/index.js';
import type { QueryRequest } from './client-messages.js';
import * as reply from './server-messages.js';

/** How to split and compress a connection's results. */
export interface BatchOptions {
  readonly maxRows: number;
  readonly maxBytes: number;
  /** `null` for no compression. */
  readonly zstdLevel: number | null;
  /**
   * Maximum time without credit from the client. During that time, the data that the query reads
   * cannot be released.
   */
  readonly pauseMs: number;
}

/** Limits of one query: its connection's options and its timeout. */
interface QueryLimits extends BatchOptions {
  /** Milliseconds since the query arrived; 0 means no limit. */
  readonly timeoutMs: number;
}

/** The connection interface that a query needs. */
export interface Outlet {
  /** Resolves when more data may be sent; rejects when the client has disconnected. */
  send(...buffers: readonly Buffer[]): Promise<void>;
  /** Called before the first message with rows, because each query assigns new symbol IDs. */
  beginSymbols(resets: boolean, hasSymbols: boolean): Promise<void>;
}

/** Minimum message size for clients that grant little credit. */
const MIN_MESSAGE_BYTES = 16 * 1024;
/** Kind codes of statements that return no rows; client libraries pass them on to their callers. */
const STATEMENT_KINDS: Readonly<Record<string, number>> = { insert: 1, update: 2, ddl: 3 };

export class Query {
  readonly id: bigint;
  readonly #request: QueryRequest;
  readonly #session: Session;
  readonly #limits: QueryLimits;
  readonly #outlet: Outlet;
  readonly #stopped = new AbortController();
  readonly #sinceMs = performance.now();
  #credit: number;
  #granted: (() => void) | null = null;
  #statement: PreparedStatement | null = null;
  #stream: ResultStream | null = null;

  constructor(request: QueryRequest, session: Session, limits: QueryLimits, outlet: Outlet) {
    this.id = request.id;
    this.#request = request;
    this.#session = session;
    this.#limits = limits;
    this.#outlet = outlet;
    this.#credit = request.credit === 0 ? Infinity : request.credit;
  }

  /** Whether the client specified a timeout. */
  get hasOwnTime(): boolean {
    return this.#request.timeoutMs !== undefined;
  }

  /** Increases the number of bytes that may be sent. */
  grant(bytes: number): void {
    this.#credit += bytes;
    this.#granted?.();
  }

  /** Stops the query, even while it is waiting. */
  stop(): void {
    this.#stopped.abort();
    this.#stream?.cancel();
    this.#statement?.cancel();
    this.#granted?.();
  }

  /** Resolves when the last message is sent; rejects with the statement's error. */
  async run(): Promise<void> {
    const { sql, binds } = this.#request;
    const options = { ...this.#bounds(), signal: this.#stopped.signal };
    const statement = await this.#session.prepare(sql, binds.types, options);
    this.#statement = statement;
    try {
      this.#refuseIfStopped();
      const { kind, columns } = statement.description;
      if (kind === 'empty') {
        throw new DatabaseError({ code: 'Syntax', message: 'empty query' });
      }
      const answer = await this.#execute(statement);
      if (kind === 'select' || columns.length > 0) {
        await this.#sendRows(answer, statement.description);
      } else {
        const { rowsAffected } = await this.#summary(answer);
        await this.#outlet.send(reply.execDone(this.id, STATEMENT_KINDS[kind] ?? 0, rowsAffected));
      }
    } finally {
      this.#stream?.cancel();
      this.#stream = null;
      statement.close();
    }
  }

  async #execute(statement: PreparedStatement): Promise<ExecuteReply> {
    const { sent, values } = this.#request.binds;
    const parameters =
      values.length === 0
        ? ParameterBatch.none
        : ParameterBatch.of([values], parameterHeader(sent));
    const rows = this.#format();
    const answer = await statement.execute(parameters, () => ({ rows }), this.#bounds());
    this.#stream = answer.stream;
    if (this.#stopped.signal.aborted) {
      answer.stream?.cancel();
    }
    return answer;
  }

  #bounds(): TimeBounds {
    return timeBounds(this.#limits.timeoutMs, this.#sinceMs);
  }

  #format(): RowFormat {
    const { maxRows, maxBytes, zstdLevel } = this.#limits;
    const messageBytes = Math.max(MIN_MESSAGE_BYTES, this.#credit);
    return {
      format: 'qwp',
      maxRows,
      maxBytes: Math.min(maxBytes, messageBytes),
      ...(zstdLevel === null ? {} : { zstdLevel }),
    };
  }

  async #sendRows(answer: ExecuteReply, { columns }: StatementDescription): Promise<void> {
    const hasSymbols = columns.some(({ type }) => type === 'SYMBOL');
    await this.#outlet.beginSymbols(this.#request.resetsDictionary, hasSymbols);
    let sequence = -1;
    let chunk = answer.chunk ?? (await answer.stream?.next()) ?? null;
    while (chunk !== null) {
      await this.#waitForCredit();
      const [head, body] = reply.resultBatch(this.id, chunk.bytes);
      this.#credit -= head.length + body.length;
      sequence += 1;
      await this.#outlet.send(head, body);
      this.#refuseIfStopped();
      chunk = (await answer.stream?.next()) ?? null;
    }
    const { rowsReturned } = await this.#summary(answer);
    await this.#outlet.send(reply.resultEnd(this.id, Math.max(sequence, 0), rowsReturned));
  }

  async #summary({ summary, stream }: ExecuteReply): Promise<Summary> {
    if (summary !== null) {
      return summary;
    }
    if (stream === null) {
      throw new DatabaseError({ code: 'Internal', message: 'the reply has no rows or summary' });
    }
    while ((await stream.next()) !== null) {
      // A statement without columns returns no chunks.
    }
    return stream.summary();
  }

  /**
   * A message may exceed the remaining credit, because every query must eventually make progress.
   */
  async #waitForCredit(): Promise<void> {
    while (this.#credit <= 0) {
      this.#refuseIfStopped();
      const { pauseMs, timeoutMs } = this.#limits;
      const remainingMs =
        timeoutMs === 0 ? Infinity : timeoutMs - (performance.now() - this.#sinceMs);
      if (await this.#grantWithin(Math.min(pauseMs, remainingMs))) {
        continue;
      }
      if (remainingMs < pauseMs) {
        // The engine checks the timeout only while it produces rows.
        const message = `timeout, query aborted [timeout=${timeoutMs}ms]`;
        throw new DatabaseError({ code: 'Timeout', message });
      }
      const message = `no credit received [timeout=${pauseMs}ms, key=http.send.timeout]`;
      throw new DatabaseError({ code: 'ResourceLimit', message });
    }
    this.#refuseIfStopped();
  }

  /** Resolves to false if neither credit nor a stop arrives within `maxMs`. */
  async #grantWithin(maxMs: number): Promise<boolean> {
    const isGranted = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(resolve, maxMs, false);
      this.#granted = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#granted = null;
    return isGranted;
  }

  #refuseIfStopped(): void {
    if (this.#stopped.signal.aborted) {
      throw new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' });
    }
  }
}
