/**
 * What crosses between TypeScript and Rust as JSON. Generated from crates/border and crates/types
 * by `npm run generate`; do not edit.
 */

export type OpenOptions = {
  /**
   * Root directory; created when missing.
   */
  readonly root: string;
  /**
   * What an acknowledged commit survives; default `sync`.
   */
  readonly commitMode?: CommitMode;
  /**
   * Whether the clock bounds a time to live; default true.
   */
  readonly ttlByClock?: boolean;
  /**
   * Directory `read_parquet` may read, default `ROOT/import`.
   */
  readonly importRoot?: string;
  /**
   * Directory that COPY … TO writes to, which `export_files()` lists; default `ROOT/export`.
   */
  readonly exportRoot?: string;
  /**
   * Bytes the process may use; default the memory of the machine or of its control group.
   */
  readonly processMemoryBytes?: number;
  /**
   * Bytes all queries may use together; default half of `processMemoryBytes`.
   */
  readonly memoryLimitBytes?: number;
  /**
   * Bytes one query may use; default a quarter of `memoryLimitBytes`.
   */
  readonly queryMemoryLimitBytes?: number;
  /**
   * Bytes of rows that only memory and the log may hold; default an eighth of
   * `processMemoryBytes`.
   */
  readonly unwrittenLimitBytes?: number;
  /**
   * Threads that run plans; default the number of cores.
   */
  readonly workers?: number;
  /**
   * Fewest rows of a scan's part, and most of its batches; default what is fastest.
   */
  readonly scanPartRows?: number;
  /**
   * Queries that run at once, but for cheap ones; default twice the cores, at least 4.
   */
  readonly maxConcurrentQueries?: number;
  /**
   * Queries that may wait for their turn; default 256.
   */
  readonly maxWaitingQueries?: number;
  /**
   * Milliseconds a query waits for its turn; default 10,000.
   */
  readonly queueWaitMs?: number;
  /**
   * Whether materialized views follow their base tables; default true.
   */
  readonly refreshViews?: boolean;
  /**
   * Whether live views can be made, and follow their base tables; default true.
   */
  readonly liveViews?: boolean;
  /**
   * The longest IN MEMORY of a live view in microseconds; default an hour.
   */
  readonly liveViewMemoryMicros?: number;
  /**
   * Bytes that all views may hold between their refreshes; default a 32nd of
   * `processMemoryBytes`, 256 MiB at most.
   */
  readonly viewStateBytes?: number;
  /**
   * Whether materialized views answer queries over their base tables; default true.
   */
  readonly answersFromViews?: boolean;
  /**
   * Bytes of the latest changes of followed tables that memory keeps; default a 64th of
   * `processMemoryBytes`, 64 MiB at most.
   */
  readonly recentChangesBytes?: number;
  /**
   * Milliseconds between two looks at the partitions of a table with a storage policy; default
   * five minutes.
   */
  readonly policyCheckMs?: number;
  /**
   * Milliseconds for which a table is followed without a feed; default a week.
   */
  readonly followedForMs?: number;
  /**
   * Manifests kept to fall back to: 2 (default), or 1 for none.
   */
  readonly keepGenerations?: number;
  /**
   * When checksums of segments are compared; default `first`.
   */
  readonly verify?: Verify;
  /**
   * Free bytes on the disk below which writes stop; default 5 % of it, 1 GiB at most.
   */
  readonly diskWatermarkBytes?: number;
  /**
   * Bytes kept for the last checkpoint; default 64 MiB, at most 2 % of the disk.
   */
  readonly diskReserveBytes?: number;
  /**
   * Bytes all queries may spill; default a quarter of the free disk.
   */
  readonly spillLimitBytes?: number;
  /**
   * Rows of an import that a new table holds in memory; default 500,000.
   */
  readonly maxUncommittedRows?: number;
  /**
   * Disorder that a new table expects, milliseconds; default ten minutes.
   */
  readonly o3MaxLagMs?: number;
  /**
   * Tables.
   */
  readonly maxTables?: number;
  /**
   * Partitions of a table.
   */
  readonly maxPartitions?: number;
  /**
   * Columns of a table.
   */
  readonly maxColumns?: number;
  /**
   * Bytes of a text or BINARY cell.
   */
  readonly maxCellBytes?: number;
  /**
   * Elements of an array in a column.
   */
  readonly maxArrayElements?: number;
  /**
   * Bytes of a line of an import.
   */
  readonly maxLineBytes?: number;
};

export type CommitMode = 'sync' | 'async' | 'nosync' | 'adaptive';

export type Verify = 'open' | 'first' | 'off';

export type Setting = {
  /**
   * The key's name.
   */
  readonly key: string;
  /**
   * The environment variable that sets it.
   */
  readonly environmentVariable: string;
  /**
   * The effective value; of a secret, that it is there.
   */
  readonly value: string;
  /**
   * `default`, `conf`, `env`, `set` or `file`.
   */
  readonly source: string;
  /**
   * Whether the value is a secret.
   */
  readonly sensitive: boolean;
  /**
   * Whether a reload of the configuration applies it.
   */
  readonly reloadable: boolean;
};

export type StatementContext = {
  /**
   * The session's user, for `current_user()` and the list of active queries.
   */
  readonly user: string;
  /**
   * Tells the user apart from others of the same name; absent: the name does.
   */
  readonly identity?: string;
  /**
   * Who owns a view that the statement makes; absent: the user.
   */
  readonly owner?: Owner;
  /**
   * The statement's text, for the list of active queries.
   */
  readonly text?: string;
  /**
   * Type texts the client declared for `$1`, `$2`, …; null where it left them open.
   */
  readonly parameterTypes?: ReadonlyArray<string | null>;
  /**
   * Milliseconds until the statement is given up; absent or 0: no limit.
   */
  readonly timeoutMs?: number;
  /**
   * Milliseconds of `timeoutMs` that are over: from the statement's arrival to here.
   */
  readonly elapsedMs?: number;
  /**
   * What cancels its binding: a number that no execution has.
   */
  readonly queryId?: string;
  /**
   * Refuse everything that writes.
   */
  readonly readOnly?: boolean;
  /**
   * What of the catalog is seen; absent: everything.
   */
  readonly visibility?: Visibility;
  /**
   * What `SHOW USERS` and its kind answer, by `Users:`, `Permissions:name`, `all_permissions`,
   * as far as the statement asks for them.
   */
  readonly lists?: { [key in string]?: ListedRows };
  /**
   * The last number of each sequence that the session drew from, in that order, as far as the
   * statement asks for them.
   */
  readonly numbers?: ReadonlyArray<DrawnNumber>;
  /**
   * What is granted, by the keys of what an earlier binding asked; absent: nothing can be asked.
   */
  readonly answers?: { [key in string]?: boolean };
  /**
   * How the texts in files are read, by the keys of what an earlier binding asked.
   */
  readonly texts?: { [key in string]?: TextShape };
};

export type DrawnNumber = {
  /**
   * The name that the sequence has elsewhere.
   */
  readonly sequence: string;
  /**
   * The number: 64 bits, as text.
   */
  readonly value: string;
};

export type Owner = {
  /**
   * The name, for people.
   */
  readonly name: string;
  /**
   * Tells one apart from others of the name; null where an older version made the view.
   */
  readonly id: string | null;
};

export type Visibility = {
  /**
   * By folded name the folded names of the columns, null for all of them; null in its place:
   * every table.
   */
  readonly tables: { [key in string]?: ReadonlyArray<string> | null } | null;
  /**
   * The same for what may be read, with SELECT alone.
   */
  readonly reads: { [key in string]?: ReadonlyArray<string> | null } | null;
  /**
   * Whether files of the server may be read.
   */
  readonly files: boolean;
  /**
   * Whether others' running queries are seen and may be cancelled.
   */
  readonly queries: boolean;
};

export type ListedRows = {
  /**
   * Names and types.
   */
  readonly columns: ReadonlyArray<[string, ListedType]>;
  /**
   * The rows.
   */
  readonly rows: ReadonlyArray<ReadonlyArray<ListedCell | null>>;
};

export type ListedType = 'STRING' | 'BOOLEAN';

export type ListedCell = boolean | string;

export type StatementKind = 'select' | 'insert' | 'update' | 'ddl' | 'session' | 'empty';

export type StatementDescription = {
  /**
   * What it does.
   */
  readonly kind: StatementKind;
  /**
   * Words of the command tag: `SELECT`, `CREATE TABLE`, …
   */
  readonly command: string;
  /**
   * Columns of the result; empty when there is none.
   */
  readonly columns: ReadonlyArray<ResultColumn>;
  /**
   * Index of the designated timestamp in `columns`, or -1.
   */
  readonly timestamp: number;
  /**
   * Type text of each parameter `$1`, `$2`, … as inferred.
   */
  readonly parameters: ReadonlyArray<string>;
  /**
   * What it touches.
   */
  readonly accesses: ReadonlyArray<Access>;
  /**
   * What it asks for and has no effect here: notices beside its success.
   */
  readonly notice?: string;
  /**
   * What must be known to be granted or not before it can be bound: it reads while it is bound.
   * Prepare it again with the answers.
   */
  readonly asks?: ReadonlyArray<Ask>;
  /**
   * Texts whose shape must be known before it can be bound. Prepare it again with what is found.
   */
  readonly texts?: ReadonlyArray<TextAsk>;
};

export type ColumnSource = {
  /**
   * The number of the table.
   */
  readonly table: number;
  /**
   * The number of the column in it, from 1.
   */
  readonly number: number;
  /**
   * What narrows its type, as the catalog packs it; -1 for nothing.
   */
  readonly modifier: number;
};

export type ResultColumn = {
  /**
   * Name as shown.
   */
  readonly name: string;
  /**
   * Type text as `/exec` prints it: `DOUBLE`, `GEOHASH(5c)`, `ARRAY`.
   */
  readonly type: string;
  /**
   * Dimensions of an array, else 0.
   */
  readonly dimensions: number;
  /**
   * Of a column of the catalog of `PostgreSQL`: the number of its type there, where `type` does
   * not say.
   */
  readonly oid?: number;
  /**
   * The column of a table that it is.
   */
  readonly source?: ColumnSource;
};

export type Ask = {
  /**
   * Tells it apart from other questions.
   */
  readonly key: string;
  /**
   * What is to be granted.
   */
  readonly access: Access;
};

export type TextAsk = {
  /**
   * Tells it apart from other questions.
   */
  readonly key: string;
  /**
   * What the files are.
   */
  readonly format: TextFormat;
  /**
   * The files, in the order in which their rows come.
   */
  readonly files: ReadonlyArray<TextPlace>;
  /**
   * What the statement says about them, by the names of the options.
   */
  readonly options: { [key in string]?: string };
};

export type TextFormat = 'csv' | 'json';

export type TextPlace = {
  /**
   * As users know it, below the import directory.
   */
  readonly name: string;
  /**
   * Where it is, absolute and without links.
   */
  readonly path: string;
};

export type TextShape = {
  /**
   * How they are read, in the order of the question.
   */
  readonly files: ReadonlyArray<TextFile>;
  /**
   * Why they cannot be read.
   */
  readonly problem?: string;
};

export type TextFile = {
  /**
   * As users know it.
   */
  readonly name: string;
  /**
   * Which content of the file was looked at: device, number, bytes, nanoseconds since 1970 of
   * the last change, with a colon between them.
   */
  readonly version: string;
  /**
   * When that was, in milliseconds since 1970.
   */
  readonly lookedAt: number;
  /**
   * Its first 64 bytes and its last, in hexadecimal digits: a file that grew has them still.
   */
  readonly edges: string;
  /**
   * Where its text lies as UTF-8 and CSV, if the file itself is something else.
   */
  readonly converted?: string;
  /**
   * How that is read.
   */
  readonly csv: CsvTextSpec;
};

export type Access = {
  /**
   * The table; empty for the database.
   */
  readonly table: string;
  /**
   * The columns; empty when the whole table is meant.
   */
  readonly columns: ReadonlyArray<string>;
  /**
   * What it takes.
   */
  readonly permission: Permission;
  /**
   * The view whose query touches it: the right is that of the view's owner.
   */
  readonly view?: string;
  /**
   * Of that view.
   */
  readonly owner?: Owner;
  /**
   * The table's designated timestamp, where the user does not see everything.
   */
  readonly timestamp?: string;
};

export type Permission =
  | 'SELECT'
  | 'INSERT'
  | 'UPDATE'
  | 'DELETE'
  | 'CREATE TABLE'
  | 'DROP TABLE'
  | 'TRUNCATE TABLE'
  | 'RENAME TABLE'
  | 'ADD COLUMN'
  | 'DROP COLUMN'
  | 'RENAME COLUMN'
  | 'ALTER COLUMN TYPE'
  | 'ALTER COLUMN CACHE'
  | 'ADD INDEX'
  | 'DROP INDEX'
  | 'REINDEX'
  | 'DROP PARTITION'
  | 'DETACH PARTITION'
  | 'ATTACH PARTITION'
  | 'SET TABLE PARAM'
  | 'SET TABLE TYPE'
  | 'VACUUM TABLE'
  | 'DEDUP DISABLE'
  | 'DEDUP ENABLE'
  | 'RESUME WAL'
  | 'SET STORAGE POLICY'
  | 'ENABLE STORAGE POLICY'
  | 'DISABLE STORAGE POLICY'
  | 'REMOVE STORAGE POLICY'
  | 'CREATE VIEW'
  | 'ALTER VIEW'
  | 'DROP VIEW'
  | 'COMPILE VIEW'
  | 'CREATE MATERIALIZED VIEW'
  | 'ALTER MATERIALIZED VIEW'
  | 'DROP MATERIALIZED VIEW'
  | 'REFRESH MATERIALIZED VIEW'
  | 'CREATE LIVE VIEW'
  | 'DROP LIVE VIEW'
  | 'READ FILES'
  | 'SNAPSHOT'
  | 'SYSTEM ADMIN';

export type ExecuteOptions = {
  /**
   * The encoding.
   */
  readonly rows: RowFormat;
  /**
   * What the execution is called while it runs; no other one that runs may have it. The engine
   * finds one when absent.
   */
  readonly queryId?: number;
  /**
   * The text it runs for, where the statement is one with parameters in place of its literals.
   */
  readonly text?: string;
  /**
   * Rows left out at the start.
   */
  readonly skip?: number;
  /**
   * Most rows returned, after `skip`.
   */
  readonly take?: number;
  /**
   * Keep counting after `take` rows, so that `Summary.rowsTotal` is the whole.
   */
  readonly countAll?: boolean;
  /**
   * Only the last rows of the result; `skip` and `take` count within them.
   */
  readonly last?: number;
  /**
   * Milliseconds until the statement is given up; no limit when absent.
   */
  readonly timeoutMs?: number;
  /**
   * Milliseconds of `timeoutMs` that are over: from the statement's arrival to here.
   */
  readonly elapsedMs?: number;
  /**
   * Most rows of the first chunk (portals with a row limit).
   */
  readonly firstChunkRows?: number;
  /**
   * Waits for a change of the table, and answers the query's rows among those that changed. Of
   * rows that one commit added `skip` leaves out the first ones, else it has no effect.
   */
  readonly changes?: ChangesOptions;
};

export type ChangesOptions = {
  /**
   * What follows this transaction; when absent nothing but the position of the table.
   */
  readonly after?: number;
  /**
   * Tells the rows that there are, whatever came before.
   */
  readonly all?: boolean;
  /**
   * Leaves out the rows.
   */
  readonly withoutRows?: boolean;
  /**
   * Milliseconds to wait for a change.
   */
  readonly waitMs: number;
};

export type TableChange = {
  /**
   * What happened.
   */
  readonly kind: ChangeKind;
  /**
   * The table's name.
   */
  readonly table: string;
  /**
   * The last transaction that is reported by it.
   */
  readonly txn: number;
  /**
   * Commits that are reported by it, where it is known.
   */
  readonly commits: number;
  /**
   * Rows that came, before any filter, where it is known.
   */
  readonly rows: number | null;
  /**
   * Of added rows their time, of touched ones stretches that are ascending and apart.
   */
  readonly ranges: ReadonlyArray<ChangedRange>;
};

export type ChangeKind = 'none' | 'rows' | 'range';

export type ChangedRange = {
  /**
   * The first instant; null: since ever.
   */
  readonly from: string | null;
  /**
   * The last instant, which belongs to it; null: for ever.
   */
  readonly to: string | null;
};

export type RowFormat =
  | {
      readonly format: 'json';
      /**
       * LONG as text.
       */
      readonly quoteLargeNumbers?: boolean;
      /**
       * Which columns, in which order; all when absent.
       */
      readonly columns?: ReadonlyArray<number>;
    }
  | {
      readonly format: 'csv';
      /**
       * One ASCII character.
       */
      readonly delimiter?: string;
      /**
       * Write the name line first.
       */
      readonly header?: boolean;
    }
  | {
      readonly format: 'pg';
      /**
       * 0 text, 1 binary, one per column.
       */
      readonly formatCodes: ReadonlyArray<number>;
      /**
       * Nine digits of a second in the texts of `TIMESTAMP_NS`, not six.
       */
      readonly nanoseconds?: boolean;
    }
  | {
      readonly format: 'qwp';
      /**
       * Rows of a message, at most.
       */
      readonly maxRows: number;
      /**
       * Bytes after which a message is closed.
       */
      readonly maxBytes: number;
      /**
       * 1 to 9; absent: not compressed.
       */
      readonly zstdLevel?: number;
    }
  | {
      readonly format: 'parquet';
      /**
       * Codec, sizes and versions.
       */
      readonly options?: ParquetOptions;
    }
  | { readonly format: 'arrow' };

export type ParquetOptions = {
  /**
   * UNCOMPRESSED, SNAPPY, GZIP, LZ4, `LZ4_RAW`, ZSTD, BROTLI. Default ZSTD.
   */
  readonly compressionCodec?: string;
  /**
   * Codec's own scale. Default 9 for ZSTD.
   */
  readonly compressionLevel?: number;
  /**
   * Rows. Default 100,000.
   */
  readonly rowGroupSize?: number;
  /**
   * Bytes. Default 1,048,576.
   */
  readonly dataPageSize?: number;
  /**
   * Write the least and greatest values.
   */
  readonly statisticsEnabled?: boolean;
  /**
   * 1 or 2. Default 2.
   */
  readonly parquetVersion?: number;
  /**
   * Arrays as the bytes of their shape and elements. Default: nested lists.
   */
  readonly rawArrayEncoding?: boolean;
  /**
   * NONE is one file, the default; HOUR to YEAR give a ZIP archive of one for each partition.
   */
  readonly partitionBy?: string;
};

export type Summary = {
  /**
   * Rows encoded.
   */
  readonly rowsReturned: number;
  /**
   * Rows of the query when counted (`countAll`), else those seen.
   */
  readonly rowsTotal: number;
  /**
   * Rows written by INSERT, UPDATE or DELETE.
   */
  readonly rowsAffected: number;
  /**
   * Nanoseconds from the start of execution to its end.
   */
  readonly executeNanos: number;
};

export type TableMetadata = {
  /**
   * Name as created.
   */
  readonly name: string;
  /**
   * Columns in order.
   */
  readonly columns: ReadonlyArray<TableColumn>;
  /**
   * NONE, HOUR, DAY, WEEK, MONTH, YEAR.
   */
  readonly partitionBy: string;
  /**
   * Name of the designated timestamp.
   */
  readonly timestamp: string | null;
};

export type TableColumn = {
  /**
   * Its name.
   */
  readonly name: string;
  /**
   * Type text.
   */
  readonly type: string;
  /**
   * Whether it is the designated timestamp.
   */
  readonly designated: boolean;
};

export type ActiveQuery = {
  /**
   * Its id, for `cancelQuery`.
   */
  readonly queryId: number;
  /**
   * Who runs it.
   */
  readonly user: string;
  /**
   * Its text.
   */
  readonly text: string;
  /**
   * Microseconds since 1970 at its start.
   */
  readonly startedMicros: number;
};

export type Observed = {
  /**
   * Counters and gauges by name.
   */
  readonly numbers: { readonly [name: string]: number };
  /**
   * What is known to be damaged. A table counts as sound until something of it is read.
   */
  readonly damages: ReadonlyArray<Damage>;
  /**
   * The running queries, oldest first.
   */
  readonly queries: ReadonlyArray<ActiveQuery>;
};

export type Damage = {
  /**
   * The table's name; its number where its definition is lost; empty without a table.
   */
  readonly table: string;
  /**
   * The file and what is wrong with it.
   */
  readonly what: string;
};

export type LogLine = {
  /**
   * Its level.
   */
  readonly level: LogLevel;
  /**
   * The crate or part it comes from.
   */
  readonly component: string;
  /**
   * What happened.
   */
  readonly event: string;
  /**
   * Ids, durations in milliseconds, names.
   */
  readonly fields: { readonly [name: string]: unknown };
};

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export type AppenderSpec = {
  /**
   * What the bytes are.
   */
  readonly kind: AppenderKind;
  /**
   * The table's name.
   */
  readonly table: string;
  /**
   * Create the table with the columns of `csv` when it is missing (one commit with the rows).
   */
  readonly create: boolean;
  /**
   * Replace structure and rows, in the same commit as the new rows.
   */
  readonly overwrite: boolean;
  /**
   * Designated timestamp of a created table.
   */
  readonly timestamp?: string;
  /**
   * Partitioning of a created table.
   */
  readonly partitionBy?: string;
  /**
   * Rows after which staged rows go to disk.
   */
  readonly maxUncommittedRows?: number;
  /**
   * Microseconds of disorder to expect.
   */
  readonly o3MaxLagMicros?: number;
  /**
   * How lines are read.
   */
  readonly csv: CsvTextSpec;
};

export type AppenderKind = 'csv' | 'lines' | 'columns' | 'copy';

export type CsvTextSpec = {
  /**
   * One ASCII character.
   */
  readonly delimiter: string;
  /**
   * The first line is a header: not data.
   */
  readonly header: boolean;
  /**
   * The columns that are read.
   */
  readonly columns: ReadonlyArray<CsvColumnSpec>;
  /**
   * What becomes of bad lines.
   */
  readonly atomicity: CsvAtomicity;
  /**
   * Ignore fields beyond the columns instead of the whole line.
   */
  readonly skipExtraValues: boolean;
};

export type CsvAtomicity = 'abort' | 'abortLine' | 'skipRow' | 'skipCol';

export type CsvColumnSpec = {
  /**
   * Index of the field in each line.
   */
  readonly index: number;
  /**
   * Column of the table.
   */
  readonly name: string;
  /**
   * Type text.
   */
  readonly type: string;
  /**
   * Of DATE, TIMESTAMP and `TIMESTAMP_NS` how they are written (absent: ISO forms), of numbers
   * their decimal mark.
   */
  readonly pattern?: string;
  /**
   * The type is a guess: a value that it does not hold asks for a wider one.
   */
  readonly guessed?: boolean;
  /**
   * Texts that are null where they are no value of the type.
   */
  readonly nullTexts?: ReadonlyArray<string>;
};

export type AppendProgress = {
  /**
   * Bytes queued.
   */
  readonly bytes: number;
  /**
   * Rows parsed.
   */
  readonly rows: number;
  /**
   * Set where more bytes make no difference: what they came to is known already.
   */
  readonly ended?: boolean;
};

export type TextReport = {
  /**
   * Rows read.
   */
  readonly rowsImported: number;
  /**
   * Rows left out.
   */
  readonly rowsRejected: number;
  /**
   * Failed conversions per column of the text.
   */
  readonly columnErrors: ReadonlyArray<number>;
  /**
   * The first bad lines: `line 4, field 3: bad syntax`.
   */
  readonly badLines: ReadonlyArray<string>;
  /**
   * Per column of the text the type it needs, where a guess was too narrow. When there is one,
   * the text has to be read again: an appender that read it commits nothing.
   */
  readonly widened: ReadonlyArray<WidenedColumn | null>;
};

export type WidenedColumn = {
  /**
   * Type text.
   */
  readonly type: string;
  /**
   * Line of the first value that needs it, from 1.
   */
  readonly line: number;
  /**
   * That value, or its beginning.
   */
  readonly text: string;
};

export type AppendReport = {
  /**
   * The table after the commit.
   */
  readonly table: TableMetadata;
  /**
   * Rows read.
   */
  readonly rowsImported: number;
  /**
   * Rows left out.
   */
  readonly rowsRejected: number;
  /**
   * Failed conversions per column of the text.
   */
  readonly columnErrors: ReadonlyArray<number>;
  /**
   * The first bad lines: `line 4, field 3: bad syntax`.
   */
  readonly badLines: ReadonlyArray<string>;
  /**
   * Per column of the text the type it needs, where a guess was too narrow. When there is one,
   * the text has to be read again: an appender that read it commits nothing.
   */
  readonly widened: ReadonlyArray<WidenedColumn | null>;
};

export type LinesRead = {
  /**
   * Bytes.
   */
  readonly bytes: number;
  /**
   * Lines, empty ones and comments among them.
   */
  readonly lines: number;
};

export type MessagesProgress = {
  /**
   * Messages that were read since the connection began, one that is wrong among them.
   */
  readonly messages: number;
  /**
   * Their bytes.
   */
  readonly bytes: number;
  /**
   * Messages that are still to be read.
   */
  readonly left: number;
  /**
   * Their bytes.
   */
  readonly leftBytes: number;
  /**
   * Whether there is something to commit.
   */
  readonly whole: boolean;
  /**
   * Whether that has to be committed before more is read.
   */
  readonly full: boolean;
  /**
   * Whether nothing more is read: why, the last `finish` tells.
   */
  readonly ended: boolean;
};

export type AskedCommit = {
  /**
   * Messages that it answers.
   */
  readonly messages: number;
  /**
   * Rows of all its tables.
   */
  readonly rows: number;
  /**
   * Its tables, by their places in the plan.
   */
  readonly tables: ReadonlyArray<number>;
  /**
   * Whether the client wanted to wait longer: too much was waiting.
   */
  readonly forced: boolean;
};

export type LinesSpec = {
  /**
   * What the bytes are.
   */
  readonly kind: AppenderKind;
  /**
   * The unit of timestamps that do not say it.
   */
  readonly precision: LinePrecision;
  /**
   * Whether tables are made that are not there.
   */
  readonly createTables: boolean;
  /**
   * Whether tables that are there get columns.
   */
  readonly createColumns: boolean;
  /**
   * Partitioning of tables that are made.
   */
  readonly partitionBy: string;
  /**
   * Bytes of a line, at most.
   */
  readonly mostLineBytes: number;
  /**
   * Bytes of all rows in memory, at most.
   */
  readonly mostHeldBytes: number;
  /**
   * Whether another message follows: the beginning of a line at the end belongs to that one.
   */
  readonly goesOn: boolean;
};

export type ColumnsSpec = {
  /**
   * What the bytes are.
   */
  readonly kind: AppenderKind;
  /**
   * Whether tables are made that are not there.
   */
  readonly createTables: boolean;
  /**
   * Whether tables that are there get columns.
   */
  readonly createColumns: boolean;
  /**
   * Partitioning of tables that are made.
   */
  readonly partitionBy: string;
  /**
   * Rows of a table in a message, at most.
   */
  readonly mostRows: number;
  /**
   * Tables that a connection names, at most.
   */
  readonly mostTables: number;
  /**
   * Bytes of the texts in the dictionary of a connection, at most.
   */
  readonly mostDictionaryBytes: number;
  /**
   * Rows from which a commit is asked for.
   */
  readonly mostWaitingRows: number;
  /**
   * Bytes that rows which wait take in memory, at most.
   */
  readonly mostHeldBytes: number;
  /**
   * Bytes of rows that wait, and of dictionaries, of all connections together.
   */
  readonly mostOpenBytes: number;
};

export type LinePrecision = 'n' | 'u' | 'ms' | 's' | 'm' | 'h';

export type RowsReply =
  | {
      readonly state: 'refused';
      /**
       * Which one, from 1.
       */
      readonly line: number;
      /**
       * Bytes of the message before it.
       */
      readonly at: number;
      /**
       * Why.
       */
      readonly reason: string;
      /**
       * Whether the rows together are too many, and not one of them wrong.
       */
      readonly isTooLarge: boolean;
      /**
       * The table of the line, which the reason may tell of.
       */
      readonly table?: string;
      /**
       * Whether that is there.
       */
      readonly exists: boolean;
      /**
       * How the columnar protocol classes it.
       */
      readonly status?: number;
    }
  | {
      readonly state: 'planned';
      /**
       * The tables that get rows.
       */
      readonly tables: ReadonlyArray<PlannedTable>;
      /**
       * Of lines: what of the message is read.
       */
      readonly read?: LinesRead;
      /**
       * Of the columnar protocol: what was asked for and becomes this one transaction, in order.
       */
      readonly commits?: ReadonlyArray<AskedCommit>;
    }
  | {
      readonly state: 'failed';
      /**
       * The message that asked for their commit, from 1.
       */
      readonly line: number;
      /**
       * The error.
       */
      readonly code: string;
      /**
       * Its text.
       */
      readonly reason: string;
    }
  | {
      readonly state: 'committed';
      /**
       * Rows of all tables.
       */
      readonly rows: number;
      /**
       * Number of the transaction; none where there was nothing to write.
       */
      readonly transaction?: number;
      /**
       * Of the columnar protocol: what was asked for, where there was nothing to plan.
       */
      readonly commits?: ReadonlyArray<AskedCommit>;
      /**
       * Of the columnar protocol: whether there is more to commit, or to tell.
       */
      readonly more: boolean;
    };

export type PlannedTable = {
  /**
   * Its name.
   */
  readonly table: string;
  /**
   * Whether it is made.
   */
  readonly creates: boolean;
  /**
   * Columns that it gets; none where it is made.
   */
  readonly adds: ReadonlyArray<string>;
  /**
   * Rows.
   */
  readonly rows: number;
};

export type CopySpec = {
  /**
   * What the bytes are.
   */
  readonly kind: AppenderKind;
  /**
   * Their format.
   */
  readonly format: CopyFormat;
  /**
   * What parts the values of a line: one ASCII character, as the next two.
   */
  readonly delimiter: string;
  /**
   * Of CSV what is around values.
   */
  readonly quote: string;
  /**
   * Of CSV what precedes a quote that is part of a value.
   */
  readonly escape: string;
  /**
   * The text of a null.
   */
  readonly nullText: string;
  /**
   * What the first line is.
   */
  readonly header: CopyHeader;
  /**
   * How the values are read, one for each parameter of the INSERT.
   */
  readonly columns: ReadonlyArray<CopyColumnSpec>;
};

export type CopyFormat = 'text' | 'csv' | 'binary';

export type CopyHeader = 'none' | 'skip' | 'match';

export type CopyColumnSpec = {
  /**
   * The type of binary ones, as an OID of `PostgreSQL`.
   */
  readonly oid: number;
  /**
   * Of CSV: one without quotes is never null.
   */
  readonly forceNotNull: boolean;
  /**
   * Of CSV: one in quotes may be null.
   */
  readonly forceNull: boolean;
};

export type CopyReply = {
  /**
   * Rows that were written.
   */
  readonly rows: number;
  /**
   * Why none was.
   */
  readonly failure?: CopyMistake;
};

export type CopyMistake = {
  /**
   * The line, from 1; of binary data, the row.
   */
  readonly line: number;
  /**
   * The error's code.
   */
  readonly code: string;
  /**
   * Its text.
   */
  readonly message: string;
  /**
   * More of it.
   */
  readonly detail?: string;
  /**
   * What to do about it.
   */
  readonly hint?: string;
};

export type HandoffSpec = {
  /**
   * What the handoff is called, as queries are: nothing else that runs may have it.
   */
  readonly id: number;
  /**
   * Milliseconds until a statement is given up; 0: no limit.
   */
  readonly timeoutMs: number;
  /**
   * How client and server talk.
   */
  readonly conversation: Conversation;
};

export type Conversation =
  ({ readonly protocol: 'pg' } & PgHandoff) | ({ readonly protocol: 'http' } & HttpHandoff);

export type PgHandoff = {
  /**
   * Nine digits of a second in the texts of `TIMESTAMP_NS`, not six.
   */
  readonly nanoseconds: boolean;
  /**
   * How each statement is bound.
   */
  readonly statements: ReadonlyArray<HandoffStatement>;
};

export type HandoffStatement = {
  /**
   * The body of its Bind up to the count of the values.
   */
  readonly head: ReadonlyArray<number>;
  /**
   * The body of its Bind behind the values.
   */
  readonly tail: ReadonlyArray<number>;
  /**
   * The beginning of rows of parameters that are sent so.
   */
  readonly header: ReadonlyArray<number>;
  /**
   * 0 text, 1 binary, one per column.
   */
  readonly formatCodes: ReadonlyArray<number>;
  /**
   * The `RowDescription` for these.
   */
  readonly rowDescription: ReadonlyArray<number>;
};

export type HttpHandoff = {
  /**
   * What a request begins with, up to the text of its query.
   */
  readonly before: string;
  /**
   * What follows the text, to the end of the request.
   */
  readonly after: string;
  /**
   * Bytes of a request, at most.
   */
  readonly longest: number;
  /**
   * The head of an answer, without its length, which follows the first part, and its date, which
   * follows the second one.
   */
  readonly head: [string, string, string];
  /**
   * Bytes of the body of an answer, at most.
   */
  readonly largest: number;
  /**
   * Whether the answer repeats the text of the query.
   */
  readonly namesQuery: boolean;
  /**
   * How rows are written.
   */
  readonly rows: RowFormat;
  /**
   * Rows left out at the start.
   */
  readonly skip: number;
  /**
   * Most rows returned, after `skip`.
   */
  readonly take: number | null;
  /**
   * Whether the rows behind those are counted, too.
   */
  readonly countAll: boolean;
  /**
   * What follows the count of the rows.
   */
  readonly end: string;
  /**
   * The queries.
   */
  readonly queries: ReadonlyArray<HandoffQuery>;
};

export type HandoffQuery = {
  /**
   * The text of the query, or of the query with parameters that texts are lifted to.
   */
  readonly text: string;
  /**
   * The types of its literals, which are the parameters of the statement; none for texts.
   */
  readonly types: ReadonlyArray<string | null>;
  /**
   * What the answer says between the text of the query and the rows.
   */
  readonly columns: string;
};

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
  'InvalidCell',
  'InvalidEncoding',
  'InvalidBinary',
  'InvalidCopyData',
  'InvalidName',
  'InvalidState',
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
  'HistoryGone',
  'AccessDenied',
  'Internal',
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];
