//! Rows as CSV.
use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};
#[derive(Debug)]
pub(crate) struct CsvRows {}
impl CsvRows {
    pub(crate) fn new(_: &[Field], _: u8, _: bool) -> Self {
        Self {}
    }
    pub(crate) fn encode(&mut self, _: &RecordBatch, _: &mut Vec<u8>) -> EngineResult<()> {
        Err(EngineError::new(ErrorCode::NotSupported, "CSV rows come with the next change"))
    }
    pub(crate) fn finish(&mut self, _: &mut Vec<u8>) {}
}
