//! From a physical plan to chunks of encoded rows.
//!
//! `source` joins the plan's partitions in order, `window` cuts out the rows asked for, `cursor`
//! encodes them, `stream` hands chunks over with back-pressure.

pub(crate) mod cursor;
pub(crate) mod source;
pub(crate) mod stream;
pub(crate) mod window;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

/// Fails when a mapped file could not be read since: zeros may have replaced its content. Which
/// query read it is unknown, so each that ran then fails; tried again, those that read other
/// files succeed.
pub(crate) fn check_faults(before: u64) -> EngineResult<()> {
    if tidemark_vfs::faults() == before {
        return Ok(());
    }
    let message = "a file could not be read while the statement ran";
    Err(EngineError::new(ErrorCode::Damaged, message)
        .with_hint("try again; if it comes again, CHECK DATABASE names the file"))
}
