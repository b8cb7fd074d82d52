//! Limits the work done for a statement before it runs: bounds its stack space and lets it be
//! cancelled.
//!
//! Statements are bound and planned by recursive code, some of it in `DataFusion`, which accepts no
//! cancellation token and does not check the stack. Both limits therefore belong to the thread.
//! [`with_stop`] sets the condition that may stop the work, [`check_stop`] checks it from anywhere
//! on the thread, and [`deep`] runs the work on a stack large enough for the deepest allowed plan.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::EngineResult;

/// If fewer stack bytes than this are free, [`grown`] continues on a new segment. Code between two
/// calls may itself recurse through an expression with several thousand levels.
const RED_ZONE_BYTES: usize = 2 * 1024 * 1024;
/// Size of the new stack segment.
const SEGMENT_BYTES: usize = 16 * 1024 * 1024;
/// Stack size of [`deep`] in bytes. Only touched pages use memory, and only while the work runs.
const DEEP_BYTES: usize = 256 * 1024 * 1024;

/// Determines whether a statement was stopped.
pub trait Stop: Send + Sync {
    /// Returns the error that ends the statement, if the statement was stopped.
    fn check(&self) -> EngineResult<()>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Stop>>> = const { RefCell::new(None) };
    static FOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Restores the previous value, even if the work panics.
struct Restored(Option<Arc<dyn Stop>>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `work`, which `stop` may end at any check.
pub fn with_stop<T>(stop: &Arc<dyn Stop>, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(CURRENT.replace(Some(Arc::clone(stop))));
    work()
}

/// Fails if this thread's statement was stopped.
pub fn check_stop() -> EngineResult<()> {
    // Releases the borrow first, because the check may call this function again.
    let current = CURRENT.with_borrow(Clone::clone);
    current.map_or(Ok(()), |stop| stop.check())
}

/// Restores the previous state, even if the work panics.
struct Unfolded(bool);

impl Drop for Unfolded {
    fn drop(&mut self) {
        FOLDS.set(self.0);
    }
}

/// Runs `work`, whose results become constants in a plan.
pub fn folding<T>(work: impl FnOnce() -> T) -> T {
    let _unfolded = Unfolded(FOLDS.replace(true));
    work()
}

/// Whether results computed on this thread become constants in a plan.
pub fn is_folding() -> bool {
    FOLDS.get()
}

/// Runs a recursion step; uses a new stack segment if little space is left.
#[inline]
pub fn grown<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, SEGMENT_BYTES, step)
}

/// Runs `work` on a stack large enough for recursions that do not call [`grown`].
pub fn deep<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(DEEP_BYTES, work)
}

/// A future that is polled within [`with_stop`].
pub struct Stoppable<F> {
    stop: Arc<dyn Stop>,
    work: F,
}

impl<F: Future + Unpin> Stoppable<F> {
    /// Wraps `work`, which `stop` may end at any check.
    pub fn new(stop: Arc<dyn Stop>, work: F) -> Self {
        Self { stop, work }
    }
}

impl<F: Future + Unpin> Future for Stoppable<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { stop, work } = &mut *self;
        with_stop(stop, || Pin::new(work).poll(context))
    }
}

/// A future that is polled on a [`deep`] stack.
pub struct Deep<F>(pub F);

impl<F: Future + Unpin> Future for Deep<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        deep(|| Pin::new(&mut self.0).poll(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineError, ErrorCode};

    struct Stopped;

    impl Stop for Stopped {
        fn check(&self) -> EngineResult<()> {
            Err(EngineError::new(ErrorCode::Cancelled, "stopped"))
        }
    }

    #[test]
    fn a_stop_flag_applies_only_to_the_enclosed_work() {
        let stop: Arc<dyn Stop> = Arc::new(Stopped);
        assert!(check_stop().is_ok());
        assert!(with_stop(&stop, check_stop).is_err());
        assert!(check_stop().is_ok());
        let panics = std::panic::AssertUnwindSafe(|| with_stop(&stop, || panic!("within")));
        let panicked = std::panic::catch_unwind(panics);
        assert!(panicked.is_err());
        assert!(check_stop().is_ok(), "a panic removes the stop flag");
    }

    /// Returns the sum of the numbers up to `of`, each added in a separate recursion step.
    fn sum(of: u64, is_grown: bool) -> u64 {
        let padding = std::hint::black_box([of; 64]);
        let rest = match of {
            0 => 0,
            _ if is_grown => grown(|| sum(of - 1, is_grown)),
            _ => sum(of - 1, is_grown),
        };
        padding[63] + rest
    }

    #[test]
    fn deep_recursion_does_not_overflow_the_stack() {
        let max = 100_000;
        assert_eq!(sum(max, true), max * (max + 1) / 2);
        assert_eq!(deep(|| sum(max, false)), max * (max + 1) / 2);
    }
}
