//! Memory that keys ask for before they take it.

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::operator::Run;

/// Takes how many bytes are held, and fails where the work may not go on.
pub(crate) type Hold<'a> = &'a dyn Fn(usize) -> Result<()>;

/// See the file's head.
pub(crate) trait Room {
    /// Takes so many bytes, if there are as many.
    fn take(&self, bytes: usize) -> bool;

    /// Gives so many of them back.
    fn give(&self, bytes: usize);
}

/// What a query may hold.
pub(crate) struct Reserved<'a> {
    pub(crate) run: &'a Run,
    pub(crate) memory: &'a MemoryReservation,
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
pub(crate) struct Counted;

impl Room for Counted {
    fn take(&self, _: usize) -> bool {
        true
    }

    fn give(&self, _: usize) {}
}
