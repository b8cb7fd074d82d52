//! Counters of the engine.

use std::sync::atomic::{AtomicU64, Ordering};

/// Everything counted, since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Statements executed.
    pub(crate) statements: Counter,
    /// Statements that failed.
    pub(crate) failures: Counter,
    /// Rows encoded for clients.
    pub(crate) rows_returned: Counter,
    /// Rows written.
    pub(crate) rows_written: Counter,
    /// Bytes taken by appenders.
    pub(crate) bytes_imported: Counter,
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
    pub(crate) fn to_json(
        &self,
        running_queries: usize,
        damaged_tables: usize,
    ) -> serde_json::Value {
        serde_json::json!({
            "statements_total": self.statements.get(),
            "statement_failures_total": self.failures.get(),
            "rows_returned_total": self.rows_returned.get(),
            "rows_written_total": self.rows_written.get(),
            "imported_bytes_total": self.bytes_imported.get(),
            "running_queries": running_queries,
            "damaged_tables": damaged_tables,
            "dropped_log_lines_total": crate::log::dropped_lines(),
        })
    }
}
