/**
 * The engine as TypeScript sees it. What crosses the border as JSON is generated from Rust
 * (`ts/border`); what is written here is TypeScript's own.
 *
 * `ts/engine` is the only importer of the native addon; everything else imports these types and
 * the functions of `ts/engine/index.ts`. 64-bit integers are bigint.
 */
import type * as border from '../border/types.generated.js';
import type {
  AppenderSpec,
  AppendProgress,
  AppendReport,
  CsvTextSpec,
  DrawnNumber,
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

/** What is left out may also be undefined. */
type Loose<T> = {
  readonly [Name in keyof T]: undefined extends T[Name] ? T[Name] | undefined : T[Name];
};

/** A table or column that a statement reads or writes; checked before it runs. */
export interface Access extends Omit<border.Access, 'permission'> {
  /** The engine's permissions, and those of statements that run in the server. */
  readonly permission: string;
}

export interface StatementDescription extends Omit<
  border.StatementDescription,
  'accesses' | 'asks' | 'texts'
> {
  readonly accesses: readonly Access[];
}

export interface StatementContext extends Omit<border.StatementContext, 'answers' | 'texts'> {
  /**
   * Whether something is granted; asked where a statement reads while it is bound. Without it such
   * statements are refused to those who do not see everything.
   */
  readonly allows?: (access: Access) => boolean;
  /** How texts in files are read; without it statements that name some are refused. */
  readonly looks?: (ask: border.TextAsk) => Promise<border.TextShape>;
}

export interface ExecuteOptions extends Loose<Omit<border.ExecuteOptions, 'queryId'>> {
  /** From `Database.newQueryId`, for a caller that may cancel the execution before its reply. */
  readonly queryId?: bigint | undefined;
}

/** The same with every member, so that none is forgotten where they are copied by name. */
export type AllExecuteOptions = {
  readonly [Name in keyof ExecuteOptions]-?: ExecuteOptions[Name];
};

/** Encoded rows. */
export interface Chunk {
  readonly bytes: Buffer;
  readonly rows: number;
}

export interface ExecuteReply {
  /** The first rows, `null` when there are none. */
  readonly chunk: Chunk | null;
  /** Present when everything is in `chunk`. */
  readonly summary: Summary | null;
  /** Present when more follows. */
  readonly stream: ResultStream | null;
  /** What the rows are of a change, where one was asked for. */
  readonly change?: TableChange;
  /** The numbers that columns of SERIAL and IDENTITY gave rows. */
  readonly drawn?: readonly DrawnNumber[];
}

/** The answer of many rows. */
export interface BatchReply extends Pick<ExecuteReply, 'drawn'> {
  readonly summary: Summary;
}

export interface ResultStream {
  /** The next chunk, of at most about `maxRows` rows; `null` at the end. */
  next(maxRows?: number): Promise<Chunk | null>;
  /** Valid after the end. */
  summary(): Summary;
  /** Stops the query; `next` then rejects with `Cancelled`. */
  cancel(): void;
}

/** The same, or one row as a client sent it. */
export type Parameters = ParameterValues | ParameterBatch;

export interface Statement {
  readonly description: StatementDescription;
  /** `parameters`: texts, or the one row as a client sent it. */
  execute(parameters: Parameters, options: ExecuteOptions): Promise<ExecuteReply>;
  /** Many parameter rows of one INSERT in one crossing, one commit. */
  executeBatch(rows: ParameterBatch): Promise<BatchReply>;
  /** Takes the data of a COPY, one value for each parameter of an INSERT. */
  openCopy(form: CopyForm): Promise<CopyAppender>;
  /** Whether preparing it anew would surely give the same description. */
  isCurrent(): boolean;
  close(): void;
}

export interface Appender {
  /** Resolves when queued: back-pressure. The chunk is copied before this returns. */
  write(chunk: Buffer): Promise<AppendProgress>;
  /** Ends the text at hand and begins another for the same table and commit. */
  nextText(csv: CsvTextSpec): Promise<TextReport>;
  /** Commits all texts; afterwards the rows are durable as configured and visible. */
  finish(): Promise<AppendReport>;
  /** Leaves no trace. */
  abort(): Promise<void>;
}

/** Takes lines for the tables that they name. */
export interface RowsAppender {
  /** Resolves when queued: back-pressure. The chunk is copied before this returns. */
  write(chunk: Buffer): Promise<AppendProgress>;
  /** The same; the chunk is empty afterwards where nothing shares its memory. */
  give(chunk: Buffer): Promise<AppendProgress>;
  /**
   * The first time tells what the rows would change, or what is wrong with them; then commits
   * them all at once, or tells anew what they would change where the tables changed meanwhile.
   */
  finish(): Promise<RowsReply>;
  /** Leaves no trace. */
  abort(): Promise<void>;
}

/** Takes messages of the columnar protocol for the tables that they name. */
export interface ColumnsAppender {
  /** Reads messages that a reader keeps; resolves when what they came to is to be known. */
  read(messages: WebSocketReader): Promise<MessagesProgress>;
  /**
   * The first time tells what the commits that were asked for would change; then commits them, or
   * tells it anew. `split`: what it answered becomes the first of them alone.
   */
  finish(split: boolean): Promise<RowsReply>;
  /** Leaves no trace. */
  abort(): Promise<void>;
}

/** Takes the data of a COPY. */
export interface CopyAppender {
  /** Resolves when queued: back-pressure. The chunk is copied before this returns. */
  write(chunk: Buffer): Promise<AppendProgress>;
  /** Commits, or hands the rows to their block; or tells what is wrong with the data. */
  finish(): Promise<CopyReply>;
  /** Leaves no trace, once it has resolved. */
  abort(): Promise<void>;
}

/** How the data of a COPY are read. */
export type CopyForm = Omit<border.CopySpec, 'kind'>;
export type CopyMistake = Omit<border.CopyMistake, 'code'> & { readonly code: border.ErrorCode };
export type CopyReply = Omit<border.CopyReply, 'failure'> & { readonly failure?: CopyMistake };

/** How lines are read. */
export type LineOptions = Omit<border.LinesSpec, 'kind'>;
/** How messages of the columnar protocol are read. */
export type ColumnOptions = Omit<border.ColumnsSpec, 'kind'>;
export type LinePrecision = border.LinePrecision;
export type LinesRead = border.LinesRead;
export type AskedCommit = border.AskedCommit;
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

/** What a statement's user may see of the catalog. */
export type Visibility = border.Visibility;

export type EngineMetrics = border.Observed['numbers'];

/** Inserts that only the statements prepared in it see until `commit`. */
export interface Transaction {
  /** Resolves to the new epoch, `null` when there was nothing to commit. */
  commit(): Promise<bigint | null>;
  /** Ends it; with a savepoint, only undoes what was inserted after that. */
  rollback(savepoint?: number): void;
  savepoint(): number;
}

/** How the client of a handed off connection is answered, but for what its handoff is called. */
export type HandoffTerms = Omit<border.HandoffSpec, 'id'>;
export type PgHandoffTerms = border.PgHandoff;
export type HttpHandoffTerms = border.HttpHandoff;
export type HandoffQuery = border.HandoffQuery;

/** What comes back when a handoff ends. */
export interface HandoffResult {
  /** What the client sent and was not answered. */
  readonly bytes: Buffer;
  /** What the client is to be sent before anything else. */
  readonly unsent: Buffer;
  /** The statement, by its number, that was executed last; null where a Sync was answered since. */
  readonly last: number | null;
  /** Why it failed; its client has not been answered that. */
  readonly error: DatabaseError | null;
  /** Its reply, where its rows are more than one chunk; none of them was sent. */
  readonly reply: ExecuteReply | null;
  /** Microseconds that each execution took. */
  readonly micros: Uint32Array;
}

/** A connection that the engine answers by itself. */
export interface Handoff {
  /** Until it is settled no other code reads or writes the socket. */
  readonly ended: Promise<HandoffResult>;
  /** Ends it; no statement begins any more. `gently`: the one that runs may end. */
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
  /** Inserts of statements prepared with it become visible together at `commit`. */
  begin(): Transaction;
  /** Durable records of one kind, by key: users, grants, console settings. */
  loadRecords(kind: string): Promise<Map<string, Buffer>>;
  /** Commits records at once, `null` deletes; resolves to the new epoch. */
  commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint>;
  /** Effective configuration, for SHOW PARAMETERS. */
  setParameters(parameters: readonly border.Setting[]): void;
  /** An identifier for one execution. */
  newQueryId(): bigint;
  /** False when no such query runs. */
  cancelQuery(queryId: bigint): boolean;
  /**
   * Lets the engine answer the client of a socket, for about a second, who executes `statements`,
   * in the order of the terms, with other values. Throws where it cannot.
   */
  handOff(descriptor: number, terms: HandoffTerms, statements: readonly Statement[]): Handoff;
  activeQueries(): readonly ActiveQuery[];
  metrics(): EngineMetrics;
  /** What is known to be damaged. A table counts as sound until something of it is read. */
  damages(): readonly border.Damage[];
  /**
   * Finishes running commits, writes a checkpoint, releases the root, all within about `withinMs`
   * (3 s): a checkpoint that takes longer is given up, since the log has its rows. Nothing of a
   * query stays below `tmp`. Rejects where something acknowledged may not be durable.
   */
  close(withinMs?: number): Promise<void>;
}
