//! Background jobs. A single loop, in `open/mod.rs`, starts due jobs. The function `jobs()` lists
//! them; `pause_job` and `resume_job` pause and resume them. Each kind of job is a [`JobKind`]; the
//! state of one job is a [`JobProgress`](progress::JobProgress).
//!
//! The storage's own thread flushes, checkpoints and expires data. It must be able to do so even if
//! no engine loop is running, for example when a checkpoint is required because memory is full.
//! These jobs are listed and paused like all others.

pub(crate) mod policies;
pub(crate) mod progress;

use std::fmt;
use std::sync::Arc;

use tidemark_storage::{Snapshot, Storage, WorkReport};

/// A kind of background job.
pub(crate) trait JobKind: fmt::Debug + Send + Sync {
    /// Whether `jobs()` shows this kind under the name `kind`. All jobs that [`JobKind::reports`]
    /// returns are of this kind.
    fn is(&self, kind: &str) -> bool;

    /// Returns the current state of all jobs of this kind.
    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport>;

    /// Pauses or resumes a job; returns false if no job has this name. A pause lasts until the job
    /// is resumed or the database is reopened. A running job is not interrupted.
    fn pause(&self, snapshot: &Snapshot, job: (&str, &str), is_paused: bool) -> bool;
}

/// A kind of job that the loop starts for a database of type `D`.
pub(crate) trait Scheduled<D>: JobKind {
    /// Starts the jobs that are due. Called many times per second, so it must not block.
    fn begin_due(self: Arc<Self>, database: &Arc<D>, snapshot: &Arc<Snapshot>);
}

/// All kinds of background jobs.
#[derive(Debug)]
pub(crate) struct Jobs {
    kinds: Vec<Arc<dyn JobKind>>,
    storage: Arc<Storage>,
}

impl Jobs {
    /// Creates the list of scheduled jobs and storage jobs.
    pub(crate) fn new<D>(storage: &Arc<Storage>, scheduled: &[Arc<dyn Scheduled<D>>]) -> Arc<Self>
    where
        D: 'static,
    {
        let mut kinds: Vec<Arc<dyn JobKind>> = Vec::new();
        kinds.extend(scheduled.iter().map(|kind| Arc::clone(kind) as Arc<dyn JobKind>));
        kinds.push(Arc::new(StorageWork(Arc::clone(storage))));
        Arc::new(Self { kinds, storage: Arc::clone(storage) })
    }

    /// Returns the current state of all jobs.
    pub(crate) fn reports(&self) -> Vec<JobReport> {
        let snapshot = self.storage.snapshot();
        self.kinds.iter().flat_map(|kind| kind.reports(&snapshot)).collect()
    }

    /// Pauses or resumes a job; returns false if no job has this kind and name.
    pub(crate) fn pause(&self, kind: &str, name: &str, is_paused: bool) -> bool {
        let snapshot = self.storage.snapshot();
        let mut kinds = self.kinds.iter().filter(|known| known.is(kind));
        kinds.any(|known| known.pause(&snapshot, (kind, name), is_paused))
    }
}

/// Jobs of the storage's own thread: `checkpoint`, `expiry`.
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

/// A job's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// The job is running.
    Running,
    /// The job has nothing to do or waits for its next start.
    Waiting,
    /// The job failed and will be retried.
    Failing,
    /// The job is disabled, or a client paused it.
    Paused,
    /// The job does not run until its input is repaired.
    Stopped,
}

impl JobState {
    /// Returns the name shown by `jobs()`.
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

/// A job's state at one point in time.
#[derive(Debug, Clone)]
pub(crate) struct JobReport {
    /// The kind: `refresh`, `policy`, `checkpoint`, `expiry`.
    pub(crate) kind: &'static str,
    /// Name of the table that the job processes; may be empty.
    pub(crate) name: String,
    pub(crate) state: JobState,
    pub(crate) last_error: Option<String>,
    /// Start time of the last run, in microseconds since 1970.
    pub(crate) last_began_micros: Option<i64>,
    /// Duration of the last run, in microseconds.
    pub(crate) last_took_micros: i64,
    /// Total duration of all runs since startup, in microseconds.
    pub(crate) total_micros: i64,
    /// Earliest start of the next run, in microseconds since 1970.
    pub(crate) next_micros: Option<i64>,
    /// Number of runs since startup.
    pub(crate) runs: u64,
    /// Number of consecutive failures.
    pub(crate) failures: u64,
}

impl JobReport {
    /// Creates the report for a job that runs on the storage's own thread.
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
