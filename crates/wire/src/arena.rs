//! The Arrow arena.
use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};

/// One record batch as one buffer that `arrow-js-ffi` reads.
pub fn write_arena(batch: &RecordBatch) -> EngineResult<Vec<u8>> {
    let mut out = Vec::new();
    append_arena(&[], batch, &mut out)?;
    Ok(out)
}

pub(crate) fn append_arena(_: &[Field], _: &RecordBatch, _: &mut Vec<u8>) -> EngineResult<()> {
    Err(EngineError::new(ErrorCode::NotSupported, "the arena comes with the next change"))
}
