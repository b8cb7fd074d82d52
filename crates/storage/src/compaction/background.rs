//! The storage's background thread. It flushes the log in `async` mode and runs checkpoints that
//! are due or that free disk space.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tidemark_types::{EngineError, EngineResult};

use crate::compaction::report::WorkReport;
use crate::compaction::shrink::Shrink;
use crate::snapshot::now_micros;
use crate::storage::{Background, Storage};

/// Maximum sleep time. Limits how late a time-driven checkpoint starts.
const POLL: Duration = Duration::from_millis(250);

/// Retry interval for a failed checkpoint.
const MENDING: Duration = Duration::from_millis(500);

/// Kinds of background work.
const CHECKPOINT_WORK: &str = "checkpoint";
const EXPIRY_WORK: &str = "expiry";

/// Interval between time-to-live checks.
const EXPIRY: Duration = Duration::from_secs(2);

/// Delay between a drop and the checkpoint that frees the dropped data's space. More drops may
/// follow during this time.
const FREE_AFTER: Duration = Duration::from_millis(500);
/// Minimum pause before a checkpoint that frees space, as a multiple of the previous checkpoint's
/// duration. The pause is at most [`MAX_PAUSE`].
const PAUSE_FACTOR: u32 = 4;
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long the previous generation is retained after a checkpoint.
const AGE: Duration = Duration::from_secs(1);

pub(crate) fn start(storage: &Arc<Storage>, background: Arc<Background>) -> EngineResult<()> {
    let weak = Arc::downgrade(storage);
    let flush_after = Duration::from_millis(storage.options().async_flush_ms);
    let checkpoint_after = Duration::from_millis(storage.options().checkpoint_interval_ms);
    let thread = std::thread::Builder::new().name("tidemark-storage".into());
    let spawned = thread.spawn(move || run(&weak, &background, flush_after, checkpoint_after));
    spawned.map(drop).map_err(|error| EngineError::io("cannot start the storage thread", &error))
}

/// Upgrades the weak storage handle only while working, so that the storage closes when the last
/// other handle is dropped.
fn run(
    storage: &Weak<Storage>,
    background: &Background,
    flush_after: Duration,
    checkpoint_after: Duration,
) {
    let mut pace = Pace::new(checkpoint_after);
    let mut shrink = Shrink::default();
    let mut last_expiry = Instant::now();
    let mut flush_at: Option<Instant> = None;
    loop {
        let (checkpoint, shrinks) = {
            let mut requests = background.requests.lock();
            if !(requests.stop || requests.checkpoint || requests.flush || shrink.is_busy()) {
                let flush_in = flush_at.map(|at| at.saturating_duration_since(Instant::now()));
                background.wake.wait_for(&mut requests, flush_in.unwrap_or(POLL).min(POLL));
            }
            if requests.stop {
                return;
            }
            if std::mem::take(&mut requests.flush) {
                flush_at.get_or_insert_with(|| Instant::now() + flush_after / 2);
            }
            (std::mem::take(&mut requests.checkpoint), std::mem::take(&mut requests.shrinks))
        };
        let Some(storage) = storage.upgrade() else { return };
        // The error is ignored here. If a failed flush requires it, the storage itself refuses
        // later commits. Otherwise, the next round tries again.
        if flush_at.is_some_and(|at| at <= Instant::now()) {
            flush_at = None;
            let _ = storage.flush();
        }
        if last_expiry.elapsed() >= EXPIRY && !storage.is_paused(EXPIRY_WORK) {
            storage.report(EXPIRY_WORK, || storage.expire());
            last_expiry = Instant::now();
        }
        pace.checkpoint(&storage, checkpoint);
        shrink.examine(&storage, shrinks);
        storage.space().mend_reserve(storage.vfs().system());
    }
}

impl Storage {
    /// Kinds of background work, named as in [`Storage::work_reports`].
    pub const WORK: [&str; 2] = [CHECKPOINT_WORK, EXPIRY_WORK];

    /// Pauses or resumes a kind of background work; reopening the storage also resumes it. Returns
    /// false for an unknown kind. A paused checkpoint still runs if memory, log or disk would
    /// otherwise fill up.
    pub fn pause_work(&self, kind: &str, is_paused: bool) -> bool {
        let Some(kind) = Self::WORK.into_iter().find(|known| *known == kind) else {
            return false;
        };
        self.background().reports.lock().entry(kind).or_default().is_paused = is_paused;
        true
    }

    fn is_paused(&self, kind: &str) -> bool {
        self.background().reports.lock().get(kind).is_some_and(|report| report.is_paused)
    }

    /// Returns the status of each kind of background work: `checkpoint` and `expiry`.
    pub fn work_reports(&self) -> Vec<(&'static str, WorkReport)> {
        let reports = self.background().reports.lock();
        reports.iter().map(|(kind, report)| (*kind, report.clone())).collect()
    }

    fn report<T>(&self, kind: &'static str, work: impl FnOnce() -> EngineResult<T>) -> bool {
        let (began, began_micros) = (Instant::now(), now_micros());
        let outcome = work();
        let mut reports = self.background().reports.lock();
        let report = reports.entry(kind).or_default();
        report.began_micros = began_micros;
        report.took = began.elapsed();
        report.total += report.took;
        report.runs += 1;
        report.failures = if outcome.is_ok() { 0 } else { report.failures + 1 };
        report.last_error = outcome.as_ref().err().map(|error| error.message.clone());
        outcome.is_ok()
    }
}

/// Decides when checkpoints start.
struct Pace {
    /// Maximum time between two checkpoints.
    interval: Duration,
    /// When the last checkpoint ended, and how long it took.
    ended: Instant,
    took: Duration,
    /// When the last failed attempt started; `None` once an attempt succeeds.
    failed: Option<Instant>,
}

impl Pace {
    fn new(interval: Duration) -> Self {
        Self { interval, ended: Instant::now(), took: Duration::ZERO, failed: None }
    }

    fn checkpoint(&mut self, storage: &Storage, is_requested: bool) {
        let low = storage.is_low();
        if is_requested || self.is_due(storage, low) {
            let began = Instant::now();
            let is_done = storage.report(CHECKPOINT_WORK, || storage.checkpoint());
            (self.ended, self.took) = (Instant::now(), began.elapsed());
            self.failed = (!is_done).then_some(began);
        }
        // The previous generation expires after a fixed time. Space used only by that generation is
        // therefore freed soon, even if no other checkpoint follows.
        if storage.has_older_files() && (low || self.ended.elapsed() >= AGE) && self.may_try() {
            let began = Instant::now();
            self.failed = storage.advance_generations().is_err().then_some(began);
        }
    }

    fn is_due(&self, storage: &Storage, low: bool) -> bool {
        let space = storage.space();
        let mends =
            storage.is_suspended() || space.is_reserve_released() || (low && space.promised() > 0);
        let frees = storage.frees_since().is_some_and(|since| {
            // Limits the fraction of time spent on checkpoints that free space, regardless of how
            // many drops there are.
            let rested = self.ended.elapsed() >= (self.took * PAUSE_FACTOR).min(MAX_PAUSE);
            low || (since.elapsed() >= FREE_AFTER && rested)
        });
        let is_time =
            (self.ended.elapsed() >= self.interval || frees) && !storage.is_paused(CHECKPOINT_WORK);
        (is_time || mends) && self.may_try()
    }

    /// Whether a failed attempt may be retried now.
    fn may_try(&self) -> bool {
        self.failed.is_none_or(|failed| failed.elapsed() >= MENDING)
    }
}
