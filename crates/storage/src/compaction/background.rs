//! The storage's own thread: flushes in `async` mode, checkpoints when it is time or when they
//! free something.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tidemark_types::{EngineError, EngineResult};

use crate::compaction::report::WorkReport;
use crate::compaction::shrink::Shrink;
use crate::snapshot::now_micros;
use crate::storage::{Background, Storage};

/// Longest sleep: bounds how late a time-driven checkpoint starts.
const POLL: Duration = Duration::from_millis(250);

/// How often a checkpoint that failed is tried again.
const MENDING: Duration = Duration::from_millis(500);

/// Names of the work.
const CHECKPOINT_WORK: &str = "checkpoint";
const EXPIRY_WORK: &str = "expiry";

/// How often the clock may end a partition's time to live.
const EXPIRY: Duration = Duration::from_secs(2);

/// A checkpoint that frees something begins so long after it was dropped: more may come.
const FREE_AFTER: Duration = Duration::from_millis(500);
/// It begins so many times as long after the one before as that took, but no later than this.
const REST: u32 = 4;
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How long the generation before a manifest is kept.
const AGE: Duration = Duration::from_secs(1);

pub(crate) fn start(storage: &Arc<Storage>, background: Arc<Background>) -> EngineResult<()> {
    let weak = Arc::downgrade(storage);
    let flush_after = Duration::from_millis(storage.options().async_flush_ms);
    let checkpoint_after = Duration::from_millis(storage.options().checkpoint_interval_ms);
    let thread = std::thread::Builder::new().name("tidemark-storage".into());
    let spawned = thread.spawn(move || run(&weak, &background, flush_after, checkpoint_after));
    spawned.map(drop).map_err(|error| EngineError::io("the storage thread", &error))
}

/// Holds the storage only while it works for it, so that dropping the last handle closes it.
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
            let mut wanted = background.wanted.lock();
            if !(wanted.stop || wanted.checkpoint || wanted.flush || shrink.is_busy()) {
                let flush_in = flush_at.map(|at| at.saturating_duration_since(Instant::now()));
                background.wake.wait_for(&mut wanted, flush_in.unwrap_or(POLL).min(POLL));
            }
            if wanted.stop {
                return;
            }
            if std::mem::take(&mut wanted.flush) {
                flush_at.get_or_insert_with(|| Instant::now() + flush_after / 2);
            }
            (std::mem::take(&mut wanted.checkpoint), std::mem::take(&mut wanted.shrinks))
        };
        let Some(storage) = storage.upgrade() else { return };
        // A failure shows in the next commit: flush and checkpoint refuse writes when they must;
        // otherwise the next round tries again.
        if flush_at.is_some_and(|at| at <= Instant::now()) {
            flush_at = None;
            let _ = storage.flush();
        }
        if last_expiry.elapsed() >= EXPIRY && !storage.is_paused(EXPIRY_WORK) {
            storage.report(EXPIRY_WORK, || storage.expire());
            last_expiry = Instant::now();
        }
        pace.checkpoint(&storage, checkpoint);
        shrink.go_on(&storage, shrinks);
        storage.space().mend_reserve(storage.vfs().system());
    }
}

impl Storage {
    /// The work of the storage's own thread, by the names of [`Storage::work_reports`].
    pub const WORK: [&str; 2] = [CHECKPOINT_WORK, EXPIRY_WORK];

    /// Lets work of the storage's own thread rest until it is resumed, or the storage is
    /// opened again; false where there is no such work. Checkpoints still come where memory, log or
    /// disk would be full without them.
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

    /// The work of the storage's own thread by kind: `checkpoint`, `expiry`.
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

/// When checkpoints begin.
struct Pace {
    /// Longest time between two.
    interval: Duration,
    /// When the last one ended, and how long it took.
    ended: Instant,
    took: Duration,
    /// When the last one began that failed, since when none succeeded.
    failed: Option<Instant>,
}

impl Pace {
    fn new(interval: Duration) -> Self {
        Self { interval, ended: Instant::now(), took: Duration::ZERO, failed: None }
    }

    fn checkpoint(&mut self, storage: &Storage, wanted: bool) {
        let low = storage.is_low();
        if wanted || self.is_due(storage, low) {
            let began = Instant::now();
            let is_done = storage.report(CHECKPOINT_WORK, || storage.checkpoint());
            (self.ended, self.took) = (Instant::now(), began.elapsed());
            self.failed = (!is_done).then_some(began);
        }
        // The generation before ages by time: what only it needs is free soon, also where no
        // other checkpoint follows.
        if storage.holds_older() && (low || self.ended.elapsed() >= AGE) && self.may_try() {
            let began = Instant::now();
            self.failed = storage.advance_generations().is_err().then_some(began);
        }
    }

    fn is_due(&self, storage: &Storage, low: bool) -> bool {
        let space = storage.space();
        let mends = storage.is_suspended() || space.is_spent() || (low && space.promised() > 0);
        let frees = storage.frees_since().is_some_and(|since| {
            // Those that free something take a share of the time, however often something is.
            let rested = self.ended.elapsed() >= (self.took * REST).min(MAX_PAUSE);
            low || (since.elapsed() >= FREE_AFTER && rested)
        });
        let is_time =
            (self.ended.elapsed() >= self.interval || frees) && !storage.is_paused(CHECKPOINT_WORK);
        (is_time || mends) && self.may_try()
    }

    /// Whether it is time to try again what failed.
    fn may_try(&self) -> bool {
        self.failed.is_none_or(|failed| failed.elapsed() >= MENDING)
    }
}
