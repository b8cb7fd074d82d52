//! Line formats: the text format and CSV.

use tidemark_border::CopyHeader;
use tidemark_types::{EngineError, ErrorCode};

use super::csv::{self, Unterminated};
use super::escape::unescaped;
use super::position::{Kind, Marked, ValuePosition};
use super::rows::{CopyFailure, CopyResult, Progress, Rows, Sink, malformed};
use super::spec::{CopyColumn, CopyFormat, LineMarks};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// A line with only this marker ends the data.
const END_OF_DATA: &[u8] = b"\\.";

#[derive(Debug)]
pub(super) struct LineForm {
    marks: LineMarks,
    /// CSV quote and escape characters.
    quoting: Option<(u8, u8)>,
    columns: Vec<CopyColumn>,
    header: CopyHeader,
    at_start: bool,
    is_over: bool,
    line: u64,
    values: Vec<ValuePosition>,
    texts: Vec<u8>,
}

impl LineForm {
    pub(super) fn new(format: CopyFormat, header: CopyHeader, columns: Vec<CopyColumn>) -> Self {
        let (marks, quoting) = match format {
            CopyFormat::Csv { marks, quote, escape } => (marks, Some((quote, escape))),
            CopyFormat::Text(marks) => (marks, None),
            CopyFormat::Binary => (LineMarks { delimiter: b'\t', null: Vec::new() }, None),
        };
        Self {
            marks,
            quoting,
            columns,
            header,
            at_start: true,
            is_over: false,
            line: 1,
            values: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Returns the number of the current line.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    fn failure(&self, error: EngineError) -> CopyFailure {
        CopyFailure { line: Some(self.line), error: Box::new(error) }
    }

    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        rows: &mut Rows,
        sink: Sink<'_>,
    ) -> Result<Progress, CopyFailure> {
        let mut at = 0;
        if self.at_start {
            let may_follow = bytes.len() < BYTE_ORDER_MARK.len() && !is_last;
            if may_follow && BYTE_ORDER_MARK.starts_with(bytes) {
                return Ok(Progress::To(0));
            }
            self.at_start = false;
            at = if bytes.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        }
        while !self.is_over && at < bytes.len() {
            if bytes[at] == b'\\'
                && let Some(is_end) = ends_data(&bytes[at..], is_last)
            {
                if !is_end {
                    break;
                }
                self.is_over = true;
                break;
            }
            let Some(marked) = self.record(bytes, at, is_last)? else { break };
            self.take(bytes, at, marked, rows, sink)?;
            self.line += marked.lines;
            at = marked.next;
        }
        Ok(if self.is_over { Progress::Over } else { Progress::To(at) })
    }

    /// Parses the record at `at`; `None` if the record is incomplete.
    fn record(
        &mut self,
        bytes: &[u8],
        at: usize,
        is_last: bool,
    ) -> Result<Option<Marked>, CopyFailure> {
        let (positions, texts) = (&mut self.values, &mut self.texts);
        let delimiter = self.marks.delimiter;
        let Some((quote, escape)) = self.quoting else {
            return Ok(escaped_record(bytes, at, is_last, delimiter, positions));
        };
        csv::record(bytes, at, is_last, (delimiter, quote, escape), positions, texts)
            .map_err(|Unterminated| self.failure(malformed("unterminated CSV quoted field")))
    }

    fn take(
        &mut self,
        bytes: &[u8],
        at: usize,
        marked: Marked,
        rows: &mut Rows,
        sink: Sink<'_>,
    ) -> CopyResult {
        let record = std::str::from_utf8(&bytes[at..marked.next]);
        let record = record.map_err(|_| self.failure(invalid_text("")))?;
        match std::mem::replace(&mut self.header, CopyHeader::None) {
            CopyHeader::Skip => return Ok(()),
            CopyHeader::Match => {
                return self.check_header(bytes).map_err(|error| self.failure(error));
            }
            CopyHeader::None => {}
        }
        self.check_count().map_err(|error| self.failure(error))?;
        if memchr::memchr(0, record.as_bytes()).is_some() {
            return Err(self.failure(invalid_text(": 0x00")));
        }
        self.add(record, at, rows).map_err(|error| self.failure(error))?;
        rows.ended(self.line, record.len(), sink)
    }

    /// Appends the record's values to their columns. The record begins at `at`.
    fn add(&mut self, record: &str, at: usize, rows: &mut Rows) -> Result<(), EngineError> {
        let null = self.marks.null.as_slice();
        let texts = &mut self.texts;
        let positions = self.values.iter().zip(&self.columns);
        for ((position, column), cells) in positions.zip(&mut rows.columns) {
            if position.kind == Kind::Quoted {
                let raw = &texts[position.start..position.end];
                if column.force_null && raw == null {
                    cells.push_null();
                } else {
                    cells.push_text(text_of(raw)?)?;
                }
                continue;
            }
            // The range is bounded by ASCII bytes, so it cannot split a character.
            let raw = record.get(position.start - at..position.end - at).ok_or_else(unfit)?;
            if !column.force_not_null && raw.as_bytes() == null {
                cells.push_null();
            } else if position.kind == Kind::Escaped {
                texts.clear();
                unescaped(raw.as_bytes(), texts);
                cells.push_text(text_of(texts)?)?;
            } else {
                cells.push_text(raw)?;
            }
        }
        Ok(())
    }

    fn check_count(&self) -> Result<(), EngineError> {
        match self.columns.get(self.values.len()) {
            Some(column) => Err(malformed(format!("missing data for column \"{}\"", column.name))),
            None if self.values.len() > self.columns.len() => {
                Err(malformed("extra data after last expected column"))
            }
            None => Ok(()),
        }
    }

    fn check_header(&self, bytes: &[u8]) -> Result<(), EngineError> {
        self.check_count()?;
        for (index, (position, column)) in self.values.iter().zip(&self.columns).enumerate() {
            let mut found = Vec::new();
            match position.kind {
                Kind::Quoted => found.extend_from_slice(&self.texts[position.start..position.end]),
                Kind::Plain => found.extend_from_slice(&bytes[position.start..position.end]),
                Kind::Escaped => unescaped(&bytes[position.start..position.end], &mut found),
            }
            let found = String::from_utf8_lossy(&found);
            if found.to_lowercase() != column.name.to_lowercase() {
                let (number, name) = (index + 1, &column.name);
                return Err(malformed(format!(
                    "column {number} of the header: got \"{found}\", expected \"{name}\""
                )));
            }
        }
        Ok(())
    }
}

/// Whether a line that begins with a backslash ends the data. Returns `None` for any other line,
/// and `false` while more bytes are needed to decide.
fn ends_data(line: &[u8], is_last: bool) -> Option<bool> {
    let Some(rest) = line.strip_prefix(END_OF_DATA) else {
        return (END_OF_DATA.starts_with(line) && !is_last).then_some(false);
    };
    match rest {
        [b'\n', ..] | [b'\r', b'\n', ..] => Some(true),
        [] | [b'\r'] => Some(is_last),
        _ => None,
    }
}

/// Parses the text-format record at `at`. A backslash before a line end continues the record on the
/// next line.
fn escaped_record(
    bytes: &[u8],
    at: usize,
    is_last: bool,
    delimiter: u8,
    positions: &mut Vec<ValuePosition>,
) -> Option<Marked> {
    positions.clear();
    let mut lines = 1;
    let mut start = at;
    let mut index = at;
    let mut kind = Kind::Plain;
    // End of the last escaped byte.
    let mut escaped_end = at;
    loop {
        let rest = bytes.get(index..).unwrap_or_default();
        let Some(found) = memchr::memchr3(delimiter, b'\n', b'\\', rest) else {
            if !is_last {
                return None;
            }
            let is_return = bytes.len() > start.max(escaped_end) && bytes.ends_with(b"\r");
            let end = bytes.len() - usize::from(is_return);
            positions.push(ValuePosition { start, end, kind });
            return Some(Marked { next: bytes.len(), lines });
        };
        index += found;
        match bytes[index] {
            b'\\' => {
                kind = Kind::Escaped;
                lines += u64::from(bytes.get(index + 1) == Some(&b'\n'));
                index += 2;
                escaped_end = index;
            }
            b'\n' => {
                let is_return = index > start.max(escaped_end) && bytes[index - 1] == b'\r';
                positions.push(ValuePosition { start, end: index - usize::from(is_return), kind });
                return Some(Marked { next: index + 1, lines });
            }
            _ => {
                positions.push(ValuePosition { start, end: index, kind });
                index += 1;
                start = index;
                kind = Kind::Plain;
            }
        }
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, EngineError> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid_text(""))?;
    if text.contains('\0') { Err(invalid_text(": 0x00")) } else { Ok(text) }
}

fn unfit() -> EngineError {
    EngineError::internal("a value lies outside its record")
}

fn invalid_text(what: &str) -> EngineError {
    let message = format!("invalid byte sequence for encoding \"UTF8\"{what}");
    EngineError::new(ErrorCode::InvalidEncoding, message)
}
