//! Collects the rows of one table, column by column. If rows omit a column, work on that column is
//! deferred until its next value or the end of the chunk.

use std::collections::HashMap;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBufferBuilder;
use rustc_hash::FxBuildHasher;
use tidemark_border::LinePrecision;
use tidemark_types::identifier::same;
use tidemark_types::{EngineResult, Field, SqlType};

use super::lexer::{Form, Line, Raw, Token, value_at};
use super::template::{Template, ValueRange, push_plain, push_symbol};
use super::value::{self, SYMBOL_ESCAPES};
use crate::cast::{self, Problem, Timestamp, Value};
use crate::column::ColumnBuilder;
use crate::rows::{
    Additions, Cells, Chunk, MAX_CHUNK_ROWS, NotAdded, RefusedTarget, TableRows, TargetColumn,
    TargetTable, shown,
};

/// Maximum number of cells per chunk, including columns without values. A chunk becomes one batch.
const MAX_CHUNK_CELLS: usize = 2 << 20;
const EARLY: &str = "designated timestamp before 1970-01-01 is not allowed";

/// Why a row was rejected.
#[derive(Debug)]
pub(super) enum RowProblem {
    Bad(String),
    Failed(tidemark_types::EngineError),
}

impl From<tidemark_types::EngineError> for RowProblem {
    fn from(error: tidemark_types::EngineError) -> Self {
        Self::Failed(error)
    }
}

type Row<T> = Result<T, RowProblem>;

fn bad<T>(reason: impl Into<String>) -> Row<T> {
    Err(RowProblem::Bad(reason.into()))
}

#[derive(Debug)]
pub(super) struct TableBuilder {
    rows: TableRows,
    /// Number of rows in the complete chunks, and their total size in bytes.
    complete: (usize, usize),
    /// Number of rows in the current chunk.
    count: usize,
    filling: Vec<Option<Filling>>,
    /// Column names as spelled in lines, with the columns' indexes.
    names: Vec<(Box<[u8]>, usize)>,
    by_name: HashMap<Box<[u8]>, usize, FxBuildHasher>,
    /// Columns of the last line, in order. The next line usually has the same order.
    order: Vec<usize>,
    template: Template,
    required: Vec<usize>,
    additions: Additions,
}

/// A column of the current chunk.
#[derive(Debug)]
struct Filling {
    builder: ColumnBuilder,
    /// Number of cells. It is less than the number of rows if the last rows omit the column.
    rows: usize,
    missing: Option<BooleanBufferBuilder>,
}

impl Filling {
    fn new(column: &TargetColumn) -> EngineResult<Self> {
        let field = Field::new(&column.name, column.sql_type);
        let missing = column.has_default.then(|| BooleanBufferBuilder::new(0));
        Ok(Self { builder: ColumnBuilder::new(&field, None)?, rows: 0, missing })
    }

    #[inline]
    fn pad(&mut self, rows: usize) {
        if self.rows < rows {
            self.append_missing(rows - self.rows);
        }
    }

    #[cold]
    fn append_missing(&mut self, count: usize) {
        self.builder.append_nulls(count);
        if let Some(missing) = &mut self.missing {
            missing.append_n(count, true);
        }
        self.rows += count;
    }

    #[inline]
    fn filled(&mut self) {
        self.rows += 1;
        if let Some(missing) = &mut self.missing {
            missing.append(false);
        }
    }
}

impl TableBuilder {
    /// Returns the table, for use in an error about one of its lines.
    pub(super) fn target(&self) -> RefusedTarget {
        self.rows.target()
    }

    /// Creates a builder for rows of an existing table, or of a new table to be created together
    /// with them.
    pub(super) fn new(name: &str, found: Option<TargetTable>, additions: Additions) -> Self {
        let rows = TableRows::new(name, found);
        let columns = rows.table.columns.iter().enumerate();
        let required = columns.filter(|(_, column)| column.required).map(|(at, _)| at).collect();
        Self {
            complete: (0, 0),
            count: 0,
            filling: rows.table.columns.iter().map(|_| None).collect(),
            names: Vec::new(),
            by_name: HashMap::default(),
            order: Vec::new(),
            template: Template::default(),
            required,
            additions,
            rows,
        }
    }

    /// Returns the number of bytes that the rows occupy until the commit. If the commit also
    /// changes the schema, each row occupies memory for every column. If the schema is unchanged,
    /// rows are written to files one batch at a time.
    pub(super) fn pending_bytes(&self) -> usize {
        let (rows, bytes) = self.complete;
        let is_defined = !self.rows.exists || self.rows.table.columns.len() > self.rows.known;
        let width = if is_defined { self.rows.table.columns.len() * size_of::<u64>() } else { 0 };
        bytes.saturating_add((rows + self.count).saturating_mul(width))
    }

    /// Appends a row; returns whether this completed a chunk.
    #[inline]
    pub(super) fn push(
        &mut self,
        line: &Line,
        bytes: &[u8],
        precision: LinePrecision,
    ) -> Row<bool> {
        let is_full = self.is_full(line.fields.len());
        if is_full {
            self.complete()?;
        }
        for (at, (name, raw)) in line.fields.iter().enumerate() {
            self.push_field(at, *name, *raw, bytes)?;
        }
        self.push_timestamp(line.timestamp, bytes, precision)?;
        self.end_row()?;
        self.learn(line, bytes);
        Ok(is_full)
    }

    /// Appends the row whose table name ends at `at`, provided that only the values differ from the
    /// previous line. Returns the start of the next line.
    #[inline]
    pub(super) fn push_matching(
        &mut self,
        bytes: &[u8],
        at: usize,
        precision: LinePrecision,
    ) -> Option<usize> {
        if self.is_full(self.template.len()) {
            return None;
        }
        let mut at = at;
        for field in 0..self.template.len() {
            at = self.push_known(field, bytes, at)?;
        }
        let (timestamp, end) = self.template.timestamp(bytes, at)?;
        self.push_timestamp(Some(timestamp), bytes, precision).ok()?;
        self.end_row().ok()?;
        Some(end)
    }

    #[inline]
    fn push_known(&mut self, field: usize, bytes: &[u8], at: usize) -> Option<usize> {
        let ValueRange { column, is_symbol, at } = self.template.value_range(field, bytes, at)?;
        let filling = self.filling.get_mut(column)?.as_mut()?;
        let is_first = filling.rows <= self.count;
        if is_first {
            filling.pad(self.count);
            let builder = &mut filling.builder;
            let end = if is_symbol {
                push_symbol(builder, bytes, at)
            } else {
                push_plain(builder, bytes, at)
            };
            if end.is_some() {
                filling.filled();
                return end;
            }
        }
        let (raw, end) = value_at(bytes, at, is_symbol)?;
        let value = Value::read(raw, bytes)?;
        if self.rows.table.timestamp == Some(column) && is_early(&value) {
            return None;
        }
        if is_first {
            cast::put(&mut filling.builder, &value).ok()?;
            filling.filled();
        }
        Some(end)
    }

    /// Whether the chunk must be completed before a row with this many fields is added.
    #[inline]
    fn is_full(&self, fields: usize) -> bool {
        let width = self.rows.table.columns.len().max(fields) + 1;
        self.count > 0 && (self.count >= MAX_CHUNK_ROWS || self.count * width >= MAX_CHUNK_CELLS)
    }

    /// Counts the row, or fails if a required value is missing.
    #[inline]
    fn end_row(&mut self) -> Row<()> {
        if !self.required.is_empty() {
            self.check_required()?;
        }
        self.count += 1;
        Ok(())
    }

    /// Records the line for comparison with the next line. A field without a column has no entry in
    /// `order`.
    fn learn(&mut self, line: &Line, bytes: &[u8]) {
        let Self { template, names, order, .. } = self;
        let known = |(name, at): (&(Token, Raw), &usize)| *names[*at].0 == *name.0.of(bytes);
        if order.len() >= line.fields.len() && line.fields.iter().zip(&*order).all(known) {
            template.learn(line, bytes, order.iter().map(|at| names[*at].1));
        } else {
            *template = Template::default();
        }
    }

    #[inline]
    fn push_field(&mut self, at: usize, name: Token, raw: Raw, bytes: &[u8]) -> Row<()> {
        let expected = self.order.get(at).map(|index| &self.names[*index]);
        let known = match expected {
            Some((written, column)) if **written == *name.of(bytes) => Some(*column),
            _ => self.find(at, name, bytes)?,
        };
        let Some(value) = Value::read(raw, bytes) else { return bad(unreadable(name, raw, bytes)) };
        let column = match known {
            Some(column) => column,
            None => match self.add(at, name, &value, bytes)? {
                Some(column) => column,
                None => return Ok(()),
            },
        };
        if self.rows.table.timestamp == Some(column) && is_early(&value) {
            return bad(EARLY.to_owned());
        }
        let rows = self.count;
        let filling = self.filling(column)?;
        if filling.rows > rows {
            return Ok(()); // The first value of a row is used.
        }
        filling.pad(rows);
        match cast::put(&mut filling.builder, &value) {
            Ok(()) => {
                filling.filled();
                Ok(())
            }
            Err(problem) => self.refuse(column, &problem, raw, bytes),
        }
    }

    #[inline]
    fn filling(&mut self, column: usize) -> EngineResult<&mut Filling> {
        let position = &mut self.filling[column];
        if position.is_none() {
            *position = Some(Filling::new(&self.rows.table.columns[column])?);
        }
        position
            .as_mut()
            .ok_or_else(|| tidemark_types::EngineError::internal("a column no longer exists"))
    }

    /// Returns the column with this name. Called if the last line had a different name at this
    /// position.
    fn find(&mut self, at: usize, name: Token, bytes: &[u8]) -> Row<Option<usize>> {
        let written = name.of(bytes);
        if let Some(index) = self.by_name.get(written) {
            let index = *index;
            self.remember(at, index);
            return Ok(Some(self.names[index].1));
        }
        let text = column_name(name, bytes)?;
        let mut columns = self.rows.table.columns.iter();
        let column = columns.position(|one| same(&one.name, &text));
        if let Some(column) = column {
            self.name_column(at, written, column);
        }
        Ok(column)
    }

    fn name_column(&mut self, at: usize, written: &[u8], column: usize) {
        self.names.push((written.into(), column));
        self.by_name.insert(written.into(), self.names.len() - 1);
        self.remember(at, self.names.len() - 1);
    }

    fn remember(&mut self, at: usize, index: usize) {
        if at < self.order.len() {
            self.order[at] = index;
        } else if at == self.order.len() {
            self.order.push(index);
        }
    }

    /// Adds a column for a value. Returns `None` if the value has no type; such a value is ignored.
    #[cold]
    fn add(
        &mut self,
        at: usize,
        name: Token,
        value: &Value<'_>,
        bytes: &[u8],
    ) -> Row<Option<usize>> {
        let text = column_name(name, bytes)?;
        let column = match self.rows.add(&text, || Ok(value.new_type()), self.additions) {
            Ok(Some(column)) => column,
            Ok(None) => return Ok(None),
            Err(NotAdded::Name(reason) | NotAdded::Refused(reason)) => return bad(reason),
        };
        self.filling.push(None);
        self.name_column(at, name.of(bytes), column);
        Ok(Some(column))
    }

    /// Appends the row's timestamp, unless a field has set it. Uses the line's timestamp or, if the
    /// line has none, the server time.
    #[inline]
    fn push_timestamp(
        &mut self,
        token: Option<Token>,
        bytes: &[u8],
        precision: LinePrecision,
    ) -> Row<()> {
        let sent = match token {
            None => None,
            Some(token) => match value::trailing(token.of(bytes), precision) {
                Some(timestamp) if is_early(&Value::Timestamp(timestamp)) => {
                    return bad(EARLY.to_owned());
                }
                Some(timestamp) => Some(timestamp),
                None => {
                    return bad(format!("invalid timestamp: {}", shown(token.of(bytes))));
                }
            },
        };
        let column = match self.rows.table.timestamp {
            Some(column) => column,
            None if self.rows.exists => {
                return match sent {
                    None => Ok(()),
                    Some(_) => bad(self.rows.without_timestamp()),
                };
            }
            None => {
                let last = token.and_then(|token| token.of(bytes).last());
                self.add_timestamp(last == Some(&b'n'))
            }
        };
        let rows = self.count;
        let filling = self.filling(column)?;
        if filling.rows > rows {
            return Ok(());
        }
        filling.pad(rows);
        let timestamp = sent.unwrap_or_else(Timestamp::now);
        if let Err(problem) = cast::timestamp(&mut filling.builder, timestamp) {
            let token = token.unwrap_or_default();
            let raw = Raw { form: Form::Plain, token };
            return self.refuse(column, &problem, raw, bytes);
        }
        filling.filled();
        Ok(())
    }

    /// Creates a new table's designated timestamp. Its unit is nanoseconds if the first line has a
    /// nanosecond suffix.
    #[cold]
    fn add_timestamp(&mut self, says_nanos: bool) -> usize {
        let sql_type = if says_nanos { SqlType::TimestampNs } else { SqlType::Timestamp };
        self.filling.push(None);
        self.rows.new_timestamp(sql_type)
    }

    #[cold]
    fn refuse<T>(&self, column: usize, problem: &Problem, raw: Raw, bytes: &[u8]) -> Row<T> {
        let TargetColumn { name, sql_type, .. } = &self.rows.table.columns[column];
        let value = written(raw, bytes);
        let name = shown(name.as_bytes());
        let type_name = sql_type.name();
        match problem {
            Problem::Kind => {
                bad(format!("column {name} of type {type_name} does not accept {value}"))
            }
            Problem::Value => bad(format!("column {name} of type {type_name} cannot hold {value}")),
            Problem::Utf8 => bad(format!("column {name}: {value} is not valid UTF-8")),
            Problem::Failed(error) => Err(RowProblem::Failed(error.clone())),
        }
    }

    fn check_required(&self) -> Row<()> {
        for column in &self.required {
            let filling = self.filling[*column].as_ref();
            let has_value = filling.is_some_and(|filling| {
                filling.rows > self.count && !filling.builder.ends_with_null()
            });
            if !has_value {
                let name = &self.rows.table.columns[*column].name;
                return bad(format!("column '{name}' is NOT NULL: expected a value"));
            }
        }
        Ok(())
    }

    /// Completes the chunk with the rows collected so far.
    fn complete(&mut self) -> EngineResult<()> {
        let rows = std::mem::take(&mut self.count);
        if rows == 0 {
            return Ok(());
        }
        let mut cells = Vec::with_capacity(self.filling.len());
        for (column, position) in self.filling.iter_mut().enumerate() {
            let Some(filling) = position else { continue };
            if filling.rows == 0 {
                continue;
            }
            filling.pad(rows);
            // Removes the values of a line that was rejected after some of its values had been
            // appended.
            let array: ArrayRef = filling.builder.finish()?;
            let array = if array.len() > rows { array.slice(0, rows) } else { array };
            let missing = filling.missing.as_mut().map(|missing| {
                missing.truncate(rows);
                missing.finish()
            });
            filling.rows = 0;
            self.complete.1 += array.get_array_memory_size();
            cells.push(Cells { column, array, missing });
        }
        self.complete.0 += rows;
        self.rows.chunks.push(Chunk { rows, cells });
        Ok(())
    }

    /// Returns all rows.
    pub(super) fn finish(mut self) -> EngineResult<TableRows> {
        self.complete()?;
        Ok(self.rows)
    }
}

fn column_name(name: Token, bytes: &[u8]) -> Row<String> {
    match String::from_utf8(value::unescaped(name, bytes, SYMBOL_ESCAPES).into_owned()) {
        Ok(text) => Ok(text),
        Err(_) => bad(format!("the column name {} is not valid UTF-8", shown(name.of(bytes)))),
    }
}

/// Formats a value for a message.
fn written(raw: Raw, bytes: &[u8]) -> String {
    let text = || shown(raw.token.of(bytes));
    match raw.form {
        Form::Symbol => format!("symbol {}", text()),
        Form::Text => format!("string {}", text()),
        Form::Plain => format!("value {}", text()),
        Form::Double => "binary double".to_owned(),
        Form::Array(dimensions) => format!("array of {dimensions} dimensions"),
        Form::NullArray => "null array".to_owned(),
        Form::Decimal(scale) => format!("binary decimal of scale {scale}"),
    }
}

#[cold]
fn unreadable(name: Token, raw: Raw, bytes: &[u8]) -> String {
    format!("column {}: cannot parse {}", shown(name.of(bytes)), written(raw, bytes))
}
/// Whether a designated timestamp would be earlier than 1970.
#[inline]
fn is_early(value: &Value<'_>) -> bool {
    match value {
        Value::Integer(at) | Value::Timestamp(Timestamp::Micros(at) | Timestamp::Nanos(at)) => {
            *at < 0
        }
        _ => false,
    }
}
