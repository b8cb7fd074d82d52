//! Turns a physical plan into chunks of encoded rows.
//!
//! `source` reads the plan's partitions in order, `window` selects the requested rows, `cursor`
//! encodes them, and `stream` delivers chunks with back-pressure.

pub(crate) mod cursor;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod window;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Fails if reading a mapped file has failed since `before`: zeros may have replaced its content.
/// Which query read the file is unknown, so each query running then fails. A retry succeeds for
/// queries that read other files.
pub(crate) fn check_faults(before: u64) -> EngineResult<()> {
    if tidemark_vfs::faults() == before {
        return Ok(());
    }
    let message = "a file could not be read while the statement ran";
    Err(EngineError::new(ErrorCode::Damaged, message)
        .with_hint("try again; if it comes again, CHECK DATABASE names the file"))
}
