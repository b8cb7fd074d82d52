/**
 * A database that answers `rows N` with N rows of one LONG column in chunks, and answers some
 * keywords with errors. Tests of heads, limits and order use this database instead of an engine.
 */
import {
  type Chunk,
  type Database,
  DatabaseError,
  type ExecuteReply,
  type StatementDescription,
  type Summary,
} from '../../ts/session/index.js';
import { fakeStatement } from '../fake-statement.js';
import type {
  ActiveQuery,
  Appender,
  ExecuteOptions,
  Statement,
  StatementContext,
  Transaction,
} from '../../ts/engine/types.js';

type Parsed = ReturnType<typeof fakeStatement>;

const CHUNK_ROWS = 1000;
const NO_TRANSACTION: Transaction = {
  commit: () => Promise.resolve(null),
  rollback: () => undefined,
  savepoint: () => 0,
};

interface Journal {
  executed: string[];
  cancelled: number;
  closed: number;
  /** Prepared SQL statements. */
  prepared: string[];
  /** For each prepared statement, its timeout and the time already elapsed. */
  bounds: Record<'timeoutMs' | 'elapsedMs', number | undefined>[];
  /** Whether the catalog has already changed once. */
  moved: boolean;
  /** Result of checking whether a statement is still current. */
  current: boolean;
}

export interface FakeDatabase extends Database {
  readonly journal: Journal;
}

/** The fake's syntax tree is the SQL text itself. */
export function fakeParse(text: string): Parsed {
  const at = text.indexOf('!');
  if (at >= 0) {
    throw Object.assign(new Error('unexpected token [!]'), { start: at, end: at + 1 });
  }
  return fakeStatement(text);
}

export function fakeDatabase(): FakeDatabase {
  const journal: Journal = {
    executed: [],
    cancelled: 0,
    closed: 0,
    prepared: [],
    bounds: [],
    moved: false,
    current: true,
  };
  const records = new Map<string, Buffer>();
  const running: ActiveQuery[] = [];
  return {
    journal,
    prepare: (tree, context) => prepare(journal, running, tree, context),
    tableMetadata: (name) =>
      Promise.resolve(
        name === 'there' ? { name, columns: [], partitionBy: 'NONE', timestamp: null } : null,
      ),
    openAppender: (): Promise<Appender> => Promise.reject(new Error('no appender here')),
    openColumns: () => Promise.reject(new Error('no appender here')),
    openLines: () => Promise.reject(new Error('no appender here')),
    begin: () => NO_TRANSACTION,
    handOff: () => {
      throw new Error('no handoff here');
    },
    loadRecords: () => Promise.resolve(new Map(records)),
    commitRecords: (_kind, changes) => {
      for (const [key, value] of changes) {
        if (value !== null) {
          records.set(key, value);
        }
      }
      return Promise.resolve(1n);
    },
    setParameters: () => undefined,
    newQueryId: () => 7n,
    cancelQuery: () => {
      journal.cancelled += 1;
      return true;
    },
    activeQueries: () => running,
    metrics: () => ({ statements: journal.executed.length }),
    damages: () => [],
    close: () => Promise.resolve(),
  };
}

function prepare(
  journal: Journal,
  running: ActiveQuery[],
  tree: Buffer,
  context: StatementContext,
): Promise<Statement> {
  const { text } = JSON.parse(tree.toString()) as { text: string };
  if (text.startsWith('missing')) {
    const message = 'table does not exist [table=missing]';
    return Promise.reject(new DatabaseError({ code: 'TableNotFound', message, start: 0 }));
  }
  journal.prepared.push(text);
  const { timeoutMs, elapsedMs } = context;
  journal.bounds.push({ timeoutMs, elapsedMs });
  return Promise.resolve({
    description: describe(text),
    execute: async (_parameters, options) => {
      if (text.startsWith('insert') && context.readOnly === true) {
        throw new DatabaseError({ code: 'ReadOnly', message: 'read-only' });
      }
      if (text === 'replan always' || (text === 'replan' && !journal.moved)) {
        journal.moved = true;
        throw new DatabaseError({ code: 'Replan', message: 'moved' });
      }
      journal.executed.push(text);
      if (text === 'wait') {
        running.push({ queryId: 7n, user: context.user, text, startedMicros: 0n });
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
      return reply(journal, text, options);
    },
    executeBatch: () => Promise.resolve({ summary: summaryOf(0, 0) }),
    openCopy: () =>
      Promise.reject(new DatabaseError({ code: 'NotSupported', message: 'no COPY here' })),
    isCurrent: () => journal.current,
    close: () => {
      journal.closed += 1;
    },
  });
}

function describe(text: string): StatementDescription {
  const word = text.split(' ')[0] ?? '';
  const kinds: Readonly<Record<string, StatementDescription['kind']>> = {
    insert: 'insert',
    update: 'update',
    create: 'ddl',
    '--': 'empty',
  };
  const kind = kinds[word] ?? 'select';
  const columns = kind === 'select' ? [{ name: 'x', type: 'LONG', dimensions: 0 }] : [];
  return { kind, command: word, columns, timestamp: -1, parameters: [], accesses: [] };
}

function reply(journal: Journal, text: string, options: ExecuteOptions): ExecuteReply {
  const total = Number(/\d+/.exec(text)?.[0] ?? 0);
  const from = Math.max(total - (options.last ?? total), 0) + (options.skip ?? 0);
  const to = Math.min(total, from + (options.take ?? total));
  const returned = Math.max(to - from, 0);
  const summary = summaryOf(returned, total);
  if (returned <= CHUNK_ROWS && !text.startsWith('breaks')) {
    return { chunk: chunk(from, to, options), summary, stream: null };
  }
  let at = from + CHUNK_ROWS;
  let cancelled = false;
  return {
    chunk: chunk(from, at, options),
    summary: null,
    stream: {
      next: () => {
        if (cancelled || text.startsWith('breaks')) {
          const code = cancelled ? 'Cancelled' : 'ResourceLimit';
          return Promise.reject(new DatabaseError({ code, message: 'it broke' }));
        }
        const start = at;
        at = Math.min(at + CHUNK_ROWS, to);
        return Promise.resolve(start >= to ? null : chunk(start, at, options, true));
      },
      summary: () => summary,
      cancel: () => {
        cancelled = true;
        journal.cancelled += 1;
      },
    },
  };
}

function chunk(from: number, to: number, options: ExecuteOptions, later = false): Chunk {
  const count = Math.max(to - from, 0);
  const numbers = Array.from({ length: count }, (_, index) => from + index + 1);
  const json = numbers.map((value) => `[${value}]`).join(',');
  const header = options.rows.format === 'csv' && options.rows.header === true && !later;
  const csv = (header ? '"x"\r\n' : '') + numbers.map((value) => `${value}\r\n`).join('');
  const text = options.rows.format === 'csv' ? csv : (later && count > 0 ? ',' : '') + json;
  return { bytes: Buffer.from(text), rows: count };
}

function summaryOf(rowsReturned: number, rowsTotal: number): Summary {
  return { rowsReturned, rowsTotal, rowsAffected: rowsTotal, executeNanos: 5 };
}
