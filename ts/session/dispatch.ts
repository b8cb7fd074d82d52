/**
 * Dispatches statements by the root of their syntax tree, for all protocols. The tables have an
 * entry for each node kind, so a new kind does not compile until it has a runner.
 */
import { DatabaseError } from '../engine/error.js';
import type { Node, SessionStatement, Statement, Tree } from '../sql/index.js';

/** Statements that the server runs, by node kind: users and permissions, and COPY of files. */
export type ServerKind = 'Access' | 'Copy';

export type Dispatch =
  | { readonly runner: 'engine' }
  | { readonly runner: 'server'; readonly kind: ServerKind; readonly tree: Tree }
  /** The connection runs the statement; this requires a persistent connection. */
  | { readonly runner: 'session'; readonly statement: SessionStatement };

/** Who runs each kind of statement; `null` for nodes that are only parts of statements. */
const RUNNERS: Readonly<Record<Node['kind'], 'engine' | 'server' | null>> = {
  Access: 'server',
  AlterTable: 'engine',
  AlterView: 'engine',
  AlterLiveView: 'engine',
  Array: null,
  Backup: 'engine',
  Between: null,
  Binary: null,
  Boolean: null,
  Call: null,
  CancelQuery: 'engine',
  Case: null,
  Cast: null,
  Check: 'engine',
  Column: null,
  CompileView: 'engine',
  Concat: null,
  Copy: 'server',
  CreateTable: 'engine',
  CreateView: 'engine',
  Decimal: null,
  Delete: 'engine',
  Derived: null,
  Drop: 'engine',
  DropAllTables: 'engine',
  DropIndex: 'engine',
  Duration: null,
  Empty: 'engine',
  Exists: null,
  Explain: 'engine',
  Float: null,
  Geohash: null,
  InList: null,
  InQuery: null,
  Index: null,
  Insert: 'engine',
  Integer: null,
  IsNull: null,
  Join: null,
  Logical: null,
  Long256: null,
  NamedParameter: null,
  Null: null,
  Parameter: null,
  Query: 'engine',
  Recover: 'engine',
  RefreshView: 'engine',
  Rename: 'engine',
  Select: 'engine',
  Session: 'engine',
  SetOperation: 'engine',
  Show: 'engine',
  Star: null,
  String: null,
  Subquery: null,
  Table: null,
  TableFunction: null,
  Truncate: 'engine',
  TypedString: null,
  Unary: null,
  Update: 'engine',
  Values: 'engine',
  Variable: null,
  Within: null,
};

export function dispatch({ tree, session }: Statement): Dispatch {
  if (session !== null) {
    return { runner: 'session', statement: session };
  }
  const root = tree.nodes[tree.root];
  const runner = root === undefined ? null : RUNNERS[root.kind];
  if (root === undefined || runner === null) {
    const message = `'${root?.kind ?? 'nothing'}' is not a statement`;
    throw new DatabaseError({ code: 'Internal', message });
  }
  return runner === 'server' ? { runner, kind: root.kind as ServerKind, tree } : { runner };
}

/**
 * How session statements are handled without a persistent connection. With `null`, the statement
 * has no effect. Other statements need state that persists, so they are refused with an error that
 * uses this name.
 */
const WITHOUT_CONNECTION: Readonly<Record<SessionStatement['kind'], string | null>> = {
  Begin: null,
  Chain: null,
  CloseCursor: null,
  Commit: null,
  CopyIn: 'COPY … FROM STDIN',
  CopyOut: 'COPY … TO STDOUT',
  Deallocate: null,
  DeclareCursor: 'DECLARE … CURSOR',
  Discard: null,
  Execute: 'EXECUTE',
  Fetch: 'FETCH',
  Listen: 'LISTEN',
  LockTable: null,
  Move: 'MOVE',
  Notify: 'NOTIFY',
  Prepare: 'PREPARE',
  Release: null,
  Reset: null,
  ResetRole: null,
  Rollback: null,
  RollbackTo: null,
  Savepoint: null,
  Set: null,
  SetAuthorization: null,
  SetRole: null,
  SetTransaction: null,
  TwoPhase: null,
  Unlisten: null,
};

/** Throws if a statement requires a persistent connection. */
export function refuseWithoutConnection({ kind }: SessionStatement): void {
  const refused = WITHOUT_CONNECTION[kind];
  if (refused !== null) {
    const message = `${refused} requires a PostgreSQL wire protocol connection`;
    throw new DatabaseError({ code: 'NotSupported', message, start: 0, end: 0 });
  }
}
