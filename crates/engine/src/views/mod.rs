//! Materialized views kept current.
//!
//! One task looks at what was committed: which stretches of time of which base tables were touched
//! ([`tidemark_storage::Touched`]): a hundred views over one base cost one look. A view that has
//! something to do gets a task of its own, one at a time, which computes the buckets that were
//! touched and commits them together with the transaction up to which they are right. Writers and
//! readers never wait for it.

mod cleanup;
pub(crate) mod cleanup_jobs;
mod due;
mod live;
mod live_state;
pub(crate) mod progress;
mod refresh;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidemark_catalog::{LiveView, MaterializedState, MaterializedView};
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::{EngineError, ErrorCode};

use crate::database::Database;
use crate::guard;
use crate::jobs::Scheduled;
use crate::log::{self, Level};
use crate::registry::now_micros;

use self::due::{Due, clock, due};
use self::progress::Refresher;

/// How often a view that waits for its turn asks for it.
const TURN_EVERY: Duration = Duration::from_millis(10);
/// How often the clock is looked at, where nothing was committed.
const WATCH_CLOCK_EVERY: Duration = Duration::from_millis(250);
/// A view that follows each change rests so many times as long as its last refresh took: what it
/// takes of one core is bounded by that, however fast its base changes.
const REST: u32 = 4;
/// It rests no longer than that.
const LONGEST_REST: Duration = Duration::from_secs(5);

impl Refresher {
    /// Lets each view begin what it has to do now.
    fn look(self: &Arc<Self>, database: &Arc<Database>, snapshot: &Arc<Snapshot>) {
        let mut views = self.views.lock();
        let kind = tidemark_catalog::RecordKind::MaterializedView.name();
        let mut begin = Vec::new();
        let mut there = Vec::new();
        for (key, bytes) in snapshot.records(kind) {
            let Ok(id) = key.parse::<TableId>() else { continue };
            there.push(id);
            let progress = views.entry(id).or_default();
            let Some(view) = progress.definition(bytes) else { continue };
            if !progress.job.may_begin() {
                continue;
            }
            let state = MaterializedState::of(snapshot, id);
            let is_live = LiveView::is(snapshot, id);
            let follows = if is_live { database.live.is_enabled } else { self.is_enabled };
            if !follows {
                continue;
            }
            let what = match &state.invalid {
                _ if state.suspended => None,
                None if is_live && state.seed_target.is_some() => Some(Due::Changed),
                _ if is_live && progress.is_other(&view, &state, snapshot) => Some(Due::Changed),
                _ => due(&view, &state, snapshot, now_micros()),
            };
            let Some(what) = what else { continue };
            let last = snapshot.touched(view.base).map_or(0, |touched| touched.last);
            if what == Due::Changed && progress.idle_at == Some((last, clock(&view))) {
                continue;
            }
            let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() else {
                progress.job.rest(TURN_EVERY);
                continue;
            };
            progress.running = Some(snapshot.lsn());
            progress.job.begin();
            begin.push((view, state, what, turn));
        }
        views.retain(|id, _| there.contains(id));
        drop(views);
        for (view, state, what, turn) in begin {
            let (refresher, database) = (Arc::clone(self), Arc::clone(database));
            let snapshot = Arc::clone(snapshot);
            let handle = database.handle().clone();
            handle.spawn(async move {
                refresher.run(&database, &snapshot, view, state, what).await;
                drop(turn);
            });
        }
    }

    async fn run(
        &self,
        database: &Arc<Database>,
        snapshot: &Arc<Snapshot>,
        view: Arc<MaterializedView>,
        state: MaterializedState,
        what: Due,
    ) {
        let (began, began_micros) = (Instant::now(), now_micros());
        let outcome = if LiveView::is(snapshot, view.table) {
            let work = live::refresh(database, self, snapshot, &view, state, began_micros);
            guard::catch_async("refresh", work).await
        } else {
            let work =
                refresh::refresh(database, self, snapshot, &view, state, &what, began_micros);
            guard::catch_async("refresh", work).await
        };
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
        progress.repair.is_under_way = false;
        progress.failing_since = outcome.is_err().then(|| progress.failing_since.unwrap_or(began));
        match outcome {
            Ok(done) => {
                progress.job.succeeded();
                progress.job.rest((took * REST).min(LONGEST_REST));
                let last = snapshot.touched(view.base).map_or(0, |touched| touched.last);
                progress.idle_at = (!done).then(|| (last, clock(&view)));
            }
            // Its record changed meanwhile: what it says now counts.
            Err(EngineError { code: ErrorCode::Replan, .. }) => {}
            Err(error) => {
                progress.all_failures += 1;
                progress.job.failed(error);
            }
        }
    }
}

impl Scheduled<Database> for Refresher {
    fn begin_due(self: Arc<Self>, database: &Arc<Database>, snapshot: &Arc<Snapshot>) {
        let rests = self.rests();
        let mut looked = self.looked.lock();
        let is_new = snapshot.epoch() != looked.0 || rests;
        if !is_new && looked.1.elapsed() < WATCH_CLOCK_EVERY {
            return;
        }
        *looked = (snapshot.epoch(), Instant::now());
        drop(looked);
        self.look(database, snapshot);
    }
}
