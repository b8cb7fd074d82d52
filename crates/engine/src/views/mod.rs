//! Refreshes materialized and live views.
//!
//! A single task examines commits for changed time ranges of base tables
//! ([`tidemark_storage::Touched`]), once per base regardless of its number of views. Each view with
//! changes gets its own task, and at most one task at a time. This task computes the changed
//! buckets and commits them together with the transaction that they reflect. Writers and readers
//! never wait for it.

mod bases;
mod buckets;
mod cleanup;
pub(crate) mod cleanup_jobs;
mod due;
mod live;
mod live_state;
mod open_groups;
pub(crate) mod progress;
mod refresh;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_catalog::{IncrementalState, IncrementalView, RecordKind};
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::{EngineError, ErrorCode};

use crate::database::Database;
use crate::jobs::Scheduled;
use crate::runtime::guard;
use crate::runtime::log::{self, Level};
use crate::runtime::registry::now_micros;

use self::due::{Done, Due, clock, due};
use self::progress::{Progress, Refresher};
use self::refresh::Refresh;

/// Interval between clock checks while nothing is committed.
const WATCH_CLOCK_EVERY: Duration = Duration::from_millis(250);
/// Rest period of a view that is refreshed on each change, as a multiple of its refresh time. This
/// factor limits the fraction of a core that the view uses, no matter how fast its base changes.
const PAUSE_FACTOR: u32 = 4;
/// Maximum rest period after a refresh.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Maximum rest period after a refresh that read each row only once. Those rows must be read sooner
/// or later, so such a refresh rests only for as long as it ran.
const MAX_PAUSE_ONCE: Duration = Duration::from_millis(100);
/// Maximum total rest time that a view may postpone. This allows the first changes after an idle
/// period to be shown immediately.
const PAUSE_CREDIT: Duration = Duration::from_millis(100);

/// A refresh that is about to start, and its inputs.
struct Next {
    snapshot: Arc<Snapshot>,
    view: Arc<IncrementalView>,
    state: IncrementalState,
    what: Due,
}

impl Refresher {
    /// Starts the due refreshes, up to the concurrency limit. The remaining refreshes start later,
    /// in the order they became due.
    fn begin_needed(self: &Arc<Self>, database: &Arc<Database>, snapshot: &Arc<Snapshot>) {
        let mut views = self.views.lock();
        let mut there = HashSet::new();
        let mut bases = HashSet::new();
        for (key, bytes) in snapshot.records(RecordKind::MaterializedView.name()) {
            let Ok(id) = key.parse::<TableId>() else { continue };
            there.insert(id);
            let progress = views.entry(id).or_default();
            if !progress.is_ready && self.due_work(progress, (id, bytes), snapshot).is_some() {
                progress.is_ready = true;
                self.ready.lock().push_back(id);
            }
            bases.extend(progress.known.as_ref().map(|(_, view)| view.base));
        }
        views.retain(|id, _| there.contains(id));
        drop(views);
        self.bases.retain(&bases);
        self.begin(database);
    }

    /// Returns the refresh that a view needs, if the view may be refreshed now.
    fn due_work(
        &self,
        progress: &mut Progress,
        (id, bytes): (TableId, &[u8]),
        snapshot: &Snapshot,
    ) -> Option<(Arc<IncrementalView>, IncrementalState, Due)> {
        let view = progress.definition(snapshot, (id, bytes))?;
        progress.heed_request(snapshot, id);
        if !progress.job.may_begin() {
            return None;
        }
        let is_live = view.live.is_some();
        if !self.follows(view.form()) || IncrementalView::refusal(snapshot, id).is_some() {
            return None;
        }
        let state = IncrementalState::of(snapshot, id);
        let last = self.bases.touched(snapshot, view.base).map(|touched| touched.last);
        let what = match &state.invalid {
            _ if state.suspended => None,
            None if is_live && state.seed_target.is_some() => Some(Due::Changed),
            _ if is_live && progress.is_other(&view, &state, snapshot) => Some(Due::Changed),
            _ => due(&view, &state, last, now_micros()),
        };
        let is_idle = progress.idle_at == Some((last.unwrap_or(0), clock(&view)));
        let what = what.filter(|what| *what != Due::Changed || !is_idle)?;
        Some((view, state, what))
    }

    /// Starts waiting refreshes, up to the concurrency limit.
    fn begin(self: &Arc<Self>, database: &Arc<Database>) {
        while !self.ready.lock().is_empty() {
            let Ok(turn) = Arc::clone(&self.slots).try_acquire_owned() else { return };
            let Some(next) = self.next(database) else { continue };
            let (refresher, database) = (Arc::clone(self), Arc::clone(database));
            let handle = database.handle().clone();
            handle.spawn(async move {
                refresher.run(&database, next).await;
                drop(turn);
                refresher.begin(&database);
            });
        }
    }

    /// Takes the first waiting view. Marks it as running if it still needs a refresh.
    fn next(&self, database: &Database) -> Option<Next> {
        let id = self.ready.lock().pop_front()?;
        let mut views = self.views.lock();
        // The lock on the views is held while the refresh starts, because other threads determine
        // which change records are still needed.
        let snapshot = database.snapshot().ok()?;
        let progress = views.get_mut(&id)?;
        progress.is_ready = false;
        let bytes = snapshot.record(RecordKind::MaterializedView.name(), &id.to_string())?;
        let (view, state, what) = self.due_work(progress, (id, bytes), &snapshot)?;
        progress.running = Some(snapshot.lsn());
        progress.job.begin();
        drop(views);
        Some(Next { snapshot, view, state, what })
    }

    async fn run(&self, database: &Arc<Database>, next: Next) {
        let Next { snapshot, view, state, what } = next;
        let (requests, began) = (state.requests, Instant::now());
        let work = Refresh {
            database,
            refresher: self,
            snapshot: &snapshot,
            view: &view,
            state,
            touched: self.bases.touched(&snapshot, view.base),
            began_micros: now_micros(),
        };
        let outcome = guard::catch_async("refresh", work.run(&what)).await;
        if let Err(error) = &outcome
            && error.code != ErrorCode::Replan
        {
            let table = snapshot.table_by_id(view.table);
            let fields = serde_json::json!({
                "view": table.map(|table| table.schema().name.clone()),
                "message": error.message,
            });
            log::write(Level::Warn, "engine", "refresh_failed", fields);
        }
        let mut views = self.views.lock();
        let Some(progress) = views.get_mut(&view.table) else { return };
        progress.running = None;
        let took = progress.job.end();
        progress.live.repair.is_under_way = false;
        progress.failing_since = outcome.is_err().then(|| progress.failing_since.unwrap_or(began));
        match outcome {
            Ok(done) => {
                progress.job.succeeded();
                progress.job.add_pause(pause_after(done, took), PAUSE_CREDIT);
                let touched = self.bases.touched(&snapshot, view.base);
                let last = touched.map_or(0, |touched| touched.last);
                progress.idle_at = (done == Done::Nothing).then(|| (last, clock(&view)));
            }
            // The view's record changed during the refresh. The next refresh uses the new record.
            Err(EngineError { code: ErrorCode::Replan, .. }) => {}
            Err(error) => {
                progress.live.failures += 1;
                progress.failed_requests = requests;
                progress.job.failed(error);
            }
        }
    }
}

/// Returns how long a view rests after a refresh.
fn pause_after(done: Done, took: Duration) -> Duration {
    match done {
        Done::Once => took.min(MAX_PAUSE_ONCE),
        Done::Nothing | Done::Again => (took * PAUSE_FACTOR).min(MAX_PAUSE),
    }
}

impl Scheduled<Database> for Refresher {
    fn begin_due(self: Arc<Self>, database: &Arc<Database>, snapshot: &Arc<Snapshot>) {
        let has_rested = self.has_rested();
        let mut looked = self.last_poll.lock();
        let is_new = snapshot.epoch() != looked.0 || has_rested;
        if !is_new && looked.1.elapsed() < WATCH_CLOCK_EVERY {
            return;
        }
        *looked = (snapshot.epoch(), Instant::now());
        drop(looked);
        self.begin_needed(database, snapshot);
    }
}
