//! The streaming reader.

use arrow_array::RecordBatch;
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::csv_spec::{CsvReport, CsvSpec};

/// Reads one CSV text, cut anywhere into chunks.
#[derive(Debug)]
pub struct CsvReader {
    report: CsvReport,
}

/// Takes each finished batch.
type Sink<'a> = &'a mut dyn FnMut(RecordBatch) -> EngineResult<()>;

impl CsvReader {
    /// A reader for a text of this shape.
    pub fn new(spec: CsvSpec) -> EngineResult<Self> {
        let column_errors = vec![0; spec.columns.len()];
        Ok(Self { report: CsvReport { column_errors, ..CsvReport::default() } })
    }

    /// Reads the next chunk; full batches go to `sink`.
    pub fn feed(&mut self, _bytes: &[u8], _sink: Sink<'_>) -> EngineResult<()> {
        Err(EngineError::new(ErrorCode::NotSupported, "CSV comes with the next change"))
    }

    /// Ends the text: the last line may lack its line end.
    pub fn finish(&mut self, _sink: Sink<'_>) -> EngineResult<()> {
        Ok(())
    }

    /// What was read so far.
    #[must_use]
    pub fn report(&self) -> &CsvReport {
        &self.report
    }
}
