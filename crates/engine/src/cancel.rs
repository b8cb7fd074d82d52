//! One token per query: socket close, `CancelRequest`, CANCEL QUERY and timeouts share it.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Tells a running query to stop.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    /// Why, when it was not somebody's wish.
    why: OnceLock<EngineError>,
    wake: Notify,
}

impl CancelToken {
    /// Cancels; lock-free, may be called from anywhere, any number of times.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
        self.shared.wake.notify_waiters();
    }

    /// Cancels for a reason of the server's.
    pub(crate) fn stop(&self, why: EngineError) {
        // The first reason counts.
        let _ = self.shared.why.set(why);
        self.cancel();
    }

    fn error(&self) -> EngineError {
        let asked = || EngineError::new(ErrorCode::Cancelled, "cancelled by user");
        self.shared.why.get().cloned().unwrap_or_else(asked)
    }

    /// Whether `cancel` was called.
    pub fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Acquire)
    }

    async fn cancelled(&self) {
        loop {
            let woken = self.shared.wake.notified();
            if self.is_cancelled() {
                return;
            }
            woken.await;
        }
    }
}

/// When a statement has to be over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Option<Instant>,
    timeout_ms: u64,
}

impl Deadline {
    /// A deadline `timeout_ms` from now; none when absent or 0.
    pub(crate) fn after(timeout_ms: Option<u64>) -> Self {
        let timeout_ms = timeout_ms.unwrap_or(0);
        let at = (timeout_ms > 0).then(|| Instant::now() + Duration::from_millis(timeout_ms));
        Self { at, timeout_ms }
    }

    async fn passed(&self) {
        match self.at {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    fn error(&self) -> EngineError {
        EngineError::new(
            ErrorCode::Timeout,
            format!("timeout, query aborted [timeout={}ms]", self.timeout_ms),
        )
    }
}

/// Runs `work` until it is done, cancelled or late; dropping it stops it.
pub(crate) async fn until_stopped<T>(
    token: &CancelToken,
    deadline: Deadline,
    work: impl Future<Output = EngineResult<T>>,
) -> EngineResult<T> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(token.error()),
        () = deadline.passed() => Err(deadline.error()),
        result = work => result,
    }
}
