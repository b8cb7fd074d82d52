//! The clauses of live views: incremental views whose query has a row for each row of the base.

use serde::{Deserialize, Serialize};
use tidemark_storage::{Change, Snapshot, TableId};
use tidemark_types::{EngineResult, SqlType};

use crate::interval::LiveInterval;
use crate::records::{RecordKind, put, record};

/// What only a live view has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveView {
    /// FLUSH EVERY.
    pub flush_every: LiveInterval,
    /// IN MEMORY.
    pub in_memory: LiveInterval,
    /// START FROM.
    pub start: LiveStart,
    /// What its query reads of the base.
    pub columns: Vec<UsedColumn>,
}

/// The first row of the base that is shown, in the unit of its designated timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LiveStart {
    /// The clock's time when the view was made.
    Now(i64),
    /// All rows.
    Beginning,
    /// An instant.
    At(i64),
}

/// A column of the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsedColumn {
    /// Its name in the query.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
}

impl UsedColumn {
    /// A column of this name and type.
    #[must_use]
    pub fn new(name: &str, sql_type: SqlType) -> Self {
        Self { name: name.to_owned(), type_name: sql_type.name() }
    }
}

impl LiveView {
    pub(crate) fn of(snapshot: &Snapshot, table: TableId) -> Option<Self> {
        serde_json::from_slice(record(snapshot, RecordKind::LiveView, table)?).ok()
    }

    /// The change that records it.
    pub fn put(&self, table: TableId) -> EngineResult<Change> {
        put(RecordKind::LiveView, table, self)
    }

    /// The first instant shown; the least there is where nothing is left out.
    #[must_use]
    pub fn first_instant(&self) -> i64 {
        match self.start {
            LiveStart::Now(at) | LiveStart::At(at) => at,
            LiveStart::Beginning => i64::MIN,
        }
    }
}
