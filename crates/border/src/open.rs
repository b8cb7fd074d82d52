//! How a database is opened.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;

/// How to open a database. Absent values take the defaults named in `docs/configuration.md`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct OpenOptions {
    /// Root directory; created when missing.
    pub root: PathBuf,
    /// What an acknowledged commit survives; default `sync`.
    pub commit_mode: Option<CommitMode>,
    /// Whether the clock bounds a time to live; default true.
    pub ttl_by_clock: Option<bool>,
    /// Directory `read_parquet` may read, default `ROOT/import`.
    pub import_root: Option<PathBuf>,
    /// Directory that COPY … TO writes to, which `export_files()` lists; default `ROOT/export`.
    pub export_root: Option<PathBuf>,
    /// Bytes the process may use; default the memory of the machine or of its control group.
    pub process_memory_bytes: Option<u64>,
    /// Bytes all queries may use together; default half of `processMemoryBytes`.
    pub memory_limit_bytes: Option<u64>,
    /// Bytes one query may use; default a quarter of `memoryLimitBytes`.
    pub query_memory_limit_bytes: Option<u64>,
    /// Bytes of rows that only memory and the log may hold; default an eighth of
    /// `processMemoryBytes`.
    pub unwritten_limit_bytes: Option<u64>,
    /// Threads that run plans; default the number of cores.
    pub workers: Option<usize>,
    /// Fewest rows of a scan's part, and most of its batches; default what is fastest.
    pub scan_part_rows: Option<NonZeroUsize>,
    /// Queries that run at once, but for cheap ones; default twice the cores, at least 4.
    pub max_concurrent_queries: Option<usize>,
    /// Queries that may wait for their turn; default 256.
    pub max_waiting_queries: Option<usize>,
    /// Milliseconds a query waits for its turn; default 10,000.
    pub queue_wait_ms: Option<u64>,
    /// Whether materialized views follow their base tables; default true.
    pub refresh_views: Option<bool>,
    /// Whether live views can be made, and follow their base tables; default true.
    pub live_views: Option<bool>,
    /// The longest IN MEMORY of a live view in microseconds; default an hour.
    pub live_view_memory_micros: Option<i64>,
    /// Bytes that all views may hold between their refreshes; default a 32nd of
    /// `processMemoryBytes`, 256 MiB at most.
    pub view_state_bytes: Option<usize>,
    /// Whether materialized views answer queries over their base tables; default true.
    pub answers_from_views: Option<bool>,
    /// Bytes of the latest changes of followed tables that memory keeps; default a 64th of
    /// `processMemoryBytes`, 64 MiB at most.
    pub recent_changes_bytes: Option<usize>,
    /// Milliseconds between two looks at the partitions of a table with a storage policy; default
    /// five minutes.
    pub policy_check_ms: Option<u64>,
    /// Milliseconds for which a table is followed without a feed; default a week.
    pub followed_for_ms: Option<u64>,
    /// Manifests kept to fall back to: 2 (default), or 1 for none.
    pub keep_generations: Option<u32>,
    /// When checksums of segments are compared; default `first`.
    pub verify: Option<Verify>,
    /// Free bytes on the disk below which writes stop; default 5 % of it, 1 GiB at most.
    pub disk_watermark_bytes: Option<u64>,
    /// Bytes kept for the last checkpoint; default 64 MiB, at most 2 % of the disk.
    pub disk_reserve_bytes: Option<u64>,
    /// Bytes all queries may spill; default a quarter of the free disk.
    pub spill_limit_bytes: Option<u64>,
    /// Rows of an import that a new table holds in memory; default 500,000.
    pub max_uncommitted_rows: Option<u64>,
    /// Disorder that a new table expects, milliseconds; default ten minutes.
    pub o3_max_lag_ms: Option<i64>,
    /// Tables.
    pub max_tables: Option<usize>,
    /// Partitions of a table.
    pub max_partitions: Option<usize>,
    /// Columns of a table.
    pub max_columns: Option<usize>,
    /// Bytes of a text or BINARY cell.
    pub max_cell_bytes: Option<usize>,
    /// Elements of an array in a column.
    pub max_array_elements: Option<usize>,
    /// Bytes of a line of an import.
    pub max_line_bytes: Option<usize>,
}

/// What an acknowledged commit survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CommitMode {
    /// Power loss.
    #[default]
    Sync,
    /// Death of the process at once, power loss soon after.
    Async,
    /// Death of the process.
    NoSync,
    /// The same as `sync`.
    Adaptive,
}

/// When the checksums of segments are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Verify {
    /// All of them when the database is opened.
    Open,
    /// Those of a column when it is first read.
    #[default]
    First,
    /// Never.
    Off,
}

/// A key of the configuration as SHOW PARAMETERS prints it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Setting {
    /// The key's name.
    pub key: String,
    /// The environment variable that sets it.
    pub environment_variable: String,
    /// The effective value; of a secret, that it is there.
    pub value: String,
    /// `default`, `conf`, `env`, `set` or `file`.
    pub source: String,
    /// Whether the value is a secret.
    pub sensitive: bool,
    /// Whether a reload of the configuration applies it.
    pub reloadable: bool,
}
