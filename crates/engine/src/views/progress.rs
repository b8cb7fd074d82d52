//! How the materialized views fare while the database is open.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_catalog::{MaterializedState, MaterializedView};
use tidemark_storage::{Snapshot, TableId};
use tokio::sync::Semaphore;

use crate::jobs::{JobReport, JobState, REFRESH};
use crate::registry::now_micros;

/// A refresh that takes no longer is not worth a word: views that follow each change begin one many
/// times a second.
const SHOWN_AFTER: Duration = Duration::from_secs(1);

/// What is known of the views while the database is open.
#[derive(Debug)]
pub(crate) struct Refresher {
    pub(super) views: Mutex<HashMap<TableId, Progress>>,
    /// Whether views follow their bases.
    pub(super) is_enabled: bool,
    /// How many refresh at once.
    pub(super) turns: Arc<Semaphore>,
}

/// How a view fares.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The definition's bytes, and what they say.
    pub(super) known: Option<(Vec<u8>, Arc<MaterializedView>)>,
    /// The transaction that the refresh under way reads up to.
    pub(super) running: Option<u64>,
    /// When it began.
    pub(super) running_since: Option<Instant>,
    /// Not before then.
    pub(super) rest_until: Option<Instant>,
    pub(super) failures: u32,
    pub(super) last_error: Option<String>,
    pub(super) last_began_micros: Option<i64>,
    pub(super) last_took: Duration,
    pub(super) runs: u64,
    /// What there was to do when nothing was done: the transaction and the clock's period.
    pub(super) idle_at: Option<(u64, i64)>,
    /// Whether a client paused it.
    pub(super) is_paused: bool,
}

impl Refresher {
    pub(crate) fn new(is_enabled: bool, at_once: usize) -> Arc<Self> {
        Arc::new(Self {
            views: Mutex::default(),
            is_enabled,
            turns: Arc::new(Semaphore::new(at_once.max(1))),
        })
    }

    /// Whether a view is being refreshed, for so long that it matters to who reads it.
    pub(crate) fn is_refreshing(&self, view: TableId) -> bool {
        let views = self.views.lock();
        let since = views.get(&view).and_then(|progress| progress.running_since);
        since.is_some_and(|since| since.elapsed() >= SHOWN_AFTER)
    }

    /// Lets a view rest until a client resumes it, or the database is opened again; false where
    /// there is no such view. A refresh under way ends as usual.
    pub(crate) fn pause(&self, snapshot: &Snapshot, view: &str, is_paused: bool) -> bool {
        let table = snapshot.table(view).map(|table| table.schema().id);
        let Some(id) = table.filter(|id| MaterializedView::is(snapshot, *id)) else { return false };
        self.views.lock().entry(id).or_default().is_paused = is_paused;
        true
    }

    /// What `jobs()` tells of the views.
    pub(crate) fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport> {
        let views = self.views.lock();
        let now = Instant::now();
        let report = |(id, progress): (&TableId, &Progress)| {
            let table = snapshot.table_by_id(*id)?;
            let state = MaterializedState::of(snapshot, *id);
            let rests = progress.rest_until.and_then(|until| until.checked_duration_since(now));
            Some(JobReport {
                kind: REFRESH,
                name: table.schema().name.clone(),
                state: match progress {
                    _ if state.invalid.is_some() => JobState::Stopped,
                    Progress { running: Some(_), .. } => JobState::Running,
                    _ if !self.is_enabled || progress.is_paused => JobState::Paused,
                    Progress { failures: 1.., .. } => JobState::Failing,
                    _ => JobState::Waiting,
                },
                last_error: state.invalid.or_else(|| progress.last_error.clone()),
                last_began_micros: progress.last_began_micros,
                last_took_micros: progress.last_took.as_micros() as i64,
                next_micros: rests.map(|rest| now_micros() + rest.as_micros() as i64),
                runs: progress.runs,
                failures: u64::from(progress.failures),
            })
        };
        let mut reports: Vec<JobReport> = views.iter().filter_map(report).collect();
        reports.sort_by(|a, b| a.name.cmp(&b.name));
        reports
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
            // One that does not follow, or has shown nothing yet, will begin with everything.
            state.position.filter(|_| state.invalid.is_none()).or(progress.running)
        });
        positions.fold(own.1, u64::min)
    }

    /// Whether a view rests, or waits for its turn.
    pub(super) fn rests(&self) -> bool {
        self.views.lock().values().any(|progress| progress.rest_until.is_some())
    }
}

impl Progress {
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
        self.rest_until = None;
        Some(view)
    }
}
