//! The jobs that remove what EXPIRE ROWS hides for good.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;
use tidemark_catalog::MaterializedView;
use tidemark_storage::{Snapshot, TableId};

use crate::jobs::progress::JobProgress;
use crate::jobs::{JobKind, JobReport};

/// As `jobs()` names it.
const CLEANUP: &str = "cleanup";
/// The policies of views while the database is open.
#[derive(Debug, Default)]
pub(crate) struct Cleanup {
    pub(super) views: Mutex<HashMap<TableId, JobProgress>>,
    pub(super) looked: Mutex<Option<Instant>>,
}

impl JobKind for Cleanup {
    fn is(&self, kind: &str) -> bool {
        kind == CLEANUP
    }

    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport> {
        let views = self.views.lock();
        let report = |(id, job): (&TableId, &JobProgress)| {
            let table = snapshot.table_by_id(*id)?;
            Some(job.report(CLEANUP, table.schema().name.clone()))
        };
        views.iter().filter_map(report).collect()
    }

    fn pause(&self, snapshot: &Snapshot, (_, view): (&str, &str), is_paused: bool) -> bool {
        let table = snapshot.table(view).map(|table| table.schema().id);
        let has_policy = |id: &TableId| {
            MaterializedView::of(snapshot, *id).is_some_and(|view| view.expire.is_some())
        };
        let Some(id) = table.filter(has_policy) else { return false };
        self.views.lock().entry(id).or_default().is_paused = is_paused;
        true
    }
}
