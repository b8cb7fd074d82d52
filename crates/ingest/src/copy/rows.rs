//! Batches of parsed rows, and errors that stop the reader.

use arrow_array::ArrayRef;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use super::cells::Cells;

/// Maximum number of rows per batch.
const BATCH_ROWS: usize = 16_384;
/// Size in bytes at which a batch is complete, regardless of its row count.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum size of a row in bytes.
pub(super) const MAX_ROW_BYTES: usize = 64 << 20;

/// A batch of parsed rows.
#[derive(Debug, Clone)]
pub struct CopyBatch {
    /// For each row, the number of the line on which it begins, counted from 1. For binary data,
    /// the row number.
    pub lines: Vec<u64>,
    /// For each column, the type it was sent in and its values.
    pub columns: Vec<(SqlType, ArrayRef)>,
}

impl CopyBatch {
    /// Returns a range of the batch's rows.
    #[must_use]
    pub fn slice(&self, start: usize, rows: usize) -> Self {
        let slice_of =
            |(sql_type, cells): &(SqlType, ArrayRef)| (*sql_type, cells.slice(start, rows));
        let lines = self.lines[start..start + rows].to_vec();
        Self { lines, columns: self.columns.iter().map(slice_of).collect() }
    }
}

/// The error that ends a COPY, and where it occurred.
#[derive(Debug)]
pub struct CopyFailure {
    /// Line number, or row number for binary data; `None` if no specific line caused the error.
    pub line: Option<u64>,
    /// The error.
    pub error: Box<EngineError>,
}

impl From<EngineError> for CopyFailure {
    fn from(error: EngineError) -> Self {
        Self { line: None, error: Box::new(error) }
    }
}

/// Result of a parsing step.
pub type CopyResult = Result<(), CopyFailure>;

/// Callback for parsed rows.
pub(super) type Sink<'a> = &'a mut dyn FnMut(CopyBatch) -> CopyResult;

/// Progress of a parsing step.
pub(super) enum Progress {
    /// All input up to this position was read; the remaining input is incomplete.
    To(usize),
    /// The data has ended; the remaining input is ignored.
    Over,
}

/// Rows that are being collected into a batch.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) columns: Vec<Cells>,
    lines: Vec<u64>,
    bytes: usize,
    /// Number of rows read so far, including those in the current batch.
    pub(super) read: u64,
}

impl Rows {
    pub(super) fn new(columns: Vec<Cells>) -> Self {
        Self { columns, lines: Vec::new(), bytes: 0, read: 0 }
    }

    /// Completes a row after its values have been appended.
    pub(super) fn ended(&mut self, line: u64, bytes: usize, sink: Sink<'_>) -> CopyResult {
        self.lines.push(line);
        self.read += 1;
        self.bytes += bytes;
        if self.lines.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Passes on the complete rows. Discards the values of a row that failed.
    pub(super) fn flush(&mut self, sink: Sink<'_>) -> CopyResult {
        if self.lines.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut self.lines);
        self.bytes = 0;
        let rows = lines.len();
        let columns = self.columns.iter_mut().map(|cells| cells.finish(rows));
        let columns = columns.collect::<EngineResult<_>>()?;
        sink(CopyBatch { lines, columns })
    }
}

pub(super) fn too_long() -> EngineError {
    let message = format!("COPY row is too long [limit={MAX_ROW_BYTES}]");
    EngineError::new(ErrorCode::ResourceLimit, message)
}

pub(super) fn malformed(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorCode::InvalidCopyData, message)
}
