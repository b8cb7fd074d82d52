//! Memory that key tables reserve before they allocate it.

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::operator::Run;

/// Receives the total bytes in use; fails if the work must stop.
pub(crate) type Hold<'a> = &'a dyn Fn(usize) -> Result<()>;

/// See the module documentation.
pub(crate) trait Room {
    /// Reserves memory; false if it is not available.
    fn take(&self, bytes: usize) -> bool;

    /// Releases memory.
    fn give(&self, bytes: usize);
}

/// Memory within the limit of a query.
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

/// Memory that was reserved in advance.
pub(crate) struct Counted;

impl Room for Counted {
    fn take(&self, _: usize) -> bool {
        true
    }

    fn give(&self, _: usize) {}
}
