//! Statement execution options and totals.

use serde::{Deserialize, Serialize};

/// Execution options: which rows to return, their encoding, and the time limit.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ExecuteOptions {
    /// The row encoding.
    pub rows: RowFormat,
    /// The execution's id, unique among running executions. If absent, the engine assigns one.
    #[serde(default)]
    pub query_id: Option<u64>,
    /// The original SQL text, when the statement has parameters in place of its literals.
    #[serde(default)]
    pub text: Option<String>,
    /// Number of rows to skip at the start.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub skip: u64,
    /// Maximum number of rows to return, after `skip`.
    #[serde(default)]
    pub take: Option<u64>,
    /// Whether to continue counting after `take` rows, so that `Summary.rowsTotal` covers all rows.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub count_all: bool,
    /// Number of rows to return from the end of the result. `skip` and `take` apply to these rows.
    #[serde(default)]
    pub last: Option<u64>,
    /// Statement timeout in milliseconds; no limit when absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Milliseconds of `timeoutMs` that have already elapsed since the statement arrived.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub elapsed_ms: u64,
    /// Maximum number of rows in the first chunk, for portals with a row limit.
    #[serde(default)]
    pub first_chunk_rows: Option<u64>,
    /// Waits until the table changes, then runs the query on the changed rows. `skip` applies only
    /// if a single commit added the rows.
    #[serde(default)]
    pub changes: Option<ChangesOptions>,
}

/// Selects which change to a table is reported.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ChangesOptions {
    /// Transaction after which changes are reported. When absent, only the table's current position
    /// is reported.
    #[serde(default)]
    pub after: Option<u64>,
    /// Whether to report all existing rows, regardless of earlier changes.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub all: bool,
    /// Whether to omit the rows from the report.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub without_rows: bool,
    /// Maximum time to wait for a change, in milliseconds.
    pub wait_ms: u64,
}

/// A change to a table.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableChange {
    /// The kind of change.
    pub kind: ChangeKind,
    /// The table's name.
    pub table: String,
    /// The last transaction that the report covers.
    pub txn: u64,
    /// Number of commits that the report covers, if known.
    pub commits: usize,
    /// Number of rows added, before any filter, if known.
    pub rows: Option<u64>,
    /// For added rows, their time range. Otherwise the changed time ranges, ascending and disjoint.
    pub ranges: Vec<ChangedRange>,
}

/// The kind of change to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ChangeKind {
    /// No change.
    None,
    /// Rows were added.
    Rows,
    /// Rows in some time ranges changed.
    Range,
}

/// A time range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChangedRange {
    /// The first timestamp; null if unbounded.
    pub from: Option<String>,
    /// The last timestamp, inclusive; null if unbounded.
    pub to: Option<String>,
}

/// How rows are encoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "format", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub enum RowFormat {
    /// JSON rows such as `[1,"a"],[2,"b"]`, without the outer brackets. Commas also separate the
    /// rows of consecutive chunks.
    Json {
        /// Whether LONG values are written as strings.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        quote_large_numbers: bool,
        /// Column indexes in output order; all columns when absent.
        #[serde(default)]
        columns: Option<Vec<usize>>,
    },
    /// CSV rows with CRLF line endings.
    Csv {
        /// The delimiter: one ASCII character.
        #[serde(default)]
        delimiter: Option<char>,
        /// Whether to write a header line first.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        header: bool,
    },
    /// `DataRow` messages.
    Pg {
        /// Format code per column: 0 for text, 1 for binary.
        format_codes: Vec<i16>,
        /// Whether `TIMESTAMP_NS` in text format has nine fractional digits instead of six.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        nanoseconds: bool,
    },
    /// One QWP `RESULT_BATCH` message per chunk: the header flags, then all bytes after the query
    /// id, starting with the sequence number.
    Qwp {
        /// Maximum number of rows in a message.
        max_rows: usize,
        /// Size in bytes at which a message is closed.
        max_bytes: usize,
        /// Compression level from 1 to 9; uncompressed when absent.
        #[serde(default)]
        zstd_level: Option<i32>,
    },
    /// A Parquet file.
    Parquet {
        /// Compression, sizes and version.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<ParquetOptions>", optional))]
        options: ParquetOptions,
    },
    /// One Arrow arena per chunk, read by arrow-js-ffi.
    Arrow,
}

/// Options for Parquet files; absent values use the encoder's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ParquetOptions {
    /// UNCOMPRESSED, SNAPPY, GZIP, LZ4, `LZ4_RAW`, ZSTD or BROTLI. Default ZSTD.
    pub compression_codec: Option<String>,
    /// Compression level on the codec's own scale. Default 9 for ZSTD.
    pub compression_level: Option<i32>,
    /// Number of rows per row group. Default 100,000.
    pub row_group_size: Option<usize>,
    /// Data page size in bytes. Default 1,048,576.
    pub data_page_size: Option<usize>,
    /// Whether min/max statistics are written.
    pub statistics_enabled: Option<bool>,
    /// Parquet version, 1 or 2. Default 2.
    pub parquet_version: Option<u8>,
    /// Whether arrays are written in binary form, as shape and elements. By default, they are
    /// written as nested lists.
    pub raw_array_encoding: Option<bool>,
    /// NONE (default) writes one file; HOUR to YEAR write a ZIP archive with one file per
    /// partition.
    pub partition_by: Option<String>,
}

/// Execution totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Summary {
    /// Number of rows encoded.
    pub rows_returned: u64,
    /// With `countAll`, the number of rows in the query result; otherwise, the number of rows
    /// processed.
    pub rows_total: u64,
    /// Number of rows written by INSERT, UPDATE or DELETE.
    pub rows_affected: u64,
    /// Execution time in nanoseconds.
    pub execute_nanos: u64,
}
