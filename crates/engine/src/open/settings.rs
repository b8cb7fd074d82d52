//! Converts database options and their defaults into component settings.

use std::sync::Arc;
use std::time::Duration;

use tidemark_border::{self as border, OpenOptions};
use tidemark_planner::LiveSettings;
use tidemark_storage::{CommitMode, StorageOptions, TableDefaults, Verify};

use crate::runtime::admission::AdmissionLimits;
use crate::runtime::metrics::Metrics;
use crate::runtime::pool::SharedPool;
use crate::views::progress::Refresher;

/// Process memory divided by this number is the limit for recent changes to followed tables.
const RECENT_CHANGES_DIVISOR: u64 = 64;
/// Process memory divided by this number is the limit for the state that views retain between
/// refreshes. The limit is also capped at a fixed number of bytes.
const VIEW_STATE_DIVISOR: u64 = 32;
const VIEW_STATE_BYTES: usize = 256 << 20;
/// Default time in milliseconds that a statement waits for admission.
const QUEUE_WAIT_MS: u64 = 10_000;
/// Default maximum number of statements waiting for admission.
const QUEUE_LIMIT: usize = 256;
/// By default, the memory pool divided by this number is the limit for one query.
const QUERY_MEMORY_DIVISOR: u64 = 4;
/// By default, process memory divided by this number is the limit for rows that exist only in
/// memory and the log.
const UNWRITTEN_ROWS_DIVISOR: u64 = 8;
/// Lower bound for the default number of concurrent queries.
const MIN_CONCURRENT_QUERIES: usize = 4;

pub(super) fn storage_options(options: &OpenOptions, total: u64) -> StorageOptions {
    let defaults = StorageOptions::default();
    StorageOptions {
        commit_mode: commit_mode(options.commit_mode.unwrap_or_default()),
        ttl_by_clock: options.ttl_by_clock.unwrap_or(true),
        keep_generations: options.keep_generations.unwrap_or(2),
        verify: verify(options.verify.unwrap_or_default()),
        disk_watermark_bytes: options.disk_watermark_bytes,
        disk_reserve_bytes: options.disk_reserve_bytes.unwrap_or(64 << 20),
        unwritten_limit_bytes: options
            .unwritten_limit_bytes
            .unwrap_or(total / UNWRITTEN_ROWS_DIVISOR),
        max_tables: options.max_tables.unwrap_or(defaults.max_tables),
        max_partitions: options.max_partitions.unwrap_or(defaults.max_partitions),
        max_columns: options.max_columns.unwrap_or(defaults.max_columns),
        max_cell_bytes: options.max_cell_bytes.unwrap_or(defaults.max_cell_bytes),
        max_array_elements: options.max_array_elements.unwrap_or(defaults.max_array_elements),
        recent_changes_bytes: options.recent_changes_bytes.unwrap_or_else(|| {
            let limit = usize::try_from(total / RECENT_CHANGES_DIVISOR).unwrap_or(usize::MAX);
            limit.min(defaults.recent_changes_bytes)
        }),
        ..defaults
    }
}

fn commit_mode(of: border::CommitMode) -> CommitMode {
    match of {
        border::CommitMode::Sync | border::CommitMode::Adaptive => CommitMode::Sync,
        border::CommitMode::Async => CommitMode::Async,
        border::CommitMode::NoSync => CommitMode::NoSync,
    }
}

fn verify(of: border::Verify) -> Verify {
    match of {
        border::Verify::Open => Verify::Open,
        border::Verify::First => Verify::First,
        border::Verify::Off => Verify::Off,
    }
}

/// Creates the query memory pool. By default, the pool is half of the memory, and each query may
/// use a quarter of the pool.
pub(super) fn query_memory(options: &OpenOptions, total: u64) -> Arc<SharedPool> {
    let pool = options.memory_limit_bytes.unwrap_or(total / 2);
    let query = options.query_memory_limit_bytes.unwrap_or(pool / QUERY_MEMORY_DIVISOR);
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    SharedPool::new(bytes(pool), bytes(query))
}

pub(super) fn admission_limits(options: &OpenOptions, workers: usize) -> AdmissionLimits {
    let running = options
        .max_concurrent_queries
        .map_or_else(|| (2 * workers).max(MIN_CONCURRENT_QUERIES), |running| running.max(1));
    AdmissionLimits {
        running,
        queue: options.max_waiting_queries.unwrap_or(QUEUE_LIMIT),
        wait: Duration::from_millis(options.queue_wait_ms.unwrap_or(QUEUE_WAIT_MS)),
    }
}

pub(super) fn table_defaults(options: &OpenOptions) -> TableDefaults {
    let usual = TableDefaults::default();
    TableDefaults {
        max_uncommitted_rows: options.max_uncommitted_rows.unwrap_or(usual.max_uncommitted_rows),
        o3_max_lag_micros: options
            .o3_max_lag_ms
            .map_or(usual.o3_max_lag_micros, |ms| ms.saturating_mul(1000)),
    }
}

pub(super) fn live_settings(options: &OpenOptions) -> LiveSettings {
    let usual = LiveSettings::default();
    LiveSettings {
        is_enabled: options.live_views.unwrap_or(usual.is_enabled),
        max_in_memory_micros: options.live_view_memory_micros.unwrap_or(usual.max_in_memory_micros),
    }
}

/// Creates the view refresher together with the database's counters, some of which the refresher
/// updates.
pub(super) fn refresher(
    options: &OpenOptions,
    workers: usize,
    total: u64,
) -> (Arc<Refresher>, Arc<Metrics>) {
    let metrics = Arc::default();
    let follows = (options.refresh_views.unwrap_or(true), live_settings(options).is_enabled);
    let most_bytes = options.view_state_bytes.unwrap_or_else(|| {
        let limit = usize::try_from(total / VIEW_STATE_DIVISOR).unwrap_or(usize::MAX);
        limit.min(VIEW_STATE_BYTES)
    });
    (Refresher::new(follows, workers, most_bytes, &metrics), metrics)
}

pub(super) fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
