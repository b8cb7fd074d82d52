/**
 * The engine as TypeScript sees it: the shapes that cross the border.
 *
 * `ts/engine` is the only importer of the native addon; everything else imports these types and
 * the functions of `ts/engine/index.ts`. 64-bit integers are bigint.
 */
import type { ParameterBatch } from './parameter-batch.js';

/** What a statement does, decided by the binder. */
export type StatementKind = 'select' | 'insert' | 'update' | 'ddl' | 'session' | 'empty';

/** One column of a result. `dimensions` is set for arrays (`type` is then `ARRAY`). */
export interface ResultColumn {
  readonly name: string;
  /** Type text as `/exec` prints it: `DOUBLE`, `GEOHASH(5c)`, `ARRAY`. */
  readonly type: string;
  readonly dimensions: number;
}

/** Whoever owns a view. */
export interface Owner {
  readonly name: string;
  /** Tells them apart from others of the name; null where an older version made the view. */
  readonly id: string | null;
}

/** A table or column that a statement reads or writes; checked before it runs. */
export interface Access {
  readonly table: string;
  readonly columns: readonly string[];
  /** Permission name: `SELECT`, `INSERT`, `CREATE TABLE`, `DROP TABLE`, … */
  readonly permission: string;
  /** The view whose query touches it: the right is that of the view's owner. */
  readonly view?: string;
  /** Of `view`. */
  readonly owner?: Owner;
  /** The table's designated timestamp, told to those who do not see everything. */
  readonly timestamp?: string;
}

/** What somebody may see of the catalog who may not see all of it. */
export interface Sight {
  /** By lower-case name the columns, null for all of them; null instead of it: every table. */
  readonly tables: Readonly<Record<string, readonly string[] | null>> | null;
  /** The same for what may be read, with SELECT alone. */
  readonly reads: Readonly<Record<string, readonly string[] | null>> | null;
  /** Whether files of the server may be read. */
  readonly files: boolean;
  /** Whether others' running queries may be seen and cancelled. */
  readonly queries: boolean;
}

/** Rows that the server knows and the engine does not: texts and booleans. */
export interface ListedRows {
  readonly columns: readonly (readonly [name: string, type: 'STRING' | 'BOOLEAN'])[];
  readonly rows: readonly (readonly (string | boolean | null)[])[];
}

export interface StatementDescription {
  readonly kind: StatementKind;
  /** Command tag words: `SELECT`, `INSERT`, `CREATE TABLE`, `DROP TABLE`, `SET`, … */
  readonly command: string;
  readonly columns: readonly ResultColumn[];
  /** Index of the designated timestamp in `columns`, or -1. */
  readonly timestamp: number;
  /** Type text of each parameter `$1`, `$2`, … as inferred. */
  readonly parameters: readonly string[];
  readonly accesses: readonly Access[];
  /** What the statement asks for and has no effect here; told beside its success. */
  readonly notice?: string;
}

/** Who asks, in which setting. Never credentials. */
export interface StatementContext {
  readonly user: string;
  /** Tells the user apart from others of the same name; absent: the name does. */
  readonly identity?: string;
  /** Who owns a view that the statement makes; absent: the user. */
  readonly owner?: Owner;
  /** The statement's text, for the list of active queries. */
  readonly text?: string;
  /** Parameter types the client declared (type text), `null` where it left them open. */
  readonly parameterTypes?: readonly (string | null)[];
  /** What binding may take; absent or 0: no limit. */
  readonly timeoutMs?: number;
  /** What cancels its binding. */
  readonly queryId?: string;
  /** Refuse everything that writes. */
  readonly readOnly?: boolean;
  /** Absent: everything. */
  readonly sight?: Sight;
  /** What `SHOW USERS` and its kind answer, by `Users:`, `Permissions:name`, `all_permissions`. */
  readonly lists?: Readonly<Record<string, ListedRows>>;
}

/** How rows are encoded. */
export type RowFormat =
  /** `[1,"a"],[2,"b"]`: rows without the outer brackets, commas between rows of one stream. */
  | {
      readonly format: 'json';
      readonly quoteLargeNumbers?: boolean;
      readonly columns?: readonly number[] | undefined;
    }
  /** Rows only, CRLF line ends; `header` writes the name line first. */
  | { readonly format: 'csv'; readonly delimiter?: string; readonly header?: boolean }
  /** DataRow messages; one format code (0 text, 1 binary) per column. */
  | { readonly format: 'pg'; readonly formatCodes: readonly number[] }
  | { readonly format: 'parquet'; readonly options?: ParquetOptions }
  /** One Arrow arena per chunk, read by arrow-js-ffi. */
  | { readonly format: 'arrow' };

export interface ParquetOptions {
  /** UNCOMPRESSED, SNAPPY, GZIP, LZ4, LZ4_RAW, ZSTD, BROTLI. Default ZSTD. */
  readonly compressionCodec?: string;
  /** Codec's own scale. Default 9 for ZSTD. */
  readonly compressionLevel?: number;
  /** Rows. Default 100,000. */
  readonly rowGroupSize?: number;
  /** Bytes. Default 1,048,576. */
  readonly dataPageSize?: number;
  readonly statisticsEnabled?: boolean;
  /** 1 or 2. Default 2. */
  readonly parquetVersion?: number;
  /** Arrays as the bytes of their shape and elements. Default: nested lists. */
  readonly rawArrayEncoding?: boolean;
  /** NONE is one file, the default; HOUR to YEAR give a ZIP archive of one for each partition. */
  readonly partitionBy?: string;
}

export interface ExecuteOptions {
  readonly rows: RowFormat;
  /** Rows left out at the start. */
  readonly skip?: number | undefined;
  /** Rows returned at the most, after `skip`. */
  readonly take?: number | undefined;
  /** Keep counting after `take` rows, so that `Summary.rowsTotal` is the whole. */
  readonly countAll?: boolean | undefined;
  /** Only the last `last` rows (then `skip`/`take` count within them). */
  readonly last?: number | undefined;
  readonly timeoutMs?: number | undefined;
  /** Rows of the first chunk at the most (portals with a row limit). */
  readonly firstChunkRows?: number | undefined;
  /** From `Database.newQueryId`, for whoever wants to cancel the execution before its reply. */
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

export interface Summary {
  /** Rows encoded. */
  readonly rowsReturned: number;
  /** Rows of the query, when counted (`countAll`), else those seen. */
  readonly rowsTotal: number;
  /** Rows written by INSERT or UPDATE. */
  readonly rowsAffected: number;
  /** Nanoseconds from the start of execution to its end. */
  readonly executeNanos: number;
}

export interface ExecuteReply {
  /** The first rows, `null` when there are none. */
  readonly chunk: Chunk | null;
  /** Present when everything is in `chunk`. */
  readonly summary: Summary | null;
  /** Present when more follows. */
  readonly stream: ResultStream | null;
}

export interface ResultStream {
  /** The next chunk, of about `maxRows` rows at the most; `null` at the end. */
  next(maxRows?: number): Promise<Chunk | null>;
  /** Valid after the end. */
  summary(): Summary;
  /** Stops the query; `next` then rejects with `Cancelled`. */
  cancel(): void;
}

/** Parameter values as text in the parameter's own type; `null` is null. */
export type ParameterValues = readonly (string | null)[];

export interface Statement {
  readonly description: StatementDescription;
  execute(parameters: ParameterValues, options: ExecuteOptions): Promise<ExecuteReply>;
  /** Many parameter rows of one INSERT in one crossing, one commit. */
  executeBatch(rows: ParameterBatch): Promise<Summary>;
  /** Whether preparing it anew would surely give the same description. */
  isCurrent(): boolean;
  close(): void;
}

export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly designated: boolean;
}

export interface TableMetadata {
  readonly name: string;
  readonly columns: readonly TableColumn[];
  /** NONE, HOUR, DAY, WEEK, MONTH, YEAR. */
  readonly partitionBy: string;
  /** Name of the designated timestamp. */
  readonly timestamp: string | null;
}

/** A column of a file on its way into a table. */
export interface CsvColumnSpec {
  /** Index of the field in each line. */
  readonly index: number;
  /** Column of the table. */
  readonly name: string;
  readonly type: string;
  /** Pattern for DATE, TIMESTAMP and TIMESTAMP_NS; absent: ISO forms. */
  readonly pattern?: string;
}

/** What an appender writes to, and how its bytes are read. */
export interface AppenderSpec {
  readonly kind: 'csv' | 'pg_copy' | 'arrow';
  readonly table: string;
  /** Create the table with `columns` when it is missing (one commit with the rows). */
  readonly create: boolean;
  /** Replace structure and rows, in the same commit as the new rows. */
  readonly overwrite: boolean;
  /** Designated timestamp for a created table. */
  readonly timestamp?: string;
  readonly partitionBy?: string;
  readonly maxUncommittedRows?: number;
  readonly o3MaxLagMicros?: number;
  readonly csv?: CsvTextSpec;
}

/** How the lines of one text are read. */
export interface CsvTextSpec {
  readonly delimiter: string;
  /** The first line is a header: not data. */
  readonly header: boolean;
  readonly columns: readonly CsvColumnSpec[];
  /** `abortLine` also ends with lines that `abort` leaves out: too long, or without a timestamp. */
  readonly atomicity: 'abort' | 'abortLine' | 'skipRow' | 'skipCol';
  /** Ignore fields beyond the columns instead of the whole line. */
  readonly skipExtraValues: boolean;
}

export interface AppendProgress {
  readonly bytes: number;
  readonly rows: number;
}

/** What was read of one text. */
export interface TextReport {
  readonly rowsImported: number;
  readonly rowsRejected: number;
  /** Failed conversions per column of `csv.columns`, same order. */
  readonly columnErrors: readonly number[];
  /** The first bad lines: `line 4, field 3: bad syntax`. */
  readonly badLines: readonly string[];
}

/** Of the last text. */
export interface AppendReport extends TextReport {
  /** The table after the commit. */
  readonly table: TableMetadata;
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

export interface ActiveQuery {
  readonly queryId: bigint;
  readonly user: string;
  readonly text: string;
  readonly startedMicros: bigint;
}

export interface OpenOptions {
  /** Root directory; created when missing. */
  readonly root: string;
  /** `sync` (default), `async`, `nosync`. */
  readonly commitMode?: string;
  /** Whether the clock bounds a time to live; default true. */
  readonly ttlByClock?: boolean;
  /** Directory `read_parquet` may read, default `ROOT/import`. */
  readonly importRoot?: string;
  /** Bytes the process may use; default the memory of the machine or of its control group. */
  readonly processMemoryBytes?: number;
  /** Bytes all queries may use together; default half of `processMemoryBytes`. */
  readonly memoryLimitBytes?: number;
  /** Bytes one query may use; default a quarter of `memoryLimitBytes`. */
  readonly queryMemoryLimitBytes?: number;
  /** Rows that only memory and the log may hold; default an eighth of `processMemoryBytes`. */
  readonly unwrittenLimitBytes?: number;
  /** Threads that run plans; default the number of cores. */
  readonly workers?: number;
  /** Fewest rows of a scan's part, and most of its batches; default what is fastest. */
  readonly scanPartRows?: number;
  /** Whether plans pass the rules that only make them faster; default true. */
  readonly optionalRules?: boolean;
  /** Queries that run at once, but for cheap ones; default twice the cores, at least 4. */
  readonly maxConcurrentQueries?: number;
  /** Queries that wait for a turn at the most; default 256. */
  readonly maxWaitingQueries?: number;
  /** How long a query waits for its turn; default 10 seconds. */
  readonly queueWaitMs?: number;
  /** Manifests kept to fall back to: 2, or 1 for none. */
  readonly keepGenerations?: number;
  /** When the checksums of a segment are compared; default `first`. */
  readonly verify?: string;
  /** Free bytes on the disk below which writes stop; default 5 % of it, 1 GiB at most. */
  readonly diskWatermarkBytes?: number;
  /** Room kept for the last checkpoint; default 64 MiB, at most 2 % of the disk. */
  readonly diskReserveBytes?: number;
  /** Bytes queries may spill; default a quarter of the free disk. */
  readonly spillLimitBytes?: number;
  /** Rows of an import that a new table holds in memory; default 500,000. */
  readonly maxUncommittedRows?: number;
  /** Disorder that a new table expects; default ten minutes. */
  readonly o3MaxLagMicros?: number;
  readonly limits?: SizeLimits;
  readonly logSink?: (batch: readonly EngineLogLine[]) => void;
}

/** How large things may be; absent members take the engine's defaults. */
export interface SizeLimits {
  readonly tables?: number;
  readonly partitions?: number;
  readonly columns?: number;
  readonly cellBytes?: number;
  readonly arrayElements?: number;
  readonly lineBytes?: number;
}

export interface EngineLogLine {
  readonly level: 'error' | 'warn' | 'info' | 'debug';
  readonly component: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface EngineMetrics {
  readonly [name: string]: number;
}

/** Something in the root that is not as it was written. */
export interface Damage {
  /** Empty when it concerns no table. */
  readonly table: string;
  /** The file and what is wrong with it. */
  readonly what: string;
}

/** What can go wrong: the engine's closed list. */
export const ERROR_CODES = [
  'Syntax',
  'StatementTooComplex',
  'TableNotFound',
  'TableExists',
  'ColumnNotFound',
  'DuplicateColumn',
  'AmbiguousColumn',
  'FunctionNotFound',
  'TypeMismatch',
  'InvalidValue',
  'InvalidName',
  'NotSupported',
  'Replan',
  'Cancelled',
  'Timeout',
  'ResourceLimit',
  'Busy',
  'OutOfMemory',
  'DiskFull',
  'Io',
  'Damaged',
  'RootLocked',
  'Closed',
  'ReadOnly',
  'AccessDenied',
  'Internal',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** Inserts that only the statements prepared in it see until `commit`. */
export interface Transaction {
  /** Resolves to the new epoch, `null` when there was nothing to commit. */
  commit(): Promise<bigint | null>;
  /** Ends it; with a savepoint, only undoes what was inserted after that. */
  rollback(savepoint?: number): void;
  savepoint(): number;
}

export interface EffectiveParameter {
  readonly key: string;
  readonly environmentVariable: string;
  readonly value: string;
  /** `default`, `conf`, `env` or `set`. */
  readonly source: string;
  readonly sensitive: boolean;
  /** Whether a reload of the configuration applies it. */
  readonly reloadable: boolean;
}

export interface EngineInfo {
  readonly version: string;
  readonly formatVersion: string;
}

/** An open root directory. */
export interface Database {
  /** `tree` is the syntax tree as JSON in UTF-8. */
  prepare(tree: Buffer, context: StatementContext, transaction?: Transaction): Promise<Statement>;
  tableMetadata(name: string): Promise<TableMetadata | null>;
  openAppender(spec: AppenderSpec): Promise<Appender>;
  /** Inserts of statements prepared with it become visible together at `commit`. */
  begin(): Transaction;
  /** Durable records of one kind, by key: users, grants, console settings. */
  loadRecords(kind: string): Promise<Map<string, Buffer>>;
  /** Commits records at once, `null` deletes; resolves to the new epoch. */
  commitRecords(kind: string, changes: ReadonlyMap<string, Buffer | null>): Promise<bigint>;
  /** Effective configuration, for SHOW PARAMETERS. */
  setParameters(parameters: readonly EffectiveParameter[]): void;
  /** An identifier for one execution. */
  newQueryId(): bigint;
  /** False when no such query runs. */
  cancelQuery(queryId: bigint): boolean;
  activeQueries(): readonly ActiveQuery[];
  metrics(): EngineMetrics;
  /** What is known to be damaged. A table counts as sound until something of it is read. */
  damages(): readonly Damage[];
  /**
   * Finishes running commits, writes a checkpoint, releases the root, all within about `withinMs`
   * (3 s): a checkpoint that takes longer is given up, since the log has its rows. Nothing of a
   * query stays below `tmp`. Rejects where something acknowledged may not be durable.
   */
  close(withinMs?: number): Promise<void>;
}
