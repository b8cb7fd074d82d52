/**
 * COPY … FROM STDIN: the bytes of the client go to the engine as they come, which makes rows of an
 * INSERT of them. All of them or none: in a block they wait for its end, else the COPY is a
 * transaction of its own.
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
import { DatabaseError } from '../../session/index.js';
import { type CopyOptions, copyOptions, names, quotedName } from './copy-options.js';
import { inData } from '../protocol/failure.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { Recoder } from './recoder.js';
import { copyResponse } from '../protocol/server-messages.js';
import { oidOf } from '../protocol/type-oids.js';

/** Bytes that cross together; many clients send less in a message. */
const PIECE_BYTES = 256 * 1024;

/** What a COPY needs of its conversation. */
export interface CopySetting {
  tableMetadata(name: string): Promise<TableMetadata | null>;
  prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement>;
}

type CopyInStatement = Extract<CopyStream, { kind: 'CopyIn' }>;

/** What a COPY writes with. */
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
  /** Null: the data are UTF-8, or binary. */
  private readonly recoder: Recoder | null;
  /** Bytes that wait for more. */
  private piece: Buffer | null = null;
  private pieceBytes = 0;
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
      const places = columns.map((_, index) => `$${index + 1}`).join(', ');
      const list = columns.map(quotedName).join(', ');
      const target = `${quotedName(statement.table)} (${list})`;
      insert = await setting.prepare(`INSERT INTO ${target} VALUES (${places})`);
      const options = copyOptions(statement.options);
      const appender = await insert.openCopy(formOf(options, columns, insert));
      return new CopyIn(statement, { options, insert, appender });
    } catch (error) {
      insert?.close();
      throw inData(error);
    }
  }

  /** Asks for the data. */
  get response(): Buffer {
    return copyResponse('in', this.isBinary ? 1 : 0, this.columnCount);
  }

  /** Stops at the next message. */
  cancel(): void {
    this.cancelled = true;
  }

  /** Takes a piece of the data; resolves when there is room for more. */
  async feed(bytes: Buffer): Promise<void> {
    this.refuseIfCancelled();
    await this.gather(this.recoder === null ? bytes : this.recoder.next(bytes));
  }

  /** The end of the data: everything becomes visible. Resolves to the rows. */
  async finish(): Promise<number> {
    this.refuseIfCancelled();
    if (this.recoder !== null) {
      await this.gather(this.recoder.end());
    }
    await this.writePiece();
    const rows = await this.end();
    this.insert.close();
    return rows;
  }

  /** Leaves nothing behind; a block that is not its own has failed. */
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
    if (this.pieceBytes + bytes.length > PIECE_BYTES) {
      await this.writePiece();
    }
    if (bytes.length >= PIECE_BYTES) {
      await this.write(bytes);
      return;
    }
    this.piece ??= Buffer.allocUnsafeSlow(PIECE_BYTES);
    this.pieceBytes += bytes.copy(this.piece, this.pieceBytes);
  }

  private async writePiece(): Promise<void> {
    if (this.piece !== null && this.pieceBytes > 0) {
      const piece = this.piece.subarray(0, this.pieceBytes);
      this.pieceBytes = 0;
      await this.write(piece);
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

  /** What the data came to; throws what is wrong with them. */
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
      const found = `invalid byte sequence for encoding "${encoding}"`;
      return new ProtocolError('22021', found, false, where);
    }
    return inData(new DatabaseError({ code, message, detail, hint }), where);
  }
}

/** How the engine reads the data. */
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
