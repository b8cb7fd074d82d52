/**
 * A database that understands a few keywords, for protocol tests that do not need an engine:
 *
 *     rows N        N rows (n LONG, s VARCHAR) in chunks of 1,000
 *     echo …        one row with the text of each parameter
 *     insert, ddl   writes a row, creates a table
 *     INSERT INTO   the table t (a, b) of COPY, in the text format without backslashes
 *     missing       an error with a position
 *     slow          waits until it is cancelled
 *     … ms=N …      takes N milliseconds to prepare
 */
import { setTimeout as sleep } from 'node:timers/promises';

import type {
  Chunk,
  CopyAppender,
  Database,
  ExecuteOptions,
  ExecuteReply,
  ParameterValues,
  ResultStream,
  Statement,
  StatementContext,
  StatementDescription,
  Summary,
  TableMetadata,
  Transaction,
} from '../../ts/engine/types.js';
import { DatabaseError, type ParameterBatch } from '../../ts/session/index.js';
import { rowOf, rowsOf } from './parameter-rows.js';

const CHUNK_ROWS = 1_000;

interface Journal {
  readonly committed: string[];
  rolledBack: number;
  /** Number of COPY operations that were aborted. */
  abandoned: number;
  streamsOpen: number;
  rowsEncoded: number;
  /** For each statement, the time already elapsed when it was prepared or executed. */
  readonly elapsedMs: (readonly ['prepare' | 'execute', string, number | undefined])[];
}

export interface FakeEngine extends Database {
  readonly journal: Journal;
}

class FakeTransaction implements Transaction {
  readonly blocked: string[] = [];
  private readonly journal: Journal;

  constructor(journal: Journal) {
    this.journal = journal;
  }

  commit(): Promise<bigint | null> {
    this.journal.committed.push(...this.blocked);
    return Promise.resolve(1n);
  }

  rollback(savepoint?: number): void {
    this.journal.rolledBack += 1;
    this.blocked.length = savepoint ?? 0;
  }

  savepoint(): number {
    return this.blocked.length;
  }
}

interface Context {
  readonly journal: Journal;
  readonly running: Map<bigint, { readonly user: string; readonly text: string; cancel(): void }>;
}

const METADATA: TableMetadata = {
  name: 't',
  columns: ['a', 'b'].map((name) => ({ name, type: 'VARCHAR', designated: false })),
  partitionBy: 'NONE',
  timestamp: null,
};

export function fakeEngine(): FakeEngine {
  const journal: Journal = {
    committed: [],
    rolledBack: 0,
    abandoned: 0,
    streamsOpen: 0,
    rowsEncoded: 0,
    elapsedMs: [],
  };
  const context: Context = { journal, running: new Map() };
  let lastQueryId = 0n;
  const engine: Partial<FakeEngine> = {
    journal,
    prepare: (tree, setting, transaction) => prepare(context, tree, setting, transaction),
    tableMetadata: (name) => Promise.resolve(name === 't' ? METADATA : null),
    begin: () => new FakeTransaction(journal),
    newQueryId: () => (lastQueryId += 1n),
    cancelQuery: (id) => {
      context.running.get(id)?.cancel();
      return true;
    },
    activeQueries: () =>
      [...context.running].map(([queryId, { user, text }]) => ({
        queryId,
        user,
        text,
        startedMicros: 0n,
      })),
    close: () => Promise.resolve(),
  };
  return engine as FakeEngine;
}

function describe(text: string, setting: StatementContext): StatementDescription {
  const declared = setting.parameterTypes ?? [];
  const count = new Set(text.match(/\$\d+/g)).size;
  const parameters = Array.from({ length: count }, (_, index) => declared[index] ?? 'VARCHAR');
  const rest = { timestamp: -1, parameters, accesses: [] };
  const column = (name: string, type: string): StatementDescription['columns'][number] => ({
    name,
    type,
    dimensions: 0,
  });
  if (text.startsWith('rows')) {
    const columns = [column('n', 'LONG'), column('s', 'VARCHAR')];
    return { kind: 'select', command: 'SELECT', columns, ...rest };
  }
  if (text.startsWith('echo') || text.startsWith('slow')) {
    const columns = parameters.map((type, index) => column(`p${index + 1}`, type));
    return { kind: 'select', command: 'SELECT', columns, ...rest };
  }
  if (text.toLowerCase().startsWith('insert')) {
    return { kind: 'insert', command: 'INSERT', columns: [], ...rest };
  }
  return { kind: 'ddl', command: 'CREATE TABLE', columns: [], ...rest };
}

async function prepare(
  context: Context,
  tree: Buffer,
  setting: StatementContext,
  transaction: Transaction | undefined,
): Promise<Statement> {
  const written = (JSON.parse(tree.toString('utf8')) as { text: string }).text;
  // EXECUTE evaluates its values with a query.
  const text = written.replace(/^SELECT \(([^)]*)\).*$/, '$1');
  if (text.startsWith('missing') || text.includes('"missing"')) {
    const message = 'table does not exist [table=missing]';
    throw new DatabaseError({ code: 'TableNotFound', message, start: 0, end: 7 });
  }
  const { elapsedMs } = context.journal;
  elapsedMs.push(['prepare', text, setting.elapsedMs]);
  await sleep(Number(/ms=(\d+)/.exec(text)?.[1] ?? 0));
  return {
    description: describe(text, setting),
    execute: (parameters, options) => {
      elapsedMs.push(['execute', text, options.elapsedMs]);
      return execute(context, text, setting, transaction, rowOf(parameters), options);
    },
    executeBatch: async (rows) => ({ summary: await executeBatch(context, transaction, rows) }),
    openCopy: () => Promise.resolve(copyInto(context.journal, transaction, text)),
    isCurrent: () => false,
    close: () => undefined,
  };
}

function copyInto(
  journal: Journal,
  transaction: Transaction | undefined,
  text: string,
): CopyAppender {
  const data: Buffer[] = [];
  const width = new Set(text.match(/\$\d+/g)).size;
  return {
    write: (chunk) => {
      data.push(Buffer.from(chunk));
      return Promise.resolve({ bytes: 0, rows: 0 });
    },
    finish: async () => {
      await Promise.resolve();
      const lines = Buffer.concat(data).toString().split('\n');
      const rows = (lines.at(-1) === '' ? lines.slice(0, -1) : lines).map((line) =>
        line.split('\t'),
      );
      const wrong = rows.findIndex((row) => row.length !== width || row.includes('bad'));
      if (wrong >= 0) {
        const isBad = rows[wrong]?.includes('bad') === true;
        const code = isBad ? 'InvalidValue' : 'InvalidCopyData';
        return { rows: 0, failure: { line: wrong + 1, code, message: 'wrong' } };
      }
      const into = transaction instanceof FakeTransaction ? transaction.blocked : journal.committed;
      into.push(rows.map((row) => row.join(',')).join(';'));
      return { rows: rows.length };
    },
    abort: () => {
      journal.abandoned += 1;
      return Promise.resolve();
    },
  };
}

/** Simulates a value that cannot be stored (`bad`) and a disk failure (`io`). */
function checkValues(parameters: ParameterValues): void {
  if (parameters.includes('bad')) {
    throw new DatabaseError({ code: 'InvalidValue', message: 'bad value' });
  }
  if (parameters.includes('io')) {
    throw new DatabaseError({ code: 'Io', message: 'disk' });
  }
}

async function executeBatch(
  { journal }: Context,
  transaction: Transaction | undefined,
  batch: ParameterBatch,
): Promise<Summary> {
  await Promise.resolve();
  const rows = rowsOf(batch);
  rows.forEach(checkValues);
  const into = transaction instanceof FakeTransaction ? transaction.blocked : journal.committed;
  into.push(rows.map((row) => row.join(',')).join(';'));
  return { rowsReturned: 0, rowsTotal: 0, rowsAffected: rows.length, executeNanos: 1 };
}

async function execute(
  context: Context,
  text: string,
  setting: StatementContext,
  transaction: Transaction | undefined,
  parameters: ParameterValues,
  options: ExecuteOptions,
): Promise<ExecuteReply> {
  const summary = { rowsReturned: 0, rowsTotal: 0, rowsAffected: 0, executeNanos: 1 };
  const done = { chunk: null, stream: null };
  if (text.startsWith('slow')) {
    await cancelled(context, options.queryId ?? 0n, setting.user, text);
  }
  if (text.startsWith('insert')) {
    checkValues(parameters);
    if (transaction instanceof FakeTransaction) {
      transaction.blocked.push(parameters.join(','));
    } else {
      context.journal.committed.push(parameters.join(','));
    }
    return { ...done, summary: { ...summary, rowsAffected: 1 } };
  }
  if (text.startsWith('echo')) {
    const bytes = dataRow(parameters.map((value) => (value === null ? null : Buffer.from(value))));
    return { ...done, chunk: { bytes, rows: 1 }, summary: { ...summary, rowsReturned: 1 } };
  }
  if (!text.startsWith('rows')) {
    return { ...done, summary };
  }
  const codes = options.rows.format === 'pg' ? options.rows.formatCodes : [];
  const stream = rowStream(context.journal, Number(text.split(' ')[1]), codes);
  const chunk = await stream.next(options.firstChunkRows);
  return { chunk, summary: null, stream };
}

function cancelled(context: Context, id: bigint, user: string, text: string): Promise<never> {
  return new Promise((_, reject) => {
    const cancel = (): void => {
      context.running.delete(id);
      reject(new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' }));
    };
    context.running.set(id, { user, text, cancel });
  });
}

function rowStream(journal: Journal, total: number, codes: readonly number[]): ResultStream {
  let at = 0;
  let stopped = false;
  journal.streamsOpen += 1;
  const end = (): void => {
    if (!stopped) {
      journal.streamsOpen -= 1;
    }
    stopped = true;
  };
  return {
    next: (maxRows) => {
      if (at >= total || stopped) {
        end();
        return Promise.resolve(null);
      }
      // Returns more rows than requested, so the protocol has to truncate the result.
      const count = Math.min(total - at, maxRows === undefined ? CHUNK_ROWS : maxRows + 2);
      const rows: Buffer[] = [];
      for (let index = 0; index < count; index += 1, at += 1) {
        rows.push(dataRow([numberCell(at, codes[0] ?? 0), Buffer.from(`row ${at}`)]));
      }
      journal.rowsEncoded += count;
      return Promise.resolve<Chunk>({ bytes: Buffer.concat(rows), rows: count });
    },
    summary: () => ({ rowsReturned: at, rowsTotal: at, rowsAffected: 0, executeNanos: 1 }),
    cancel: end,
  };
}

function numberCell(value: number, code: number): Buffer {
  if (code === 0) {
    return Buffer.from(String(value));
  }
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

export function dataRow(cells: readonly (Buffer | null)[]): Buffer {
  const parts: Buffer[] = [];
  for (const cell of cells) {
    const length = Buffer.alloc(4);
    length.writeInt32BE(cell === null ? -1 : cell.length);
    parts.push(length, cell ?? Buffer.alloc(0));
  }
  const body = Buffer.concat(parts);
  const header = Buffer.alloc(7);
  header.write('D', 0, 'latin1');
  header.writeInt32BE(6 + body.length, 1);
  header.writeInt16BE(cells.length, 5);
  return Buffer.concat([header, body]);
}
