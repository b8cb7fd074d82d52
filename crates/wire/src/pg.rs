//! Rows as pg.
use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};
#[derive(Debug)]
pub(crate) struct PgRows {}
impl PgRows {
    pub(crate) fn new(_: &[Field], _: &[i16]) -> EngineResult<Self> {
        Ok(Self {})
    }
    pub(crate) fn encode(&mut self, _: &RecordBatch, _: &mut Vec<u8>) -> EngineResult<()> {
        Err(EngineError::new(ErrorCode::NotSupported, "pgwire rows come with the next change"))
    }
}
