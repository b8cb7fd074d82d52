//! Rows that were read, in batches, and what ends the reading.

use arrow_array::ArrayRef;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use super::cells::Cells;

/// Rows of a full batch.
const BATCH_ROWS: usize = 16_384;
/// Bytes after which a batch is full all the same.
const BATCH_BYTES: usize = 8 << 20;
/// Bytes of a row, at most.
pub(super) const MAX_ROW_BYTES: usize = 64 << 20;

/// Rows that were read.
#[derive(Debug, Clone)]
pub struct CopyBatch {
    /// For each row the line in which it begins, from 1; of binary data its number.
    pub lines: Vec<u64>,
    /// For each column the type in which its values came, and these.
    pub columns: Vec<(SqlType, ArrayRef)>,
}

impl CopyBatch {
    /// Some of the rows.
    #[must_use]
    pub fn slice(&self, start: usize, rows: usize) -> Self {
        let part = |(sql_type, cells): &(SqlType, ArrayRef)| (*sql_type, cells.slice(start, rows));
        let lines = self.lines[start..start + rows].to_vec();
        Self { lines, columns: self.columns.iter().map(part).collect() }
    }
}

/// What ends a COPY, and where.
#[derive(Debug)]
pub struct CopyFailure {
    /// The line; of binary data, the row. None where no line is to blame.
    pub line: Option<u64>,
    /// What is wrong.
    pub error: Box<EngineError>,
}

impl From<EngineError> for CopyFailure {
    fn from(error: EngineError) -> Self {
        Self { line: None, error: Box::new(error) }
    }
}

/// The outcome of a step.
pub type CopyResult = Result<(), CopyFailure>;

/// Takes rows that were read.
pub(super) type Sink<'a> = &'a mut dyn FnMut(CopyBatch) -> CopyResult;

/// How far a step came.
pub(super) enum Progress {
    /// To here; what follows is not complete.
    To(usize),
    /// The data have ended: what follows is nothing.
    Over,
}

/// Rows on their way into a batch.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) columns: Vec<Cells>,
    lines: Vec<u64>,
    bytes: usize,
    /// Rows that were given out, or are here.
    pub(super) read: u64,
}

impl Rows {
    pub(super) fn new(columns: Vec<Cells>) -> Self {
        Self { columns, lines: Vec::new(), bytes: 0, read: 0 }
    }

    /// A row whose values were added has ended.
    pub(super) fn ended(&mut self, line: u64, bytes: usize, sink: Sink<'_>) -> CopyResult {
        self.lines.push(line);
        self.read += 1;
        self.bytes += bytes;
        if self.lines.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Gives out the rows that are whole; the values of one that is wrong are forgotten.
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
    let message = format!("a row of COPY is too long [limit={MAX_ROW_BYTES}]");
    EngineError::new(ErrorCode::ResourceLimit, message)
}

pub(super) fn malformed(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorCode::InvalidCopyData, message)
}
