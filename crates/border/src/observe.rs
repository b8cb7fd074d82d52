//! What the engine tells of itself: counters, damage, log lines.

use serde::Serialize;

use crate::ActiveQuery;

/// What `observe` answers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Observed {
    /// Counters and gauges by name.
    #[cfg_attr(test, ts(type = "{ readonly [name: string]: number }"))]
    pub numbers: serde_json::Value,
    /// What is known to be damaged. A table counts as sound until something of it is read.
    pub damages: Vec<Damage>,
    /// The running queries, oldest first.
    pub queries: Vec<ActiveQuery>,
}

/// Something in the root that is not as it was written.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Damage {
    /// The table's name; its number where its definition is lost; empty without a table.
    pub table: String,
    /// The file and what is wrong with it.
    pub what: String,
}

/// One event.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LogLine {
    /// Its level.
    pub level: LogLevel,
    /// The crate or part it comes from.
    pub component: &'static str,
    /// What happened.
    pub event: &'static str,
    /// Ids, durations in milliseconds, names.
    #[cfg_attr(test, ts(type = "{ readonly [name: string]: unknown }"))]
    pub fields: serde_json::Value,
}

/// How bad an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LogLevel {
    /// Someone must act.
    Error,
    /// Degraded.
    Warn,
    /// Lifecycle.
    Info,
    /// Statements.
    Debug,
}
