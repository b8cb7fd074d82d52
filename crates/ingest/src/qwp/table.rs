//! Collects the rows of one table until they are committed.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::compute::kernels::zip::zip;
use arrow_array::types::{TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, Scalar};
use arrow_buffer::BooleanBuffer;
use rustc_hash::FxBuildHasher;
use tidemark_types::identifier::fold;
use tidemark_types::{EngineError, SqlType};

use super::block::{Block, Kind, WireColumn};
use super::dictionary::Dictionary;
use super::options::QwpOptions;
use super::{QwpFailure, QwpStatus, convert};
use crate::cast::{Problem, Timestamp};
use crate::rows::shown;
use crate::rows::{
    Additions, Cells, Chunk, MAX_CHUNK_ROWS, NotAdded, TIMESTAMP, TableRows, TargetColumn,
    TargetTable,
};

type QwpResult<T> = Result<T, QwpFailure>;

#[derive(Debug)]
pub(super) struct TableColumns {
    pub(super) rows: TableRows,
    /// Columns by case-folded name.
    names: HashMap<String, usize, FxBuildHasher>,
}

fn mismatch<T>(reason: impl Into<String>) -> QwpResult<T> {
    Err(QwpFailure::refused(QwpStatus::SchemaMismatch, reason))
}

fn malformed<T>(reason: impl Into<String>) -> QwpResult<T> {
    Err(QwpFailure::refused(QwpStatus::ParseError, reason))
}

impl TableColumns {
    /// Creates an empty collection for rows of an existing table, or of a new table to be created
    /// together with them.
    pub(super) fn new(name: &str, found: Option<TargetTable>) -> Self {
        let rows = TableRows::new(name, found);
        let folded = rows.table.columns.iter().map(|column| fold(&column.name));
        let names = folded.enumerate().map(|(at, name)| (name, at)).collect();
        Self { rows, names }
    }

    /// Appends a block's rows; returns the memory that they use.
    pub(super) fn push(
        &mut self,
        block: &Block<'_>,
        dictionary: &mut Dictionary,
        options: &QwpOptions,
    ) -> QwpResult<usize> {
        let positions = self.targets(block, options)?;
        let mut cells = Vec::with_capacity(positions.len() + 1);
        for (wire, position) in block.columns.iter().zip(&positions) {
            if let Some(position) = *position {
                cells.push(self.cells(wire, position, dictionary)?);
            }
        }
        if let Some(time) = self.server_time(block.rows, &cells) {
            cells.push(time);
        }
        self.check_required(&cells)?;
        let bytes = cells.iter().map(|cells| cells.array.get_array_memory_size()).sum();
        self.push_chunks(block.rows, cells);
        Ok(bytes)
    }

    /// Returns the target column of each column in a block, and creates missing columns. The target
    /// is `None` for a new column whose type is unknown.
    fn targets(
        &mut self,
        block: &Block<'_>,
        options: &QwpOptions,
    ) -> QwpResult<Vec<Option<usize>>> {
        let mut is_taken = vec![false; self.rows.table.columns.len() + block.columns.len() + 1];
        let mut positions = Vec::with_capacity(block.columns.len());
        for wire in &block.columns {
            let position = if wire.name.is_empty() {
                Some(self.timestamp(wire)?)
            } else if let Some(position) = self.names.get(&fold(wire.name)) {
                Some(*position)
            } else {
                self.add(wire, options)?
            };
            if let Some(position) = position
                && std::mem::replace(&mut is_taken[position], true)
            {
                let name = shown(self.rows.table.columns[position].name.as_bytes());
                return malformed(format!("duplicate column {name} in a block"));
            }
            positions.push(position);
        }
        Ok(positions)
    }

    /// Returns the designated timestamp's column. In a new table, creates this column.
    fn timestamp(&mut self, wire: &WireColumn<'_>) -> QwpResult<usize> {
        let sql_type = match wire.kind {
            Kind::Timestamp => SqlType::Timestamp,
            Kind::TimestampNanos => SqlType::TimestampNs,
            other => {
                return malformed(format!("the designated timestamp has type {}", other.name()));
            }
        };
        match self.rows.table.timestamp {
            Some(column) => Ok(column),
            None if self.rows.exists => mismatch(self.rows.without_timestamp()),
            None => self.make_timestamp(sql_type),
        }
    }

    fn make_timestamp(&mut self, sql_type: SqlType) -> QwpResult<usize> {
        if self.names.contains_key(TIMESTAMP) {
            let table = &self.rows.table.name;
            return mismatch(format!(
                "column 'timestamp' of '{table}' is reserved for the designated timestamp"
            ));
        }
        let column = self.rows.new_timestamp(sql_type);
        self.names.insert(TIMESTAMP.to_owned(), column);
        Ok(column)
    }

    fn add(&mut self, wire: &WireColumn<'_>, options: &QwpOptions) -> QwpResult<Option<usize>> {
        let new_type = || {
            convert::new_type(wire).map_err(|_| {
                let (name, kind) = (shown(wire.name.as_bytes()), wire.kind.name());
                format!("column {name}: cannot create a column for {kind}")
            })
        };
        let QwpOptions { create_columns: columns, max_columns: most_columns, .. } = *options;
        match self.rows.add(wire.name, new_type, Additions { columns, max_columns: most_columns }) {
            Ok(Some(column)) => {
                self.names.insert(fold(wire.name), column);
                Ok(Some(column))
            }
            Ok(None) => Ok(None),
            Err(NotAdded::Name(reason)) => malformed(reason),
            Err(NotAdded::Refused(reason)) => mismatch(reason),
        }
    }

    fn cells(
        &self,
        wire: &WireColumn<'_>,
        position: usize,
        dictionary: &mut Dictionary,
    ) -> QwpResult<Cells> {
        let column = &self.rows.table.columns[position];
        let array = match convert::array(wire, column.sql_type, dictionary) {
            Ok(array) => array,
            Err(problem) => return self.refuse(wire, position, problem),
        };
        let array = if self.rows.table.timestamp == Some(position) && array.null_count() > 0 {
            if !wire.name.is_empty() {
                return mismatch(format!(
                    "the designated timestamp of '{}' is null",
                    self.rows.table.name
                ));
            }
            with_server_time(&array, column.sql_type)?
        } else {
            array
        };
        // Rows that omit the column are marked as null in the bitmap if other rows of the block
        // have a value.
        let missing = (column.has_default && wire.nulls.is_some())
            .then(|| BooleanBuffer::collect_bool(wire.rows, |row| wire.is_null(row)));
        Ok(Cells { column: position, array, missing })
    }

    #[cold]
    fn refuse<T>(&self, wire: &WireColumn<'_>, position: usize, problem: Problem) -> QwpResult<T> {
        let TargetColumn { name, sql_type, .. } = &self.rows.table.columns[position];
        let (table, kind, type_name) = (&self.rows.table.name, wire.kind.name(), sql_type.name());
        match problem {
            Problem::Kind => mismatch(format!(
                "column '{name}' of '{table}' has type {type_name} and does not accept {kind}"
            )),
            Problem::Value | Problem::Utf8 => mismatch(format!(
                "column '{name}' of '{table}' has type {type_name} and cannot hold this {kind}"
            )),
            Problem::Failed(error) => Err(QwpFailure::Failed(error)),
        }
    }

    /// Returns the server time as the timestamp of rows that have no designated timestamp.
    fn server_time(&mut self, rows: usize, cells: &[Cells]) -> Option<Cells> {
        let column = match self.rows.table.timestamp {
            Some(column) => column,
            None if self.rows.exists => return None,
            None => self.make_timestamp(SqlType::Timestamp).ok()?,
        };
        if cells.iter().any(|cells| cells.column == column) {
            return None;
        }
        let sql_type = self.rows.table.columns[column].sql_type;
        Some(Cells { column, array: server_times(rows, sql_type), missing: None })
    }

    fn check_required(&self, cells: &[Cells]) -> QwpResult<()> {
        for (at, column) in
            self.rows.table.columns.iter().enumerate().filter(|(_, one)| one.required)
        {
            let given = cells.iter().find(|cells| cells.column == at);
            if given.is_none_or(|cells| cells.array.null_count() > 0) {
                let (name, table) = (&column.name, &self.rows.table.name);
                return mismatch(format!(
                    "column '{name}' of '{table}' is NOT NULL: expected a value"
                ));
            }
        }
        Ok(())
    }

    fn push_chunks(&mut self, rows: usize, cells: Vec<Cells>) {
        if rows <= MAX_CHUNK_ROWS {
            self.rows.chunks.push(Chunk { rows, cells });
            return;
        }
        for start in (0..rows).step_by(MAX_CHUNK_ROWS) {
            let length = MAX_CHUNK_ROWS.min(rows - start);
            let slice = |cells: &Cells| Cells {
                column: cells.column,
                array: cells.array.slice(start, length),
                missing: cells.missing.as_ref().map(|missing| missing.slice(start, length)),
            };
            self.rows.chunks.push(Chunk { rows: length, cells: cells.iter().map(slice).collect() });
        }
    }
}

fn server_times(rows: usize, sql_type: SqlType) -> ArrayRef {
    let now = |unit| Timestamp::now().in_units_of(unit).unwrap_or_default();
    if sql_type == SqlType::TimestampNs {
        Arc::new(PrimitiveArray::<TimestampNanosecondType>::from_value(now(1), rows))
    } else {
        Arc::new(PrimitiveArray::<TimestampMicrosecondType>::from_value(now(1_000), rows))
    }
}

fn with_server_time(times: &ArrayRef, sql_type: SqlType) -> Result<ArrayRef, EngineError> {
    let is_given = BooleanBuffer::collect_bool(times.len(), |row| times.is_valid(row));
    let now = Scalar::new(server_times(1, sql_type));
    zip(&BooleanArray::new(is_given, None), times, &now)
        .map_err(|error| EngineError::internal(error.to_string()))
}
