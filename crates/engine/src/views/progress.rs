//! How the materialized views fare while the database is open.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_catalog::{LiveView, MaterializedState, MaterializedView};
use tidemark_operators::StateMemory;
use tidemark_planner::{LiveProgress, LiveRepair};
use tidemark_storage::{Snapshot, TableId};
use tokio::sync::Semaphore;

use super::bases::Bases;
use super::live_state::{self, Kept};
use super::open_groups::OpenGroups;
use crate::jobs::progress::JobProgress;
use crate::jobs::{JobKind, JobReport, JobState};
use crate::runtime::metrics::Metrics;

/// A refresh that takes no longer is not worth a word: views that follow each change begin one many
/// times a second.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// As `jobs()` names it.
const REFRESH: &str = "refresh";
/// Views that refresh at once, at least: one that takes long does not hold up the others.
const LEAST_AT_ONCE: usize = 2;

/// What is known of the views while the database is open.
#[derive(Debug)]
pub(crate) struct Refresher {
    pub(super) views: Mutex<HashMap<TableId, Progress>>,
    /// What was touched of their bases.
    pub(super) bases: Bases,
    /// What was looked at last, and when.
    pub(super) looked: Mutex<(u64, Instant)>,
    /// Views that have something to do and wait for their turn.
    pub(super) ready: Mutex<VecDeque<TableId>>,
    /// Whether views follow their bases; live ones.
    pub(super) is_enabled: bool,
    pub(super) is_live_enabled: bool,
    /// How many refresh at once.
    pub(super) turns: Arc<Semaphore>,
    /// What they hold between their refreshes.
    pub(super) memory: Arc<StateMemory>,
}

/// How a view fares.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The definition's bytes, and what they say.
    pub(super) known: Option<(Vec<u8>, Arc<MaterializedView>)>,
    /// Whether it waits for its turn.
    pub(super) is_ready: bool,
    /// The transaction that the refresh under way reads up to.
    pub(super) running: Option<u64>,
    /// How its job fares.
    pub(super) job: JobProgress,
    /// Of a live view: the version of its base's definition that fits.
    pub(super) fits: Option<u64>,
    /// Of a live view: what its functions hold, while no refresh has it.
    pub(super) kept: Option<Kept>,
    /// Of a materialized view: the groups of the open bucket, while no refresh has them.
    pub(super) groups: Option<OpenGroups>,
    /// Of a live view: the repair that runs, or the last one.
    pub(super) repair: LiveRepair,
    /// Rows that repairs wrote, of those that began with the first row and of those that went on
    /// from an earlier state; how many did.
    pub(super) repaired_rows: u64,
    pub(super) resumed_rows: u64,
    pub(super) resumes: u64,
    /// All refreshes that failed, and since when they do.
    pub(super) all_failures: u64,
    pub(super) failing_since: Option<Instant>,
    /// How many statements had asked for a refresh when one failed.
    pub(super) failed_requests: u64,
    /// What there was to do when nothing was done: the transaction and the clock's period.
    pub(super) idle_at: Option<(u64, i64)>,
}

impl Refresher {
    /// `follows`: whether materialized views follow their bases, and whether live ones do.
    /// `most_bytes`: of what all of them hold between their refreshes.
    pub(crate) fn new(
        follows: (bool, bool),
        workers: usize,
        most_bytes: usize,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            views: Mutex::default(),
            bases: Bases::new(metrics),
            looked: Mutex::new((u64::MAX, Instant::now())),
            ready: Mutex::default(),
            is_enabled: follows.0,
            is_live_enabled: follows.1,
            turns: Arc::new(Semaphore::new((workers / 2).max(LEAST_AT_ONCE))),
            memory: StateMemory::new(most_bytes),
        })
    }

    /// Whether a view is being refreshed, for so long that it matters to who reads it.
    pub(crate) fn is_refreshing(&self, view: TableId) -> bool {
        let views = self.views.lock();
        let time = views.get(&view).and_then(|progress| progress.job.running_for());
        time.is_some_and(|time| time >= SHOWN_AFTER)
    }

    /// Why the refreshes of a view fail, where they do.
    pub(crate) fn failure(&self, view: TableId) -> Option<String> {
        self.views.lock().get(&view)?.job.failure().map(str::to_owned)
    }

    /// How a live view fares.
    pub(crate) fn live_progress(&self, view: TableId) -> LiveProgress {
        let views = self.views.lock();
        let Some(progress) = views.get(&view) else { return LiveProgress::default() };
        let stalled = progress.failing_since.map_or(0, |since| since.elapsed().as_micros() as i64);
        LiveProgress {
            kept_bytes: progress.kept.as_ref().map_or(0, |kept| kept.bytes() as i64),
            stalled_micros: stalled,
            kept_states: progress.kept.as_ref().map_or(0, |kept| kept.windows.marks() as i64),
            repaired_rows: progress.repaired_rows as i64,
            resumed_rows: progress.resumed_rows as i64,
            resumes: progress.resumes as i64,
            failures: progress.all_failures as i64,
            repair: progress.repair.clone(),
        }
    }

    /// Takes what a live view's functions hold.
    pub(super) fn take_kept(&self, view: TableId) -> Option<Kept> {
        self.views.lock().get_mut(&view)?.kept.take()
    }

    /// Keeps it for the next refresh.
    pub(super) fn keep(&self, view: TableId, kept: Kept) {
        if let Some(progress) = self.views.lock().get_mut(&view) {
            progress.kept = Some(kept);
        }
    }

    /// Takes the groups that a materialized view keeps.
    pub(super) fn take_groups(&self, view: TableId) -> Option<OpenGroups> {
        self.views.lock().get_mut(&view)?.groups.take()
    }

    /// Keeps them for the next refresh.
    pub(super) fn keep_groups(&self, view: TableId, groups: OpenGroups) {
        if let Some(progress) = self.views.lock().get_mut(&view) {
            progress.groups = Some(groups);
        }
    }

    /// A repair begins.
    pub(super) fn note_repair(&self, view: TableId, repair: LiveRepair) {
        if let Some(progress) = self.views.lock().get_mut(&view) {
            progress.repair = repair;
        }
    }

    /// A repair wrote rows.
    pub(super) fn repaired(&self, view: TableId, rows: u64, is_resumed: bool) {
        if let Some(progress) = self.views.lock().get_mut(&view) {
            let counted =
                if is_resumed { &mut progress.resumed_rows } else { &mut progress.repaired_rows };
            *counted += rows;
            progress.resumes += u64::from(is_resumed);
        }
    }

    /// The transaction up to which no view over a base needs to know what was touched any more,
    /// when one of them has reached `position`.
    pub(super) fn consumed(&self, snapshot: &Snapshot, base: TableId, own: (TableId, u64)) -> u64 {
        let views = self.views.lock();
        // All views of the snapshot were looked at before one of them began.
        let others = views.iter().filter(|(id, progress)| {
            let view = progress.known.as_ref().map(|(_, view)| view);
            **id != own.0 && view.is_some_and(|view| view.base == base)
        });
        let positions = others.filter_map(|(id, progress)| {
            let state = MaterializedState::of(snapshot, *id);
            // One that does not follow, or has shown nothing yet, will begin with everything; a
            // live view goes on where it was.
            let follows = state.invalid.is_none() || LiveView::is(snapshot, *id);
            state.position.filter(|_| follows).or(progress.running)
        });
        positions.fold(own.1, u64::min)
    }

    /// Whether a view has rested long enough.
    pub(super) fn has_rested(&self) -> bool {
        self.views.lock().values().any(|progress| progress.job.has_rested())
    }
}

impl JobKind for Refresher {
    fn is(&self, kind: &str) -> bool {
        kind == REFRESH
    }

    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport> {
        let views = self.views.lock();
        let report = |(id, progress): (&TableId, &Progress)| {
            let table = snapshot.table_by_id(*id)?;
            let state = MaterializedState::shown(snapshot, *id);
            let job = progress.job.report(REFRESH, table.schema().name.clone());
            let is_live = LiveView::is(snapshot, *id);
            let follows = if is_live { self.is_live_enabled } else { self.is_enabled };
            let is_off = !follows || state.suspended;
            Some(JobReport {
                state: match job.state {
                    _ if state.invalid.is_some() => JobState::Stopped,
                    JobState::Failing | JobState::Waiting if is_off => JobState::Paused,
                    state => state,
                },
                last_error: state.invalid.or(job.last_error),
                ..job
            })
        };
        let mut reports: Vec<JobReport> = views.iter().filter_map(report).collect();
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
    }

    fn pause(&self, snapshot: &Snapshot, (_, view): (&str, &str), is_paused: bool) -> bool {
        let table = snapshot.table(view).map(|table| table.schema().id);
        let Some(id) = table.filter(|id| MaterializedView::is(snapshot, *id)) else { return false };
        self.views.lock().entry(id).or_default().job.is_paused = is_paused;
        true
    }
}

impl Progress {
    /// Whether the base of a live view fits in another way than is recorded. It is looked at when
    /// a view is invalid, and when the base has another definition.
    pub(super) fn is_other(
        &mut self,
        view: &MaterializedView,
        state: &MaterializedState,
        snapshot: &Snapshot,
    ) -> bool {
        let version = snapshot.table_by_id(view.base).map(|base| base.schema().version);
        if state.invalid.is_none() && version == self.fits {
            return false;
        }
        let is_other = live_state::is_other(view, state, snapshot);
        self.fits = version.filter(|_| !is_other && state.invalid.is_none());
        is_other
    }

    /// A view that failed is tried at once where a client asks for a refresh.
    pub(super) fn heed_request(&mut self, snapshot: &Snapshot, view: TableId) {
        let is_failing = self.job.failure().is_some();
        if is_failing && MaterializedState::of(snapshot, view).requests > self.failed_requests {
            self.job.wake();
        }
    }

    /// The definition, read again where its record is another one.
    pub(super) fn definition(&mut self, bytes: &[u8]) -> Option<Arc<MaterializedView>> {
        if let Some((known, view)) = &self.known
            && known.as_slice() == bytes
        {
            return Some(Arc::clone(view));
        }
        let view: MaterializedView = serde_json::from_slice(bytes).ok()?;
        let view = Arc::new(view);
        self.known = Some((bytes.to_vec(), Arc::clone(&view)));
        self.idle_at = None;
        self.job.wake();
        Some(view)
    }
}
