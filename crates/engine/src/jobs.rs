//! Work in the background as `jobs()` tells it: each of its kinds reports here.

use tidemark_storage::WorkReport;

/// The kind of the jobs that keep materialized views current.
pub(crate) const REFRESH: &str = "refresh";

/// How a job fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// It works.
    Running,
    /// It has nothing to do, or rests.
    Waiting,
    /// It failed and will be tried again.
    Failing,
    /// It is switched off, or was paused by a client.
    Paused,
    /// It will not run until what it needs is mended.
    Stopped,
}

impl JobState {
    /// As `jobs()` shows it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failing => "failing",
            Self::Paused => "paused",
            Self::Stopped => "stopped",
        }
    }
}

/// A job at a moment.
#[derive(Debug, Clone)]
pub(crate) struct JobReport {
    /// What it does: `refresh`, `checkpoint`, `expiry`.
    pub(crate) kind: &'static str,
    /// To what: the name of a table, or empty.
    pub(crate) name: String,
    pub(crate) state: JobState,
    pub(crate) last_error: Option<String>,
    /// When it began last, microseconds since 1970.
    pub(crate) last_began_micros: Option<i64>,
    /// How long that took.
    pub(crate) last_took_micros: i64,
    /// Not before then, microseconds since 1970.
    pub(crate) next_micros: Option<i64>,
    /// How often it ran since the start.
    pub(crate) runs: u64,
    /// How often it failed since it last did well.
    pub(crate) failures: u64,
}

impl JobReport {
    /// Work of the storage's own thread.
    pub(crate) fn of_storage(kind: &'static str, report: WorkReport) -> Self {
        Self {
            kind,
            name: String::new(),
            state: match report {
                WorkReport { is_paused: true, .. } => JobState::Paused,
                WorkReport { failures: 1.., .. } => JobState::Failing,
                _ => JobState::Waiting,
            },
            last_error: report.last_error,
            last_began_micros: (report.runs > 0).then_some(report.began_micros),
            last_took_micros: report.took.as_micros() as i64,
            next_micros: None,
            runs: report.runs,
            failures: report.failures,
        }
    }
}
