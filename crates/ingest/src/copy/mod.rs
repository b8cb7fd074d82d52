//! Converts `COPY … FROM STDIN` data to columns of values in the types they were sent in: strings,
//! symbols or binary values. The INSERT path then assigns the values to the table's columns, so the
//! result is the same as if they were in a VALUES list.
//!
//! The data may arrive in chunks of any size. An incomplete row is buffered, and is parsed again
//! once the buffer has doubled in size.

mod binary;
mod cells;
mod csv;
mod escape;
mod lines;
mod position;
mod rows;
mod spec;

use self::binary::BinaryForm;
use self::cells::Cells;
use self::lines::LineForm;
pub use self::rows::{CopyBatch, CopyFailure, CopyResult};
use self::rows::{MAX_ROW_BYTES, Progress, Rows, Sink, too_long};
pub use self::spec::{CopyColumn, CopyFormat, CopySpec, LineMarks};

/// Reads the data for one COPY.
#[derive(Debug)]
pub struct CopyReader {
    form: Form,
    rows: Rows,
    pending: Vec<u8>,
    /// Size in bytes at which the pending data is parsed again.
    enough: usize,
}

#[derive(Debug)]
enum Form {
    Lines(LineForm),
    Binary(BinaryForm),
}

impl CopyReader {
    /// Creates a reader for data with these options.
    #[must_use]
    pub fn new(spec: CopySpec) -> Self {
        let is_binary = spec.format == CopyFormat::Binary;
        let columns = spec.columns.iter().map(|column| Cells::new(column, is_binary)).collect();
        let rows = Rows::new(columns);
        let form = match spec.format {
            CopyFormat::Binary => Form::Binary(BinaryForm::new(&spec.columns)),
            format => Form::Lines(LineForm::new(format, spec.header, spec.columns)),
        };
        Self { form, rows, pending: Vec::new(), enough: 0 }
    }

    /// Returns the number of rows read so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.read
    }

    /// Parses the next chunk of data.
    pub fn feed(&mut self, bytes: &[u8], sink: Sink<'_>) -> CopyResult {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() < self.enough.min(MAX_ROW_BYTES) {
            return Ok(());
        }
        self.step(false, sink)
    }

    /// Ends the data.
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
                // Rows before this position may contain an earlier error, which is reported first.
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
                if left > MAX_ROW_BYTES {
                    self.rows.flush(sink)?;
                    return Err(CopyFailure {
                        line: Some(self.line()),
                        error: Box::new(too_long()),
                    });
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

#[cfg(test)]
mod tests;
