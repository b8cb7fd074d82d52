//! The jobs that remove what EXPIRE ROWS hides for good.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_catalog::{ExpirePolicy, IncrementalView, RecordKind};
use tidemark_storage::{RecordsVersion, Snapshot, TableId};

use crate::jobs::progress::JobProgress;
use crate::jobs::{JobKind, JobReport};

/// As `jobs()` names it.
const CLEANUP: &str = "cleanup";
/// The policies of views while the database is open.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    pub(super) views: Mutex<HashMap<TableId, CleanupJob>>,
    pub(super) looked: Mutex<Option<Instant>>,
    known: Mutex<Option<Known>>,
}

/// The job of one view.
#[derive(Debug, Default)]
pub(super) struct CleanupJob {
    pub(super) progress: JobProgress,
    /// The policy that it knows.
    policy: Option<ExpirePolicy>,
}

impl CleanupJob {
    /// The policy that counts now. Of another one nothing is removed before its time has passed
    /// once: so long a mistake can be taken back.
    pub(super) fn know(&mut self, policy: &ExpirePolicy) {
        if self.policy.as_ref() != Some(policy) {
            self.policy = Some(policy.clone());
            self.progress.rest(Duration::from_secs(policy.cleanup.seconds()));
        }
    }
}

/// The views with a policy, as some records have them.
type Known = (RecordsVersion, Arc<Vec<IncrementalView>>);

impl Cleanup {
    /// The views of a snapshot with a policy: read again where a view was made, altered or dropped.
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
