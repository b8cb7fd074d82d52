//! How the storage's own work fares, for `jobs()`.

use std::time::Duration;

/// How one kind of work of the storage's own thread fares, since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// When it began last, microseconds since 1970.
    pub began_micros: i64,
    /// How long that took.
    pub took: Duration,
    /// How long all its runs took.
    pub total: Duration,
    /// How often it ran.
    pub runs: u64,
    /// How often it failed since it last did well.
    pub failures: u64,
    /// Why it failed last; none when it did well since.
    pub last_error: Option<String>,
    /// Whether a client paused it.
    pub is_paused: bool,
}
