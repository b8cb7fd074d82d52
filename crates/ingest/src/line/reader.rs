//! Reads a message's bytes as they arrive, and manages the tables named in its lines.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;
use tidemark_border::LinePrecision;
use tidemark_types::identifier::{fold, is_valid_table_name};
use tidemark_types::{EngineError, EngineResult};

use super::lexer::{Lexed, Line, MAX_BYTES, lex, table_at};
use super::table::{RowProblem, TableBuilder};
use super::template::is_same;
use super::value::{SYMBOL_ESCAPES, unescaped};
use super::{LineFailure, Refusal};
use crate::rows::{Additions, RefusedTarget, TableRows, Targets, shown};

/// Maximum size in bytes of an incomplete line that is parsed again whenever more bytes arrive. A
/// longer line is parsed again when its size has doubled.
const SHORT_LINE_BYTES: usize = 16 * 1024;
/// Maximum number of tables per message.
const MAX_TABLES: usize = 10_000;

/// How lines are read, and which objects they may create.
#[derive(Debug, Clone, Copy)]
pub struct LineOptions {
    /// Unit of timestamps without a unit suffix.
    pub precision: LinePrecision,
    /// Whether missing tables are created.
    pub create_tables: bool,
    /// Whether missing columns are added to existing tables.
    pub create_columns: bool,
    /// Maximum number of columns per table.
    pub max_columns: usize,
    /// Maximum line size in bytes.
    pub max_line_bytes: usize,
    /// Maximum memory for the message's rows, in bytes.
    pub max_pending_bytes: usize,
    /// Whether another message follows. If so, that message continues an incomplete last line.
    pub is_continued: bool,
}

/// Reads one message.
#[derive(Debug)]
pub struct LineReader {
    options: LineOptions,
    tables: Vec<TableBuilder>,
    /// Table indexes by table name, as spelled in lines.
    by_written: HashMap<Box<[u8]>, usize, FxBuildHasher>,
    by_folded: HashMap<String, usize, FxBuildHasher>,
    /// The table name as spelled in the last line, and the table's index.
    last: (Box<[u8]>, usize),
    /// The table that is currently being resolved.
    found: Option<RefusedTarget>,
    /// The bytes of an incomplete line.
    pending: Vec<u8>,
    /// Size at which the incomplete line is parsed again.
    retry_bytes: usize,
    line: Line,
    /// Number of complete lines, and their total size in bytes.
    lines: u64,
    line_bytes: u64,
    rows: u64,
}

impl LineReader {
    /// Creates a reader without rows.
    #[must_use]
    pub fn new(options: LineOptions) -> Self {
        let most_line_bytes = options.max_line_bytes.min(MAX_BYTES / 2);
        Self {
            options: LineOptions { max_line_bytes: most_line_bytes, ..options },
            tables: Vec::new(),
            by_written: HashMap::default(),
            by_folded: HashMap::default(),
            last: (Box::default(), 0),
            found: None,
            pending: Vec::new(),
            retry_bytes: 0,
            line: Line::default(),
            lines: 0,
            line_bytes: 0,
            rows: 0,
        }
    }

    /// Returns the number of rows so far.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the number of complete lines and their total size in bytes, which is also the offset
    /// of the first incomplete line.
    #[must_use]
    pub fn ended(&self) -> (u64, u64) {
        (self.lines, self.line_bytes)
    }

    /// Reads the next bytes. Must not be called again after a failure.
    pub fn feed(&mut self, bytes: &[u8], targets: &mut dyn Targets) -> Result<(), LineFailure> {
        bytes.chunks(MAX_BYTES / 2).try_for_each(|chunk| self.feed_chunk(chunk, targets))
    }

    fn feed_chunk(&mut self, bytes: &[u8], targets: &mut dyn Targets) -> Result<(), LineFailure> {
        let mut bytes = bytes;
        let mut is_first = true;
        while !self.pending.is_empty() && !bytes.is_empty() {
            // The line most likely ends here, so the bytes after this position need not be copied.
            let head = match memchr::memchr(b'\n', bytes) {
                Some(end) if is_first && self.pending.len() <= SHORT_LINE_BYTES => end + 1,
                _ => bytes.len(),
            };
            is_first = false;
            self.pending.extend_from_slice(&bytes[..head]);
            bytes = &bytes[head..];
            let length = self.pending.len();
            if length <= SHORT_LINE_BYTES || length >= self.retry_bytes {
                let mut pending = std::mem::take(&mut self.pending);
                let end = self.read(&pending, false, targets)?;
                pending.drain(..end);
                self.retry_bytes = pending.len() * 2;
                self.pending = pending;
            }
            self.check_length()?;
        }
        if bytes.is_empty() {
            return Ok(());
        }
        let end = self.read(bytes, false, targets)?;
        self.buffer(&bytes[end..])
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<(), LineFailure> {
        self.pending.extend_from_slice(bytes);
        self.retry_bytes = self.pending.len() * 2;
        self.check_length()
    }

    fn check_length(&self) -> Result<(), LineFailure> {
        let max = self.options.max_line_bytes;
        if self.pending.len() > max {
            return Err(self.refused(format!("the line is longer than {max} bytes")));
        }
        Ok(())
    }

    /// Ends the message. The remaining bytes are its last line, unless another message follows.
    pub fn finish(&mut self, targets: &mut dyn Targets) -> Result<(), LineFailure> {
        if !self.options.is_continued {
            let pending = std::mem::take(&mut self.pending);
            self.read(&pending, true, targets)?;
        }
        self.check_memory()
    }

    /// Returns the rows of every table that has rows.
    pub fn into_tables(self) -> EngineResult<Vec<TableRows>> {
        let tables = self.tables.into_iter().map(TableBuilder::finish);
        let tables = tables.collect::<EngineResult<Vec<_>>>()?;
        Ok(tables.into_iter().filter(|table| !table.chunks.is_empty()).collect())
    }

    /// Reads complete lines. Returns the start of the first incomplete line.
    fn read(
        &mut self,
        bytes: &[u8],
        is_all: bool,
        targets: &mut dyn Targets,
    ) -> Result<usize, LineFailure> {
        let mut at = 0;
        let mut line = std::mem::take(&mut self.line);
        while at < bytes.len() {
            if let Some(next) = self.push_matching(bytes, at) {
                self.rows += 1;
                self.lines += 1;
                self.line_bytes += (next - at) as u64;
                at = next;
                continue;
            }
            let next = match lex(bytes, at, is_all, &mut line) {
                Err(reason) => return Err(self.refused(reason)),
                Ok(Lexed::Incomplete) => break,
                Ok(Lexed::Nothing(next)) => next,
                Ok(Lexed::Line(next)) => {
                    self.push(&line, bytes, targets)?;
                    next
                }
            };
            self.lines += 1;
            self.line_bytes += (next - at) as u64;
            at = next;
        }
        self.line = line;
        Ok(at)
    }

    /// Reads the line at `at` if only its values differ from the last line for the same table.
    #[inline]
    fn push_matching(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let precision = self.options.precision;
        let end = at + self.last.0.len();
        if is_same(bytes.get(at..end)?, &self.last.0) {
            return self.tables.get_mut(self.last.1)?.push_matching(bytes, end, precision);
        }
        let name = table_at(bytes, at)?;
        let index = *self.by_written.get(name.of(bytes))?;
        self.last = (name.of(bytes).into(), index);
        self.tables[index].push_matching(bytes, name.end(), precision)
    }

    fn push(
        &mut self,
        line: &Line,
        bytes: &[u8],
        targets: &mut dyn Targets,
    ) -> Result<(), LineFailure> {
        let name = line.table.of(bytes);
        if *self.last.0 != *name || self.tables.is_empty() {
            self.last = (name.into(), self.table(line, bytes, targets)?);
        }
        let table = &mut self.tables[self.last.1];
        match table.push(line, bytes, self.options.precision) {
            Ok(completed) => {
                self.rows += 1;
                if completed { self.check_memory() } else { Ok(()) }
            }
            Err(RowProblem::Bad(reason)) => Err(self.refused(reason)),
            Err(RowProblem::Failed(error)) => Err(self.located(error)),
        }
    }

    fn check_memory(&self) -> Result<(), LineFailure> {
        let max = self.options.max_pending_bytes;
        let bytes = self.tables.iter().map(TableBuilder::pending_bytes);
        if bytes.fold(0, usize::saturating_add) <= max {
            return Ok(());
        }
        let reason = format!(
            "the rows of the message need more than {max} bytes of memory: send fewer rows at once"
        );
        let (line, at) = (self.lines + 1, self.line_bytes);
        Err(LineFailure::Refused(Refusal { line, at, reason, is_too_large: true, target: None }))
    }

    /// Finds or creates the table that a line names.
    #[cold]
    fn table(
        &mut self,
        line: &Line,
        bytes: &[u8],
        targets: &mut dyn Targets,
    ) -> Result<usize, LineFailure> {
        let written = line.table.of(bytes);
        if let Some(index) = self.by_written.get(written) {
            return Ok(*index);
        }
        let name = unescaped(line.table, bytes, SYMBOL_ESCAPES);
        let Ok(name) = std::str::from_utf8(&name) else {
            return Err(
                self.refused(format!("the table name {} is not valid UTF-8", shown(written)))
            );
        };
        let folded = fold(name);
        let index = if let Some(index) = self.by_folded.get(&folded) {
            *index
        } else {
            // If no table has this name, there may be a view with this name.
            self.found = Some(RefusedTarget { table: name.to_owned(), exists: true });
            let found = targets.table(name).map_err(|error| self.located(error))?;
            if found.is_none() {
                self.found = Some(RefusedTarget { table: name.to_owned(), exists: false });
                self.check_new(name)?;
            }
            self.found = None;
            let LineOptions { create_columns, max_columns: most_columns, .. } = self.options;
            let additions = Additions { columns: create_columns, max_columns: most_columns };
            self.tables.push(TableBuilder::new(name, found, additions));
            self.tables.len() - 1
        };
        self.by_folded.insert(folded, index);
        self.by_written.insert(written.into(), index);
        Ok(index)
    }

    fn check_new(&self, name: &str) -> Result<(), LineFailure> {
        if !is_valid_table_name(name) {
            return Err(self.refused(format!("invalid table name: {}", shown(name.as_bytes()))));
        }
        if !self.options.create_tables {
            return Err(self.refused(format!(
                "table '{name}' does not exist, and creating tables is disabled"
            )));
        }
        if self.tables.len() >= MAX_TABLES {
            return Err(self.refused(format!("more than {MAX_TABLES} tables in one message")));
        }
        Ok(())
    }

    fn refused(&self, reason: String) -> LineFailure {
        let last = || self.tables.get(self.last.1).map(TableBuilder::target);
        let target = self.found.clone().or_else(last);
        let (line, at) = (self.lines + 1, self.line_bytes);
        LineFailure::Refused(Refusal { line, at, reason, is_too_large: false, target })
    }

    /// Attributes an error to the line, unless other lines would fail as well.
    fn located(&self, error: EngineError) -> LineFailure {
        use tidemark_types::ErrorCode::{InvalidName, InvalidValue, NotSupported, ResourceLimit};
        match error.code {
            InvalidName | InvalidValue | NotSupported | ResourceLimit => {
                self.refused(error.message)
            }
            _ => LineFailure::Failed(error),
        }
    }
}
