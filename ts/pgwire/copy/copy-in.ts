/**
 * COPY … FROM STDIN: passes the client's bytes to the engine as they arrive. The engine converts
 * them to rows of an INSERT. Either all rows are written or none. Inside a block, the block's end
 * commits or discards the rows; otherwise the COPY is a separate transaction.
 */
import type {
  CopyAppender,
  CopyForm,
  CopyMistake,
  CopyStream,
  ParameterTypes,
  PreparedStatement,
  TableMetadata,
} from '../../session/index.js';
import { DatabaseError, quoteName } from '../../session/index.js';
import { type CopyOptions, copyOptions, names } from './copy-options.js';
import { inData } from '../protocol/failure.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { Recoder } from './recoder.js';
import { copyResponse } from '../protocol/server-messages.js';
import { oidOf } from '../protocol/type-oids.js';

/**
 * Number of bytes to collect before they are passed to the engine, because many clients send
 * smaller messages.
 */
const CHUNK_BYTES = 256 * 1024;

/** The conversation interface that a COPY needs. */
export interface CopySetting {
  tableMetadata(name: string): Promise<TableMetadata | null>;
  prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement>;
}

type CopyInStatement = Extract<CopyStream, { kind: 'CopyIn' }>;

/** Objects that a COPY needs to write. */
interface Opened {
  readonly options: CopyOptions;
  readonly insert: PreparedStatement;
  readonly appender: CopyAppender;
}

export class CopyIn {
  private readonly table: string;
  private readonly isBinary: boolean;
  private readonly insert: PreparedStatement;
  private readonly appender: CopyAppender;
  private readonly columnCount: number;
  /** `null` if the data is UTF-8 or binary. */
  private readonly recoder: Recoder | null;
  /** Bytes buffered for the next chunk. */
  private buffer: Buffer | null = null;
  private bufferedBytes = 0;
  private cancelled = false;

  private constructor({ table }: CopyInStatement, { options, insert, appender }: Opened) {
    const { format, encoding } = options;
    this.table = table;
    this.isBinary = format === 'binary';
    this.insert = insert;
    this.appender = appender;
    this.columnCount = insert.description.parameters.length;
    this.recoder = this.isBinary || encoding === 'utf-8' ? null : new Recoder(encoding);
  }

  static async open(statement: CopyInStatement, setting: CopySetting): Promise<CopyIn> {
    let insert: PreparedStatement | null = null;
    try {
      const metadata = await setting.tableMetadata(statement.table);
      const all = metadata?.columns.map(({ name }) => name);
      const columns = statement.columns ?? all ?? ['missing'];
      const placeholders = columns.map((_, index) => `$${index + 1}`).join(', ');
      const list = columns.map(quoteName).join(', ');
      const target = `${quoteName(statement.table)} (${list})`;
      insert = await setting.prepare(`INSERT INTO ${target} VALUES (${placeholders})`);
      const options = copyOptions(statement.options);
      const appender = await insert.openCopy(formOf(options, columns, insert));
      return new CopyIn(statement, { options, insert, appender });
    } catch (error) {
      insert?.close();
      throw inData(error);
    }
  }

  /** The message that requests the data. */
  get response(): Buffer {
    return copyResponse('in', this.isBinary ? 1 : 0, this.columnCount);
  }

  /** Makes the COPY fail when the next message arrives. */
  cancel(): void {
    this.cancelled = true;
  }

  /** Accepts a chunk of data; resolves when more data may follow. */
  async feed(bytes: Buffer): Promise<void> {
    this.refuseIfCancelled();
    await this.gather(this.recoder === null ? bytes : this.recoder.next(bytes));
  }

  /** Ends the data and makes all rows visible. Resolves to the number of rows. */
  async finish(): Promise<number> {
    this.refuseIfCancelled();
    if (this.recoder !== null) {
      await this.gather(this.recoder.end());
    }
    await this.writeBuffered();
    const rows = await this.end();
    this.insert.close();
    return rows;
  }

  /** Discards all rows. If a transaction block is open, the block has then failed. */
  async abandon(): Promise<void> {
    this.insert.close();
    await this.appender.abort();
  }

  private refuseIfCancelled(): void {
    if (this.cancelled) {
      throw new ProtocolError('57014', 'cancelled by user');
    }
  }

  private async gather(bytes: Buffer): Promise<void> {
    if (this.bufferedBytes + bytes.length > CHUNK_BYTES) {
      await this.writeBuffered();
    }
    if (bytes.length >= CHUNK_BYTES) {
      await this.write(bytes);
      return;
    }
    this.buffer ??= Buffer.allocUnsafeSlow(CHUNK_BYTES);
    this.bufferedBytes += bytes.copy(this.buffer, this.bufferedBytes);
  }

  private async writeBuffered(): Promise<void> {
    if (this.buffer !== null && this.bufferedBytes > 0) {
      const buffer = this.buffer.subarray(0, this.bufferedBytes);
      this.bufferedBytes = 0;
      await this.write(buffer);
    }
  }

  private async write(bytes: Buffer): Promise<void> {
    const { ended } = await this.appender.write(bytes).catch((error: unknown) => {
      throw inData(error);
    });
    if (ended === true) {
      await this.end();
    }
  }

  /** Returns the number of rows; throws if the data is invalid. */
  private async end(): Promise<number> {
    const { rows, failure } = await this.appender.finish().catch((error: unknown) => {
      throw inData(error);
    });
    if (failure !== undefined) {
      throw this.mistake(failure);
    }
    return rows;
  }

  private mistake({ line, code, message, detail, hint }: CopyMistake): Error {
    const where = `COPY ${this.table}, line ${line}`;
    if (code === 'InvalidEncoding' && this.recoder !== null) {
      const { encoding } = this.recoder;
      const message = `invalid byte sequence for encoding "${encoding}"`;
      return new ProtocolError('22021', message, false, where);
    }
    return inData(new DatabaseError({ code, message, detail, hint }), where);
  }
}

/** Converts the options to the engine's description of the data format. */
function formOf(
  options: CopyOptions,
  columns: readonly string[],
  { description }: PreparedStatement,
): CopyForm {
  const { format, delimiter, quote, escape, nullText, header } = options;
  return {
    format,
    delimiter,
    quote,
    escape,
    nullText,
    header: header === 'match' ? 'match' : header ? 'skip' : 'none',
    columns: description.parameters.map((type, index) => ({
      oid: oidOf(type),
      forceNotNull: names(options.forceNotNull, columns[index] ?? ''),
      forceNull: names(options.forceNull, columns[index] ?? ''),
    })),
  };
}
