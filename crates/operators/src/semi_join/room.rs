//! Memory that a set of keys asks for before it grows.

use datafusion::execution::memory_pool::MemoryReservation;

use crate::operator::Run;

/// See the file's head.
pub(super) trait Room {
    /// Takes so many bytes, if there are as many.
    fn take(&self, bytes: usize) -> bool;

    /// Gives so many of them back.
    fn give(&self, bytes: usize);
}

/// What a query may hold.
pub(super) struct Reserved<'a> {
    pub(super) run: &'a Run,
    pub(super) memory: &'a MemoryReservation,
}

impl Room for Reserved<'_> {
    fn take(&self, bytes: usize) -> bool {
        self.run.hold(self.memory, bytes)
    }

    fn give(&self, bytes: usize) {
        self.memory.shrink(bytes);
    }
}

/// What was counted before.
pub(super) struct Counted;

impl Room for Counted {
    fn take(&self, _: usize) -> bool {
        true
    }

    fn give(&self, _: usize) {}
}
