//! Appender specifications, which define how incoming bytes are read, and appender results.

use serde::{Deserialize, Serialize};

use crate::TableMetadata;

/// An appender's target table and input format.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AppenderSpec {
    /// The input format.
    pub kind: AppenderKind,
    /// The table's name.
    pub table: String,
    /// Whether to create a missing table from the columns in `csv`, in the same commit as the rows.
    pub create: bool,
    /// Whether to replace the table's structure and rows in the same commit that adds the new rows.
    pub overwrite: bool,
    /// Designated timestamp of a created table.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// Partitioning of a created table.
    #[serde(default)]
    pub partition_by: Option<String>,
    /// Number of staged rows that triggers a write to disk.
    #[serde(default)]
    pub max_uncommitted_rows: Option<u64>,
    /// Expected out-of-order lag in microseconds.
    #[serde(default)]
    pub o3_max_lag_micros: Option<i64>,
    /// How CSV lines are parsed.
    pub csv: CsvTextSpec,
}

/// An appender's input format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AppenderKind {
    /// CSV lines for one table.
    Csv,
    /// Line protocol. Each line names its table. Specified by a [`LinesSpec`].
    Lines,
    /// Columnar-protocol messages, which name their tables and request commits. Specified by a
    /// [`ColumnsSpec`].
    Columns,
    /// COPY … FROM STDIN data for a prepared INSERT. Specified by a [`CopySpec`].
    Copy,
}

/// How COPY … FROM STDIN data is parsed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopySpec {
    /// The input format.
    pub kind: AppenderKind,
    /// The COPY format.
    pub format: CopyFormat,
    /// The delimiter between the values on a line. Like `quote` and `escape`, it is a single ASCII
    /// character.
    pub delimiter: char,
    /// CSV only: the quote character.
    pub quote: char,
    /// CSV only: the character that escapes a quote character inside a value.
    pub escape: char,
    /// The string that represents NULL.
    pub null_text: String,
    /// How the first line is treated.
    pub header: CopyHeader,
    /// The value encoding for each INSERT parameter.
    pub columns: Vec<CopyColumnSpec>,
}

/// A COPY format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CopyFormat {
    /// Lines with backslash escapes.
    Text,
    /// Lines with quoted values.
    Csv,
    /// Binary values.
    Binary,
    /// Each chunk is an Arrow IPC stream whose fields have the names of the INSERT's columns.
    Arrow,
}

/// How the first line of COPY data is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CopyHeader {
    /// There is no header line: the first line is a row.
    None,
    /// The first line contains names and is skipped.
    Skip,
    /// The first line contains the column names, which must match.
    Match,
}

/// How a column's values are encoded.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyColumnSpec {
    /// Type of binary values, as a `PostgreSQL` OID.
    pub oid: u32,
    /// CSV only: whether to treat unquoted values as non-null.
    pub force_not_null: bool,
    /// CSV only: whether quoted values may be null.
    pub force_null: bool,
}

/// Result of a COPY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyReply {
    /// Number of rows written.
    pub rows: u64,
    /// The error if the COPY failed, in which case no rows were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub failure: Option<CopyMistake>,
}

/// An error in COPY data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyMistake {
    /// Line number, from 1, or row number for binary data.
    pub line: u64,
    /// The error code.
    pub code: String,
    /// The error message.
    pub message: String,
    /// Error details, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub detail: Option<String>,
    /// Suggested action, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
}

/// How line protocol is parsed, and whether it may create tables and columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinesSpec {
    /// The input format.
    pub kind: AppenderKind,
    /// Unit of timestamps without an explicit unit.
    pub precision: LinePrecision,
    /// Whether missing tables are created.
    pub create_tables: bool,
    /// Whether missing columns are added to existing tables.
    pub create_columns: bool,
    /// Partitioning of created tables.
    pub partition_by: String,
    /// Maximum line length in bytes.
    pub max_line_bytes: usize,
    /// Maximum total size in bytes of the pending rows in memory.
    pub max_pending_bytes: usize,
    /// Whether another message follows. If so, an incomplete last line continues in that message.
    pub is_continued: bool,
}

/// How columnar-protocol messages are parsed, and whether they may create tables and columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ColumnsSpec {
    /// The input format.
    pub kind: AppenderKind,
    /// Whether missing tables are created.
    pub create_tables: bool,
    /// Whether missing columns are added to existing tables.
    pub create_columns: bool,
    /// Partitioning of created tables.
    pub partition_by: String,
    /// Maximum number of rows per table in a message.
    pub max_rows: usize,
    /// Maximum number of tables that a connection may name.
    pub max_tables: usize,
    /// Maximum total size in bytes of the strings in a connection's dictionary.
    pub max_dictionary_bytes: usize,
    /// Number of pending rows that forces a commit.
    pub max_pending_rows: u64,
    /// Maximum total size in bytes of the pending rows in memory.
    pub max_pending_bytes: usize,
    /// Maximum total size in bytes of all connections' pending rows and dictionaries.
    pub max_total_bytes: u64,
}

/// A timestamp unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LinePrecision {
    /// Nanoseconds.
    #[serde(rename = "n")]
    Nanos,
    /// Microseconds.
    #[serde(rename = "u")]
    Micros,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Minutes.
    #[serde(rename = "m")]
    Minutes,
    /// Hours.
    #[serde(rename = "h")]
    Hours,
}

/// Result of finishing a message for several tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RowsReply {
    /// A line or columnar-protocol message was rejected. None of it is written.
    Refused {
        /// Number of the line or message, counted from 1.
        line: u64,
        /// Byte offset of the line or message.
        at: u64,
        /// The reason.
        reason: String,
        /// Whether the rows, although individually valid, together exceed a size limit.
        is_too_large: bool,
        /// Table named on the line, if known. The reason may reveal facts about this table.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        table: Option<String>,
        /// Whether that table exists.
        exists: bool,
        /// The columnar protocol's status code for the error.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        status: Option<u8>,
    },
    /// All input was read, and these are the planned changes. The next call commits them, or plans
    /// again if the tables have changed in the meantime.
    Planned {
        /// The tables that receive rows.
        tables: Vec<PlannedTable>,
        /// Line protocol only: how much of the message was read.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        read: Option<LinesRead>,
        /// Columnar protocol only: the requested commits that are combined into this transaction,
        /// in order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(test, ts(as = "Option<Vec<RequestedCommit>>", optional))]
        commits: Vec<RequestedCommit>,
    },
    /// Columnar protocol only: the rows cannot be written. The cause may be unrelated to these
    /// rows.
    Failed {
        /// Number of the message that requested the commit, counted from 1.
        line: u64,
        /// The error code.
        code: String,
        /// The error message.
        reason: String,
    },
    /// All rows are written.
    Committed {
        /// Number of rows in all tables.
        rows: u64,
        /// The transaction number; `None` when there was nothing to write.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        transaction: Option<u64>,
        /// Columnar protocol only: the requested commits that required no planned changes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(test, ts(as = "Option<Vec<RequestedCommit>>", optional))]
        commits: Vec<RequestedCommit>,
        /// Columnar protocol only: whether further commits or reports remain.
        more: bool,
    },
}

/// A commit requested by a columnar-protocol client. One transaction may contain several such
/// commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct RequestedCommit {
    /// Number of messages that this commit acknowledges.
    pub messages: u64,
    /// Total number of rows in its tables.
    pub rows: u64,
    /// Indexes of its tables within the plan.
    pub tables: Vec<usize>,
    /// Whether a commit that the client had deferred was forced because too much data was pending.
    pub forced: bool,
}

/// The lines read from a message. Excludes an incomplete last line, which the next message
/// completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinesRead {
    /// Number of bytes.
    pub bytes: u64,
    /// Number of lines, including empty lines and comments.
    pub lines: u64,
}

/// A table that a message writes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlannedTable {
    /// The table's name.
    pub table: String,
    /// Whether the message creates the table.
    pub creates: bool,
    /// Columns that the message adds to an existing table; empty for a new table.
    pub adds: Vec<String>,
    /// Number of rows for the table.
    pub rows: u64,
}

/// How the lines of CSV input are parsed.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CsvTextSpec {
    /// The delimiter: one ASCII character.
    pub delimiter: char,
    /// Whether the first line is a header.
    pub header: bool,
    /// The columns to read.
    pub columns: Vec<CsvColumnSpec>,
    /// How malformed lines are handled.
    pub atomicity: CsvAtomicity,
    /// Whether to ignore a line's surplus fields instead of rejecting the line.
    pub skip_extra_values: bool,
}

/// How a line with an unreadable value is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CsvAtomicity {
    /// The import is aborted, but lines that are too long or lack a timestamp are only skipped.
    Abort,
    /// The import is aborted, even for lines that are too long or lack a timestamp.
    AbortLine,
    /// The line is skipped.
    SkipRow,
    /// The value becomes null.
    SkipCol,
}

/// A column of an imported file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct CsvColumnSpec {
    /// Index of the field in each line.
    pub index: usize,
    /// Name of the table column.
    pub name: String,
    /// The SQL type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Pattern for DATE, TIMESTAMP and `TIMESTAMP_NS` values; ISO formats when absent. For numbers,
    /// the decimal mark.
    #[serde(default)]
    pub pattern: Option<String>,
    /// Whether the type was guessed. If so, the report names a wider type when a value does not
    /// fit.
    #[serde(default)]
    pub guessed: Option<bool>,
    /// Strings that are read as null, unless they are valid values of the type.
    #[serde(default)]
    pub null_texts: Option<Vec<String>>,
}

/// An appender's progress.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AppendProgress {
    /// Number of bytes queued.
    pub bytes: u64,
    /// Number of rows parsed.
    pub rows: u64,
    /// Set when the result is known before the input ends. Further bytes are ignored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}

/// Read progress of a columnar-protocol connection.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MessagesProgress {
    /// Number of messages read on the connection, including a rejected message.
    pub messages: u64,
    /// Total size of these messages in bytes.
    pub bytes: u64,
    /// Number of messages not yet read.
    pub left: u64,
    /// Total size of the unread messages in bytes.
    pub left_bytes: u64,
    /// Whether a commit has been requested and is waiting to run.
    pub commit_pending: bool,
    /// Whether the pending rows must be committed before more input is read.
    pub full: bool,
    /// Whether reading has ended; the last `finish` reports why.
    pub ended: bool,
}

/// Report on one CSV input.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextReport {
    /// Number of rows read.
    pub rows_imported: u64,
    /// Number of rows skipped.
    pub rows_rejected: u64,
    /// Number of failed conversions per input column.
    pub column_errors: Vec<u64>,
    /// The first bad lines: `line 4, field 3: bad syntax`.
    pub bad_lines: Vec<String>,
    /// For each input column, the wider type if the guessed type was too narrow. If any type was
    /// too narrow, the appender commits nothing, and the input must be read again.
    pub widened: Vec<Option<WidenedColumn>>,
}

/// A wider type for a column whose guessed type did not fit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WidenedColumn {
    /// The SQL type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Line number, from 1, of the first value that needs the wider type.
    pub line: u64,
    /// That value, possibly truncated.
    pub text: String,
}

/// Report on the last input, and the table after the commit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AppendReport {
    /// Report on the last input.
    #[serde(flatten)]
    pub text: TextReport,
    /// The table after the commit.
    pub table: TableMetadata,
}
