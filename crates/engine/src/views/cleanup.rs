//! EXPIRE ROWS: at every CLEANUP EVERY interval, removes the rows that a policy hides permanently.
//!
//! A policy hides rows permanently if they are older than a time that only advances. Other policies
//! may show hidden rows again, so these rows are retained.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_catalog::{IncrementalState, IncrementalView};
use tidemark_planner::Planner;
use tidemark_storage::{Change, Snapshot, TimeRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use super::cleanup_jobs::{Cleanup, CleanupJob};
use crate::database::Database;
use crate::jobs::Scheduled;
use crate::runtime::guard;

/// Interval between scans of the views.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);

impl Scheduled<Database> for Cleanup {
    fn begin_due(self: Arc<Self>, database: &Arc<Database>, snapshot: &Arc<Snapshot>) {
        let mut looked = self.last_scan.lock();
        if looked.is_some_and(|looked| looked.elapsed() < SCAN_INTERVAL) {
            return;
        }
        *looked = Some(Instant::now());
        drop(looked);
        let with_policy = self.with_policy(snapshot);
        let mut views = self.views.lock();
        views.retain(|id, _| with_policy.iter().any(|view| view.table == *id));
        for view in with_policy.iter() {
            let Some(policy) = &view.expire else { continue };
            let every = Duration::from_secs(policy.cleanup.seconds());
            let job = views.entry(view.table).or_default();
            job.know(policy);
            if !job.progress.may_begin() {
                continue;
            }
            job.progress.begin();
            let (cleanup, view, id) = (Arc::clone(&self), view.clone(), view.table);
            let (owner, snapshot) = (Arc::clone(database), Arc::clone(snapshot));
            database.handle().spawn(async move {
                let work = clean(&owner, &snapshot, &view);
                let outcome = guard::catch_async("cleanup", work).await;
                drop(owner);
                let mut views = cleanup.views.lock();
                let Some(CleanupJob { progress: job, .. }) = views.get_mut(&id) else { return };
                job.end();
                match outcome {
                    Ok(()) => {
                        job.succeeded();
                        job.pause(every);
                    }
                    // A concurrent refresh changed the view's state. The next scan tries again.
                    Err(EngineError { code: ErrorCode::Replan, .. }) => {}
                    Err(error) => job.failed(error),
                }
            });
        }
    }
}

/// Removes the rows that a view hides permanently. The same commit updates the view's state.
async fn clean(
    database: &Arc<Database>,
    snapshot: &Arc<Snapshot>,
    view: &IncrementalView,
) -> EngineResult<()> {
    let id = view.table;
    let context = database.bind_context(&view.owner.name);
    let since = Planner::shown_since(view, snapshot, &context)?;
    let first = snapshot.table_by_id(id).and_then(|table| table.time_bounds());
    let Some(since) = since.filter(|since| first.is_some_and(|first| first.0 < *since)) else {
        return Ok(());
    };
    let changes = vec![
        IncrementalState::expect(snapshot, id),
        IncrementalState::of(snapshot, id).put(id)?,
        Change::Clear { table: id, ranges: vec![TimeRange { lo: i64::MIN, hi: since }] },
    ];
    let storage = Arc::clone(&database.storage);
    guard::run_blocking("commit", move || storage.commit(changes).map(|_| ())).await
}
