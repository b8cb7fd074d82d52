//! Cancellation. Each query has one token, shared by socket close, `CancelRequest`, CANCEL QUERY
//! and timeouts.
//!
//! A statement that has begun its commit cannot be stopped, because its reply must reflect the
//! outcome.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tidemark_types::bounded::Stop;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::Instant;

/// Stops a running query, and reports whether it was stopped.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

/// The statement is running and can be stopped.
const RUNNING: u8 = 0;
/// The statement was stopped.
const STOPPED: u8 = 1;
/// The statement is committing or has committed.
const SETTLED: u8 = 2;

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    /// Why the statement was cancelled; unset if a client requested the cancellation.
    why: OnceLock<EngineError>,
    /// The statement's deadline.
    deadline: OnceLock<Deadline>,
    wake: Notify,
}

impl CancelToken {
    /// Cancels the statement, unless it is committing. Lock-free; any thread may call it any number
    /// of times.
    pub fn cancel(&self) {
        if self.change(RUNNING, STOPPED) {
            self.shared.wake.notify_waiters();
        }
    }

    /// Cancels the statement for a server-side reason; returns false if the statement is
    /// committing.
    pub(crate) fn stop(&self, why: EngineError) -> bool {
        // Only the first reason is stored.
        let _ = self.shared.why.set(why);
        self.cancel();
        self.is_cancelled()
    }

    /// Runs the commit, unless the statement has been stopped. From then on, the statement cannot
    /// be stopped. If the commit fails, it can be stopped again.
    pub(crate) fn settle<T>(&self, commit: impl FnOnce() -> EngineResult<T>) -> EngineResult<T> {
        if !self.change(RUNNING, SETTLED) && self.is_cancelled() {
            return Err(self.error());
        }
        let outcome = commit();
        if outcome.is_err() {
            self.change(SETTLED, RUNNING);
        }
        outcome
    }

    /// Sets the deadline that [`CancelToken::why_stopped`] checks.
    pub(crate) fn set_deadline(&self, deadline: Deadline) {
        // Setting the deadline cannot fail, because a token is used for only one execution.
        let _ = self.shared.deadline.set(deadline);
    }

    /// Returns why the statement must stop: a cancellation or a missed deadline. Returns `None` if
    /// the statement may continue.
    pub(crate) fn why_stopped(&self) -> Option<EngineError> {
        let deadline = self.shared.deadline.get();
        let late = deadline.filter(|deadline| deadline.has_passed());
        let is_late = late.is_some_and(|deadline| self.stop(deadline.error()));
        (is_late || self.is_cancelled()).then(|| self.error())
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.shared.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Returns why the statement was cancelled.
    pub(crate) fn error(&self) -> EngineError {
        let requested = || EngineError::new(ErrorCode::Cancelled, "cancelled by user");
        self.shared.why.get().cloned().unwrap_or_else(requested)
    }

    /// Whether the statement was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.shared.state.load(Ordering::Acquire) == STOPPED
    }

    /// Resolves when the statement is cancelled.
    pub(crate) async fn cancelled(&self) {
        loop {
            let woken = self.shared.wake.notified();
            if self.is_cancelled() {
                return;
            }
            woken.await;
        }
    }
}

/// A statement's deadline.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    timeout_ms: u64,
}

impl Deadline {
    /// Creates a deadline `timeout_ms` after the statement's start, which was `elapsed_ms` ago. A
    /// timeout that is absent or 0 means no deadline.
    pub(crate) fn of(timeout_ms: Option<u64>, elapsed_ms: u64) -> Self {
        let timeout_ms = timeout_ms.unwrap_or(0);
        let left = Duration::from_millis(timeout_ms.saturating_sub(elapsed_ms));
        let at = (timeout_ms > 0).then(|| Instant::now() + left);
        Self { at, timeout_ms }
    }

    async fn passed(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.at.is_some_and(|at| Instant::now() >= at)
    }

    fn error(&self) -> EngineError {
        EngineError::new(
            ErrorCode::Timeout,
            format!("timeout, query aborted [timeout={}ms]", self.timeout_ms),
        )
    }
}

/// Stops a statement during binding and planning, which never await.
pub(crate) struct StatementStop {
    pub(crate) token: CancelToken,
    pub(crate) deadline: Deadline,
}

impl Stop for StatementStop {
    fn check(&self) -> EngineResult<()> {
        let late = self.deadline.has_passed() && self.token.stop(self.deadline.error());
        if late || self.token.is_cancelled() { Err(self.token.error()) } else { Ok(()) }
    }
}

/// Runs `work` until it completes, is cancelled, or misses its deadline. Dropping the future also
/// stops `work`.
pub(crate) async fn until_stopped<T>(
    token: &CancelToken,
    deadline: Deadline,
    work: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    if token.is_cancelled() || (deadline.has_passed() && token.stop(deadline.error())) {
        return Err(token.error());
    }
    // If the query was stopped, the reason for stopping replaces any error from the interrupted
    // step.
    let done = |result: EngineResult<T>| {
        result.map_err(|error| {
            let late = deadline.has_passed() && token.stop(deadline.error());
            if late || token.is_cancelled() { token.error() } else { error }
        })
    };
    let mut work = pin!(work);
    // Work that is ready on the first poll needs neither a timer nor a waker.
    if let Poll::Ready(result) = futures::poll!(work.as_mut()) {
        return done(result);
    }
    // Some callers poll a statement once and, if it is still pending, hand it to another task. This
    // yield avoids a delay before that task's first poll.
    yield_now().await;
    tokio::select! {
        biased;
        () = token.cancelled() => return Err(token.error()),
        () = deadline.passed() => if token.stop(deadline.error()) {
            return Err(token.error());
        },
        result = &mut work => return done(result),
    }
    work.await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> EngineError {
        EngineError::new(ErrorCode::OutOfMemory, "no")
    }

    #[test]
    fn a_committing_statement_cannot_be_cancelled() {
        let token = CancelToken::default();
        let committed = token.settle(|| {
            token.cancel();
            assert!(!token.stop(refused()));
            Ok(7)
        });
        assert_eq!(committed.unwrap(), 7);
        token.cancel();
        assert!(!token.is_cancelled(), "the statement is already committed");
        assert_eq!(token.settle(|| Ok(8)).unwrap(), 8, "a statement may commit twice");
    }

    #[test]
    fn a_cancelled_statement_does_not_commit() {
        let token = CancelToken::default();
        assert!(token.stop(refused()));
        let committed = token.settle(|| -> EngineResult<()> { panic!("it was stopped") });
        assert_eq!(committed.unwrap_err().code, ErrorCode::OutOfMemory);
    }

    #[test]
    fn a_statement_can_be_cancelled_after_a_failed_commit() {
        let token = CancelToken::default();
        assert!(token.settle(|| -> EngineResult<()> { Err(refused()) }).is_err());
        token.cancel();
        assert!(token.is_cancelled());
    }

    #[test]
    fn a_deadline_does_not_stop_a_committed_statement() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let run = |commits: bool| {
            let token = CancelToken::default();
            runtime.block_on(until_stopped(&token, Deadline::of(Some(5), 0), async {
                if commits {
                    token.settle(|| Ok(()))?;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                Ok(())
            }))
        };
        assert_eq!(run(false).unwrap_err().code, ErrorCode::Timeout);
        run(true).unwrap();
    }
}
