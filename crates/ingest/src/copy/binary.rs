//! The binary format: a header, then rows of length-prefixed values.

use tidemark_types::EngineError;

use super::rows::{CopyFailure, MAX_ROW_BYTES, Progress, Rows, Sink, malformed, too_long};
use super::spec::CopyColumn;
use crate::parameters::binary_value;

const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// Size in bytes of the signature, the flags and the extension's length.
const HEADER_BYTES: usize = SIGNATURE.len() + 8;
/// Flags that a reader must understand in order to read the data.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

#[derive(Debug)]
pub(super) struct BinaryForm {
    /// Value types, as OIDs.
    oids: Vec<u32>,
    header_due: bool,
    is_over: bool,
    row: u64,
}

impl BinaryForm {
    pub(super) fn new(columns: &[CopyColumn]) -> Self {
        let oids = columns.iter().map(|column| column.oid).collect();
        Self { oids, header_due: true, is_over: false, row: 0 }
    }

    /// Returns the number of the current row.
    pub(super) fn line(&self) -> u64 {
        self.row
    }

    fn failure(&self, error: EngineError) -> CopyFailure {
        CopyFailure { line: Some(self.row), error: Box::new(error) }
    }

    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        rows: &mut Rows,
        sink: Sink<'_>,
    ) -> Result<Progress, CopyFailure> {
        let mut at = 0;
        if self.header_due {
            match header(bytes).map_err(|error| self.failure(error))? {
                Some(end) => (at, self.header_due) = (end, false),
                None if is_last => return Err(self.failure(cut_short())),
                None => return Ok(Progress::To(0)),
            }
        }
        while !self.is_over
            && let Some(next) = self.row(bytes, at, rows, sink)?
        {
            at = next;
        }
        if self.is_over && at < bytes.len() {
            return Err(self.failure(malformed("received copy data after EOF marker")));
        }
        if is_last && at < bytes.len() {
            return Err(self.failure(cut_short()));
        }
        Ok(Progress::To(at))
    }

    /// Reads the row at `at` and returns its end; `None` if the row is incomplete.
    fn row(
        &mut self,
        bytes: &[u8],
        at: usize,
        rows: &mut Rows,
        sink: Sink<'_>,
    ) -> Result<Option<usize>, CopyFailure> {
        let Some(count) = number::<2>(bytes, at).map(i16::from_be_bytes) else { return Ok(None) };
        if count == -1 {
            self.is_over = true;
            return Ok(Some(at + 2));
        }
        let expected = self.oids.len();
        if usize::try_from(count) != Ok(expected) {
            self.row += 1;
            let message = format!("row field count is {count}, expected {expected}");
            return Err(self.failure(malformed(message)));
        }
        let Some(end) = self.end_of_row(bytes, at + 2)? else { return Ok(None) };
        self.row += 1;
        self.add(bytes, at + 2, rows).map_err(|error| self.failure(error))?;
        rows.ended(self.row, end - at, sink)?;
        Ok(Some(end))
    }

    /// Returns the end of the row whose values begin at `at`.
    fn end_of_row(&mut self, bytes: &[u8], mut at: usize) -> Result<Option<usize>, CopyFailure> {
        for _ in 0..self.oids.len() {
            let Some(length) = number(bytes, at).map(i32::from_be_bytes) else { return Ok(None) };
            if length < -1 {
                self.row += 1;
                return Err(self.failure(malformed("invalid field size")));
            }
            at += 4 + usize::try_from(length).unwrap_or(0);
        }
        Ok((at <= bytes.len()).then_some(at))
    }

    /// Appends the values of a complete row.
    fn add(&self, bytes: &[u8], mut at: usize, rows: &mut Rows) -> Result<(), EngineError> {
        for (index, (oid, cells)) in self.oids.iter().zip(&mut rows.columns).enumerate() {
            let length = number(bytes, at).map_or(-1, i32::from_be_bytes);
            at += 4;
            let Ok(length) = usize::try_from(length) else {
                cells.push_null();
                continue;
            };
            let value = bytes.get(at..at + length).unwrap_or_default();
            cells.push(&binary_value(value, *oid, index)?)?;
            at += length;
        }
        Ok(())
    }
}

/// Returns the end of the header; `None` if the header is incomplete.
fn header(bytes: &[u8]) -> Result<Option<usize>, EngineError> {
    let word = |at| number(bytes, at).map_or(0, u32::from_be_bytes);
    if bytes.len() < HEADER_BYTES {
        return Ok(None);
    }
    if !bytes.starts_with(SIGNATURE) {
        return Err(malformed("COPY file signature not recognized"));
    }
    let extension = word(SIGNATURE.len() + 4) as usize;
    if extension > MAX_ROW_BYTES {
        return Err(too_long());
    }
    if bytes.len() < HEADER_BYTES + extension {
        return Ok(None);
    }
    if word(SIGNATURE.len()) & CRITICAL_FLAGS != 0 {
        return Err(malformed("unrecognized critical flags in COPY file header"));
    }
    Ok(Some(HEADER_BYTES + extension))
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn cut_short() -> EngineError {
    malformed("unexpected EOF in COPY data")
}
