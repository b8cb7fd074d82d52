//! Status of the storage's background work, for `jobs()`.

use std::time::Duration;

/// Status of one kind of background work since startup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkReport {
    /// Start of the last run, in microseconds since 1970.
    pub began_micros: i64,
    /// Duration of the last run.
    pub took: Duration,
    /// Total duration of all runs.
    pub total: Duration,
    /// Number of runs.
    pub runs: u64,
    /// Number of consecutive failures.
    pub failures: u64,
    /// Error from the last run; `None` if it succeeded.
    pub last_error: Option<String>,
    /// Whether a client has paused the work.
    pub is_paused: bool,
}
