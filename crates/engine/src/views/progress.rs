//! Progress of all views while the database is open.

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
use super::live_state::{self, WindowState};
use super::open_groups::OpenGroups;
use crate::jobs::progress::JobProgress;
use crate::jobs::{JobKind, JobReport, JobState};
use crate::runtime::metrics::Metrics;

/// Time after which a refresh is shown as running. Views that are refreshed on each change start
/// many refreshes per second.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
/// The job kind in `jobs()`.
const REFRESH: &str = "refresh";
/// Minimum number of concurrent refreshes, so that a long refresh does not delay all others.
const MIN_AT_ONCE: usize = 2;

/// State of all views in an open database.
#[derive(Debug)]
pub(crate) struct Refresher {
    pub(super) views: Mutex<HashMap<TableId, Progress>>,
    /// Changes to the base tables.
    pub(super) bases: Bases,
    /// The last examined epoch, and when it was examined.
    pub(super) last_poll: Mutex<(u64, Instant)>,
    /// Views that need a refresh and are waiting for a refresh slot.
    pub(super) ready: Mutex<VecDeque<TableId>>,
    /// Whether materialized views are refreshed. The next field applies to live views.
    is_enabled: bool,
    is_live_enabled: bool,
    /// Limits the number of concurrent refreshes.
    pub(super) slots: Arc<Semaphore>,
    /// Memory for the state that views retain between refreshes.
    pub(super) memory: Arc<StateMemory>,
}

/// Progress of one view.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The encoded definition as stored in its record, and the decoded definition.
    pub(super) known: Option<(Vec<u8>, Arc<IncrementalView>)>,
    /// Whether the view is waiting for a refresh slot.
    pub(super) is_ready: bool,
    /// The transaction that the running refresh reads up to.
    pub(super) running: Option<u64>,
    /// Progress of the view's refresh job.
    pub(super) job: JobProgress,
    /// For a live view: the base's schema version that the view was found to match.
    pub(super) fits: Option<u64>,
    /// For a live view: the window function state, while no refresh uses it.
    pub(super) window_state: Option<WindowState>,
    /// For a materialized view: the open bucket's groups, while no refresh uses them.
    pub(super) groups: Option<OpenGroups>,
    /// For a live view: its repairs and the number of failed refreshes.
    pub(super) live: ViewProgress,
    /// When the first refresh since the last success failed.
    pub(super) failing_since: Option<Instant>,
    /// How many refreshes clients had requested when the last refresh failed.
    pub(super) failed_requests: u64,
    /// The transaction and period end at which the last refresh found nothing to do.
    pub(super) idle_at: Option<(u64, i64)>,
}

impl Refresher {
    /// Creates the state of all views. `follows` states whether materialized views are refreshed,
    /// and whether live views are. `most_bytes` is the maximum size in bytes of the state that all
    /// views together retain between refreshes.
    pub(crate) fn new(
        follows: (bool, bool),
        workers: usize,
        most_bytes: usize,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        Arc::new(Self {
            views: Mutex::default(),
            bases: Bases::new(metrics),
            last_poll: Mutex::new((u64::MAX, Instant::now())),
            ready: Mutex::default(),
            is_enabled: follows.0,
            is_live_enabled: follows.1,
            slots: Arc::new(Semaphore::new((workers / 2).max(MIN_AT_ONCE))),
            memory: StateMemory::new(most_bytes),
        })
    }

    /// Returns a view's progress.
    pub(crate) fn view_progress(&self, view: TableId) -> ViewProgress {
        let views = self.views.lock();
        let Some(progress) = views.get(&view) else { return ViewProgress::default() };
        let (job, state) = (&progress.job, progress.window_state.as_ref());
        let stalled = progress.failing_since.map_or(0, |since| since.elapsed().as_micros() as i64);
        ViewProgress {
            is_refreshing: job.running_for().is_some_and(|time| time >= SHOWN_AFTER),
            failure: job.failure().map(str::to_owned),
            state_bytes: state.map_or(0, |state| state.bytes() as i64),
            stalled_micros: stalled,
            saved_states: state.map_or(0, |state| state.windows.marks() as i64),
            ..progress.live.clone()
        }
    }

    /// Reads or changes a view's progress; returns `None` if the view no longer exists.
    pub(super) fn with<T>(
        &self,
        view: TableId,
        work: impl FnOnce(&mut Progress) -> T,
    ) -> Option<T> {
        self.views.lock().get_mut(&view).map(work)
    }

    /// Whether views of this kind are refreshed.
    pub(super) fn follows(&self, form: ViewForm) -> bool {
        match form {
            ViewForm::Materialized => self.is_enabled,
            ViewForm::Live => self.is_live_enabled,
        }
    }

    /// Returns the transaction up to which no view over a base needs the base's changes any longer.
    /// The view `own` is assumed to have reached the given position.
    pub(super) fn consumed(&self, snapshot: &Snapshot, base: TableId, own: (TableId, u64)) -> u64 {
        let views = self.views.lock();
        // Every view in the snapshot was examined before any refresh started.
        let others = views.iter().filter(|(id, progress)| {
            let view = progress.known.as_ref().map(|(_, view)| view);
            **id != own.0 && view.is_some_and(|view| view.base == base)
        });
        let positions = others.filter_map(|(id, progress)| {
            let state = IncrementalState::of(snapshot, *id);
            // An invalid or never-refreshed view will read everything, except that a live view
            // resumes at its position.
            let follows = state.invalid.is_none() || is_live(snapshot, *id);
            state.position.filter(|_| follows).or(progress.running)
        });
        positions.fold(own.1, u64::min)
    }

    /// Whether the rest period of any view is over.
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
    /// Whether the recorded validity of a live view is outdated. Checked if the view is invalid or
    /// the base's definition has changed.
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

    /// Makes a failed view retry immediately if a client has requested a refresh.
    pub(super) fn heed_request(&mut self, snapshot: &Snapshot, view: TableId) {
        let is_failing = self.job.failure().is_some();
        if is_failing && IncrementalState::of(snapshot, view).requests > self.failed_requests {
            self.job.wake();
        }
    }

    /// Returns the definition. Decodes it again if its record has changed.
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
