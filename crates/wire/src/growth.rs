//! Requests memory before a buffer of encoded rows grows. A row with many columns may be very long,
//! and an escaped string may be six times as long as the original.

use tidemark_types::{EngineResult, account};

/// Number of bytes by which a buffer may grow without a request.
const FREE_BYTES: usize = 1 << 20;

/// Buffer length for which memory was requested.
#[derive(Debug)]
pub(crate) struct Growth {
    requested: usize,
}

impl Growth {
    /// Starts with the current length of a buffer.
    pub(crate) fn of(out: &[u8]) -> Self {
        Self { requested: out.len() + FREE_BYTES }
    }

    /// Must be called after each cell.
    #[inline]
    pub(crate) fn check(&mut self, out: &[u8]) -> EngineResult<()> {
        if out.len() <= self.requested { Ok(()) } else { self.request(out) }
    }

    /// Requests memory for a buffer that doubles as it grows.
    #[cold]
    fn request(&mut self, out: &[u8]) -> EngineResult<()> {
        self.requested = 2 * out.len();
        account::check_allocation(out.len())
    }
}
