//! Counters of the engine.

use std::sync::atomic::{AtomicU64, Ordering};

/// Everything counted, since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Statements executed.
    pub(crate) statements: Counter,
    /// Those of them that a handoff of their connection executed.
    pub(crate) fast_path_statements: Counter,
    /// Those of them whose result was cached for their values.
    pub(crate) cached_results: Counter,
    /// Statements that failed.
    pub(crate) failures: Counter,
    /// Rows encoded for clients.
    pub(crate) rows_returned: Counter,
    /// Rows written.
    pub(crate) rows_written: Counter,
    /// How often it was read what was touched of the bases of views.
    pub(crate) view_base_reads: Counter,
    /// Bytes taken by appenders.
    pub(crate) bytes_imported: Counter,
}

/// What is so at the moment.
#[derive(Debug)]
pub(crate) struct Gauges {
    /// Queries that run or wait.
    pub(crate) running_queries: usize,
    /// Queries that wait for a turn.
    pub(crate) waiting_queries: usize,
    /// Bytes that queries hold.
    pub(crate) query_memory_bytes: usize,
    /// Bytes that queries may hold.
    pub(crate) query_memory_limit_bytes: usize,
    /// Bytes that queries keep in temporary files.
    pub(crate) spilled_bytes: u64,
    /// Bytes of the process that are no mapped file's.
    pub(crate) resident_bytes: u64,
    /// Bytes of rows that only memory and the log hold.
    pub(crate) unwritten_bytes: u64,
    /// Rows that checkpoints wrote since the start.
    pub(crate) checkpointed_rows: u64,
    /// Tables that are damaged.
    pub(crate) damaged_tables: usize,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`.
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// The present value.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Metrics {
    /// Names as TypeScript exposes them, units last.
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
