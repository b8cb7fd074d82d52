//! The streaming CSV reader: converts chunks of any size to batches of typed columns.
//!
//! Records are parsed in place in the chunk; only a record split by a chunk boundary is copied.
//! Within a row, the designated timestamp is parsed first, because a row without it is dropped in
//! every mode. Next come the columns whose values may fail to parse, and finally the text columns.
//! As a result, dropping a row only requires truncating fixed-width columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use tidemark_border::CsvAtomicity;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use crate::column::absent_column;
use crate::csv_spec::{BadLine, CsvReport, CsvSpec, MAX_BAD_LINES};
use crate::input::Input;
use crate::record::{FieldRange, split_record};

/// Maximum number of rows per batch.
const BATCH_ROWS: usize = 65_536;
/// Number of input bytes after which a batch is complete, regardless of its row count.
const BATCH_BYTES: usize = 32 * 1024 * 1024;
/// Number of bytes copied in the first attempt to complete a split record.
const TOP_UP_BYTES: usize = 4 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Callback for complete batches.
type Sink<'a> = &'a mut dyn FnMut(RecordBatch) -> EngineResult<()>;

/// Reads one CSV file, which may be split into chunks at any positions.
#[derive(Debug)]
pub struct CsvReader {
    delimiter: u8,
    max_line_bytes: usize,
    atomicity: CsvAtomicity,
    skip_extra_values: bool,
    line_fields: usize,
    schema: SchemaRef,
    types: Vec<SqlType>,
    /// Inputs, in the order in which they are parsed.
    inputs: Vec<Input>,
    /// Text inputs that must not be empty. They are checked before any value is appended, because
    /// appended text cannot be removed.
    required_texts: Vec<usize>,
    /// For each target column, its input, if any.
    feeds: Vec<Option<usize>>,
    designated: Designated,
    at_start: bool,
    header_due: bool,
    /// The start of a record that was split by a chunk boundary.
    carry: Vec<u8>,
    fields: Vec<FieldRange>,
    scratch: Vec<u8>,
    digits: Vec<u8>,
    /// Whether a guessed type was too narrow. If so, the remaining input is only scanned to
    /// determine the required types.
    widens: bool,
    /// Number of data lines read, excluding blank lines.
    lines: u64,
    /// Total number of lines read.
    text_lines: u64,
    /// Number of the line on which the current record begins, counted from 1.
    text_line: u64,
    /// Whether the last record ended in a carriage return.
    after_return: bool,
    rows: usize,
    bytes: usize,
    report: CsvReport,
}

/// Source of the designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Designated {
    /// The target has no designated timestamp.
    None,
    /// The first input contains the timestamp.
    FirstInput,
    /// The target has a designated timestamp but no input contains it, so every row is rejected.
    Missing,
}

/// Outcome of a row.
enum RowOutcome {
    Accepted,
    Dropped,
}

impl CsvReader {
    /// Creates a reader for files of this format.
    pub fn new(spec: CsvSpec) -> EngineResult<Self> {
        let CsvSpec { columns, target, timestamp, .. } = spec;
        let mut feeds = vec![None; target.len()];
        let mut inputs = Vec::with_capacity(columns.len());
        for (reported, column) in columns.iter().enumerate() {
            let field = target.get(column.target).ok_or_else(|| {
                EngineError::internal(format!("import column {} has no target", column.index))
            })?;
            if feeds[column.target].replace(reported).is_some() {
                let message = format!("more than one field maps to column \"{}\"", field.name);
                return Err(EngineError::new(ErrorCode::DuplicateColumn, message));
            }
            inputs.push(Input::new(column, reported, field, timestamp == Some(column.target))?);
        }
        let designated_input = timestamp.and_then(|index| feeds.get(index).copied().flatten());
        inputs.sort_by_key(|input| {
            (Some(input.reported) != designated_input, input.builder.accepts_any_text())
        });
        let required = |input: &Input| input.required.is_some() && input.builder.accepts_any_text();
        let required_texts = (0..inputs.len()).filter(|&at| required(&inputs[at])).collect();
        for feed in feeds.iter_mut().flatten() {
            let reported = *feed;
            *feed = inputs.iter().position(|input| input.reported == reported).unwrap_or(0);
        }
        let designated = match (timestamp, designated_input) {
            (None, _) => Designated::None,
            (Some(_), Some(_)) => Designated::FirstInput,
            (Some(_), None) => Designated::Missing,
        };
        Ok(Self {
            delimiter: spec.delimiter,
            max_line_bytes: spec.max_line_bytes,
            atomicity: spec.atomicity,
            skip_extra_values: spec.skip_extra_values,
            line_fields: spec.line_fields,
            schema: Arc::new(arrow_schema_of(&target)),
            types: target.iter().map(|field| field.sql_type).collect(),
            inputs,
            required_texts,
            feeds,
            designated,
            at_start: true,
            header_due: spec.header,
            carry: Vec::new(),
            fields: Vec::with_capacity(spec.line_fields),
            scratch: Vec::new(),
            digits: Vec::new(),
            widens: false,
            lines: 0,
            text_lines: 0,
            text_line: 0,
            after_return: false,
            rows: 0,
            bytes: 0,
            report: CsvReport {
                column_errors: vec![0; columns.len()],
                widened: vec![None; columns.len()],
                ..CsvReport::default()
            },
        })
    }

    /// Reads the next chunk and passes complete batches to `sink`.
    pub fn feed(&mut self, bytes: &[u8], sink: Sink<'_>) -> EngineResult<()> {
        let mut bytes = bytes;
        if self.at_start {
            let Some(rest) = self.skip_byte_order_mark(bytes) else { return Ok(()) };
            bytes = rest;
        }
        bytes = self.complete_carry(bytes, sink)?;
        let mut fields = std::mem::take(&mut self.fields);
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let Some(length) = split_record(rest, self.delimiter, false, &mut fields) else {
                break;
            };
            self.take_record(&rest[..length], &fields, sink)?;
            at += length;
        }
        self.fields = fields;
        self.carry.extend_from_slice(&bytes[at..]);
        if self.carry.len() > self.max_line_bytes { Err(self.line_too_long()) } else { Ok(()) }
    }

    fn line_too_long(&self) -> EngineError {
        let max = self.max_line_bytes;
        let message = format!("line is longer than {max} bytes [http.text.line.limit={max}]");
        EngineError::new(ErrorCode::ResourceLimit, message).with_hint("see http.text.line.limit")
    }

    /// Ends the input. The last line may lack a line end.
    pub fn finish(&mut self, sink: Sink<'_>) -> EngineResult<()> {
        self.at_start = false;
        let carry = std::mem::take(&mut self.carry);
        let mut fields = std::mem::take(&mut self.fields);
        let mut at = 0;
        while at < carry.len() {
            let rest = &carry[at..];
            let length = split_record(rest, self.delimiter, true, &mut fields)
                .ok_or_else(|| EngineError::internal("the last CSV record is incomplete"))?;
            self.take_record(&rest[..length], &fields, sink)?;
            at += length;
        }
        self.fields = fields;
        if self.rows > 0 && !self.widens { self.flush(sink) } else { Ok(()) }
    }

    /// Returns the report on the rows read so far.
    #[must_use]
    pub fn report(&self) -> &CsvReport {
        &self.report
    }

    /// Skips a byte order mark. Returns `None` if more bytes are needed.
    fn skip_byte_order_mark<'a>(&mut self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        if !self.carry.is_empty() || bytes.len() < BYTE_ORDER_MARK.len() {
            self.carry.extend_from_slice(bytes);
            if self.carry.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(&self.carry)
            {
                return None;
            }
            self.at_start = false;
            if self.carry.starts_with(BYTE_ORDER_MARK) {
                self.carry.drain(..BYTE_ORDER_MARK.len());
            }
            return Some(&[]);
        }
        self.at_start = false;
        Some(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes))
    }

    /// Completes a split record, copying as few bytes as possible. Returns the bytes that follow
    /// the record.
    fn complete_carry<'a>(&mut self, bytes: &'a [u8], sink: Sink<'_>) -> EngineResult<&'a [u8]> {
        if self.carry.is_empty() {
            return Ok(bytes);
        }
        let mut carry = std::mem::take(&mut self.carry);
        let mut fields = std::mem::take(&mut self.fields);
        let before = carry.len();
        let mut at = 0;
        let mut copied = 0;
        loop {
            let rest = &carry[at..];
            let length = match rest {
                [] => None,
                rest => split_record(rest, self.delimiter, false, &mut fields),
            };
            if let Some(length) = length {
                self.take_record(&rest[..length], &fields, sink)?;
                at += length;
                if at >= before {
                    break;
                }
            } else if copied < bytes.len() && carry.len() - at <= self.max_line_bytes {
                let step = TOP_UP_BYTES.max(carry.len() - at).min(bytes.len() - copied);
                carry.extend_from_slice(&bytes[copied..copied + step]);
                copied += step;
            } else {
                carry.drain(..at);
                self.carry = carry;
                self.fields = fields;
                return Ok(&[]);
            }
        }
        self.fields = fields;
        carry.clear();
        let rest = &bytes[at - before..];
        self.carry = carry;
        Ok(rest)
    }

    #[inline]
    fn take_record(
        &mut self,
        record: &[u8],
        fields: &[FieldRange],
        sink: Sink<'_>,
    ) -> EngineResult<()> {
        self.count_lines(record, fields);
        if let [FieldRange { start: 0, end: 0, .. }] = fields {
            return Ok(());
        }
        if std::mem::take(&mut self.header_due) {
            return Ok(());
        }
        let line = self.lines;
        self.lines += 1;
        match self.take_row(record, fields, line)? {
            RowOutcome::Accepted => {
                self.report.rows_imported += 1;
                self.rows += 1;
                self.bytes += record.len();
                if self.rows == BATCH_ROWS || self.bytes >= BATCH_BYTES {
                    self.flush(sink)?;
                }
            }
            RowOutcome::Dropped => self.report.rows_rejected += 1,
        }
        Ok(())
    }

    /// Counts the lines of a record, because quoted fields may contain line ends. A line feed after
    /// a carriage return is read as a blank record and not counted.
    #[inline]
    fn count_lines(&mut self, record: &[u8], fields: &[FieldRange]) {
        let ends_pair = std::mem::take(&mut self.after_return) && record == b"\n";
        if ends_pair {
            return;
        }
        self.after_return = record.last() == Some(&b'\r');
        self.text_line = self.text_lines + 1;
        self.text_lines += 1;
        let is_quoted =
            |field: &FieldRange| field.start > 0 && record.get(field.start - 1) == Some(&b'"');
        if fields.iter().any(is_quoted) {
            let inside = record.len() - usize::from(matches!(record.last(), Some(b'\r' | b'\n')));
            let ends = memchr::memchr_iter(b'\n', &record[..inside]).count();
            self.text_lines += ends as u64;
        }
    }

    #[inline]
    fn take_row(
        &mut self,
        record: &[u8],
        fields: &[FieldRange],
        line: u64,
    ) -> EngineResult<RowOutcome> {
        let too_long = fields.len() > self.line_fields && !self.skip_extra_values;
        if too_long || self.designated == Designated::Missing {
            return self.bad_line(fields.len());
        }
        if self.widens {
            return self.widen(record, fields);
        }
        for index in 0..self.required_texts.len() {
            let position = self.required_texts[index];
            let field = fields.get(self.inputs[position].field);
            if field.is_none_or(|field| field.text(record, &mut self.scratch).is_empty()) {
                return self.missing_value(position, line);
            }
        }
        if std::str::from_utf8(record).is_err()
            && let Some(outcome) = self.bad_text(record, fields, line)?
        {
            return Ok(outcome);
        }
        for position in 0..self.inputs.len() {
            let input = &mut self.inputs[position];
            let is_designated = position == 0 && self.designated == Designated::FirstInput;
            let text = match fields.get(input.field) {
                Some(field) => field.text(record, &mut self.scratch),
                None => &[],
            };
            if text.is_empty() && !is_designated {
                if input.required.is_some() {
                    return self.missing_value(position, line);
                }
                input.builder.append_null();
                continue;
            }
            if !text.is_empty() && input.append(text, &mut self.digits)? {
                if input.required.is_some() && input.builder.ends_with_null() {
                    return self.missing_value(position, line);
                }
                continue;
            }
            if input.is_null(text) {
                input.builder.append_null();
                continue;
            }
            if input.guessed {
                self.widens = true;
                return self.widen(record, fields);
            }
            let is_empty = text.is_empty();
            if let Some(outcome) = self.misfit(position, is_empty, line)? {
                return Ok(outcome);
            }
        }
        Ok(RowOutcome::Accepted)
    }

    /// Handles a malformed value. Returns the outcome of the row; `None` if only the value is
    /// replaced with null.
    #[cold]
    fn misfit(
        &mut self,
        position: usize,
        is_empty: bool,
        line: u64,
    ) -> EngineResult<Option<RowOutcome>> {
        let input = &mut self.inputs[position];
        self.report.column_errors[input.reported] += 1;
        let field = input.field;
        if position == 0 && self.designated == Designated::FirstInput {
            let problem = if is_empty { NO_TIMESTAMP } else { BAD_TIMESTAMP };
            return self.note(Some(field), problem.into()).map(|()| Some(RowOutcome::Dropped));
        }
        match self.atomicity {
            CsvAtomicity::Abort => Err(bad_value(line, field)),
            CsvAtomicity::SkipCol if input.required.is_none() => {
                let is_text = input.builder.accepts_any_text();
                input.builder.append_null();
                let problem = if is_text { BAD_TEXT } else { BAD_VALUE };
                self.note(Some(field), problem.into()).map(|()| None)
            }
            _ => {
                self.note(Some(field), BAD_VALUE.into())?;
                Ok(Some(self.drop_row()))
            }
        }
    }

    /// Widens the guessed types until they fit this row. Does not append any of the row's values.
    #[cold]
    fn widen(&mut self, record: &[u8], fields: &[FieldRange]) -> EngineResult<RowOutcome> {
        for input in &mut self.inputs {
            if !input.guessed {
                continue;
            }
            let Some(field) = fields.get(input.field) else { continue };
            let text = field.text(record, &mut self.scratch);
            if text.is_empty() || input.is_null(text) {
                continue;
            }
            if let Some(widened) = input.widen(text, self.text_line, &mut self.digits)? {
                self.report.widened[input.reported] = Some(widened);
            }
        }
        Ok(RowOutcome::Dropped)
    }

    /// Rejects a row containing text that is not UTF-8, before any of its values is appended.
    /// Returns `None` if only the column's value is replaced with null.
    #[cold]
    fn bad_text(
        &mut self,
        record: &[u8],
        fields: &[FieldRange],
        line: u64,
    ) -> EngineResult<Option<RowOutcome>> {
        for position in 0..self.inputs.len() {
            let input = &self.inputs[position];
            let is_left_out =
                matches!(self.atomicity, CsvAtomicity::SkipCol) && input.required.is_none();
            let Some(field) = fields.get(input.field).filter(|_| !is_left_out) else { continue };
            let text = field.text(record, &mut self.scratch);
            if !input.builder.accepts_any_text() || std::str::from_utf8(text).is_ok() {
                continue;
            }
            let (reported, field) = (input.reported, input.field);
            self.report.column_errors[reported] += 1;
            if self.atomicity == CsvAtomicity::Abort {
                let message = format!("{BAD_TEXT} [line={line}, col={field}]");
                return Err(EngineError::new(ErrorCode::InvalidValue, message));
            }
            self.note(Some(field), BAD_TEXT.into())?;
            return Ok(Some(RowOutcome::Dropped));
        }
        Ok(None)
    }

    /// Handles a missing value in a NOT NULL column.
    #[cold]
    fn missing_value(&mut self, position: usize, line: u64) -> EngineResult<RowOutcome> {
        let input = &self.inputs[position];
        self.report.column_errors[input.reported] += 1;
        let (name, field) = (input.required.as_deref().unwrap_or_default(), input.field);
        let message = format!("column '{name}' is NOT NULL: expected a value");
        if self.atomicity != CsvAtomicity::Abort {
            self.note(Some(field), message)?;
            return Ok(self.drop_row());
        }
        let message = format!("{message} [line={line}, col={field}]");
        Err(EngineError::new(ErrorCode::NullValue, message))
    }

    /// Handles a line with too many fields or without a designated timestamp.
    #[cold]
    fn bad_line(&mut self, found: usize) -> EngineResult<RowOutcome> {
        let problem = match self.designated {
            Designated::Missing => NO_TIMESTAMP.to_owned(),
            _ => format!("{found} fields, expected {}", self.line_fields),
        };
        self.note(None, problem)?;
        Ok(RowOutcome::Dropped)
    }

    /// Records an error in the current line. Returns the error if bad lines end the import.
    #[cold]
    fn note(&mut self, field: Option<usize>, problem: String) -> EngineResult<()> {
        let line = self.text_line;
        let bad = BadLine { line, field: field.map(|field| field + 1), problem };
        if self.atomicity == CsvAtomicity::AbortLine {
            return Err(EngineError::new(ErrorCode::InvalidValue, bad.to_string()));
        }
        if self.report.bad_lines.len() < MAX_BAD_LINES {
            self.report.bad_lines.push(bad);
        }
        Ok(())
    }

    /// Removes the values of the current row.
    fn drop_row(&mut self) -> RowOutcome {
        let rows = self.rows;
        self.inputs.iter_mut().for_each(|input| input.builder.truncate(rows));
        RowOutcome::Dropped
    }

    #[cold]
    fn flush(&mut self, sink: Sink<'_>) -> EngineResult<()> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let inputs = &mut self.inputs;
        let columns: Vec<ArrayRef> = self
            .feeds
            .iter()
            .zip(&self.types)
            .map(|(feed, sql_type)| match feed {
                Some(input) => inputs[*input].builder.finish(),
                None => Ok(absent_column(*sql_type, rows)),
            })
            .collect::<EngineResult<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| {
                EngineError::internal(format!("cannot assemble imported columns: {error}"))
            })?;
        sink(batch)
    }
}

fn arrow_schema_of(target: &[Field]) -> Schema {
    let fields = target.iter().map(|field| {
        let nullable = field.sql_type.is_nullable();
        arrow_schema::Field::new(&field.name, field.sql_type.arrow_type(), nullable)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

const BAD_VALUE: &str = "bad syntax";
const BAD_TEXT: &str = "not UTF-8: specify the text's encoding (encoding=)";
const NO_TIMESTAMP: &str = "no designated timestamp";
const BAD_TIMESTAMP: &str = "invalid designated timestamp";

fn bad_value(line: u64, field: usize) -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, format!("bad syntax [line={line}, col={field}]"))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::CsvColumn;
    use arrow::compute::concat_batches;
    use arrow::util::display::{ArrayFormatter, FormatOptions};
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use rand::{Rng, SeedableRng};
    use tidemark_types::double_array::DoubleArrays;

    fn spec(columns: &[(&str, SqlType)]) -> CsvSpec {
        CsvSpec {
            delimiter: b',',
            header: true,
            columns: (0..columns.len())
                .map(|index| CsvColumn { index, target: index, ..CsvColumn::default() })
                .collect(),
            atomicity: CsvAtomicity::SkipCol,
            skip_extra_values: false,
            line_fields: columns.len(),
            max_line_bytes: crate::MAX_LINE_BYTES,
            target: columns.iter().map(|(name, sql_type)| Field::new(*name, *sql_type)).collect(),
            timestamp: None,
        }
    }

    fn read_in(spec: &CsvSpec, chunks: &[&[u8]]) -> EngineResult<(RecordBatch, CsvReport)> {
        let mut batches = Vec::new();
        let mut sink = |batch| {
            batches.push(batch);
            Ok(())
        };
        let mut reader = CsvReader::new(spec.clone())?;
        for chunk in chunks {
            reader.feed(chunk, &mut sink)?;
        }
        reader.finish(&mut sink)?;
        let batch = concat_batches(&reader.schema, &batches).unwrap();
        Ok((batch, reader.report().clone()))
    }

    /// Formats rows as `a|b`, with nulls as `-`.
    fn rows(batch: &RecordBatch) -> Vec<String> {
        let options = FormatOptions::default();
        let formatters: Vec<_> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        (0..batch.num_rows())
            .map(|row| {
                let cells = formatters.iter().map(|column| column.value(row).to_string());
                cells
                    .map(|cell| if cell.is_empty() { "-".into() } else { cell })
                    .collect::<Vec<_>>()
                    .join("|")
            })
            .collect()
    }

    fn read(spec: &CsvSpec, text: &str) -> (Vec<String>, CsvReport) {
        let (batch, report) = read_in(spec, &[text.as_bytes()]).unwrap();
        (rows(&batch), report)
    }

    const AB: [(&str, SqlType); 2] = [("a", SqlType::Int), ("b", SqlType::Varchar)];

    #[test]
    fn blank_lines_byte_order_marks_and_any_line_ending_are_accepted() {
        for text in [
            "a,b\n1,x\n2,y\n",
            "a,b\r\n1,x\r\n2,y\r\n",
            "a,b\r1,x\r2,y\r",
            "a,b\n1,x\n\n\n2,y\n\n",
            "\u{feff}a,b\n1,x\n2,y",
            "\n\na,b\n1,\"x\"\n\"2\",y",
        ] {
            let (rows, report) = read(&spec(&AB), text);
            assert_eq!(rows, ["1|x", "2|y"], "{text:?}");
            assert_eq!((report.rows_imported, report.rows_rejected), (2, 0));
        }
    }

    fn counts(report: &CsvReport) -> (u64, u64, Vec<u64>) {
        (report.rows_imported, report.rows_rejected, report.column_errors.clone())
    }

    #[test]
    fn malformed_lines_are_reported_with_line_and_field() {
        let columns = [("ts", SqlType::Timestamp), ("x", SqlType::Int), ("s", SqlType::Varchar)];
        let mut spec = spec(&columns);
        spec.timestamp = Some(0);
        spec.header = true;
        let text = "ts,x,s\n\n2024-01-01,1,\"two\nlines\"\n2024-01-02,bad,a\n,3,b\n\
                    then,4,c\n2024-01-05,5,d,more\n2024-01-06,6,e\n";
        let expected = [
            "line 5, field 2: bad syntax",
            "line 6, field 1: no designated timestamp",
            "line 7, field 1: invalid designated timestamp",
            "line 8: 4 fields, expected 3",
        ];
        for text in [text.to_owned(), text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
            for atomicity in [CsvAtomicity::SkipRow, CsvAtomicity::SkipCol] {
                spec.atomicity = atomicity;
                let (_, report) = read(&spec, &text);
                let lines: Vec<String> = report.bad_lines.iter().map(ToString::to_string).collect();
                assert_eq!(lines, expected, "{text:?}");
            }
            spec.atomicity = CsvAtomicity::AbortLine;
            for (at, message) in expected.iter().enumerate() {
                // Each of these lines ends the import if no other bad line precedes it.
                let retained: Vec<&str> = text.split_inclusive('\n').collect();
                let first: String = retained[..4].concat();
                let rest: String = retained[4 + at..].concat();
                let text = format!("{first}{rest}");
                let error = read_in(&spec, &[text.as_bytes()]).unwrap_err();
                let (_, problem) = message.split_once(' ').unwrap();
                let problem = problem.trim_start_matches(|c: char| c.is_ascii_digit());
                assert_eq!(error.message, format!("line 5{problem}"));
            }
        }
    }

    #[test]
    fn missing_fields_become_null_and_lines_with_extra_fields_are_rejected() {
        let mut spec = spec(&AB);
        let text = "a,b\n1\n2,y,z\n3,w\n";
        let (rows, report) = read(&spec, text);
        assert_eq!(rows, ["1|-", "3|w"]);
        assert_eq!(report.rows_rejected, 1);
        spec.skip_extra_values = true;
        let (rows, report) = read(&spec, text);
        assert_eq!(rows, ["1|-", "2|y", "3|w"]);
        assert_eq!(counts(&report), (3, 0, vec![0, 0]));
    }

    #[test]
    fn each_error_mode_handles_invalid_values() {
        let text = "a,b\n0,0\n1,1\n2,2\nx,7\n9,9\n";
        let mut spec = spec(&[("a", SqlType::Int), ("b", SqlType::Int)]);
        let (rows, report) = read(&spec, text);
        assert_eq!(rows, ["0|0", "1|1", "2|2", "-|7", "9|9"]);
        assert_eq!(counts(&report), (5, 0, vec![1, 0]));
        spec.atomicity = CsvAtomicity::SkipRow;
        let (rows, report) = read(&spec, text);
        assert_eq!(rows, ["0|0", "1|1", "2|2", "9|9"]);
        assert_eq!(counts(&report), (4, 1, vec![1, 0]));
        spec.atomicity = CsvAtomicity::Abort;
        let error = read_in(&spec, &[text.as_bytes()]).unwrap_err();
        assert_eq!(error.message, "bad syntax [line=3, col=0]");
    }

    #[test]
    fn rows_without_a_designated_timestamp_are_rejected_in_every_error_mode() {
        let mut spec = spec(&[("a", SqlType::Int), ("ts", SqlType::Timestamp)]);
        spec.timestamp = Some(1);
        let text = "a,ts\n2,2024-01-02T00:00:00.000000Z\n1,\n5,nope\n4\n3,2024-01-03\n";
        for atomicity in [CsvAtomicity::Abort, CsvAtomicity::SkipRow, CsvAtomicity::SkipCol] {
            spec.atomicity = atomicity;
            let (rows, report) = read(&spec, text);
            assert_eq!(rows, ["2|2024-01-02T00:00:00", "3|2024-01-03T00:00:00"]);
            assert_eq!(counts(&report), (2, 3, vec![0, 3]));
        }
    }

    #[test]
    fn a_row_without_a_required_value_is_skipped_or_aborts_the_import() {
        let mut spec = spec(&[
            ("s", SqlType::Symbol),
            ("i", SqlType::Int),
            ("t", SqlType::Varchar),
            ("d", SqlType::Double),
        ]);
        for index in [1, 2] {
            spec.columns[index].required = true;
        }
        let text = "s,i,t,d\na,1,x,1.5\nb,,y,2\nc,3,,3\nd,bad,z,4\ne,5\nf,null,w,6\ng,7,v,x\n";
        let used = |last: &[&'static str]| [&["a|1|x|1.5"][..], last].concat();
        for (atomicity, last) in
            [(CsvAtomicity::SkipRow, &[][..]), (CsvAtomicity::SkipCol, &["g|7|v|-"])]
        {
            spec.atomicity = atomicity;
            let (rows, report) = read(&spec, text);
            assert_eq!(rows, used(last), "{atomicity:?}");
            assert_eq!(report.rows_imported + report.rows_rejected, 7);
            assert_eq!(report.column_errors, [0, 3, 2, 1]);
        }
        spec.atomicity = CsvAtomicity::Abort;
        let error = read_in(&spec, &[text.as_bytes()]).unwrap_err();
        assert_eq!(error.message, "column 'i' is NOT NULL: expected a value [line=1, col=1]");
    }

    #[test]
    fn an_unsupported_column_type_is_rejected_with_the_column_name() {
        let spec = spec(&[("a", SqlType::Int), ("b", SqlType::Binary)]);
        let error = CsvReader::new(spec).unwrap_err();
        assert_eq!(error.message, "column 'b': no adapter for type [name=BINARY]");
    }

    #[test]
    fn a_skipped_row_leaves_no_value_in_any_column() {
        let mut spec = spec(&[
            ("s", SqlType::Symbol),
            ("t", SqlType::Varchar),
            ("d", SqlType::Double),
            ("i", SqlType::Long),
        ]);
        spec.atomicity = CsvAtomicity::SkipRow;
        let (rows, report) = read(&spec, "s,t,d,i\nx,y,1.5,1\nq,w,2.5,bad\n,z,,3\n");
        assert_eq!(rows, ["x|y|1.5|1", "-|z|-|3"]);
        assert_eq!(report.column_errors, [0, 0, 0, 1]);
    }

    #[test]
    fn array_literals_in_csv_are_parsed() {
        let mut spec = spec(&[("a", SqlType::DoubleArray(1)), ("b", SqlType::DoubleArray(2))]);
        spec.atomicity = CsvAtomicity::SkipRow;
        let text =
            "a,b\n\"[1.5,null,-2]\",\"[[1,2],[3,4]]\"\n\"[1]\",\"[[1],[2,3]]\"\n,\"{{5}}\"\n";
        let (batch, report) = read_in(&spec, &[text.as_bytes()]).unwrap();
        assert_eq!(counts(&report), (2, 1, vec![0, 1]));
        let cells = |at: usize| -> Vec<Option<(Vec<i32>, Vec<f64>)>> {
            let arrays = DoubleArrays::new(batch.column(at)).unwrap();
            let cell =
                |row| arrays.get(row).map(|cell| (cell.shape.to_vec(), cell.values.to_vec()));
            (0..batch.num_rows()).map(cell).collect()
        };
        let [Some((shape, values)), None] = &cells(0)[..] else { panic!("{:?}", cells(0)) };
        assert!(shape == &[3] && values[1].is_nan() && (values[0], values[2]) == (1.5, -2.0));
        let square = Some((vec![2, 2], vec![1.0, 2.0, 3.0, 4.0]));
        assert_eq!(cells(1), [square, Some((vec![1, 1], vec![5.0]))]);
    }

    const FINE: &str = "2024-01-01T10:00:00.123456Z";
    const FINEST: &str = "2024-01-01T10:00:00.123456789Z";

    #[test]
    fn inferred_types_are_widened_to_fit_all_values() {
        let long = "9999999999";
        let beyond = "18446744073709551615";
        let smallest = "-9223372036854775808";
        let widest = "1234567890123456789012345678901234567890";
        for (guess, values, expected) in [
            (SqlType::Int, &["1", "2", "null", "-3", ""][..], None),
            (SqlType::Int, &["1", long, "2"], Some((SqlType::Long, 3, long))),
            (SqlType::Int, &["1", long, "1.5", "2"], Some((SqlType::Double, 4, "1.5"))),
            (SqlType::Int, &["1", "1.5", long], Some((SqlType::Double, 3, "1.5"))),
            (SqlType::Int, &["1", "1.5", "n/a", "x"], Some((SqlType::Varchar, 4, "n/a"))),
            (SqlType::Int, &["1", beyond, "-2"], Some((SqlType::Decimal(38, 0), 3, beyond))),
            (SqlType::Long, &[beyond, "1.5"], Some((SqlType::Varchar, 3, "1.5"))),
            (SqlType::Double, &["1.5", beyond], Some((SqlType::Varchar, 3, beyond))),
            (SqlType::Double, &["1.5", "100000000000000000000"], None),
            (SqlType::Decimal(38, 0), &["1", widest], Some((SqlType::Decimal(76, 0), 3, widest))),
            (SqlType::Decimal(38, 0), &["1", "1e3"], Some((SqlType::Varchar, 3, "1e3"))),
            (SqlType::Int, &["-2147483648"], Some((SqlType::Long, 2, "-2147483648"))),
            (SqlType::Long, &[smallest], Some((SqlType::Decimal(38, 0), 2, smallest))),
            (SqlType::Int, &["1", "007"], Some((SqlType::Varchar, 3, "007"))),
            (SqlType::Double, &["1.5", "+4912345678"], Some((SqlType::Varchar, 3, "+4912345678"))),
            (SqlType::Double, &["1.5", "0.5", "+3", "-0.25", "0", "NULL"], None),
            (SqlType::Boolean, &["true", "FALSE", "maybe"], Some((SqlType::Varchar, 4, "maybe"))),
            (SqlType::Char, &["a", "b", "cd"], Some((SqlType::Varchar, 4, "cd"))),
            (SqlType::Timestamp, &["2024-01-01", "soon"], Some((SqlType::Varchar, 3, "soon"))),
            (SqlType::Date, &["2024-01-01", "7"], Some((SqlType::Varchar, 3, "7"))),
            (SqlType::Date, &["2024-01-01", FINE], Some((SqlType::Timestamp, 3, FINE))),
            (SqlType::Date, &["2024-01-01", FINEST, FINE], Some((SqlType::TimestampNs, 3, FINEST))),
            (SqlType::Timestamp, &[FINE, "2024-01-01", FINE], None),
        ] {
            let mut spec = spec(&[("a", guess), ("b", SqlType::Varchar)]);
            spec.columns[0].guessed = true;
            let text = format!("a,b\n{},x\n", values.join(",x\n"));
            let mut batches = Vec::new();
            let mut sink = |batch: RecordBatch| {
                batches.push(batch.num_rows());
                Ok(())
            };
            let mut reader = CsvReader::new(spec.clone()).unwrap();
            reader.feed(text.as_bytes(), &mut sink).unwrap();
            reader.finish(&mut sink).unwrap();
            let report = reader.report().clone();
            let found = report.widened[0].clone();
            let found = found.map(|found| (found.sql_type, found.line, found.text));
            let expected = expected.map(|(sql_type, line, text)| (sql_type, line, text.into()));
            assert_eq!((&found, &report.widened[1]), (&expected, &None), "{values:?}");
            assert_eq!(batches.is_empty(), expected.is_some(), "{values:?}");
            // A second pass with the wider type imports every row.
            if let Some((sql_type, ..)) = found {
                spec.target[0].sql_type = sql_type;
                let (_, report) = read(&spec, &text);
                assert_eq!(counts(&report), (values.len() as u64, 0, vec![0, 0]), "{values:?}");
                assert_eq!(report.widened, [None, None]);
            }
        }
    }

    #[test]
    fn null_strings_do_not_count_as_invalid_values() {
        let mut spec = spec(&[("a", SqlType::Double), ("b", SqlType::Varchar)]);
        for column in &mut spec.columns {
            column.null_texts = vec!["n/a".into(), "-".into()];
        }
        spec.atomicity = CsvAtomicity::Abort;
        let (rows, report) = read(&spec, "a,b\n1.5,x\nn/a,n/a\n-,-\n");
        assert_eq!(rows, ["1.5|x", "-|n/a", "-|-"]);
        assert_eq!(report.column_errors, [0, 0]);
    }

    #[test]
    fn numbers_may_use_a_decimal_comma() {
        let mut spec = spec(&[("a", SqlType::Double), ("b", SqlType::Long)]);
        spec.delimiter = b';';
        spec.columns.iter_mut().for_each(|column| column.pattern = Some(",".into()));
        let (rows, report) = read(&spec, "a;b\n1,5;1.234\n-1.234,25;7\n1.5;1,5\n");
        assert_eq!(rows, ["1.5|1234", "-1234.25|7", "-|-"]);
        assert_eq!(report.column_errors, [1, 1]);
        spec.columns[0].pattern = Some("x".into());
        let error = CsvReader::new(spec).unwrap_err();
        assert_eq!(
            error.message,
            "column 'a': a number's pattern must be its decimal separator (, or .)"
        );
    }

    #[test]
    fn fields_map_to_columns_in_any_order() {
        let mut spec = spec(&[
            ("a", SqlType::Boolean),
            ("b", SqlType::Symbol),
            ("c", SqlType::Short),
            ("d", SqlType::Uuid),
        ]);
        spec.columns = vec![
            CsvColumn { index: 2, target: 1, ..CsvColumn::default() },
            CsvColumn { index: 0, target: 2, ..CsvColumn::default() },
        ];
        spec.line_fields = 3;
        spec.header = false;
        let (batch, _) = read_in(&spec, &[b"7,-,sym\n8,-,other\n9,-,sym"]).unwrap();
        assert_eq!(rows(&batch), ["false|sym|7|-", "false|other|8|-", "false|sym|9|-"]);
        assert_eq!(batch.column(1).as_dictionary::<Int32Type>().keys().values(), &[0, 1, 0]);
    }

    #[test]
    fn every_type_has_a_parser() {
        let spec = spec(&[
            ("boolean", SqlType::Boolean),
            ("byte", SqlType::Byte),
            ("char", SqlType::Char),
            ("float", SqlType::Float),
            ("date", SqlType::Date),
            ("ns", SqlType::TimestampNs),
            ("uuid", SqlType::Uuid),
            ("long256", SqlType::Long256),
            ("ipv4", SqlType::Ipv4),
            ("geohash", SqlType::Geohash(10)),
            ("decimal", SqlType::Decimal(10, 2)),
            ("wide", SqlType::Decimal(40, 1)),
        ]);
        let line = "true,-3,z,1.5,2024-01-02,2024-01-02T03:04:05.123456789Z,\
                    00112233-4455-6677-8899-aabbccddeeff,0x12,1.2.3.4,u3,12.35,-7\n";
        let text = format!("header\n{line},,,,,,,,,,,\n");
        let (rows, report) = read(&spec, &text);
        assert_eq!(
            rows[0],
            format!(
                "true|-3|122|1.5|2024-01-02T00:00:00|2024-01-02T03:04:05.123456789|\
                 00112233445566778899aabbccddeeff|{}12|16909060|835|12.35|-7.0",
                "0".repeat(62)
            )
        );
        assert_eq!(rows[1], "false|0|-|-|-|-|-|-|-|-|-|-");
        assert_eq!(report.column_errors, [0; 12]);
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_result() {
        let text =
            "\u{feff}a,b\r\n1,\"x\r\ny\"\r\n\r\n2,\"say \"\"hi\"\"\"\r\n3,é😀\n4,\"\"\n5,end";
        let spec = spec(&AB);
        let (whole, report) = read_in(&spec, &[text.as_bytes()]).unwrap();
        assert_eq!(whole.num_rows(), 5);
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(11);
        for _ in 0..500 {
            let mut rest = text.as_bytes();
            let mut chunks = Vec::new();
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at(random.random_range(0..=rest.len().min(9)));
                chunks.push(chunk);
                rest = tail;
            }
            let (cut, cut_report) = read_in(&spec, &chunks).unwrap();
            assert_eq!((&cut, &cut_report), (&whole, &report));
        }
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(read_in(&spec, &[head, tail]).unwrap().0, whole);
        }
    }

    #[test]
    fn many_rows_produce_several_batches() {
        let mut text = String::from("a,b\n");
        for row in 0..150_000 {
            writeln!(text, "{row},t{}", row % 7).unwrap();
        }
        let mut reader = CsvReader::new(spec(&[AB[0], ("b", SqlType::Symbol)])).unwrap();
        let mut sizes = Vec::new();
        let mut sink = |batch: RecordBatch| {
            sizes.push(batch.num_rows());
            Ok(())
        };
        for chunk in text.as_bytes().chunks(70_001) {
            reader.feed(chunk, &mut sink).unwrap();
        }
        reader.finish(&mut sink).unwrap();
        assert_eq!(sizes, [65_536, 65_536, 18_928]);
    }

    #[test]
    fn an_endless_line_is_rejected() {
        let mut reader = CsvReader::new(spec(&AB)).unwrap();
        let chunk = vec![b'x'; 1024 * 1024];
        let mut sink = |_| Ok(());
        let error = (0..40).find_map(|_| reader.feed(&chunk, &mut sink).err()).unwrap();
        assert_eq!(error.code, ErrorCode::ResourceLimit);
    }

    #[test]
    fn an_empty_file_has_no_rows() {
        for text in ["", "\n", "a,b\n", "a,b"] {
            let (rows, report) = read(&spec(&AB), text);
            assert!(rows.is_empty());
            assert_eq!(report.rows_imported, 0);
        }
    }
}
