//! Jobs that remove rows permanently hidden by EXPIRE ROWS.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_catalog::{ExpirePolicy, IncrementalView, RecordKind};
use tidemark_storage::{RecordsVersion, Snapshot, TableId};

use crate::jobs::progress::JobProgress;
use crate::jobs::{JobKind, JobReport};

/// The job kind in `jobs()`.
const CLEANUP: &str = "cleanup";
/// An open database's EXPIRE ROWS policies.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    pub(super) views: Mutex<HashMap<TableId, CleanupJob>>,
    pub(super) last_scan: Mutex<Option<Instant>>,
    known: Mutex<Option<Known>>,
}

/// The cleanup job of one view.
#[derive(Debug, Default)]
pub(super) struct CleanupJob {
    pub(super) progress: JobProgress,
    /// The last recorded policy.
    policy: Option<ExpirePolicy>,
}

impl CleanupJob {
    /// Records the current policy. After a policy change, no rows are removed until the new
    /// interval has elapsed once, so that a mistake can be undone.
    pub(super) fn know(&mut self, policy: &ExpirePolicy) {
        if self.policy.as_ref() != Some(policy) {
            self.policy = Some(policy.clone());
            self.progress.pause(Duration::from_secs(policy.cleanup.seconds()));
        }
    }
}

/// The views with a policy, as of one version of the records.
type Known = (RecordsVersion, Arc<Vec<IncrementalView>>);

impl Cleanup {
    /// Returns the views with a policy. Reads the views again only if a view was created, altered
    /// or dropped.
    pub(super) fn with_policy(&self, snapshot: &Snapshot) -> Arc<Vec<IncrementalView>> {
        let version = snapshot.records_version(RecordKind::MaterializedView.name());
        let mut known = self.known.lock();
        if let Some((_, views)) = known.as_ref().filter(|(known, _)| *known == version) {
            return Arc::clone(views);
        }
        let views = IncrementalView::all(snapshot).filter(|view| view.expire.is_some());
        let views = Arc::new(views.collect::<Vec<_>>());
        *known = Some((version, Arc::clone(&views)));
        views
    }
}

impl JobKind for Cleanup {
    fn is(&self, kind: &str) -> bool {
        kind == CLEANUP
    }

    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport> {
        let views = self.views.lock();
        let report = |(id, job): (&TableId, &CleanupJob)| {
            let table = snapshot.table_by_id(*id)?;
            Some(job.progress.report(CLEANUP, table.schema().name.clone()))
        };
        views.iter().filter_map(report).collect()
    }

    fn pause(&self, snapshot: &Snapshot, (_, view): (&str, &str), is_paused: bool) -> bool {
        let table = snapshot.table(view).map(|table| table.schema().id);
        let has_policy = |id: &TableId| {
            IncrementalView::of(snapshot, *id).is_some_and(|view| view.expire.is_some())
        };
        let Some(id) = table.filter(has_policy) else { return false };
        self.views.lock().entry(id).or_default().progress.is_paused = is_paused;
        true
    }
}
