/**
 * A bound statement whose rows are sent to a client. Rows arrive as complete DataRow messages. If
 * the client requested a certain number of rows, chunks are split between messages.
 */
import type {
  Chunk,
  ExecuteReply,
  PreparedStatement,
  ResultStream,
  StatementDescription,
  Summary,
  TimeBounds,
} from '../../session/index.js';
import type { BoundValues } from './bound-values.js';
import { ProtocolError } from '../protocol/protocol-error.js';

/** The prepared statement interface that a portal needs. */
export type Executable = Pick<
  PreparedStatement,
  | 'description'
  | 'temporary'
  | 'shows'
  | 'locking'
  | 'execute'
  | 'executeBatch'
  | 'cancel'
  | 'handedOff'
  | 'resumed'
>;

/** Sends bytes to the client. Resolves when the client is ready for more. */
export type Send = (bytes: Buffer) => Promise<void>;

/** The result of running a portal. */
export interface PortalRun {
  /** False if the portal stopped at the row limit, so that more rows may follow. */
  readonly complete: boolean;
  /** Number of rows that this execution sent or wrote. */
  readonly rows: number;
}

/** Value of the row limit that means all rows. */
const ROWS_ALL = 0;

const NOTHING = Buffer.alloc(0);

export class Portal {
  readonly statement: Executable;
  readonly values: BoundValues;
  private chosenFormats: readonly number[];
  private stream: ResultStream | null = null;
  private summary: Summary | null = null;
  private pending: Buffer = NOTHING;
  /** Whether TIMESTAMP_NS has nine fractional digits, regardless of the session setting. */
  exact = false;
  private started = false;
  private closed = false;
  private isChunked = false;

  /**
   * Called with the row description when the first rows arrive, if the description is not known
   * earlier.
   */
  private readonly onDescription: ((description: StatementDescription) => void) | null;

  constructor(
    statement: Executable,
    values: BoundValues,
    formats: readonly number[],
    onDescription: ((description: StatementDescription) => void) | null = null,
  ) {
    this.statement = statement;
    this.values = values;
    this.chosenFormats = formats;
    this.onDescription = onDescription;
  }

  /** Format of each result column. */
  get formats(): readonly number[] {
    return this.chosenFormats;
  }

  /**
   * Sets the formats in which a cursor's rows are sent. They cannot change once rows have been
   * read.
   */
  choose(formats: readonly number[]): void {
    if (this.started && formats.some((format, index) => format !== this.chosenFormats[index])) {
      const message = 'the format of a cursor cannot change after its first FETCH';
      throw new ProtocolError('0A000', message);
    }
    this.chosenFormats = formats;
  }

  /** Whether the engine's first reply did not contain all rows. */
  get isLong(): boolean {
    return this.isChunked;
  }

  /**
   * Continues an execution that the engine began at `sinceMs`, starting with the rows in `reply`.
   */
  resume(reply: ExecuteReply, sinceMs: number): void {
    const { chunk, stream, summary } = this.statement.resumed(reply, sinceMs);
    this.started = true;
    this.isChunked = stream !== null;
    this.pending = chunk?.bytes ?? NOTHING;
    this.stream = stream;
    this.summary = summary;
  }

  /** Sends at most `maxRows` rows; 0 means all. */
  async run(
    maxRows: number,
    send: Send,
    bounds: TimeBounds,
    nanoseconds = false,
  ): Promise<PortalRun> {
    let sent = 0;
    if (!this.started) {
      sent += await this.start(maxRows, send, bounds, nanoseconds || this.exact);
    } else if (this.pending.length > 0) {
      sent += await this.sendRows(this.pending, maxRows, send);
    }
    while (this.stream !== null && (maxRows === ROWS_ALL || sent < maxRows)) {
      const chunk = await this.next(maxRows === ROWS_ALL ? undefined : maxRows - sent);
      if (chunk === null) {
        break;
      }
      sent += await this.sendChunk(chunk, maxRows === ROWS_ALL ? 0 : maxRows - sent, send);
    }
    const { kind, columns } = this.statement.description;
    if (kind !== 'select' && columns.length === 0) {
      return { complete: true, rows: this.summary?.rowsAffected ?? 0 };
    }
    // If the number of rows equals the limit, the portal is suspended as in PostgreSQL. Only the
    // next execution reports that the portal is complete.
    const complete = maxRows === ROWS_ALL || sent < maxRows;
    return { complete, rows: sent };
  }

  /** Cancels the execution; the portal cannot continue. */
  cancel(): void {
    this.stream?.cancel();
    if (this.stream === null) {
      this.statement.cancel();
    }
  }

  close(): void {
    this.closed = true;
    this.stream?.cancel();
    this.stream = null;
    this.pending = NOTHING;
  }

  private get isClosed(): boolean {
    return this.closed;
  }

  private async start(
    maxRows: number,
    send: Send,
    bounds: TimeBounds,
    nanoseconds: boolean,
  ): Promise<number> {
    this.started = true;
    const options = maxRows === ROWS_ALL ? {} : { firstChunkRows: maxRows };
    const reply = await this.statement.execute(
      this.values.parameters,
      this.onDescription === null
        ? { rows: { format: 'pg', formatCodes: this.chosenFormats, nanoseconds }, ...options }
        : ({ columns }) => {
            this.chosenFormats = columns.map(() => 0);
            const rows = { format: 'pg', formatCodes: this.chosenFormats, nanoseconds } as const;
            return { rows, ...options };
          },
      bounds,
    );
    if (this.isClosed) {
      // The portal was closed before the first rows arrived.
      reply.stream?.cancel();
      throw new ProtocolError('57014', 'the portal was closed while it ran');
    }
    this.stream = reply.stream;
    this.isChunked = reply.stream !== null;
    this.summary = reply.summary;
    this.onDescription?.(this.statement.description);
    return reply.chunk === null ? 0 : this.sendChunk(reply.chunk, maxRows, send);
  }

  private async next(rows: number | undefined): Promise<Chunk | null> {
    const stream = this.stream;
    if (stream === null) {
      return null;
    }
    const chunk = await (rows === undefined ? stream.next() : stream.next(rows));
    if (chunk !== null) {
      return chunk;
    }
    this.summary = stream.summary();
    this.stream = null;
    return null;
  }

  private async sendChunk(chunk: Chunk, maxRows: number, send: Send): Promise<number> {
    if (maxRows !== ROWS_ALL && chunk.rows > maxRows) {
      return this.sendRows(chunk.bytes, maxRows, send);
    }
    if (chunk.bytes.length > 0) {
      await send(chunk.bytes);
    }
    return chunk.rows;
  }

  /** Sends the first `maxRows` DataRow messages in `bytes`, and buffers the others. */
  private async sendRows(bytes: Buffer, maxRows: number, send: Send): Promise<number> {
    let end = 0;
    let rows = 0;
    while (end < bytes.length && (maxRows === ROWS_ALL || rows < maxRows)) {
      end += 1 + bytes.readInt32BE(end + 1);
      rows += 1;
    }
    this.pending = bytes.subarray(end);
    await send(bytes.subarray(0, end));
    return rows;
  }
}
