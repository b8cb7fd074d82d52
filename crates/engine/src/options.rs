//! What callers hand over, and what they get back: the serde twins of `ts/engine/types.ts`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};
use tidemark_catalog::Owner;
use tidemark_planner::{Lists, Sight};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_wire::{Codec, ParquetOptions, RowFormat};

/// How to open a database. Absent values take the defaults named in `docs/configuration.md`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenOptions {
    /// Root directory; created when missing.
    pub root: PathBuf,
    /// `sync`, `async`, `nosync` or `adaptive`.
    #[serde(default)]
    pub commit_mode: Option<String>,
    /// Whether the clock bounds a time to live.
    #[serde(default)]
    pub ttl_by_clock: Option<bool>,
    /// Directory `read_parquet` may read.
    #[serde(default)]
    pub import_root: Option<PathBuf>,
    /// Bytes the process may use.
    #[serde(default)]
    pub process_memory_bytes: Option<u64>,
    /// Bytes all queries may use together.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// Bytes one query may use.
    #[serde(default)]
    pub query_memory_limit_bytes: Option<u64>,
    /// Bytes of rows that only memory and the log may hold.
    #[serde(default)]
    pub unwritten_limit_bytes: Option<u64>,
    /// Threads that run plans.
    #[serde(default)]
    pub workers: Option<usize>,
    /// Fewest rows of a scan's part, and most of its batches; absent: what is fastest.
    #[serde(default)]
    pub scan_part_rows: Option<NonZeroUsize>,
    /// Whether plans pass the rules that only make them faster.
    #[serde(default)]
    pub optional_rules: Option<bool>,
    /// Queries that run at once; others wait.
    #[serde(default)]
    pub max_concurrent_queries: Option<usize>,
    /// Queries that may wait.
    #[serde(default)]
    pub max_waiting_queries: Option<usize>,
    /// Milliseconds a query waits.
    #[serde(default)]
    pub queue_wait_ms: Option<u64>,
    /// Manifests kept to fall back to: 1 or 2.
    #[serde(default)]
    pub keep_generations: Option<u32>,
    /// When checksums of segments are compared: `open`, `first` or `off`.
    #[serde(default)]
    pub verify: Option<String>,
    /// Free bytes below which writes stop.
    #[serde(default)]
    pub disk_watermark_bytes: Option<u64>,
    /// Bytes kept for the last checkpoint.
    #[serde(default)]
    pub disk_reserve_bytes: Option<u64>,
    /// Bytes all queries may spill.
    #[serde(default)]
    pub spill_limit_bytes: Option<u64>,
    /// Rows of an import that a new table holds in memory.
    #[serde(default)]
    pub max_uncommitted_rows: Option<u64>,
    /// Disorder that a new table expects, microseconds.
    #[serde(default)]
    pub o3_max_lag_micros: Option<i64>,
    /// How large things may be.
    #[serde(default)]
    pub limits: SizeLimits,
}

/// How large things may be; absent values take the storage's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SizeLimits {
    /// Tables.
    pub tables: Option<usize>,
    /// Partitions of a table.
    pub partitions: Option<usize>,
    /// Columns of a table.
    pub columns: Option<usize>,
    /// Bytes of a text or BINARY cell.
    pub cell_bytes: Option<usize>,
    /// Elements of an array in a column.
    pub array_elements: Option<usize>,
    /// Bytes of a line of an import.
    pub line_bytes: Option<usize>,
}

/// Who asks, in which setting. Never credentials.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatementContext {
    /// The session's user, for `current_user()` and the list of active queries.
    #[serde(default)]
    pub user: String,
    /// Tells the user apart from others of the same name; absent: the name does.
    #[serde(default)]
    pub identity: Option<String>,
    /// Who owns a view that the statement makes; absent: the user.
    #[serde(default)]
    pub owner: Option<Owner>,
    /// The statement's text, for the list of active queries.
    #[serde(default)]
    pub text: String,
    /// Types the client declared for `$1`, `$2`, …
    #[serde(default)]
    pub parameter_types: Option<Vec<Option<String>>>,
    /// What binding may take; absent or 0: no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// What cancels its binding: a number that no execution has.
    #[serde(default)]
    pub query_id: Option<String>,
    /// Refuse everything that writes.
    #[serde(default)]
    pub read_only: bool,
    /// What of the catalog is seen; absent: everything.
    #[serde(default, deserialize_with = "shared_sight")]
    pub sight: Option<Arc<Sight>>,
    /// Users, groups and rights, as far as the statement asks for them.
    #[serde(default, deserialize_with = "shared_lists")]
    pub lists: Lists,
}

impl StatementContext {
    /// Tells the user apart from others.
    pub(crate) fn identity(&self) -> &str {
        self.identity.as_deref().unwrap_or(&self.user)
    }
}

fn shared_sight<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Sight>>, D::Error> {
    Option::<Sight>::deserialize(from).map(|sight| sight.map(Arc::new))
}

fn shared_lists<'de, D: Deserializer<'de>>(from: D) -> Result<Lists, D::Error> {
    Deserialize::deserialize(from).map(Arc::new)
}

/// How rows are encoded.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "format", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RowFormatSpec {
    /// JSON rows.
    Json {
        /// LONG as text.
        #[serde(default)]
        quote_large_numbers: bool,
        /// Which columns, in which order; all when absent.
        #[serde(default)]
        columns: Option<Vec<usize>>,
    },
    /// CSV rows.
    Csv {
        /// One ASCII character.
        #[serde(default)]
        delimiter: Option<char>,
        /// Write the name line.
        #[serde(default)]
        header: bool,
    },
    /// `DataRow` messages.
    Pg {
        /// 0 text, 1 binary, one per column.
        format_codes: Vec<i16>,
    },
    /// A Parquet file.
    Parquet {
        /// Codec, sizes and versions.
        #[serde(default)]
        options: ParquetOptionsSpec,
    },
    /// Arrow arenas.
    Arrow,
}

impl RowFormatSpec {
    /// The encoder's own description.
    pub(crate) fn into_format(self) -> EngineResult<RowFormat> {
        Ok(match self {
            Self::Json { quote_large_numbers, columns } => {
                RowFormat::Json { quote_large_numbers, columns }
            }
            Self::Csv { delimiter, header } => {
                let delimiter = delimiter.unwrap_or(',');
                let delimiter = u8::try_from(delimiter).map_err(|_| {
                    EngineError::new(
                        ErrorCode::InvalidValue,
                        format!("invalid delimiter '{delimiter}', expected one ASCII character"),
                    )
                })?;
                RowFormat::Csv { delimiter, header }
            }
            Self::Pg { format_codes } => RowFormat::Pg { format_codes },
            Self::Parquet { options } => RowFormat::Parquet(options.into_options()?),
            Self::Arrow => RowFormat::Arrow,
        })
    }
}

/// How a Parquet file is written; absent values take the encoder's defaults.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ParquetOptionsSpec {
    compression_codec: Option<String>,
    compression_level: Option<i32>,
    row_group_size: Option<usize>,
    data_page_size: Option<usize>,
    statistics_enabled: Option<bool>,
    parquet_version: Option<u8>,
    raw_array_encoding: Option<bool>,
    partition_by: Option<String>,
}

impl ParquetOptionsSpec {
    fn into_options(self) -> EngineResult<ParquetOptions> {
        let defaults = ParquetOptions::default();
        let codec = match self.compression_codec {
            None => defaults.codec,
            Some(name) => parse_codec(&name)?,
        };
        Ok(ParquetOptions {
            codec,
            level: self.compression_level.or(defaults.level),
            row_group_rows: self.row_group_size.unwrap_or(defaults.row_group_rows),
            data_page_bytes: self.data_page_size.unwrap_or(defaults.data_page_bytes),
            statistics: self.statistics_enabled.unwrap_or(defaults.statistics),
            version: self.parquet_version.unwrap_or(defaults.version),
            raw_arrays: self.raw_array_encoding.unwrap_or(defaults.raw_arrays),
            partition_by: match self.partition_by {
                None => defaults.partition_by,
                Some(name) => parse_partition(&name)?,
            },
        })
    }
}

fn parse_partition(name: &str) -> EngineResult<PartitionBy> {
    PartitionBy::parse(name).ok_or_else(|| {
        EngineError::new(ErrorCode::InvalidValue, format!("invalid partition_by: {name}"))
    })
}

fn parse_codec(name: &str) -> EngineResult<Codec> {
    Ok(match name.to_ascii_uppercase().as_str() {
        "UNCOMPRESSED" => Codec::Uncompressed,
        "SNAPPY" => Codec::Snappy,
        "GZIP" => Codec::Gzip,
        "LZ4" => Codec::Lz4Hadoop,
        "LZ4_RAW" => Codec::Lz4Raw,
        "ZSTD" => Codec::Zstd,
        "BROTLI" => Codec::Brotli,
        _ => {
            let message = format!("invalid compression codec[{name}]");
            return Err(EngineError::new(ErrorCode::InvalidValue, message));
        }
    })
}

/// Which rows to return, how, and for how long to try.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteOptions {
    /// The encoding.
    pub rows: RowFormatSpec,
    /// What the execution is called while it runs; no other one that runs may have it. The engine
    /// finds one when absent.
    #[serde(default)]
    pub query_id: Option<u64>,
    /// Rows left out at the start.
    #[serde(default)]
    pub skip: u64,
    /// Rows returned at the most, after `skip`.
    #[serde(default)]
    pub take: Option<u64>,
    /// Keep counting after `take` rows.
    #[serde(default)]
    pub count_all: bool,
    /// Only the last rows of the result; `skip` and `take` count within them.
    #[serde(default)]
    pub last: Option<u64>,
    /// Milliseconds until the statement is given up; no limit when absent.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Rows of the first chunk at the most.
    #[serde(default)]
    pub first_chunk_rows: Option<u64>,
}

/// One column of a result.
#[derive(Debug, Clone, Serialize)]
pub struct ResultColumn {
    /// Name as shown.
    pub name: String,
    /// Type text as `/exec` prints it.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Dimensions of an array, else 0.
    pub dimensions: u8,
}

impl ResultColumn {
    pub(crate) fn new(name: &str, sql_type: SqlType) -> Self {
        let (type_name, dimensions) = match sql_type {
            SqlType::DoubleArray(dimensions) => ("ARRAY".to_owned(), dimensions),
            other => (other.name(), 0),
        };
        Self { name: name.to_owned(), type_name, dimensions }
    }
}

/// A table or columns a statement touches.
#[derive(Debug, Clone, Serialize)]
pub struct AccessDescription {
    /// The table.
    pub table: String,
    /// The columns; empty when the whole table is meant.
    pub columns: Vec<String>,
    /// The permission it takes.
    pub permission: String,
    /// The view whose query touches it: the right is that of the view's owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<String>,
    /// Of that view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The table's designated timestamp, told to those who do not see everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// What `Statement.describe()` answers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatementDescription {
    /// `select`, `insert`, `update`, `ddl`, `session` or `empty`.
    pub kind: &'static str,
    /// Command words: `SELECT`, `CREATE TABLE`, …
    pub command: String,
    /// Columns of the result; empty when there is none.
    pub columns: Vec<ResultColumn>,
    /// Index of the designated timestamp, or -1.
    pub timestamp: i64,
    /// Type text of each parameter.
    pub parameters: Vec<String>,
    /// What it touches.
    pub accesses: Vec<AccessDescription>,
    /// What it asks for and has no effect here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
}

/// Totals of one execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Rows encoded.
    pub rows_returned: u64,
    /// Rows of the query when counted, else those seen.
    pub rows_total: u64,
    /// Rows written.
    pub rows_affected: u64,
    /// Nanoseconds of execution.
    pub execute_nanos: u64,
}

/// A column of a table.
#[derive(Debug, Clone, Serialize)]
pub struct TableColumn {
    /// Its name.
    pub name: String,
    /// Type text.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Whether it is the designated timestamp.
    pub designated: bool,
}

/// What `tableMetadata` answers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TableMetadata {
    /// Name as created.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<TableColumn>,
    /// NONE, HOUR, …
    pub partition_by: &'static str,
    /// Name of the designated timestamp.
    pub timestamp: Option<String>,
}

/// A running query.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveQuery {
    /// Its id, for `cancel_query`.
    pub query_id: u64,
    /// Who runs it.
    pub user: String,
    /// Tells them apart from others of the same name.
    #[serde(skip)]
    pub identity: String,
    /// Its text.
    pub text: String,
    /// Microseconds since 1970 at its start.
    pub started_micros: i64,
}
