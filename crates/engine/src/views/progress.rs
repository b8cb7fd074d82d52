//! How the materialized views fare while the database is open.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_catalog::{IncrementalState, IncrementalView, ViewForm};
use tidemark_operators::StateMemory;
use tidemark_planner::ViewProgress;
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
const MIN_AT_ONCE: usize = 2;

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
    is_enabled: bool,
    is_live_enabled: bool,
    /// How many refresh at once.
    pub(super) turns: Arc<Semaphore>,
    /// What they hold between their refreshes.
    pub(super) memory: Arc<StateMemory>,
}

/// How a view fares.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The definition's bytes, and what they say.
    pub(super) known: Option<(Vec<u8>, Arc<IncrementalView>)>,
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
    /// Of a live view: its repairs, and how many refreshes failed.
    pub(super) live: ViewProgress,
    /// Since when its refreshes fail.
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
            turns: Arc::new(Semaphore::new((workers / 2).max(MIN_AT_ONCE))),
            memory: StateMemory::new(most_bytes),
        })
    }

    /// How a view fares.
    pub(crate) fn view_progress(&self, view: TableId) -> ViewProgress {
        let views = self.views.lock();
        let Some(progress) = views.get(&view) else { return ViewProgress::default() };
        let (job, kept) = (&progress.job, progress.kept.as_ref());
        let stalled = progress.failing_since.map_or(0, |since| since.elapsed().as_micros() as i64);
        ViewProgress {
            is_refreshing: job.running_for().is_some_and(|time| time >= SHOWN_AFTER),
            failure: job.failure().map(str::to_owned),
            kept_bytes: kept.map_or(0, |kept| kept.bytes() as i64),
            stalled_micros: stalled,
            kept_states: kept.map_or(0, |kept| kept.windows.marks() as i64),
            ..progress.live.clone()
        }
    }

    /// Reads or changes how a view fares; nothing where it is gone.
    pub(super) fn with<T>(
        &self,
        view: TableId,
        work: impl FnOnce(&mut Progress) -> T,
    ) -> Option<T> {
        self.views.lock().get_mut(&view).map(work)
    }

    /// Whether views of a form follow their bases.
    pub(super) fn follows(&self, form: ViewForm) -> bool {
        match form {
            ViewForm::Materialized => self.is_enabled,
            ViewForm::Live => self.is_live_enabled,
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
            let state = IncrementalState::of(snapshot, *id);
            // One that does not follow, or has shown nothing yet, will begin with everything; a
            // live view goes on where it was.
            let follows = state.invalid.is_none() || is_live(snapshot, *id);
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
            let state = IncrementalState::shown(snapshot, *id);
            let job = progress.job.report(REFRESH, table.schema().name.clone());
            let form = IncrementalView::form_of(snapshot, *id)?;
            let is_off = !self.follows(form) || state.suspended;
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
        let Some(id) = table.filter(|id| IncrementalView::is(snapshot, *id)) else { return false };
        self.views.lock().entry(id).or_default().job.is_paused = is_paused;
        true
    }
}

impl Progress {
    /// Whether the base of a live view fits in another way than is recorded. It is looked at when
    /// a view is invalid, and when the base has another definition.
    pub(super) fn is_other(
        &mut self,
        view: &IncrementalView,
        state: &IncrementalState,
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
        if is_failing && IncrementalState::of(snapshot, view).requests > self.failed_requests {
            self.job.wake();
        }
    }

    /// The definition, read again where its record is another one.
    pub(super) fn definition(
        &mut self,
        snapshot: &Snapshot,
        (id, bytes): (TableId, &[u8]),
    ) -> Option<Arc<IncrementalView>> {
        if let Some((known, view)) = &self.known
            && known.as_slice() == bytes
        {
            return Some(Arc::clone(view));
        }
        let view = Arc::new(IncrementalView::read(snapshot, id, bytes)?);
        self.known = Some((bytes.to_vec(), Arc::clone(&view)));
        self.idle_at = None;
        self.job.wake();
        Some(view)
    }
}

fn is_live(snapshot: &Snapshot, view: TableId) -> bool {
    IncrementalView::form_of(snapshot, view) == Some(ViewForm::Live)
}
