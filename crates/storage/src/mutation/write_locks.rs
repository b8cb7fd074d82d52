//! Blocks a table's writers while one of them reads the table in order to change it.

use std::collections::HashSet;

use parking_lot::{Condvar, Mutex};

use crate::table::schema::TableId;

/// Tables whose writers must wait.
#[derive(Debug, Default)]
pub(crate) struct WriteLocks {
    tables: Mutex<HashSet<TableId>>,
    freed: Condvar,
}

impl WriteLocks {
    pub(crate) fn take(&self, table: TableId) {
        let mut tables = self.tables.lock();
        while !tables.insert(table) {
            self.freed.wait(&mut tables);
        }
    }

    /// Waits until none of these tables is locked.
    pub(crate) fn wait(&self, tables_to_write: &[TableId]) {
        let mut tables = self.tables.lock();
        while tables_to_write.iter().any(|table| tables.contains(table)) {
            self.freed.wait(&mut tables);
        }
    }

    pub(crate) fn is_locked(&self, table: TableId) -> bool {
        self.tables.lock().contains(&table)
    }

    pub(crate) fn list(&self) -> Vec<TableId> {
        self.tables.lock().iter().copied().collect()
    }

    pub(crate) fn release(&self, table: TableId) {
        self.tables.lock().remove(&table);
        self.freed.notify_all();
    }
}
