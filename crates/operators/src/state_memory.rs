//! Memory shared by view states between refreshes. It has a common limit and is reserved before
//! use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Memory budget for all states.
#[derive(Debug)]
pub struct StateMemory {
    limit: usize,
    used: AtomicUsize,
}

impl StateMemory {
    /// Creates a budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    /// Number of reserved bytes.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Creates an empty reservation for one state.
    pub(crate) fn reservation(self: &Arc<Self>) -> StateReservation {
        StateReservation { of: Arc::clone(self), bytes: 0 }
    }
}

/// Memory reserved by one state; released when dropped.
#[derive(Debug)]
pub(crate) struct StateReservation {
    of: Arc<StateMemory>,
    bytes: usize,
}

impl StateReservation {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to a total of `bytes`. If the budget is too small, changes nothing
    /// and returns false.
    pub(crate) fn try_resize(&mut self, bytes: usize) -> bool {
        let StateMemory { limit, used } = self.of.as_ref();
        let own = self.bytes;
        let resized = used.try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            let others = used.saturating_sub(own);
            others.checked_add(bytes).filter(|all| bytes <= own || all <= limit)
        });
        if resized.is_ok() {
            self.bytes = bytes;
        }
        resized.is_ok()
    }
}

impl Drop for StateReservation {
    fn drop(&mut self) {
        self.try_resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_share_one_limit_and_release_their_bytes() {
        let memory = StateMemory::new(100);
        let (mut one, mut other) = (memory.reservation(), memory.reservation());
        assert!(one.try_resize(60) && other.try_resize(40));
        assert!(!other.try_resize(41) && !one.try_resize(usize::MAX));
        assert_eq!((one.bytes(), other.bytes(), memory.used()), (60, 40, 100));
        assert!(one.try_resize(10) && other.try_resize(90));
        drop(other);
        assert_eq!(memory.used(), 10);
        drop(one);
        assert_eq!(memory.used(), 0);
    }
}
