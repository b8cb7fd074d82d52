/**
 * The engine as seen from TypeScript. Types that cross the language border as JSON are generated
 * from Rust (`ts/border`); the types here exist only in TypeScript.
 *
 * Only `ts/engine` imports the native addon; other modules import these types and the functions of
 * `ts/engine/index.ts`. 64-bit integers are bigint.
 */
import type * as border from '../border/types.generated.js';
import type {
  AppenderSpec,
  AppendProgress,
  AppendReport,
  CsvTextSpec,
  SequenceValue,
  Summary,
  TableChange,
  TableMetadata,
  TextReport,
} from '../border/types.generated.js';
import type { DatabaseError } from './error.js';
import type { ParameterBatch, ParameterValues } from './parameters.js';

export type { ParameterValues } from './parameters.js';
import type { WebSocketReader } from './websocket.js';

export type * from '../border/types.generated.js';

/** Allows `undefined` for optional members. */
type Loose<T> = {
  readonly [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name];
};

/** Access to a table or columns that a statement requires, checked before the statement runs. */
export interface Access extends Omit<border.Access, 'permission'> {
  /** A permission that the engine defines, or one for a statement that the server runs. */
  readonly permission: string;
}

export interface StatementDescription extends Omit<
  border.StatementDescription,
  'accesses' | 'permissionRequests' | 'texts'
> {
  readonly accesses: readonly Access[];
}

export interface StatementContext extends Omit<border.StatementContext, 'answers' | 'texts'> {
  /**
   * Returns whether an access is granted; called during binding for statements that depend on the
   * answer. Without this function such statements are refused, unless the user may see everything.
   */
  readonly allows?: (access: Access) => boolean;
  /** Detects the schema of text files; without it, statements that read text files are refused. */
  readonly detectTextShape?: (ask: border.TextFormatRequest) => Promise<border.TextShape>;
}

export interface ExecuteOptions extends Loose<Omit<border.ExecuteOptions, 'queryId'>> {
  /**
   * An id from `Database.newQueryId`, for callers that may cancel the execution before they receive
   * its reply.
   */
  readonly queryId?: bigint | undefined;
}

/**
 * The same options with every member required, so code that copies the options by name cannot omit
 * a member.
 */
export type AllExecuteOptions = {
  readonly [Name in keyof ExecuteOptions]-?: ExecuteOptions[Name];
};

/** Encoded rows. */
export interface Chunk {
  readonly bytes: Buffer;
  readonly rows: number;
}

export interface ExecuteReply {
  /** The first rows; `null` if there are none. */
  readonly chunk: Chunk | null;
  /** Present if `chunk` contains all rows. */
  readonly summary: Summary | null;
  /** Present if more chunks follow. */
  readonly stream: ResultStream | null;
  /** The kind of change that the rows represent, if requested. */
  readonly change?: TableChange;
  /** The sequence values that SERIAL and IDENTITY columns assigned. */
  readonly sequenceValues?: readonly SequenceValue[];
}

/** The reply to a batch of rows. */
export interface BatchReply extends Pick<ExecuteReply, 'sequenceValues'> {
  readonly summary: Summary;
}

export interface ResultStream {
  /** Returns the next chunk, of up to about `maxRows` rows; `null` at the end. */
  next(maxRows?: number): Promise<Chunk | null>;
  /** Valid after the last chunk. */
  summary(): Summary;
  /** Stops the query; `next` then rejects with `Cancelled`. */
  cancel(): void;
}

/** Parameter values, or one row in the client's encoding. */
export type Parameters = ParameterValues | ParameterBatch;

export interface Statement {
  readonly description: StatementDescription;
  /** `parameters` are strings, or one row in the client's encoding. */
  execute(parameters: Parameters, options: ExecuteOptions): Promise<ExecuteReply>;
  /** Executes an INSERT for many parameter rows, in one native call and one commit. */
  executeBatch(rows: ParameterBatch): Promise<BatchReply>;
  /** Opens an appender for COPY data: one value per parameter of an INSERT. */
  openCopy(form: CopyForm): Promise<CopyAppender>;
  /** Whether preparing the statement again would certainly yield the same description. */
  isCurrent(): boolean;
  close(): void;
}

export interface Appender {
  /**
   * Resolves when the chunk is queued, which applies back-pressure. Copies the chunk before it
   * returns.
   */
  write(chunk: Buffer): Promise<AppendProgress>;
  /** Ends the current CSV file and starts the next one, for the same table and commit. */
  nextText(csv: CsvTextSpec): Promise<TextReport>;
  /** Commits the rows of all files. Afterwards the rows are visible, and durable as configured. */
  finish(): Promise<AppendReport>;
  /** Discards all rows. */
  abort(): Promise<void>;
}

/** Appends line protocol rows to the tables that they name. */
export interface RowsAppender {
  /**
   * Resolves when the chunk is queued, which applies back-pressure. Copies the chunk before it
   * returns.
   */
  write(chunk: Buffer): Promise<AppendProgress>;
  /**
   * Like `write`; transfers the chunk's memory if nothing shares it, which leaves the chunk empty.
   */
  transfer(chunk: Buffer): Promise<AppendProgress>;
  /**
   * The first call returns the table changes that the rows require, or the errors in the rows. The
   * next call commits all rows together, or returns the table changes again if the tables changed
   * in between.
   */
  finish(): Promise<RowsReply>;
  /** Discards all rows. */
  abort(): Promise<void>;
}

/** Appends columnar protocol messages to the tables that they name. */
export interface ColumnsAppender {
  /**
   * Decodes the messages buffered in a reader, and resolves to the progress. `finish` reports
   * errors in messages.
   */
  read(messages: WebSocketReader): Promise<MessagesProgress>;
  /**
   * The first call returns the table changes that the requested commits require. The next call
   * commits, or returns the table changes again if the tables changed in between. With `split`, the
   * reply covers only the first commit.
   */
  finish(split: boolean): Promise<RowsReply>;
  /** Discards all rows. */
  abort(): Promise<void>;
}

/** Appends COPY data. */
export interface CopyAppender {
  /**
   * Resolves when the chunk is queued, which applies back-pressure. Copies the chunk before it
   * returns.
   */
  write(chunk: Buffer): Promise<AppendProgress>;
  /** Commits the rows, or adds them to the open transaction block. Reports errors in the data. */
  finish(): Promise<CopyReply>;
  /** Resolves when all rows have been discarded. */
  abort(): Promise<void>;
}

/** Format options for COPY data. */
export type CopyForm = Omit<border.CopySpec, 'kind'>;
export type CopyMistake = Omit<border.CopyMistake, 'code'> & { readonly code: border.ErrorCode };
export type CopyReply = Omit<border.CopyReply, 'failure'> & { readonly failure?: CopyMistake };

/** Options for decoding the line protocol. */
export type LineOptions = Omit<border.LinesSpec, 'kind'>;
/** Options for decoding the columnar protocol. */
export type ColumnOptions = Omit<border.ColumnsSpec, 'kind'>;
export type LinePrecision = border.LinePrecision;
export type LinesRead = border.LinesRead;
export type RequestedCommit = border.RequestedCommit;
export type MessagesProgress = border.MessagesProgress;
export type RowsReply = border.RowsReply;
export type PlannedTable = border.PlannedTable;

export type ActiveQuery = Omit<border.ActiveQuery, 'queryId' | 'startedMicros'> & {
  readonly queryId: bigint;
  readonly startedMicros: bigint;
};

export interface OpenOptions extends border.OpenOptions {
  readonly logSink?: (batch: readonly border.LogLine[]) => void;
}

/** The catalog entries that a statement's user may see. */
export type Visibility = border.Visibility;

export type EngineMetrics = border.Observed['numbers'];

/** A transaction. Until `commit`, its inserts are visible only to statements prepared in it. */
export interface Transaction {
  /** Resolves to the new epoch; `null` if there was nothing to commit. */
  commit(): Promise<bigint | null>;
  /** Ends the transaction. With a savepoint, only undoes the inserts after that savepoint. */
  rollback(savepoint?: number): void;
  savepoint(): number;
}

/**
 * Specifies how the engine answers the client of a handed-off connection. The id of the handoff is
 * not included.
 */
export type HandoffTerms = Omit<border.HandoffSpec, 'id'>;
export type PgHandoffTerms = border.PgHandoff;
export type HttpHandoffTerms = border.HttpHandoff;
export type HandoffQuery = border.HandoffQuery;

/** The result of a handoff. */
export interface HandoffResult {
  /** Bytes from the client that were not answered. */
  readonly bytes: Buffer;
  /** Bytes to send to the client before anything else. */
  readonly unsent: Buffer;
  /** Index of the last executed statement; `null` if a Sync was answered after it. */
  readonly last: number | null;
  /** The error that ended the handoff; the client has not received it. */
  readonly error: DatabaseError | null;
  /** A reply that the engine did not send, because its rows exceed one chunk; otherwise `null`. */
  readonly reply: ExecuteReply | null;
  /** Duration of each execution, in microseconds. */
  readonly micros: Uint32Array;
}

/** A connection whose client the engine answers without JavaScript. */
export interface Handoff {
  /** Until it settles, no other code may read or write the socket. */
  readonly ended: Promise<HandoffResult>;
  /**
   * Revokes the handoff, so that no further statement starts. With `gently`, the running statement
   * may finish.
   */
  revoke(gently: boolean): void;
}

/** An open root directory. */
export interface Database {
  /** `tree` is the syntax tree as JSON in UTF-8. */
  prepare(tree: Buffer, context: StatementContext, transaction?: Transaction): Promise<Statement>;
  tableMetadata(name: string): Promise<TableMetadata | null>;
  openAppender(spec: AppenderSpec): Promise<Appender>;
  openLines(options: LineOptions): Promise<RowsAppender>;
  openColumns(options: ColumnOptions): Promise<ColumnsAppender>;
  /**
   * Begins a transaction. Inserts by the statements prepared with it become visible together at
   * `commit`.
   */
  begin(): Transaction;
  /** Durable records of one kind, such as users, grants or console settings, by key. */
  loadRecords(kind: string): Promise<Map<string, Buffer>>;
  /** Commits records atomically; `null` deletes a record. Resolves to the new epoch. */
  commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint>;
  /** Effective configuration, for SHOW PARAMETERS. */
  setParameters(parameters: readonly border.Setting[]): void;
  /** Returns an id for one execution. */
  newQueryId(): bigint;
  /** Returns false if no such query is running. */
  cancelQuery(queryId: bigint): boolean;
  /**
   * Hands a socket's connection off to the engine for about a second. The engine answers as long as
   * the client executes only `statements`, in the order given in `terms`; their values may vary.
   * Throws if a handoff is impossible.
   */
  handOff(descriptor: number, terms: HandoffTerms, statements: readonly Statement[]): Handoff;
  activeQueries(): readonly ActiveQuery[];
  metrics(): EngineMetrics;
  /** Known damage. A damaged table counts as intact until its data is read. */
  damages(): readonly border.Damage[];
  /**
   * Finishes running commits, writes a checkpoint and releases the root, within about `withinMs`
   * (default: 3 s). A checkpoint that takes longer is abandoned, because the log also contains its
   * rows. Afterwards, `tmp` contains no query files. Rejects if acknowledged data may not be
   * durable.
   */
  close(withinMs?: number): Promise<void>;
}
