//! Engine counters.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Number of statements executed.
    pub(crate) statements: Counter,
    /// Number of executed statements that ran in a connection handoff.
    pub(crate) fast_path_statements: Counter,
    /// Number of executed statements that returned a cached result.
    pub(crate) cached_results: Counter,
    /// Number of statements that failed.
    pub(crate) failures: Counter,
    /// Number of rows encoded for clients.
    pub(crate) rows_returned: Counter,
    /// Number of rows written.
    pub(crate) rows_written: Counter,
    /// Number of times that the changes to a view's base table were read.
    pub(crate) view_base_reads: Counter,
    /// Bytes received by appenders.
    pub(crate) bytes_imported: Counter,
}

/// Current values.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// Number of running or waiting queries.
    pub(crate) running_queries: usize,
    /// Number of queries waiting for a scheduling slot.
    pub(crate) waiting_queries: usize,
    /// Bytes used by queries.
    pub(crate) query_memory_bytes: usize,
    /// Maximum memory that queries may use, in bytes.
    pub(crate) query_memory_limit_bytes: usize,
    /// Size in bytes of the queries' temporary files.
    pub(crate) spilled_bytes: u64,
    /// The process's resident memory in bytes, excluding mapped files.
    pub(crate) resident_bytes: u64,
    /// Size in bytes of rows that exist only in memory and the log.
    pub(crate) unwritten_bytes: u64,
    /// Number of rows written by checkpoints since startup.
    pub(crate) checkpointed_rows: u64,
    /// Number of damaged tables.
    pub(crate) damaged_tables: usize,
}

/// A monotonic counter.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the current value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Returns the values under the names that TypeScript exposes. Each name ends with its unit.
    pub(crate) fn to_json(&self, gauges: &Gauges) -> serde_json::Value {
        serde_json::json!({
            "statements_total": self.statements.get(),
            "fast_path_statements_total": self.fast_path_statements.get(),
            "cached_results_total": self.cached_results.get(),
            "statement_failures_total": self.failures.get(),
            "rows_returned_total": self.rows_returned.get(),
            "rows_written_total": self.rows_written.get(),
            "checkpointed_rows_total": gauges.checkpointed_rows,
            "imported_bytes_total": self.bytes_imported.get(),
            "running_queries": gauges.running_queries,
            "waiting_queries": gauges.waiting_queries,
            "query_memory_bytes": gauges.query_memory_bytes,
            "query_memory_limit_bytes": gauges.query_memory_limit_bytes,
            "spilled_bytes": gauges.spilled_bytes,
            "resident_bytes": gauges.resident_bytes,
            "unwritten_bytes": gauges.unwritten_bytes,
            "view_base_reads_total": self.view_base_reads.get(),
            "damaged_tables": gauges.damaged_tables,
            "dropped_log_lines_total": crate::runtime::log::dropped_lines(),
        })
    }
}
