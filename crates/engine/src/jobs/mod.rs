//! Work in the background: one loop, in `open.rs`, begins what is due, `jobs()` lists it,
//! `pause_job` and `resume_job` switch it. Each kind of work is a [`JobKind`]; what is known of one
//! of its jobs is a [`JobProgress`](progress::JobProgress).
//!
//! The storage's own thread flushes, checkpoints and expires: that has to go on where no loop of
//! the engine does, such as in a checkpoint that a full memory waits for. It is listed and paused
//! with the rest.

pub(crate) mod policies;
pub(crate) mod progress;

use std::fmt;
use std::sync::Arc;

use tidemark_storage::{Snapshot, Storage, WorkReport};

/// A kind of work in the background.
pub(crate) trait JobKind: fmt::Debug + Send + Sync {
    /// As `jobs()` names it; [`JobKind::reports`] has no other.
    fn is(&self, kind: &str) -> bool;

    /// Its jobs at the moment.
    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport>;

    /// Lets a job rest until it is resumed, or the database is opened again; false where there is
    /// none of this name. What is under way ends as usual.
    fn pause(&self, snapshot: &Snapshot, job: (&str, &str), is_paused: bool) -> bool;
}

/// A kind of work that the loop begins, for the database `D`.
pub(crate) trait Scheduled<D>: JobKind {
    /// Begins what is due, if a job has anything to do. It is asked many times a second, and waits
    /// for nothing.
    fn begin_due(self: Arc<Self>, database: &Arc<D>, snapshot: &Arc<Snapshot>);
}

/// All kinds of work in the background.
#[derive(Debug)]
pub(crate) struct Jobs {
    kinds: Vec<Arc<dyn JobKind>>,
    storage: Arc<Storage>,
}

impl Jobs {
    /// What is scheduled, and what the storage does.
    pub(crate) fn new<D>(storage: &Arc<Storage>, scheduled: &[Arc<dyn Scheduled<D>>]) -> Arc<Self>
    where
        D: 'static,
    {
        let mut kinds: Vec<Arc<dyn JobKind>> = Vec::new();
        kinds.extend(scheduled.iter().map(|kind| Arc::clone(kind) as Arc<dyn JobKind>));
        kinds.push(Arc::new(StorageWork(Arc::clone(storage))));
        Arc::new(Self { kinds, storage: Arc::clone(storage) })
    }

    /// All jobs at the moment.
    pub(crate) fn reports(&self) -> Vec<JobReport> {
        let snapshot = self.storage.snapshot();
        self.kinds.iter().flat_map(|kind| kind.reports(&snapshot)).collect()
    }

    /// Lets a job rest, or go on; false where there is none of this kind and name.
    pub(crate) fn pause(&self, kind: &str, name: &str, is_paused: bool) -> bool {
        let snapshot = self.storage.snapshot();
        let mut kinds = self.kinds.iter().filter(|known| known.is(kind));
        kinds.any(|known| known.pause(&snapshot, (kind, name), is_paused))
    }
}

/// What the storage's own thread does: `checkpoint`, `expiry`.
#[derive(Debug)]
struct StorageWork(Arc<Storage>);

impl JobKind for StorageWork {
    fn is(&self, kind: &str) -> bool {
        Storage::WORK.contains(&kind)
    }

    fn reports(&self, _: &Snapshot) -> Vec<JobReport> {
        let reports = self.0.work_reports().into_iter();
        reports.map(|(kind, report)| JobReport::of_storage(kind, report)).collect()
    }

    fn pause(&self, _: &Snapshot, (kind, name): (&str, &str), is_paused: bool) -> bool {
        name.is_empty() && self.0.pause_work(kind, is_paused)
    }
}

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
    /// What it does: `refresh`, `policy`, `checkpoint`, `expiry`.
    pub(crate) kind: &'static str,
    /// To what: the name of a table, or empty.
    pub(crate) name: String,
    pub(crate) state: JobState,
    pub(crate) last_error: Option<String>,
    /// When it began last, microseconds since 1970.
    pub(crate) last_began_micros: Option<i64>,
    /// How long that took.
    pub(crate) last_took_micros: i64,
    /// How long all its runs took since the start.
    pub(crate) total_micros: i64,
    /// Not before then, microseconds since 1970.
    pub(crate) next_micros: Option<i64>,
    /// How often it ran since the start.
    pub(crate) runs: u64,
    /// How often it failed since it last did well.
    pub(crate) failures: u64,
}

impl JobReport {
    /// Work of the storage's own thread.
    fn of_storage(kind: &'static str, report: WorkReport) -> Self {
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
            total_micros: report.total.as_micros() as i64,
            next_micros: None,
            runs: report.runs,
            failures: report.failures,
        }
    }
}
