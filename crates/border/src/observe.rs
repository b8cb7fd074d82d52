//! Engine monitoring: counters, damage and log lines.

use serde::Serialize;

use crate::ActiveQuery;

/// Result of `observe`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Observed {
    /// Counters and gauges by name.
    #[cfg_attr(test, ts(type = "{ readonly [name: string]: number }"))]
    pub numbers: serde_json::Value,
    /// Known damage. A table counts as intact until one of its damaged files is read.
    pub damages: Vec<Damage>,
    /// The running queries, oldest first.
    pub queries: Vec<ActiveQuery>,
}

/// Damage in the root directory: a file differs from what the engine wrote.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct Damage {
    /// The table's name; its id if the definition is lost; empty if no table is affected.
    pub table: String,
    /// The damaged file and the error.
    pub what: String,
}

/// A log event.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct LogLine {
    /// Its level.
    pub level: LogLevel,
    /// The crate or component that logged the event.
    pub component: &'static str,
    /// What happened.
    pub event: &'static str,
    /// Additional event data: ids, names and durations in milliseconds.
    #[cfg_attr(test, ts(type = "{ readonly [name: string]: unknown }"))]
    pub fields: serde_json::Value,
}

/// Event severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS))]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// The service is degraded.
    Warn,
    /// Lifecycle event.
    Info,
    /// Statement event.
    Debug,
}
