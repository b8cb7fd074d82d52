//! Memory that key tables reserve before allocating it.

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::operator::Run;

/// Receives the total number of bytes in use; fails if the work must stop.
pub(crate) type MemoryCheck<'a> = &'a dyn Fn(usize) -> Result<()>;

/// See the module documentation.
pub(crate) trait KeyMemory {
    /// Reserves memory; returns false if it is not available.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Releases memory.
    fn release(&self, bytes: usize);
}

/// Memory within a query's limit.
pub(crate) struct Reserved<'a> {
    pub(crate) run: &'a Run,
    pub(crate) memory: &'a MemoryReservation,
}

impl KeyMemory for Reserved<'_> {
    fn try_reserve(&self, bytes: usize) -> bool {
        self.run.try_reserve(self.memory, bytes)
    }

    fn release(&self, bytes: usize) {
        self.memory.shrink(bytes);
    }
}

/// Memory that was reserved in advance.
pub(crate) struct Counted;

impl KeyMemory for Counted {
    fn try_reserve(&self, _: usize) -> bool {
        true
    }

    fn release(&self, _: usize) {}
}
