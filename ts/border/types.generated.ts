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
   * Which failures an acknowledged commit survives; default `sync`.
   */
  readonly commitMode?: CommitMode;
  /**
   * Whether the wall clock also limits TTL expiry, so that rows with future timestamps do not
   * expire recent rows; default true.
   */
  readonly ttlByClock?: boolean;
  /**
   * Directory that `read_parquet` may read; default `ROOT/import`.
   */
  readonly importRoot?: string;
  /**
   * Directory that COPY … TO writes to and `export_files()` lists; default `ROOT/export`.
   */
  readonly exportRoot?: string;
  /**
   * Maximum process memory in bytes. Default: the memory of the machine or its control group.
   */
  readonly processMemoryBytes?: number;
  /**
   * Maximum combined memory of all queries in bytes; default: half of `processMemoryBytes`.
   */
  readonly memoryLimitBytes?: number;
  /**
   * Maximum memory per query in bytes; default: a quarter of `memoryLimitBytes`.
   */
  readonly queryMemoryLimitBytes?: number;
  /**
   * Maximum size in bytes of the rows that exist only in memory and in the log; default: an
   * eighth of `processMemoryBytes`.
   */
  readonly unwrittenLimitBytes?: number;
  /**
   * Number of threads that run plans; default: the number of cores.
   */
  readonly workers?: number;
  /**
   * Minimum number of rows per scan partition and maximum number of rows per batch. If absent,
   * the fastest values are chosen.
   */
  readonly scanPartitionRows?: number;
  /**
   * Maximum number of concurrent queries, except cheap ones; default: twice the number of cores,
   * at least 4.
   */
  readonly maxConcurrentQueries?: number;
  /**
   * Maximum number of queries waiting for admission; default 256.
   */
  readonly maxWaitingQueries?: number;
  /**
   * Maximum time in milliseconds that a query waits for admission; default 10,000.
   */
  readonly queueWaitMs?: number;
  /**
   * Whether materialized views are refreshed from their base tables; default true.
   */
  readonly refreshViews?: boolean;
  /**
   * Whether live views can be created and are refreshed from their base tables; default true.
   */
  readonly liveViews?: boolean;
  /**
   * Maximum IN MEMORY interval of a live view, in microseconds; default one hour.
   */
  readonly liveViewMemoryMicros?: number;
  /**
   * Maximum size in bytes of the state that all views retain between refreshes; default: a 32nd
   * of `processMemoryBytes`, at most 256 MiB.
   */
  readonly viewStateBytes?: number;
  /**
   * Whether queries over base tables may be answered from materialized views; default true.
   */
  readonly answersFromViews?: boolean;
  /**
   * Maximum memory in bytes for cached recent changes to followed tables; default: a 64th of
   * `processMemoryBytes`, at most 64 MiB.
   */
  readonly recentChangesBytes?: number;
  /**
   * Interval in milliseconds at which the partitions of tables with a storage policy are
   * checked; default five minutes.
   */
  readonly policyCheckMs?: number;
  /**
   * Time in milliseconds for which a table remains followed without a change feed; default one
   * week.
   */
  readonly followedForMs?: number;
  /**
   * Number of manifests retained: 2 (default), or 1 for no fallback.
   */
  readonly keepGenerations?: number;
  /**
   * When segment checksums are verified; default `first`.
   */
  readonly verify?: Verify;
  /**
   * Free disk space in bytes below which writes stop; default 5 % of the disk, at most 1 GiB.
   */
  readonly diskWatermarkBytes?: number;
  /**
   * Disk space in bytes reserved for the last checkpoint; default 64 MiB, at most 2 % of the
   * disk.
   */
  readonly diskReserveBytes?: number;
  /**
   * Maximum disk space in bytes that all queries combined may spill to; default: a quarter of
   * the free disk space.
   */
  readonly spillLimitBytes?: number;
  /**
   * Maximum number of imported rows held in memory for a new table; default 500,000.
   */
  readonly maxUncommittedRows?: number;
  /**
   * Expected out-of-order lag of a new table in milliseconds; default ten minutes.
   */
  readonly o3MaxLagMs?: number;
  /**
   * Maximum number of tables.
   */
  readonly maxTables?: number;
  /**
   * Maximum number of partitions per table.
   */
  readonly maxPartitions?: number;
  /**
   * Maximum number of columns per table.
   */
  readonly maxColumns?: number;
  /**
   * Maximum size of a string or BINARY value in bytes.
   */
  readonly maxCellBytes?: number;
  /**
   * Maximum number of elements in an array value.
   */
  readonly maxArrayElements?: number;
  /**
   * Maximum length of an imported line, in bytes.
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
   * The environment variable that sets the key.
   */
  readonly environmentVariable: string;
  /**
   * The effective value; for a secret, only whether it is set.
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
   * Whether a configuration reload applies changes to the key.
   */
  readonly reloadable: boolean;
};

export type StatementContext = {
  /**
   * The session's user, for `current_user()` and the list of active queries.
   */
  readonly user: string;
  /**
   * Distinguishes users with the same name. If absent, the name alone identifies the user.
   */
  readonly identity?: string;
  /**
   * Owner of any view that the statement creates; if absent, the user.
   */
  readonly owner?: Owner;
  /**
   * The SQL text, for the list of active queries.
   */
  readonly text?: string;
  /**
   * Types the client declared for `$1`, `$2`, …; null where it declared none.
   */
  readonly parameterTypes?: ReadonlyArray<string | null>;
  /**
   * Statement timeout in milliseconds; absent or 0 means no limit.
   */
  readonly timeoutMs?: number;
  /**
   * Milliseconds of `timeoutMs` that have already elapsed since the statement arrived.
   */
  readonly elapsedMs?: number;
  /**
   * Id for cancelling this statement's binding, distinct from all execution ids.
   */
  readonly queryId?: string;
  /**
   * Whether to reject all writes.
   */
  readonly readOnly?: boolean;
  /**
   * The visible subset of the catalog; everything when absent.
   */
  readonly visibility?: Visibility;
  /**
   * Rows of `SHOW USERS` and similar statements, by key (`Users:`, `Permissions:name`,
   * `all_permissions`). Contains only the lists that the statement requests.
   */
  readonly lists?: { [key in string]?: ListedRows };
  /**
   * The last value of each sequence in this session, least recent first. Contains only the
   * sequences that the statement requests.
   */
  readonly numbers?: ReadonlyArray<SequenceValue>;
  /**
   * Results of the permission checks that an earlier binding requested, by key. If absent,
   * binding cannot request checks.
   */
  readonly answers?: { [key in string]?: boolean };
  /**
   * Detected text file formats that an earlier binding requested, by key.
   */
  readonly texts?: { [key in string]?: TextShape };
};

export type SequenceValue = {
  /**
   * Name of the sequence, as used in SQL.
   */
  readonly sequence: string;
  /**
   * The 64-bit value as a string.
   */
  readonly value: string;
};

export type Owner = {
  /**
   * The name, for display.
   */
  readonly name: string;
  /**
   * Distinguishes owners with the same name; null if an older version created the view.
   */
  readonly id: string | null;
};

export type Visibility = {
  /**
   * Folded column names by folded table name. A null list means all columns; a null map means
   * all tables.
   */
  readonly tables: { [key in string]?: ReadonlyArray<string> | null } | null;
  /**
   * Like `tables`, but for the columns on which the user has SELECT.
   */
  readonly reads: { [key in string]?: ReadonlyArray<string> | null } | null;
  /**
   * Whether the user may read files on the server.
   */
  readonly files: boolean;
  /**
   * Whether the user may see and cancel other users' queries.
   */
  readonly queries: boolean;
};

export type ListedRows = {
  /**
   * Names and types of the columns.
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
   * The kind of the statement.
   */
  readonly kind: StatementKind;
  /**
   * The command tag: `SELECT`, `CREATE TABLE`, …
   */
  readonly command: string;
  /**
   * The result columns; empty if the statement returns no result.
   */
  readonly columns: ReadonlyArray<ResultColumn>;
  /**
   * Index of the designated timestamp in `columns`; -1 if the result has none.
   */
  readonly timestamp: number;
  /**
   * Inferred type of each parameter `$1`, `$2`, …
   */
  readonly parameters: ReadonlyArray<string>;
  /**
   * The tables and columns that the statement accesses.
   */
  readonly accesses: ReadonlyArray<Access>;
  /**
   * Notice to send on success if a requested option has no effect in this database.
   */
  readonly notice?: string;
  /**
   * Permissions to check before binding, because binding already reads data. The caller must
   * prepare the statement again with the results.
   */
  readonly permissionRequests?: ReadonlyArray<PermissionRequest>;
  /**
   * Text files whose format must be detected before binding. The caller must prepare the
   * statement again with the results.
   */
  readonly texts?: ReadonlyArray<TextFormatRequest>;
};

export type ColumnSource = {
  /**
   * The table's OID.
   */
  readonly table: number;
  /**
   * The column number in the table, from 1.
   */
  readonly number: number;
  /**
   * The type modifier in catalog encoding; -1 for none.
   */
  readonly modifier: number;
};

export type ResultColumn = {
  /**
   * Name as displayed.
   */
  readonly name: string;
  /**
   * Type name as `/exec` prints it: `DOUBLE`, `GEOHASH(5c)`, `ARRAY`.
   */
  readonly type: string;
  /**
   * Number of array dimensions; 0 if the column is not an array.
   */
  readonly dimensions: number;
  /**
   * `PostgreSQL` type OID of a system-catalog column, if `type` does not determine it.
   */
  readonly oid?: number;
  /**
   * The table column that the result column is selected from, if any.
   */
  readonly source?: ColumnSource;
};

export type PermissionRequest = {
  /**
   * Identifies the request.
   */
  readonly key: string;
  /**
   * The access to check.
   */
  readonly access: Access;
};

export type TextFormatRequest = {
  /**
   * Identifies the request.
   */
  readonly key: string;
  /**
   * The file format.
   */
  readonly format: TextFormat;
  /**
   * The files, in the order in which their rows are returned.
   */
  readonly files: ReadonlyArray<TextPath>;
  /**
   * Options given in the statement, by name.
   */
  readonly options: { [key in string]?: string };
};

export type TextFormat = 'csv' | 'json';

export type TextPath = {
  /**
   * Path shown to users, relative to the import directory.
   */
  readonly name: string;
  /**
   * Absolute path without symbolic links.
   */
  readonly path: string;
};

export type TextShape = {
  /**
   * How to read each file, in the order of the request.
   */
  readonly files: ReadonlyArray<TextFile>;
  /**
   * Why the files cannot be read; absent if they can.
   */
  readonly problem?: string;
};

export type TextFile = {
  /**
   * Path shown to users.
   */
  readonly name: string;
  /**
   * Version of the file when it was examined: device, inode, size in bytes and modification time
   * in nanoseconds since 1970, separated by colons.
   */
  readonly version: string;
  /**
   * Time when the file was examined, in milliseconds since 1970.
   */
  readonly examinedAt: number;
  /**
   * The first and last 64 bytes in hexadecimal. A file that has only grown still contains them
   * at the same offsets.
   */
  readonly edges: string;
  /**
   * Path of the copy converted to UTF-8 CSV, if the file itself is in a different format.
   */
  readonly converted?: string;
  /**
   * How that CSV is parsed.
   */
  readonly csv: CsvTextSpec;
};

export type Access = {
  /**
   * The table's name; empty for the database.
   */
  readonly table: string;
  /**
   * The columns; empty for the whole table.
   */
  readonly columns: ReadonlyArray<string>;
  /**
   * The required permission.
   */
  readonly permission: Permission;
  /**
   * The view whose query makes this access, if any. In that case the view's owner needs the
   * permission.
   */
  readonly view?: string;
  /**
   * Owner of that view.
   */
  readonly owner?: Owner;
  /**
   * The table's designated timestamp, if the user's visibility is restricted.
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
   * The row encoding.
   */
  readonly rows: RowFormat;
  /**
   * The execution's id, unique among running executions. If absent, the engine assigns one.
   */
  readonly queryId?: number;
  /**
   * The original SQL text, when the statement has parameters in place of its literals.
   */
  readonly text?: string;
  /**
   * Number of rows to skip at the start.
   */
  readonly skip?: number;
  /**
   * Maximum number of rows to return, after `skip`.
   */
  readonly take?: number;
  /**
   * Whether to continue counting after `take` rows, so that `Summary.rowsTotal` covers all rows.
   */
  readonly countAll?: boolean;
  /**
   * Number of rows to return from the end of the result. `skip` and `take` apply to these rows.
   */
  readonly last?: number;
  /**
   * Statement timeout in milliseconds; no limit when absent.
   */
  readonly timeoutMs?: number;
  /**
   * Milliseconds of `timeoutMs` that have already elapsed since the statement arrived.
   */
  readonly elapsedMs?: number;
  /**
   * Maximum number of rows in the first chunk, for portals with a row limit.
   */
  readonly firstChunkRows?: number;
  /**
   * Waits until the table changes, then runs the query on the changed rows. `skip` applies only
   * if a single commit added the rows.
   */
  readonly changes?: ChangesOptions;
};

export type ChangesOptions = {
  /**
   * Transaction after which changes are reported. When absent, only the table's current position
   * is reported.
   */
  readonly after?: number;
  /**
   * Whether to report all existing rows, regardless of earlier changes.
   */
  readonly all?: boolean;
  /**
   * Whether to omit the rows from the report.
   */
  readonly withoutRows?: boolean;
  /**
   * Maximum time to wait for a change, in milliseconds.
   */
  readonly waitMs: number;
};

export type TableChange = {
  /**
   * The kind of change.
   */
  readonly kind: ChangeKind;
  /**
   * The table's name.
   */
  readonly table: string;
  /**
   * The last transaction that the report covers.
   */
  readonly txn: number;
  /**
   * Number of commits that the report covers, if known.
   */
  readonly commits: number;
  /**
   * Number of rows added, before any filter, if known.
   */
  readonly rows: number | null;
  /**
   * For added rows, their time range. Otherwise the changed time ranges, ascending and disjoint.
   */
  readonly ranges: ReadonlyArray<ChangedRange>;
};

export type ChangeKind = 'none' | 'rows' | 'range';

export type ChangedRange = {
  /**
   * The first timestamp; null if unbounded.
   */
  readonly from: string | null;
  /**
   * The last timestamp, inclusive; null if unbounded.
   */
  readonly to: string | null;
};

export type RowFormat =
  | {
      readonly format: 'json';
      /**
       * Whether LONG values are written as strings.
       */
      readonly quoteLargeNumbers?: boolean;
      /**
       * Column indexes in output order; all columns when absent.
       */
      readonly columns?: ReadonlyArray<number>;
    }
  | {
      readonly format: 'csv';
      /**
       * The delimiter: one ASCII character.
       */
      readonly delimiter?: string;
      /**
       * Whether to write a header line first.
       */
      readonly header?: boolean;
    }
  | {
      readonly format: 'pg';
      /**
       * Format code per column: 0 for text, 1 for binary.
       */
      readonly formatCodes: ReadonlyArray<number>;
      /**
       * Whether `TIMESTAMP_NS` in text format has nine fractional digits instead of six.
       */
      readonly nanoseconds?: boolean;
    }
  | {
      readonly format: 'qwp';
      /**
       * Maximum number of rows in a message.
       */
      readonly maxRows: number;
      /**
       * Size in bytes at which a message is closed.
       */
      readonly maxBytes: number;
      /**
       * Compression level from 1 to 9; uncompressed when absent.
       */
      readonly zstdLevel?: number;
    }
  | {
      readonly format: 'parquet';
      /**
       * Compression, sizes and version.
       */
      readonly options?: ParquetOptions;
    }
  | { readonly format: 'arrow' };

export type ParquetOptions = {
  /**
   * UNCOMPRESSED, SNAPPY, GZIP, LZ4, `LZ4_RAW`, ZSTD or BROTLI. Default ZSTD.
   */
  readonly compressionCodec?: string;
  /**
   * Compression level on the codec's own scale. Default 9 for ZSTD.
   */
  readonly compressionLevel?: number;
  /**
   * Number of rows per row group. Default 100,000.
   */
  readonly rowGroupSize?: number;
  /**
   * Data page size in bytes. Default 1,048,576.
   */
  readonly dataPageSize?: number;
  /**
   * Whether min/max statistics are written.
   */
  readonly statisticsEnabled?: boolean;
  /**
   * Parquet version, 1 or 2. Default 2.
   */
  readonly parquetVersion?: number;
  /**
   * Whether arrays are written in binary form, as shape and elements. By default, they are
   * written as nested lists.
   */
  readonly rawArrayEncoding?: boolean;
  /**
   * NONE (default) writes one file; HOUR to YEAR write a ZIP archive with one file per
   * partition.
   */
  readonly partitionBy?: string;
};

export type Summary = {
  /**
   * Number of rows encoded.
   */
  readonly rowsReturned: number;
  /**
   * With `countAll`, the number of rows in the query result; otherwise, the number of rows
   * processed.
   */
  readonly rowsTotal: number;
  /**
   * Number of rows written by INSERT, UPDATE or DELETE.
   */
  readonly rowsAffected: number;
  /**
   * Execution time in nanoseconds.
   */
  readonly executeNanos: number;
};

export type TableMetadata = {
  /**
   * The table's name as created.
   */
  readonly name: string;
  /**
   * The columns in order.
   */
  readonly columns: ReadonlyArray<TableColumn>;
  /**
   * NONE, HOUR, DAY, WEEK, MONTH or YEAR.
   */
  readonly partitionBy: string;
  /**
   * Name of the designated timestamp, if any.
   */
  readonly timestamp: string | null;
};

export type TableColumn = {
  /**
   * Its name.
   */
  readonly name: string;
  /**
   * The SQL type.
   */
  readonly type: string;
  /**
   * Whether this column is the designated timestamp.
   */
  readonly designated: boolean;
};

export type ActiveQuery = {
  /**
   * The query's id, for `cancelQuery`.
   */
  readonly queryId: number;
  /**
   * Name of the user who runs the query.
   */
  readonly user: string;
  /**
   * The SQL text.
   */
  readonly text: string;
  /**
   * Start time in microseconds since 1970.
   */
  readonly startedMicros: number;
};

export type Observed = {
  /**
   * Counters and gauges by name.
   */
  readonly numbers: { readonly [name: string]: number };
  /**
   * Known damage. A table counts as intact until one of its damaged files is read.
   */
  readonly damages: ReadonlyArray<Damage>;
  /**
   * The running queries, oldest first.
   */
  readonly queries: ReadonlyArray<ActiveQuery>;
};

export type Damage = {
  /**
   * The table's name; its id if the definition is lost; empty if no table is affected.
   */
  readonly table: string;
  /**
   * The damaged file and the error.
   */
  readonly what: string;
};

export type LogLine = {
  /**
   * Its level.
   */
  readonly level: LogLevel;
  /**
   * The crate or component that logged the event.
   */
  readonly component: string;
  /**
   * What happened.
   */
  readonly event: string;
  /**
   * Additional event data: ids, names and durations in milliseconds.
   */
  readonly fields: { readonly [name: string]: unknown };
};

export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

export type AppenderSpec = {
  /**
   * The input format.
   */
  readonly kind: AppenderKind;
  /**
   * The table's name.
   */
  readonly table: string;
  /**
   * Whether to create a missing table from the columns in `csv`, in the same commit as the rows.
   */
  readonly create: boolean;
  /**
   * Whether to replace the table's structure and rows in the same commit that adds the new rows.
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
   * Number of staged rows that triggers a write to disk.
   */
  readonly maxUncommittedRows?: number;
  /**
   * Expected out-of-order lag in microseconds.
   */
  readonly o3MaxLagMicros?: number;
  /**
   * How CSV lines are parsed.
   */
  readonly csv: CsvTextSpec;
};

export type AppenderKind = 'csv' | 'lines' | 'columns' | 'copy';

export type CsvTextSpec = {
  /**
   * The delimiter: one ASCII character.
   */
  readonly delimiter: string;
  /**
   * Whether the first line is a header.
   */
  readonly header: boolean;
  /**
   * The columns to read.
   */
  readonly columns: ReadonlyArray<CsvColumnSpec>;
  /**
   * How malformed lines are handled.
   */
  readonly atomicity: CsvAtomicity;
  /**
   * Whether to ignore a line's surplus fields instead of rejecting the line.
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
   * Name of the table column.
   */
  readonly name: string;
  /**
   * The SQL type.
   */
  readonly type: string;
  /**
   * Pattern for DATE, TIMESTAMP and `TIMESTAMP_NS` values; ISO formats when absent. For numbers,
   * the decimal mark.
   */
  readonly pattern?: string;
  /**
   * Whether the type was guessed. If so, the report names a wider type when a value does not
   * fit.
   */
  readonly guessed?: boolean;
  /**
   * Strings that are read as null, unless they are valid values of the type.
   */
  readonly nullTexts?: ReadonlyArray<string>;
};

export type AppendProgress = {
  /**
   * Number of bytes queued.
   */
  readonly bytes: number;
  /**
   * Number of rows parsed.
   */
  readonly rows: number;
  /**
   * Set when the result is known before the input ends. Further bytes are ignored.
   */
  readonly ended?: boolean;
};

export type TextReport = {
  /**
   * Number of rows read.
   */
  readonly rowsImported: number;
  /**
   * Number of rows skipped.
   */
  readonly rowsRejected: number;
  /**
   * Number of failed conversions per input column.
   */
  readonly columnErrors: ReadonlyArray<number>;
  /**
   * The first bad lines: `line 4, field 3: bad syntax`.
   */
  readonly badLines: ReadonlyArray<string>;
  /**
   * For each input column, the wider type if the guessed type was too narrow. If any type was
   * too narrow, the appender commits nothing, and the input must be read again.
   */
  readonly widened: ReadonlyArray<WidenedColumn | null>;
};

export type WidenedColumn = {
  /**
   * The SQL type.
   */
  readonly type: string;
  /**
   * Line number, from 1, of the first value that needs the wider type.
   */
  readonly line: number;
  /**
   * That value, possibly truncated.
   */
  readonly text: string;
};

export type AppendReport = {
  /**
   * The table after the commit.
   */
  readonly table: TableMetadata;
  /**
   * Number of rows read.
   */
  readonly rowsImported: number;
  /**
   * Number of rows skipped.
   */
  readonly rowsRejected: number;
  /**
   * Number of failed conversions per input column.
   */
  readonly columnErrors: ReadonlyArray<number>;
  /**
   * The first bad lines: `line 4, field 3: bad syntax`.
   */
  readonly badLines: ReadonlyArray<string>;
  /**
   * For each input column, the wider type if the guessed type was too narrow. If any type was
   * too narrow, the appender commits nothing, and the input must be read again.
   */
  readonly widened: ReadonlyArray<WidenedColumn | null>;
};

export type LinesRead = {
  /**
   * Number of bytes.
   */
  readonly bytes: number;
  /**
   * Number of lines, including empty lines and comments.
   */
  readonly lines: number;
};

export type MessagesProgress = {
  /**
   * Number of messages read on the connection, including a rejected message.
   */
  readonly messages: number;
  /**
   * Total size of these messages in bytes.
   */
  readonly bytes: number;
  /**
   * Number of messages not yet read.
   */
  readonly left: number;
  /**
   * Total size of the unread messages in bytes.
   */
  readonly leftBytes: number;
  /**
   * Whether a commit has been requested and is waiting to run.
   */
  readonly commitPending: boolean;
  /**
   * Whether the pending rows must be committed before more input is read.
   */
  readonly full: boolean;
  /**
   * Whether reading has ended; the last `finish` reports why.
   */
  readonly ended: boolean;
};

export type RequestedCommit = {
  /**
   * Number of messages that this commit acknowledges.
   */
  readonly messages: number;
  /**
   * Total number of rows in its tables.
   */
  readonly rows: number;
  /**
   * Indexes of its tables within the plan.
   */
  readonly tables: ReadonlyArray<number>;
  /**
   * Whether a commit that the client had deferred was forced because too much data was pending.
   */
  readonly forced: boolean;
};

export type LinesSpec = {
  /**
   * The input format.
   */
  readonly kind: AppenderKind;
  /**
   * Unit of timestamps without an explicit unit.
   */
  readonly precision: LinePrecision;
  /**
   * Whether missing tables are created.
   */
  readonly createTables: boolean;
  /**
   * Whether missing columns are added to existing tables.
   */
  readonly createColumns: boolean;
  /**
   * Partitioning of created tables.
   */
  readonly partitionBy: string;
  /**
   * Maximum line length in bytes.
   */
  readonly maxLineBytes: number;
  /**
   * Maximum total size in bytes of the pending rows in memory.
   */
  readonly maxPendingBytes: number;
  /**
   * Whether another message follows. If so, an incomplete last line continues in that message.
   */
  readonly isContinued: boolean;
};

export type ColumnsSpec = {
  /**
   * The input format.
   */
  readonly kind: AppenderKind;
  /**
   * Whether missing tables are created.
   */
  readonly createTables: boolean;
  /**
   * Whether missing columns are added to existing tables.
   */
  readonly createColumns: boolean;
  /**
   * Partitioning of created tables.
   */
  readonly partitionBy: string;
  /**
   * Maximum number of rows per table in a message.
   */
  readonly maxRows: number;
  /**
   * Maximum number of tables that a connection may name.
   */
  readonly maxTables: number;
  /**
   * Maximum total size in bytes of the strings in a connection's dictionary.
   */
  readonly maxDictionaryBytes: number;
  /**
   * Number of pending rows that forces a commit.
   */
  readonly maxPendingRows: number;
  /**
   * Maximum total size in bytes of the pending rows in memory.
   */
  readonly maxPendingBytes: number;
  /**
   * Maximum total size in bytes of all connections' pending rows and dictionaries.
   */
  readonly maxTotalBytes: number;
};

export type LinePrecision = 'n' | 'u' | 'ms' | 's' | 'm' | 'h';

export type RowsReply =
  | {
      readonly state: 'refused';
      /**
       * Number of the line or message, counted from 1.
       */
      readonly line: number;
      /**
       * Byte offset of the line or message.
       */
      readonly at: number;
      /**
       * The reason.
       */
      readonly reason: string;
      /**
       * Whether the rows, although individually valid, together exceed a size limit.
       */
      readonly isTooLarge: boolean;
      /**
       * Table named on the line, if known. The reason may reveal facts about this table.
       */
      readonly table?: string;
      /**
       * Whether that table exists.
       */
      readonly exists: boolean;
      /**
       * The columnar protocol's status code for the error.
       */
      readonly status?: number;
    }
  | {
      readonly state: 'planned';
      /**
       * The tables that receive rows.
       */
      readonly tables: ReadonlyArray<PlannedTable>;
      /**
       * Line protocol only: how much of the message was read.
       */
      readonly read?: LinesRead;
      /**
       * Columnar protocol only: the requested commits that are combined into this transaction,
       * in order.
       */
      readonly commits?: ReadonlyArray<RequestedCommit>;
    }
  | {
      readonly state: 'failed';
      /**
       * Number of the message that requested the commit, counted from 1.
       */
      readonly line: number;
      /**
       * The error code.
       */
      readonly code: string;
      /**
       * The error message.
       */
      readonly reason: string;
    }
  | {
      readonly state: 'committed';
      /**
       * Number of rows in all tables.
       */
      readonly rows: number;
      /**
       * The transaction number; `None` when there was nothing to write.
       */
      readonly transaction?: number;
      /**
       * Columnar protocol only: the requested commits that required no planned changes.
       */
      readonly commits?: ReadonlyArray<RequestedCommit>;
      /**
       * Columnar protocol only: whether further commits or reports remain.
       */
      readonly more: boolean;
    };

export type PlannedTable = {
  /**
   * The table's name.
   */
  readonly table: string;
  /**
   * Whether the message creates the table.
   */
  readonly creates: boolean;
  /**
   * Columns that the message adds to an existing table; empty for a new table.
   */
  readonly adds: ReadonlyArray<string>;
  /**
   * Number of rows for the table.
   */
  readonly rows: number;
};

export type CopySpec = {
  /**
   * The input format.
   */
  readonly kind: AppenderKind;
  /**
   * The COPY format.
   */
  readonly format: CopyFormat;
  /**
   * The delimiter between the values on a line. Like `quote` and `escape`, it is a single ASCII
   * character.
   */
  readonly delimiter: string;
  /**
   * CSV only: the quote character.
   */
  readonly quote: string;
  /**
   * CSV only: the character that escapes a quote character inside a value.
   */
  readonly escape: string;
  /**
   * The string that represents NULL.
   */
  readonly nullText: string;
  /**
   * How the first line is treated.
   */
  readonly header: CopyHeader;
  /**
   * The value encoding for each INSERT parameter.
   */
  readonly columns: ReadonlyArray<CopyColumnSpec>;
};

export type CopyFormat = 'text' | 'csv' | 'binary' | 'arrow';

export type CopyHeader = 'none' | 'skip' | 'match';

export type CopyColumnSpec = {
  /**
   * Type of binary values, as a `PostgreSQL` OID.
   */
  readonly oid: number;
  /**
   * CSV only: whether to treat unquoted values as non-null.
   */
  readonly forceNotNull: boolean;
  /**
   * CSV only: whether quoted values may be null.
   */
  readonly forceNull: boolean;
};

export type CopyReply = {
  /**
   * Number of rows written.
   */
  readonly rows: number;
  /**
   * The error if the COPY failed, in which case no rows were written.
   */
  readonly failure?: CopyMistake;
};

export type CopyMistake = {
  /**
   * Line number, from 1, or row number for binary data.
   */
  readonly line: number;
  /**
   * The error code.
   */
  readonly code: string;
  /**
   * The error message.
   */
  readonly message: string;
  /**
   * Error details, if any.
   */
  readonly detail?: string;
  /**
   * Suggested action, if any.
   */
  readonly hint?: string;
};

export type HandoffSpec = {
  /**
   * The handoff's id, unique among running handoffs and queries.
   */
  readonly id: number;
  /**
   * Statement timeout in milliseconds; 0 means no limit.
   */
  readonly timeoutMs: number;
  /**
   * The protocol and its requests.
   */
  readonly conversation: Conversation;
};

export type Conversation =
  ({ readonly protocol: 'pg' } & PgHandoff) | ({ readonly protocol: 'http' } & HttpHandoff);

export type PgHandoff = {
  /**
   * Whether `TIMESTAMP_NS` in text format has nine fractional digits instead of six.
   */
  readonly nanoseconds: boolean;
  /**
   * The statements and how they are bound.
   */
  readonly statements: ReadonlyArray<HandoffStatement>;
};

export type HandoffStatement = {
  /**
   * Bind message body up to and including the number of values.
   */
  readonly head: ReadonlyArray<number>;
  /**
   * Bind message body after the values.
   */
  readonly tail: ReadonlyArray<number>;
  /**
   * Header of the encoded parameter row. The values of a Bind message follow it.
   */
  readonly header: ReadonlyArray<number>;
  /**
   * Format code per column: 0 for text, 1 for binary.
   */
  readonly formatCodes: ReadonlyArray<number>;
  /**
   * The `RowDescription` message for these format codes.
   */
  readonly rowDescription: ReadonlyArray<number>;
};

export type HttpHandoff = {
  /**
   * The request bytes before the SQL text.
   */
  readonly before: string;
  /**
   * The request bytes after the SQL text.
   */
  readonly after: string;
  /**
   * Maximum request length in bytes.
   */
  readonly maxRequestBytes: number;
  /**
   * The response head in three strings: the body length is inserted after the first string, the
   * date after the second.
   */
  readonly head: [string, string, string];
  /**
   * Maximum response body length in bytes.
   */
  readonly maxBodyBytes: number;
  /**
   * Whether the response repeats the SQL text.
   */
  readonly namesQuery: boolean;
  /**
   * The row encoding.
   */
  readonly rows: RowFormat;
  /**
   * Number of rows to skip at the start.
   */
  readonly skip: number;
  /**
   * Maximum number of rows to return, after `skip`.
   */
  readonly take: number | null;
  /**
   * Whether rows beyond `take` are counted as well.
   */
  readonly countAll: boolean;
  /**
   * The response text after the row count.
   */
  readonly end: string;
  /**
   * The queries.
   */
  readonly queries: ReadonlyArray<HandoffQuery>;
};

export type HandoffQuery = {
  /**
   * The SQL text, with parameters in place of literals if `types` is not empty.
   */
  readonly text: string;
  /**
   * Literal types; the literals become the statement's parameters. `None` for strings.
   */
  readonly types: ReadonlyArray<string | null>;
  /**
   * The response text between the SQL text and the rows.
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
  'NullValue',
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
