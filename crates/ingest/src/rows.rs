//! Typed columns of one or several tables, on their way from a protocol into the one commit of a
//! message. What is here knows neither the protocol nor the tables: those are described by the part
//! that asks for the rows.

use arrow_array::ArrayRef;
use arrow_buffer::BooleanBuffer;
use tidemark_types::identifier::{is_valid_column_name, same};
use tidemark_types::{EngineResult, SqlType};

/// Rows of a chunk.
pub(crate) const MAX_CHUNK_ROWS: usize = 64 * 1024;
/// The name of the designated timestamp of a table that is made.
pub(crate) const TIMESTAMP: &str = "timestamp";

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

/// What a table may get with its rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Additions {
    /// Whether a table that is there gets columns.
    pub(crate) columns: bool,
    /// Columns of a table, at most.
    pub(crate) most_columns: usize,
}

/// Why a column is not added.
#[derive(Debug)]
pub(crate) enum NotAdded {
    /// Its name is none.
    Name(String),
    /// The table does not get it.
    Refused(String),
}

impl TableRows {
    /// No rows yet, for the table that was found, or for one that is made with them.
    pub(crate) fn new(name: &str, found: Option<TargetTable>) -> Self {
        let exists = found.is_some();
        let table = found.unwrap_or_else(|| TargetTable {
            name: name.to_owned(),
            columns: Vec::new(),
            timestamp: None,
        });
        Self { known: table.columns.len(), exists, chunks: Vec::new(), table }
    }

    /// The table, for who refuses rows of it.
    pub(crate) fn target(&self) -> RefusedTarget {
        RefusedTarget { table: self.table.name.clone(), exists: self.exists }
    }

    /// Adds the column of a name that the table does not have; none where its values tell no type,
    /// and nothing is to be kept.
    #[cold]
    pub(crate) fn add(
        &mut self,
        name: &str,
        new_type: impl FnOnce() -> Result<Option<SqlType>, String>,
        additions: Additions,
    ) -> Result<Option<usize>, NotAdded> {
        let (table, shown) = (&self.table.name, shown(name.as_bytes()));
        if !is_valid_column_name(name) {
            return Err(NotAdded::Name(format!("{shown} is no name of a column")));
        }
        let refused = |reason| Err(NotAdded::Refused(reason));
        if self.exists && !additions.columns {
            return refused(format!("table '{table}' has no column {shown}, and none is added"));
        }
        let Some(sql_type) = new_type().map_err(NotAdded::Refused)? else { return Ok(None) };
        if self.table.columns.len() >= additions.most_columns {
            let most = additions.most_columns;
            return refused(format!("table '{table}' has too many columns [limit={most}]"));
        }
        // The designated timestamp of a new table is what rows say by its name.
        let is_time = !self.exists && same(name, TIMESTAMP);
        if is_time && (self.table.timestamp.is_some() || !sql_type.is_timestamp()) {
            let found = sql_type.name();
            return refused(format!(
                "column 'timestamp' is the timestamp of the table, found {found}"
            ));
        }
        let column = self.new_column(name, sql_type);
        if is_time {
            self.table.timestamp = Some(column);
        }
        Ok(Some(column))
    }

    /// Makes the designated timestamp of a table that is new.
    pub(crate) fn new_timestamp(&mut self, sql_type: SqlType) -> usize {
        let column = self.new_column(TIMESTAMP, sql_type);
        self.table.timestamp = Some(column);
        column
    }

    fn new_column(&mut self, name: &str, sql_type: SqlType) -> usize {
        self.table.columns.push(TargetColumn::new(name, sql_type));
        self.table.columns.len() - 1
    }

    /// Why a timestamp has no place in a table that is there.
    pub(crate) fn without_timestamp(&self) -> String {
        format!("table '{}' has no designated timestamp", self.table.name)
    }

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

/// A text of a client within a message, cut where it is long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MAX_BYTES: usize = 64;
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BYTES)]);
    let head: String = head.chars().flat_map(char::escape_debug).collect();
    let dots = if bytes.len() > MAX_BYTES { "…" } else { "" };
    format!("'{head}{dots}'")
}
