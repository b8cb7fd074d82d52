//! Executes a physical plan and encodes its rows in chunks.
//!
//! `source` reads the plan's partitions in order, `window` selects the requested rows, `cursor`
//! encodes them, and `stream` delivers chunks with back-pressure.

pub(crate) mod cursor;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod window;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Fails if a read of a mapped file has failed since `before`, because zeros may have replaced the
/// file's content. It is unknown which query read the file, so every query that was running at the
/// time fails. Queries that read only intact files succeed when retried.
pub(crate) fn check_faults(before: u64) -> EngineResult<()> {
    if tidemark_vfs::faults() == before {
        return Ok(());
    }
    let message = "a data file could not be read while the statement was running";
    Err(EngineError::new(ErrorCode::Damaged, message)
        .with_hint("retry the statement; if it fails again, run CHECK DATABASE to find the file"))
}
