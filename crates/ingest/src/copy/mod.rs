//! The data of `COPY … FROM STDIN` to columns of values as they came: texts, symbols, or what a
//! binary value is. What they become in their columns is decided where an INSERT is: the same
//! values in a list of VALUES give the same rows.
//!
//! Data come in any pieces. What belongs to a row that is not complete is kept, and looked at again
//! when as much again has come.

mod binary;
mod cells;
mod csv;
mod escape;
mod lines;

use arrow_array::ArrayRef;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use self::binary::BinaryForm;
use self::cells::Cells;
use self::lines::LineForm;

/// Rows of a full batch.
const BATCH_ROWS: usize = 16_384;
/// Bytes after which a batch is full all the same.
const BATCH_BYTES: usize = 8 << 20;
/// Bytes of a row, at most.
const MOST_ROW_BYTES: usize = 64 << 20;

/// How the data are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopySpec {
    /// Their format.
    pub format: CopyFormat,
    /// What the first line is.
    pub header: CopyHeader,
    /// The columns, in the order of the values.
    pub columns: Vec<CopyColumn>,
}

/// A format of COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyFormat {
    /// Lines with backslashes.
    Text(LineMarks),
    /// Lines with quotes.
    Csv {
        /// What parts values, and what is null.
        marks: LineMarks,
        /// Stands around values.
        quote: u8,
        /// Stands in front of a quote that is part of a value.
        escape: u8,
    },
    /// Values in binary.
    Binary,
}

/// What lines of any format have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMarks {
    /// The byte between values.
    pub delimiter: u8,
    /// The text of a null.
    pub null: Vec<u8>,
}

/// What the first line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyHeader {
    /// A row.
    None,
    /// Passed over.
    Skip,
    /// It has to have the names of the columns.
    Match,
}

/// A column that values go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// The type that binary values have, as an OID of `PostgreSQL`.
    pub oid: u32,
    /// CSV: a value without quotes is not null, even if it is written as null is.
    pub force_not_null: bool,
    /// CSV: a value in quotes is null if it is written as null is.
    pub force_null: bool,
}

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
    pub error: EngineError,
}

impl From<EngineError> for CopyFailure {
    fn from(error: EngineError) -> Self {
        Self { line: None, error }
    }
}

/// The outcome of a step.
pub type CopyResult = Result<(), CopyFailure>;

/// Takes rows that were read.
type Sink<'a> = &'a mut dyn FnMut(CopyBatch) -> CopyResult;

/// Reads the data of one COPY.
#[derive(Debug)]
pub struct CopyReader {
    form: Form,
    rows: Rows,
    pending: Vec<u8>,
    /// Bytes below which looking at what is pending again is of no use.
    enough: usize,
}

#[derive(Debug)]
enum Form {
    Lines(LineForm),
    Binary(BinaryForm),
}

/// How far a step came.
enum Progress {
    /// To here; what follows is not complete.
    To(usize),
    /// The data have ended: what follows is nothing.
    Over,
}

impl CopyReader {
    /// A reader for data of this form.
    #[must_use]
    pub fn new(spec: CopySpec) -> Self {
        let is_binary = spec.format == CopyFormat::Binary;
        let columns = spec.columns.iter().map(|column| Cells::new(column, is_binary)).collect();
        let rows = Rows { columns, lines: Vec::new(), bytes: 0, read: 0 };
        let form = match spec.format {
            CopyFormat::Binary => Form::Binary(BinaryForm::new(&spec.columns)),
            format => Form::Lines(LineForm::new(format, spec.header, spec.columns)),
        };
        Self { form, rows, pending: Vec::new(), enough: 0 }
    }

    /// Rows read so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.read
    }

    /// Takes the next bytes.
    pub fn feed(&mut self, bytes: &[u8], sink: Sink<'_>) -> CopyResult {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() < self.enough.min(MOST_ROW_BYTES) {
            return Ok(());
        }
        self.step(false, sink)
    }

    /// The data have ended.
    pub fn finish(&mut self, sink: Sink<'_>) -> CopyResult {
        self.step(true, sink)?;
        self.rows.flush(sink)
    }

    fn step(&mut self, is_last: bool, sink: Sink<'_>) -> CopyResult {
        let pending = std::mem::take(&mut self.pending);
        let read = match &mut self.form {
            Form::Lines(form) => form.read(&pending, is_last, &mut self.rows, sink),
            Form::Binary(form) => form.read(&pending, is_last, &mut self.rows, sink),
        };
        let read = match read {
            Ok(read) => read,
            Err(failure) => {
                // The rows before it may hold an earlier mistake.
                self.rows.flush(sink)?;
                return Err(failure);
            }
        };
        self.pending = pending;
        match read {
            Progress::Over => self.pending.clear(),
            Progress::To(at) => {
                self.pending.drain(..at);
                let left = self.pending.len();
                self.enough = if at == 0 { left.saturating_mul(2) } else { 0 };
                if left > MOST_ROW_BYTES {
                    self.rows.flush(sink)?;
                    return Err(CopyFailure { line: Some(self.line()), error: too_long() });
                }
            }
        }
        Ok(())
    }

    fn line(&self) -> u64 {
        match &self.form {
            Form::Lines(form) => form.line(),
            Form::Binary(form) => form.line(),
        }
    }
}

/// Rows on their way into a batch.
#[derive(Debug)]
struct Rows {
    columns: Vec<Cells>,
    lines: Vec<u64>,
    bytes: usize,
    /// Rows that were given out, or are here.
    read: u64,
}

impl Rows {
    /// A row whose values were added has ended.
    fn ended(&mut self, line: u64, bytes: usize, sink: Sink<'_>) -> CopyResult {
        self.lines.push(line);
        self.read += 1;
        self.bytes += bytes;
        if self.lines.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.flush(sink)?;
        }
        Ok(())
    }

    /// Gives out the rows that are whole; the values of one that is wrong are forgotten.
    fn flush(&mut self, sink: Sink<'_>) -> CopyResult {
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

fn too_long() -> EngineError {
    let message = format!("a row of COPY is too long [limit={MOST_ROW_BYTES}]");
    EngineError::new(ErrorCode::ResourceLimit, message)
}

fn malformed(message: impl Into<String>) -> EngineError {
    EngineError::new(ErrorCode::InvalidCopyData, message)
}

#[cfg(test)]
mod tests;
