//! Resolves names to tables, views and settings, and builds definitions.
//!
//! The catalog is a thin, stateless layer over a storage snapshot, which holds all the data that
//! the catalog reports. The crate does not depend on SQL or on files.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod builder;
mod incremental;
mod interval;
mod live;
mod records;

use std::sync::Arc;

use tidemark_storage::{Snapshot, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

pub use builder::{TableBuilder, check_new_column};
pub use incremental::{
    ExpirePolicy, IncrementalState, IncrementalView, RefreshPeriod, RefreshRequest, RefreshTrigger,
    ViewForm,
};
pub use interval::{Every, LiveInterval, LiveUnit};
pub use live::{LiveStart, LiveView, UsedColumn};
pub use records::{
    Owner, RecordKind, View, ViewColumn, ViewSource, due_table_types, set_table_type,
};

/// An object that a name can refer to.
#[derive(Debug, Clone)]
pub enum Object {
    /// A table.
    Table(Arc<TableSnapshot>),
    /// A view.
    View(View),
}

/// Name resolution in one snapshot.
#[derive(Debug, Clone)]
pub struct Catalog {
    snapshot: Arc<Snapshot>,
}

impl Catalog {
    /// Creates a catalog for this snapshot.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot }
    }

    /// Returns the snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Finds the object with this name, ignoring case.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<Object> {
        if let Some(table) = self.snapshot.table(name) {
            return Some(Object::Table(table));
        }
        View::find(&self.snapshot, name).map(Object::View)
    }

    /// Returns the table with this name, or `TableNotFound`.
    pub fn table(&self, name: &str) -> EngineResult<Arc<TableSnapshot>> {
        self.snapshot.table(name).ok_or_else(|| {
            let message = format!("table does not exist [table={name}]");
            EngineError::new(ErrorCode::TableNotFound, message)
        })
    }

    /// Returns all tables, sorted by name.
    #[must_use]
    pub fn tables(&self) -> Vec<Arc<TableSnapshot>> {
        let mut tables: Vec<_> = self.snapshot.tables().map(Arc::clone).collect();
        tables.sort_by(|a, b| a.schema().name.cmp(&b.schema().name));
        tables
    }

    /// Returns all views, sorted by name.
    #[must_use]
    pub fn views(&self) -> Vec<View> {
        records::views(&self.snapshot)
    }

    /// Returns the bytes of a setting.
    #[must_use]
    pub fn setting(&self, key: &str) -> Option<&[u8]> {
        self.snapshot.record(RecordKind::Setting.name(), key)
    }
}
