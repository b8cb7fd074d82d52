//! How a statement is run, and the totals of a run.

use serde::{Deserialize, Serialize};

/// Which rows to return, how, and for how long to try.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ExecuteOptions {
    /// The encoding.
    pub rows: RowFormat,
    /// What the execution is called while it runs; no other one that runs may have it. The engine
    /// finds one when absent.
    #[serde(default)]
    pub query_id: Option<u64>,
    /// The text it runs for, where the statement is one with parameters in place of its literals.
    #[serde(default)]
    pub text: Option<String>,
    /// Rows left out at the start.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub skip: u64,
    /// Most rows returned, after `skip`.
    #[serde(default)]
    pub take: Option<u64>,
    /// Keep counting after `take` rows, so that `Summary.rowsTotal` is the whole.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub count_all: bool,
    /// Only the last rows of the result; `skip` and `take` count within them.
    #[serde(default)]
    pub last: Option<u64>,
    /// Milliseconds until the statement is given up; no limit when absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Milliseconds of `timeoutMs` that are over: from the statement's arrival to here.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<u64>", optional))]
    pub elapsed_ms: u64,
    /// Most rows of the first chunk (portals with a row limit).
    #[serde(default)]
    pub first_chunk_rows: Option<u64>,
    /// Waits for a change of the table, and answers the query's rows among those that changed. Of
    /// rows that one commit added `skip` leaves out the first ones, else it has no effect.
    #[serde(default)]
    pub changes: Option<ChangesOptions>,
}

/// Which change of a table is reported.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ChangesOptions {
    /// What follows this transaction; when absent nothing but the position of the table.
    #[serde(default)]
    pub after: Option<u64>,
    /// Tells the rows that there are, whatever came before.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub all: bool,
    /// Leaves out the rows.
    #[serde(default)]
    #[cfg_attr(test, ts(as = "Option<bool>", optional))]
    pub without_rows: bool,
    /// Milliseconds to wait for a change.
    pub wait_ms: u64,
}

/// A change of a table.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct TableChange {
    /// What happened.
    pub kind: ChangeKind,
    /// The table's name.
    pub table: String,
    /// The last transaction that is reported by it.
    pub txn: u64,
    /// Commits that are reported by it, where it is known.
    pub commits: usize,
    /// Rows that came, before any filter, where it is known.
    pub rows: Option<u64>,
    /// Of added rows their time, of touched ones stretches that are ascending and apart.
    pub ranges: Vec<ChangedRange>,
}

/// What happened to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum ChangeKind {
    /// Nothing.
    None,
    /// Rows were added.
    Rows,
    /// Within stretches of time the rows are others now.
    Range,
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct ChangedRange {
    /// The first instant; null: since ever.
    pub from: Option<String>,
    /// The last instant, which belongs to it; null: for ever.
    pub to: Option<String>,
}

/// How rows are encoded.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "format", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub enum RowFormat {
    /// `[1,"a"],[2,"b"]`: rows without the outer brackets, commas between rows of one stream.
    Json {
        /// LONG as text.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        quote_large_numbers: bool,
        /// Which columns, in which order; all when absent.
        #[serde(default)]
        columns: Option<Vec<usize>>,
    },
    /// Rows only, CRLF line ends.
    Csv {
        /// One ASCII character.
        #[serde(default)]
        delimiter: Option<char>,
        /// Write the name line first.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        header: bool,
    },
    /// `DataRow` messages.
    Pg {
        /// 0 text, 1 binary, one per column.
        format_codes: Vec<i16>,
        /// Nine digits of a second in the texts of `TIMESTAMP_NS`, not six.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<bool>", optional))]
        nanoseconds: bool,
    },
    /// One `RESULT_BATCH` message of QWP per chunk, without what comes before its sequence: the
    /// flags of the header, then what follows the query's number.
    Qwp {
        /// Rows of a message, at most.
        max_rows: usize,
        /// Bytes after which a message is closed.
        max_bytes: usize,
        /// 1 to 9; absent: not compressed.
        #[serde(default)]
        zstd_level: Option<i32>,
    },
    /// A Parquet file.
    Parquet {
        /// Codec, sizes and versions.
        #[serde(default)]
        #[cfg_attr(test, ts(as = "Option<ParquetOptions>", optional))]
        options: ParquetOptions,
    },
    /// One Arrow arena per chunk, read by arrow-js-ffi.
    Arrow,
}

/// How a Parquet file is written; absent values take the encoder's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct ParquetOptions {
    /// UNCOMPRESSED, SNAPPY, GZIP, LZ4, `LZ4_RAW`, ZSTD, BROTLI. Default ZSTD.
    pub compression_codec: Option<String>,
    /// Codec's own scale. Default 9 for ZSTD.
    pub compression_level: Option<i32>,
    /// Rows. Default 100,000.
    pub row_group_size: Option<usize>,
    /// Bytes. Default 1,048,576.
    pub data_page_size: Option<usize>,
    /// Write the least and greatest values.
    pub statistics_enabled: Option<bool>,
    /// 1 or 2. Default 2.
    pub parquet_version: Option<u8>,
    /// Arrays as the bytes of their shape and elements. Default: nested lists.
    pub raw_array_encoding: Option<bool>,
    /// NONE is one file, the default; HOUR to YEAR give a ZIP archive of one for each partition.
    pub partition_by: Option<String>,
}

/// Totals of one execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Summary {
    /// Rows encoded.
    pub rows_returned: u64,
    /// Rows of the query when counted (`countAll`), else those seen.
    pub rows_total: u64,
    /// Rows written by INSERT, UPDATE or DELETE.
    pub rows_affected: u64,
    /// Nanoseconds from the start of execution to its end.
    pub execute_nanos: u64,
}
