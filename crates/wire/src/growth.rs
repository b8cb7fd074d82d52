//! Asks before a buffer of encoded rows grows: a single row may be as long as its columns are many,
//! and an escaped text six times its length.

use tidemark_types::{EngineResult, account};

/// Bytes that a buffer grows by without asking.
const FREE_BYTES: usize = 1 << 20;

/// How far a buffer has asked for.
#[derive(Debug)]
pub(crate) struct Growth {
    asked: usize,
}

impl Growth {
    /// For a buffer that holds so many bytes.
    pub(crate) fn of(out: &[u8]) -> Self {
        Self { asked: out.len() + FREE_BYTES }
    }

    /// To be called after each cell.
    #[inline]
    pub(crate) fn check(&mut self, out: &[u8]) -> EngineResult<()> {
        if out.len() <= self.asked { Ok(()) } else { self.ask(out) }
    }

    /// It doubles as it grows.
    #[cold]
    fn ask(&mut self, out: &[u8]) -> EngineResult<()> {
        self.asked = 2 * out.len();
        account::room(out.len())
    }
}
