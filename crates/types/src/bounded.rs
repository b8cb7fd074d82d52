//! What bounds the work on a statement before it runs: room on the stack, and whether it was
//! stopped meanwhile.
//!
//! Statements are bound and planned by recursion, ours and `DataFusion`'s, which takes neither a
//! token nor a care for the stack. So both belong to the thread: [`with_stop`] says what may stop
//! the work that begins, [`check_stop`] asks, from wherever the thread is by then, and [`deep`]
//! runs it on a stack that is large enough for the deepest plan allowed.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::EngineResult;

/// Free bytes of a stack below which [`grown`] goes on on another one. What runs between two of
/// its calls may itself walk an expression of some thousand levels.
const RED_ZONE_BYTES: usize = 2 * 1024 * 1024;
/// The stack it goes on with.
const SEGMENT_BYTES: usize = 16 * 1024 * 1024;
/// The stack of [`deep`]. Only the pages that are used take memory, as long as it runs.
const DEEP_BYTES: usize = 256 * 1024 * 1024;

/// Tells whether a statement was stopped.
pub trait Stop: Send + Sync {
    /// The error that ends it, once it was stopped.
    fn check(&self) -> EngineResult<()>;
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<dyn Stop>>> = const { RefCell::new(None) };
    static FOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Puts the former one back, even if the work panics.
struct Restored(Option<Arc<dyn Stop>>);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

/// Runs `work`, which `stop` may end wherever it asks.
pub fn with_stop<T>(stop: &Arc<dyn Stop>, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(CURRENT.replace(Some(Arc::clone(stop))));
    work()
}

/// Fails once the statement that this thread works on was stopped.
pub fn check_stop() -> EngineResult<()> {
    // Not while it asks: what it does may ask again.
    let current = CURRENT.with_borrow(Clone::clone);
    current.map_or(Ok(()), |stop| stop.check())
}

/// Puts the former state back, even if the work panics.
struct Unfolded(bool);

impl Drop for Unfolded {
    fn drop(&mut self) {
        FOLDS.set(self.0);
    }
}

/// Runs `work`, in which what is computed becomes a constant of a plan.
pub fn folding<T>(work: impl FnOnce() -> T) -> T {
    let _unfolded = Unfolded(FOLDS.replace(true));
    work()
}

/// Whether what this thread computes becomes a constant of a plan.
pub fn is_folding() -> bool {
    FOLDS.get()
}

/// Runs a step of a recursion, on more stack where little is left.
#[inline]
pub fn grown<T>(step: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE_BYTES, SEGMENT_BYTES, step)
}

/// Runs `work` on a stack that is large enough for recursions that do not ask for more.
pub fn deep<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(DEEP_BYTES, work)
}

/// A future that is polled as [`with_stop`] says.
pub struct Stoppable<F> {
    stop: Arc<dyn Stop>,
    work: F,
}

impl<F: Future + Unpin> Stoppable<F> {
    /// `work`, which `stop` may end wherever it asks.
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
    fn a_stop_holds_for_the_work_alone() {
        let stop: Arc<dyn Stop> = Arc::new(Stopped);
        assert!(check_stop().is_ok());
        assert!(with_stop(&stop, check_stop).is_err());
        assert!(check_stop().is_ok());
        let panics = std::panic::AssertUnwindSafe(|| with_stop(&stop, || panic!("within")));
        let panicked = std::panic::catch_unwind(panics);
        assert!(panicked.is_err());
        assert!(check_stop().is_ok(), "a panic ends it as well");
    }

    /// The sum of the numbers up to one, each added in a step of its own.
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
    fn recursion_has_room() {
        let most = 100_000;
        assert_eq!(sum(most, true), most * (most + 1) / 2);
        assert_eq!(deep(|| sum(most, false)), most * (most + 1) / 2);
    }
}
