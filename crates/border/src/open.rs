//! Options for opening a database.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Deserialize;

/// Options for opening a database. Absent values use the defaults in `docs/configuration.md`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub struct OpenOptions {
    /// Root directory; created when missing.
    pub root: PathBuf,
    /// Which failures an acknowledged commit survives; default `sync`.
    pub commit_mode: Option<CommitMode>,
    /// Whether the wall clock also limits TTL expiry, so that rows with future timestamps do not
    /// expire recent rows; default true.
    pub ttl_by_clock: Option<bool>,
    /// Directory that `read_parquet` may read; default `ROOT/import`.
    pub import_root: Option<PathBuf>,
    /// Directory that COPY … TO writes to and `export_files()` lists; default `ROOT/export`.
    pub export_root: Option<PathBuf>,
    /// Maximum process memory in bytes. Default: the memory of the machine or its control group.
    pub process_memory_bytes: Option<u64>,
    /// Maximum combined memory of all queries in bytes; default: half of `processMemoryBytes`.
    pub memory_limit_bytes: Option<u64>,
    /// Maximum memory per query in bytes; default: a quarter of `memoryLimitBytes`.
    pub query_memory_limit_bytes: Option<u64>,
    /// Maximum size in bytes of the rows that exist only in memory and in the log; default: an
    /// eighth of `processMemoryBytes`.
    pub unwritten_limit_bytes: Option<u64>,
    /// Number of threads that run plans; default: the number of cores.
    pub workers: Option<usize>,
    /// Minimum number of rows per scan partition and maximum number of rows per batch. If absent,
    /// the fastest values are chosen.
    pub scan_partition_rows: Option<NonZeroUsize>,
    /// Maximum number of concurrent queries, except cheap ones; default: twice the number of cores,
    /// at least 4.
    pub max_concurrent_queries: Option<usize>,
    /// Maximum number of queries waiting for admission; default 256.
    pub max_waiting_queries: Option<usize>,
    /// Maximum time in milliseconds that a query waits for admission; default 10,000.
    pub queue_wait_ms: Option<u64>,
    /// Whether materialized views are refreshed from their base tables; default true.
    pub refresh_views: Option<bool>,
    /// Whether live views can be created and are refreshed from their base tables; default true.
    pub live_views: Option<bool>,
    /// Maximum IN MEMORY interval of a live view, in microseconds; default one hour.
    pub live_view_memory_micros: Option<i64>,
    /// Maximum size in bytes of the state that all views retain between refreshes; default: a 32nd
    /// of `processMemoryBytes`, at most 256 MiB.
    pub view_state_bytes: Option<usize>,
    /// Whether queries over base tables may be answered from materialized views; default true.
    pub answers_from_views: Option<bool>,
    /// Maximum memory in bytes for cached recent changes to followed tables; default: a 64th of
    /// `processMemoryBytes`, at most 64 MiB.
    pub recent_changes_bytes: Option<usize>,
    /// Interval in milliseconds at which the partitions of tables with a storage policy are
    /// checked; default five minutes.
    pub policy_check_ms: Option<u64>,
    /// Time in milliseconds for which a table remains followed without a change feed; default one
    /// week.
    pub followed_for_ms: Option<u64>,
    /// Number of manifests retained: 2 (default), or 1 for no fallback.
    pub keep_generations: Option<u32>,
    /// When segment checksums are verified; default `first`.
    pub verify: Option<Verify>,
    /// Free disk space in bytes below which writes stop; default 5 % of the disk, at most 1 GiB.
    pub disk_watermark_bytes: Option<u64>,
    /// Disk space in bytes reserved for the last checkpoint; default 64 MiB, at most 2 % of the
    /// disk.
    pub disk_reserve_bytes: Option<u64>,
    /// Maximum disk space in bytes that all queries combined may spill to; default: a quarter of
    /// the free disk space.
    pub spill_limit_bytes: Option<u64>,
    /// Maximum number of imported rows held in memory for a new table; default 500,000.
    pub max_uncommitted_rows: Option<u64>,
    /// Expected out-of-order lag of a new table in milliseconds; default ten minutes.
    pub o3_max_lag_ms: Option<i64>,
    /// Maximum number of tables.
    pub max_tables: Option<usize>,
    /// Maximum number of partitions per table.
    pub max_partitions: Option<usize>,
    /// Maximum number of columns per table.
    pub max_columns: Option<usize>,
    /// Maximum size of a string or BINARY value in bytes.
    pub max_cell_bytes: Option<usize>,
    /// Maximum number of elements in an array value.
    pub max_array_elements: Option<usize>,
    /// Maximum length of an imported line, in bytes.
    pub max_line_bytes: Option<usize>,
}

/// The failures that an acknowledged commit survives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum CommitMode {
    /// Survives power loss.
    #[default]
    Sync,
    /// Survives process termination immediately, and power loss after a short delay.
    Async,
    /// Survives process termination, but not power loss.
    NoSync,
    /// The same as `sync`.
    Adaptive,
}

/// When segment checksums are verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum Verify {
    /// All checksums are verified when the database is opened.
    Open,
    /// A column's checksums are verified when the column is first read.
    #[default]
    First,
    /// Checksums are never verified.
    Off,
}

/// A configuration key as shown by SHOW PARAMETERS.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Setting {
    /// The key's name.
    pub key: String,
    /// The environment variable that sets the key.
    pub environment_variable: String,
    /// The effective value; for a secret, only whether it is set.
    pub value: String,
    /// `default`, `conf`, `env`, `set` or `file`.
    pub source: String,
    /// Whether the value is a secret.
    pub sensitive: bool,
    /// Whether a configuration reload applies changes to the key.
    pub reloadable: bool,
}
