/**
 * COPY … FROM STDIN: data of the client as batches of one INSERT, all of them or none. Outside a
 * block the COPY is a transaction of its own.
 */
import { totalmem } from 'node:os';

import type {
  CopyStream,
  ParameterTypes,
  PreparedStatement,
  TableMetadata,
} from '../../session/index.js';
import { DatabaseError, ParameterBatch, parameterHeader } from '../../session/index.js';
import type { Block } from '../statements/block.js';
import { copyOptions, quotedName } from './copy-options.js';
import { type CopiedRow, type CopyReader, copyReader } from './copy-reader.js';
import { inData } from '../protocol/failure.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { copyResponse } from '../protocol/server-messages.js';
import { oidOf } from '../protocol/type-oids.js';

/** Rows, and UTF-16 units of their values, of one batch. */
const BATCH_ROWS = 8_192;
const BATCH_UNITS = 4 * 1024 * 1024;

/** Part of the memory of the machine, or of its control group, that one COPY may fill. */
const MEMORY_SHARE = 4;

function largestCopy(): number {
  const constrained = process.constrainedMemory();
  const memory = constrained > 0 ? Math.min(constrained, totalmem()) : totalmem();
  return Math.floor(memory / MEMORY_SHARE);
}

/** Errors of single rows: the row that is wrong can be found. */
const OF_A_ROW: ReadonlySet<string> = new Set([
  'InvalidValue',
  'InvalidEncoding',
  'InvalidBinary',
  'TypeMismatch',
  'ResourceLimit',
]);

/** What a COPY needs of its conversation. */
export interface CopySetting {
  readonly block: Block;
  /** Bytes of the data of one COPY: it is held in memory up to its end. */
  readonly copyBytesMax?: number;
  tableMetadata(name: string): Promise<TableMetadata | null>;
  prepare(text: string, types?: ParameterTypes): Promise<PreparedStatement>;
}

export class CopyIn {
  private readonly table: string;
  private readonly isBinary: boolean;
  private readonly setting: CopySetting;
  /** Whether the transaction is this statement's own. */
  private readonly isAlone: boolean;
  private readonly insert: PreparedStatement;
  private readonly reader: CopyReader;
  private readonly columnCount: number;
  /** How the values are sent. */
  private readonly header: Buffer;
  private batch: CopiedRow[] = [];
  private batchUnits = 0;
  private rows = 0;
  private bytesLeft: number;
  private cancelled = false;

  private constructor(
    { table, options: written }: Extract<CopyStream, { kind: 'CopyIn' }>,
    setting: CopySetting,
    isAlone: boolean,
    insert: PreparedStatement,
    columns: readonly string[],
  ) {
    const options = copyOptions(written);
    this.table = table;
    this.isBinary = options.format === 'binary';
    this.setting = setting;
    this.isAlone = isAlone;
    this.insert = insert;
    this.columnCount = columns.length;
    this.bytesLeft = setting.copyBytesMax ?? largestCopy();
    const format = this.isBinary ? 1 : 0;
    const types = insert.description.parameters;
    this.header = parameterHeader(types.map((type) => ({ format, oid: oidOf(type) })));
    const described = columns.map((name) => ({ name }));
    this.reader = copyReader(described, options);
  }

  static async open(
    statement: Extract<CopyStream, { kind: 'CopyIn' }>,
    setting: CopySetting,
  ): Promise<CopyIn> {
    const isAlone = setting.block.open();
    let insert: PreparedStatement | null = null;
    try {
      const metadata = await setting.tableMetadata(statement.table);
      const all = metadata?.columns.map(({ name }) => name);
      const columns = statement.columns ?? all ?? ['missing'];
      const places = columns.map((_, index) => `$${index + 1}`).join(', ');
      const list = columns.map(quotedName).join(', ');
      const target = `${quotedName(statement.table)} (${list})`;
      insert = await setting.prepare(`INSERT INTO ${target} VALUES (${places})`);
      return new CopyIn(statement, setting, isAlone, insert, columns);
    } catch (error) {
      insert?.close();
      if (isAlone) {
        setting.block.rollback();
      }
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
    if (this.cancelled) {
      throw new ProtocolError('57014', 'cancelled by user');
    }
    this.bytesLeft -= bytes.length;
    if (this.bytesLeft < 0) {
      const limit = this.setting.copyBytesMax ?? largestCopy();
      const message = `the data of COPY is too large [limit=${limit}]: copy it in parts`;
      throw new ProtocolError('54000', message);
    }
    await this.read((take) => {
      this.reader.push(bytes, take);
    });
  }

  /** The end of the data: everything becomes visible. Resolves to the rows. */
  async finish(): Promise<number> {
    if (this.cancelled) {
      throw new ProtocolError('57014', 'cancelled by user');
    }
    await this.read((take) => {
      this.reader.end(take);
    });
    await this.write();
    this.insert.close();
    const { block } = this.setting;
    if (this.isAlone) {
      await block.commit();
    }
    return this.rows;
  }

  /** Leaves nothing behind; a block that is not its own has failed. */
  abandon(): void {
    this.insert.close();
    this.batch = [];
    if (this.isAlone) {
      this.setting.block.rollback();
    }
  }

  private async read(step: (take: (row: CopiedRow) => void) => void): Promise<void> {
    try {
      step((row) => {
        this.batch.push(row);
        this.batchUnits += row.values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
      });
    } catch (error) {
      // The rows before it may hold an earlier mistake.
      await this.write();
      throw inData(error, this.where(this.reader.line));
    }
    if (this.batch.length >= BATCH_ROWS || this.batchUnits >= BATCH_UNITS) {
      await this.write();
    }
  }

  private where(line: number): string {
    return `COPY ${this.table}, line ${line}`;
  }

  private async write(): Promise<void> {
    const { batch } = this;
    this.batch = [];
    this.batchUnits = 0;
    for (let at = 0; at < batch.length; at += BATCH_ROWS) {
      await this.writeRows(batch.slice(at, at + BATCH_ROWS));
    }
  }

  private async writeRows(rows: readonly CopiedRow[]): Promise<void> {
    try {
      await this.insertRows(rows);
    } catch (error) {
      const isOfARow = error instanceof DatabaseError && OF_A_ROW.has(error.code);
      const line = isOfARow ? await this.firstWrong(rows) : (rows[0]?.line ?? 0);
      throw inData(error, this.where(line));
    }
    this.rows += rows.length;
  }

  private async insertRows(rows: readonly CopiedRow[]): Promise<void> {
    const batch = ParameterBatch.of(
      rows.map((row) => row.values),
      this.header,
    );
    await this.insert.executeBatch(batch);
  }

  /** Line of the first row that cannot be inserted. What is tried is undone with the COPY. */
  private async firstWrong(rows: readonly CopiedRow[]): Promise<number> {
    let low = 0;
    let high = rows.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      try {
        await this.insertRows(rows.slice(low, middle + 1));
        low = middle + 1;
      } catch {
        high = middle;
      }
    }
    return rows[low]?.line ?? 0;
  }
}
