//! Typed columns of one or several tables, on their way from a protocol into the one commit of a
//! message. What is here knows neither the protocol nor the tables: those are described by the part
//! that asks for the rows.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use tidemark_types::{EngineResult, SqlType};

/// A column of a table that rows go into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetColumn {
    /// Its name.
    pub name: String,
    /// What its cells are.
    pub sql_type: SqlType,
    /// Whether rows that leave it out get something else than null: those rows are noted then.
    pub has_default: bool,
    /// Whether each row has to have a value.
    pub required: bool,
}

impl TargetColumn {
    /// A column that is added with the rows.
    pub fn new(name: impl Into<String>, sql_type: SqlType) -> Self {
        Self { name: name.into(), sql_type, has_default: false, required: false }
    }
}

/// A table that rows go into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetTable {
    /// Its name, as its definition writes it.
    pub name: String,
    /// Its columns.
    pub columns: Vec<TargetColumn>,
    /// Where the designated timestamp is among them.
    pub timestamp: Option<usize>,
}

/// Tells what a name means.
pub trait Targets {
    /// The table of this name, letter case ignored; none where there is none. Fails where rows
    /// cannot go into what is called so.
    fn table(&mut self, name: &str) -> EngineResult<Option<TargetTable>>;
}

/// Rows of one table.
#[derive(Debug, Clone)]
pub struct TableRows {
    /// The table as it was when its first row came, with the columns that are new behind its own.
    pub table: TargetTable,
    /// How many of the columns are its own; none of a table that is new.
    pub known: usize,
    /// Whether it was there.
    pub exists: bool,
    /// The rows.
    pub chunks: Vec<Chunk>,
}

impl TableRows {
    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.rows as u64).sum()
    }
}

/// Some rows of a table.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// How many.
    pub rows: usize,
    /// The columns that have values in them.
    pub cells: Vec<Cells>,
}

/// A column of a [`Chunk`].
#[derive(Debug, Clone)]
pub struct Cells {
    /// Which of the table's columns.
    pub column: usize,
    /// Its cells, in the Arrow type of the column.
    pub array: ArrayRef,
    /// The rows that left out a column with a default.
    pub missing: Option<BooleanBuffer>,
}

/// The table of what is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedTarget {
    /// Its name.
    pub table: String,
    /// Whether there is one, or a view.
    pub exists: bool,
}
