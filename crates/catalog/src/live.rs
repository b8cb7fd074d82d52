//! Clauses of live views: incremental views whose query returns one row per base row.

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::{EngineResult, SqlType};

use crate::interval::LiveInterval;
use crate::records::{RecordKind, put, record};

/// The clauses that only a live view has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// The FLUSH EVERY clause.
    pub flush_every: LiveInterval,
    /// The IN MEMORY clause.
    pub in_memory: LiveInterval,
    /// The START FROM clause.
    pub start: LiveStart,
    /// Base columns that the view's query reads.
    pub columns: Vec<UsedColumn>,
}

/// The START FROM clause: the timestamp from which base rows are shown, in the unit of the base
/// table's designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveStart {
    /// The clock time when the view was created.
    Now(i64),
    /// All rows.
    Beginning,
    /// A timestamp.
    At(i64),
}

/// A base column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedColumn {
    /// The column's name in the query.
    pub name: String,
    /// The name of the column's type.
    pub type_name: String,
}

impl UsedColumn {
    /// Creates a column with this name and type.
    #[must_use]
    pub fn new(name: &str, sql_type: SqlType) -> Self {
        Self { name: name.to_owned(), type_name: sql_type.name() }
    }
}

impl LiveView {
    pub(crate) fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        serde_json::from_slice(record(snapshot, RecordKind::LiveView, table)?).ok()
    }

    /// Returns the change that stores the clauses.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::LiveView, table, self)
    }

    /// Returns the first timestamp that the view shows; `i64::MIN` when it shows all rows.
    #[must_use]
    pub fn first_timestamp(&self) -> i64 {
        match self.start {
            LiveStart::Now(at) | LiveStart::At(at) => at,
            LiveStart::Beginning => i64::MIN,
        }
    }
}
