//! Typed columns of one or more tables, collected from one message for a single commit. This module
//! does not depend on the protocol or the tables; the caller describes the tables.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use tidemark_types::identifier::{is_valid_column_name, same};
use tidemark_types::{EngineResult, SqlType};

/// Maximum number of rows per chunk.
pub(crate) const MAX_CHUNK_ROWS: usize = 64 * 1024;
/// Name of a new table's designated timestamp.
pub(crate) const TIMESTAMP: &str = "timestamp";

/// A column of a target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumn {
    /// Column name.
    pub name: String,
    /// Column type.
    pub sql_type: SqlType,
    /// Whether the column has a default for omitted values. If so, the rows that omit the column
    /// are recorded.
    pub has_default: bool,
    /// Whether each row must have a value.
    pub required: bool,
}

impl TargetColumn {
    /// Creates a column that is added to the table together with the rows.
    pub fn new(name: impl Into<String>, sql_type: SqlType) -> Self {
        Self { name: name.into(), sql_type, has_default: false, required: false }
    }
}

/// A target table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTable {
    /// Table name as spelled in its definition.
    pub name: String,
    /// Columns of the table.
    pub columns: Vec<TargetColumn>,
    /// Index of the designated timestamp, if the table has one.
    pub timestamp: Option<usize>,
}

/// Looks up tables by name.
pub trait Targets {
    /// Returns the table with this name, ignoring case, if it exists. Fails if the name belongs to
    /// an object to which rows cannot be written.
    fn table(&mut self, name: &str) -> EngineResult<Option<TargetTable>>;
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct TableRows {
    /// The table as defined when its first row was read, with new columns after the existing ones.
    pub table: TargetTable,
    /// Number of existing columns; 0 for a new table.
    pub known: usize,
    /// Whether the table existed when its first row was read.
    pub exists: bool,
    /// The rows, in chunks.
    pub chunks: Vec<Chunk>,
}

/// Changes to a table that are permitted while rows are collected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Additions {
    /// Whether missing columns are added to an existing table.
    pub(crate) columns: bool,
    /// Maximum number of columns per table.
    pub(crate) max_columns: usize,
}

/// Why a column cannot be added.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// The name is invalid.
    Name(String),
    /// The table does not accept the column.
    Refused(String),
}

impl TableRows {
    /// Creates an empty collection for rows of an existing table, or of a new table to be created
    /// together with them.
    pub(crate) fn new(name: &str, found: Option<TargetTable>) -> Self {
        let exists = found.is_some();
        let table = found.unwrap_or_else(|| TargetTable {
            name: name.to_owned(),
            columns: Vec::new(),
            timestamp: None,
        });
        Self { known: table.columns.len(), exists, chunks: Vec::new(), table }
    }

    /// Returns the table, for use in an error about one of its rows.
    pub(crate) fn target(&self) -> RefusedTarget {
        RefusedTarget { table: self.table.name.clone(), exists: self.exists }
    }

    /// Adds a column whose name the table does not contain. Returns `None` if the values do not
    /// determine a type; such values are ignored.
    #[cold]
    pub(crate) fn add(
        &mut self,
        name: &str,
        new_type: impl FnOnce() -> Result<Option<SqlType>, String>,
        additions: Additions,
    ) -> Result<Option<usize>, NotAdded> {
        let (table, shown) = (&self.table.name, shown(name.as_bytes()));
        if !is_valid_column_name(name) {
            return Err(NotAdded::Name(format!("invalid column name: {shown}")));
        }
        let refused = |reason| Err(NotAdded::Refused(reason));
        if self.exists && !additions.columns {
            return refused(format!(
                "table '{table}' has no column {shown}, and creating columns is disabled"
            ));
        }
        let Some(sql_type) = new_type().map_err(NotAdded::Refused)? else { return Ok(None) };
        if self.table.columns.len() >= additions.max_columns {
            let max = additions.max_columns;
            return refused(format!("table '{table}' has too many columns [limit={max}]"));
        }
        // In a new table, a column named `timestamp` is the designated timestamp.
        let is_time = !self.exists && same(name, TIMESTAMP);
        if is_time && (self.table.timestamp.is_some() || !sql_type.is_timestamp()) {
            let found = sql_type.name();
            return refused(format!(
                "column 'timestamp' is reserved for the designated timestamp, found {found}"
            ));
        }
        let column = self.new_column(name, sql_type);
        if is_time {
            self.table.timestamp = Some(column);
        }
        Ok(Some(column))
    }

    /// Creates a new table's designated timestamp.
    pub(crate) fn new_timestamp(&mut self, sql_type: SqlType) -> usize {
        let column = self.new_column(TIMESTAMP, sql_type);
        self.table.timestamp = Some(column);
        column
    }

    fn new_column(&mut self, name: &str, sql_type: SqlType) -> usize {
        self.table.columns.push(TargetColumn::new(name, sql_type));
        self.table.columns.len() - 1
    }

    /// Returns the error message for a timestamp sent to an existing table without a designated
    /// timestamp.
    pub(crate) fn without_timestamp(&self) -> String {
        format!("table '{}' has no designated timestamp", self.table.name)
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows as u64).sum()
    }
}

/// A batch of a table's rows.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Number of rows.
    pub rows: usize,
    /// Columns that have values.
    pub cells: Vec<Cells>,
}

/// A column of a [`Chunk`].
#[derive(Debug, Clone)]
pub struct Cells {
    /// Index of the column in the table.
    pub column: usize,
    /// Cells in the column's Arrow type.
    pub array: ArrayRef,
    /// The rows that omit a column with a default, if any.
    pub missing: Option<BooleanBuffer>,
}

/// The table that a rejected message names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTarget {
    /// Name of the table.
    pub table: String,
    /// Whether a table or view with this name exists.
    pub exists: bool,
}

/// Formats client input for a message. Truncates long input.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 64;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]);
    let head: String = head.chars().flat_map(char::escape_debug).collect();
    let dots = if bytes.len() > MAX_BYTES { "…" } else { "" };
    format!("'{head}{dots}'")
}
