//! Rows as json.
use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};
#[derive(Debug)]
pub(crate) struct JsonRows {}
impl JsonRows {
    pub(crate) fn new(_: &[Field], _: bool, _: Option<Vec<usize>>) -> EngineResult<Self> {
        Ok(Self {})
    }
    pub(crate) fn encode(&mut self, _: &RecordBatch, _: &mut Vec<u8>) -> EngineResult<()> {
        Err(EngineError::new(ErrorCode::NotSupported, "json rows come with the next change"))
    }
}
