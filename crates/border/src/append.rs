//! What an appender writes to, how its bytes are read, and what became of them.

use serde::{Deserialize, Serialize};

use crate::TableMetadata;

/// What an appender writes to, and how its bytes are read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AppenderSpec {
    /// What the bytes are.
    pub kind: AppenderKind,
    /// The table's name.
    pub table: String,
    /// Create the table with the columns of `csv` when it is missing (one commit with the rows).
    pub create: bool,
    /// Replace structure and rows, in the same commit as the new rows.
    pub overwrite: bool,
    /// Designated timestamp of a created table.
    #[serde(default)]
    pub timestamp: Option<String>,
    /// Partitioning of a created table.
    #[serde(default)]
    pub partition_by: Option<String>,
    /// Rows after which staged rows go to disk.
    #[serde(default)]
    pub max_uncommitted_rows: Option<u64>,
    /// Microseconds of disorder to expect.
    #[serde(default)]
    pub o3_max_lag_micros: Option<i64>,
    /// How lines are read.
    pub csv: CsvTextSpec,
}

/// What the bytes of an appender are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum AppenderKind {
    /// Lines of CSV, into one table.
    Csv,
    /// The line protocol, into the tables that its lines name: the rest is a [`LinesSpec`].
    Lines,
    /// Messages of the columnar protocol, into the tables that they name, in as many commits as
    /// are asked for: the rest is a [`ColumnsSpec`].
    Columns,
    /// The data of COPY … FROM STDIN, for an INSERT that is prepared: the rest is a [`CopySpec`].
    Copy,
}

/// How the data of COPY … FROM STDIN are read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopySpec {
    /// What the bytes are.
    pub kind: AppenderKind,
    /// Their format.
    pub format: CopyFormat,
    /// What parts the values of a line: one ASCII character, as the next two.
    pub delimiter: char,
    /// Of CSV what is around values.
    pub quote: char,
    /// Of CSV what precedes a quote that is part of a value.
    pub escape: char,
    /// The text of a null.
    pub null_text: String,
    /// What the first line is.
    pub header: CopyHeader,
    /// How the values are read, one for each parameter of the INSERT.
    pub columns: Vec<CopyColumnSpec>,
}

/// A format of COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CopyFormat {
    /// Lines with backslashes.
    Text,
    /// Lines with quotes.
    Csv,
    /// Binary values.
    Binary,
}

/// What the first line of the data of COPY is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CopyHeader {
    /// A row.
    None,
    /// Names that are not read.
    Skip,
    /// The names of the columns.
    Match,
}

/// How the values of a column come.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyColumnSpec {
    /// The type of binary ones, as an OID of `PostgreSQL`.
    pub oid: u32,
    /// Of CSV: one without quotes is never null.
    pub force_not_null: bool,
    /// Of CSV: one in quotes may be null.
    pub force_null: bool,
}

/// What the data of COPY came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyReply {
    /// Rows that were written.
    pub rows: u64,
    /// Why none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub failure: Option<CopyMistake>,
}

/// What is wrong with the data of COPY.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CopyMistake {
    /// The line, from 1; of binary data, the row.
    pub line: u64,
    /// The error's code.
    pub code: String,
    /// Its text.
    pub message: String,
    /// More of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub detail: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    pub hint: Option<String>,
}

/// How lines of the line protocol are read, and what they may make.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinesSpec {
    /// What the bytes are.
    pub kind: AppenderKind,
    /// The unit of timestamps that do not say it.
    pub precision: LinePrecision,
    /// Whether tables are made that are not there.
    pub create_tables: bool,
    /// Whether tables that are there get columns.
    pub create_columns: bool,
    /// Partitioning of tables that are made.
    pub partition_by: String,
    /// Bytes of a line, at most.
    pub most_line_bytes: usize,
    /// Bytes of all rows in memory, at most.
    pub most_held_bytes: usize,
    /// Whether another message follows: the beginning of a line at the end belongs to that one.
    pub goes_on: bool,
}

/// How messages of the columnar protocol are read, and what they may make.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ColumnsSpec {
    /// What the bytes are.
    pub kind: AppenderKind,
    /// Whether tables are made that are not there.
    pub create_tables: bool,
    /// Whether tables that are there get columns.
    pub create_columns: bool,
    /// Partitioning of tables that are made.
    pub partition_by: String,
    /// Rows of a table in a message, at most.
    pub most_rows: usize,
    /// Tables that a connection names, at most.
    pub most_tables: usize,
    /// Bytes of the texts in the dictionary of a connection, at most.
    pub most_dictionary_bytes: usize,
    /// Rows from which a commit is asked for.
    pub most_waiting_rows: u64,
    /// Bytes that rows which wait take in memory, at most.
    pub most_held_bytes: usize,
    /// Bytes of rows that wait, and of dictionaries, of all connections together.
    pub most_open_bytes: u64,
}

/// A unit of timestamps.
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

/// What the end of a message for several tables came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "state")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum RowsReply {
    /// A line, or a message of the columnar protocol, is wrong, and nothing of it is written.
    Refused {
        /// Which one, from 1.
        line: u64,
        /// Bytes of the message before it.
        at: u64,
        /// Why.
        reason: String,
        /// Whether the rows together are too many, and not one of them wrong.
        is_too_large: bool,
        /// The table of the line, which the reason may tell of.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        table: Option<String>,
        /// Whether that is there.
        exists: bool,
        /// How the columnar protocol classes it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        status: Option<u8>,
    },
    /// Everything was read, and would change this; asked again, it is committed, or planned anew
    /// where the tables changed meanwhile.
    Planned {
        /// The tables that get rows.
        tables: Vec<PlannedTable>,
        /// Of lines: what of the message is read.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        read: Option<LinesRead>,
        /// Of the columnar protocol: what was asked for and becomes this one transaction, in order.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(test, ts(as = "Option<Vec<AskedCommit>>", optional))]
        commits: Vec<AskedCommit>,
    },
    /// Of the columnar protocol: rows cannot be written, be it that none could.
    Failed {
        /// The message that asked for their commit, from 1.
        line: u64,
        /// The error.
        code: String,
        /// Its text.
        reason: String,
    },
    /// Everything is written.
    Committed {
        /// Rows of all tables.
        rows: u64,
        /// Number of the transaction; none where there was nothing to write.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[cfg_attr(test, ts(optional))]
        transaction: Option<u64>,
        /// Of the columnar protocol: what was asked for, where there was nothing to plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[cfg_attr(test, ts(as = "Option<Vec<AskedCommit>>", optional))]
        commits: Vec<AskedCommit>,
        /// Of the columnar protocol: whether there is more to commit, or to tell.
        more: bool,
    },
}

/// A commit that a client of the columnar protocol asked for; several may be one transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AskedCommit {
    /// Messages that it answers.
    pub messages: u64,
    /// Rows of all its tables.
    pub rows: u64,
    /// Its tables, by their places in the plan.
    pub tables: Vec<usize>,
    /// Whether the client wanted to wait longer: too much was waiting.
    pub forced: bool,
}

/// The lines of a message that are read; the beginning of one that another message ends is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LinesRead {
    /// Bytes.
    pub bytes: u64,
    /// Lines, empty ones and comments among them.
    pub lines: u64,
}

/// A table that a message writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct PlannedTable {
    /// Its name.
    pub table: String,
    /// Whether it is made.
    pub creates: bool,
    /// Columns that it gets; none where it is made.
    pub adds: Vec<String>,
    /// Rows.
    pub rows: u64,
}

/// How the lines of one text are read.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct CsvTextSpec {
    /// One ASCII character.
    pub delimiter: char,
    /// The first line is a header: not data.
    pub header: bool,
    /// The columns that are read.
    pub columns: Vec<CsvColumnSpec>,
    /// What becomes of bad lines.
    pub atomicity: CsvAtomicity,
    /// Ignore fields beyond the columns instead of the whole line.
    pub skip_extra_values: bool,
}

/// What becomes of a line with a value that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CsvAtomicity {
    /// The import ends; lines that are too long, or without a timestamp, are left out.
    Abort,
    /// The import ends with those, too.
    AbortLine,
    /// The line is left out.
    SkipRow,
    /// The value is null.
    SkipCol,
}

/// A column of a file on its way into a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct CsvColumnSpec {
    /// Index of the field in each line.
    pub index: usize,
    /// Column of the table.
    pub name: String,
    /// Type text.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Of DATE, TIMESTAMP and `TIMESTAMP_NS` how they are written (absent: ISO forms), of numbers
    /// their decimal mark.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The type is a guess: a value that it does not hold asks for a wider one.
    #[serde(default)]
    pub guessed: Option<bool>,
    /// Texts that are null where they are no value of the type.
    #[serde(default)]
    pub null_texts: Option<Vec<String>>,
}

/// What was taken so far.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct AppendProgress {
    /// Bytes queued.
    pub bytes: u64,
    /// Rows parsed.
    pub rows: u64,
    /// Set where more bytes make no difference: what they came to is known already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<bool>,
}

/// How far the messages of a connection of the columnar protocol are read.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct MessagesProgress {
    /// Messages that were read since the connection began, one that is wrong among them.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that are still to be read.
    pub left: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Whether there is something to commit.
    pub whole: bool,
    /// Whether that has to be committed before more is read.
    pub full: bool,
    /// Whether nothing more is read: why, the last `finish` tells.
    pub ended: bool,
}

/// What was read of one text.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TextReport {
    /// Rows read.
    pub rows_imported: u64,
    /// Rows left out.
    pub rows_rejected: u64,
    /// Failed conversions per column of the text.
    pub column_errors: Vec<u64>,
    /// The first bad lines: `line 4, field 3: bad syntax`.
    pub bad_lines: Vec<String>,
    /// Per column of the text the type it needs, where a guess was too narrow. When there is one,
    /// the text has to be read again: an appender that read it commits nothing.
    pub widened: Vec<Option<WidenedColumn>>,
}

/// A type that holds what a guessed one did not.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WidenedColumn {
    /// Type text.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Line of the first value that needs it, from 1.
    pub line: u64,
    /// That value, or its beginning.
    pub text: String,
}

/// What was read of the last text, and the table after the commit.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct AppendReport {
    /// Of the last text.
    #[serde(flatten)]
    pub text: TextReport,
    /// The table after the commit.
    pub table: TableMetadata,
}
