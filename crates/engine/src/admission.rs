//! Which statements run at once.
//!
//! A statement that reads many rows, or nobody knows how many, takes a turn; others wait for one
//! in a queue of bounded length and time. What is known to be cheap takes none, so that a point
//! query never waits behind heavy ones. A query whose reader does not read gives its turn to
//! others meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use crate::resident::{Level, ResidentGuard};

/// Rows up to which a statement is cheap: one batch of a scan, less than a millisecond.
pub(crate) const CHEAP_ROWS: usize = 64 * 1024;
/// How often a statement that waits for memory looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How many run, and how many wait for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionLimits {
    /// Statements that run at once.
    pub(crate) running: usize,
    /// Statements that wait at the most.
    pub(crate) queue: usize,
    /// How long one waits.
    pub(crate) wait: Duration,
}

/// The turns of a database.
#[derive(Debug)]
pub(crate) struct Admission {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    limits: AdmissionLimits,
    memory: Arc<ResidentGuard>,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits, memory: Arc<ResidentGuard>) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(limits.running));
        Arc::new(Self { turns, waiting: AtomicUsize::new(0), limits, memory })
    }

    /// Waits for a turn. Fails with `Busy` when too many wait, or for too long, and with
    /// `OutOfMemory` when memory stays low for as long.
    pub(crate) async fn admit(self: &Arc<Self>) -> EngineResult<Turn> {
        if self.memory.level() == Level::Normal
            && let Ok(permit) = Arc::clone(&self.turns).try_acquire_owned()
        {
            return Ok(Turn { permit: Some(permit), admission: Some(Arc::clone(self)) });
        }
        let _place = self.queue()?;
        let end = Instant::now() + self.limits.wait;
        while self.memory.level() != Level::Normal {
            if Instant::now() >= end {
                return Err(self.memory.refusal());
            }
            sleep(LOOK_AGAIN).await;
        }
        match tokio::time::timeout_at(end, Arc::clone(&self.turns).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Turn { permit: Some(permit), admission: Some(Arc::clone(self)) }),
            Ok(Err(_)) => Err(EngineError::new(ErrorCode::Closed, "the database is closed")),
            Err(_) => {
                let seconds = self.limits.wait.as_secs_f64();
                Err(self.busy(&format!("waited {seconds} s for a turn")))
            }
        }
    }

    /// Statements that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    fn queue(&self) -> EngineResult<Place<'_>> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let place = Place(&self.waiting);
        if waiting < self.limits.queue {
            return Ok(place);
        }
        Err(self.busy(&format!("{waiting} wait already")))
    }

    fn busy(&self, why: &str) -> EngineError {
        let message = format!("too many queries: {} run at once, {why}", self.limits.running);
        EngineError::new(ErrorCode::Busy, message)
            .with_hint("retry later; see query.concurrency, query.queue.limit and query.queue.wait")
    }
}

/// A place in the queue.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The right to run, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    /// Absent for what takes no turn.
    admission: Option<Arc<Admission>>,
}

impl Turn {
    /// What is cheap needs no turn.
    pub(crate) fn free() -> Self {
        Self::default()
    }

    /// Lets others run while this one waits for its reader.
    pub(crate) fn pause(&mut self) {
        self.permit = None;
    }

    /// Goes on; waits as long as it takes, since what it holds is in use already.
    pub(crate) async fn resume(&mut self) -> EngineResult<()> {
        if let Some(admission) = &self.admission
            && self.permit.is_none()
        {
            let permit = Arc::clone(&admission.turns).acquire_owned().await;
            let closed = |_| EngineError::new(ErrorCode::Closed, "the database is closed");
            self.permit = Some(permit.map_err(closed)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, queue: usize, wait_ms: u64) -> Arc<Admission> {
        let wait = Duration::from_millis(wait_ms);
        let memory = ResidentGuard::new(u64::MAX);
        Admission::new(AdmissionLimits { running, queue, wait }, memory)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn those_over_the_limit_wait_and_then_are_refused() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let turn = admission.admit().await.unwrap();
            let error = admission.admit().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Busy);
            assert_eq!(error.message, "too many queries: 1 run at once, waited 0.03 s for a turn");
            assert!(error.retryable);
            assert_eq!(admission.waiting(), 0);
            drop(turn);
            admission.admit().await.unwrap();
        });
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        block_on(async {
            let admission = admission(1, 0, 60_000);
            let _turn = admission.admit().await.unwrap();
            let error = admission.admit().await.unwrap_err();
            assert_eq!(error.message, "too many queries: 1 run at once, 0 wait already");
        });
    }

    #[test]
    fn a_paused_turn_is_anybodys() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let mut first = admission.admit().await.unwrap();
            first.pause();
            let second = admission.admit().await.unwrap();
            assert!(tokio::time::timeout(LOOK_AGAIN, first.resume()).await.is_err());
            drop(second);
            first.resume().await.unwrap();
            assert!(admission.admit().await.is_err());
            let mut free = Turn::free();
            free.pause();
            free.resume().await.unwrap();
        });
    }
}
