//! Holding a table's writers back while one of them reads the table to change it.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tidemark_types::EngineResult;

use crate::mutation::change::{Change, CommitReceipt};
use crate::storage::Storage;
use crate::table::schema::TableId;

/// Tables whose writers wait.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    tables: Mutex<HashSet<TableId>>,
    freed: Condvar,
}

impl Holds {
    fn take(&self, table: TableId) {
        let mut tables = self.tables.lock();
        while !tables.insert(table) {
            self.freed.wait(&mut tables);
        }
    }

    /// Returns once none of these tables is held.
    pub(crate) fn wait(&self, wanted: &[TableId]) {
        let mut tables = self.tables.lock();
        while wanted.iter().any(|table| tables.contains(table)) {
            self.freed.wait(&mut tables);
        }
    }

    pub(crate) fn is_held(&self, table: TableId) -> bool {
        self.tables.lock().contains(&table)
    }

    fn list(&self) -> Vec<TableId> {
        self.tables.lock().iter().copied().collect()
    }
}

/// While it lives, commits of others that touch the table wait. Readers do not.
#[derive(Debug)]
pub struct WriteHold {
    storage: Arc<Storage>,
    table: TableId,
}

impl WriteHold {
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Commits past the hold.
    pub fn commit(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        self.storage.commit_past_holds(changes)
    }
}

impl Drop for WriteHold {
    fn drop(&mut self) {
        let holds = self.storage.holds();
        holds.tables.lock().remove(&self.table);
        holds.freed.notify_all();
    }
}

impl Storage {
    /// The tables whose writers wait for a change that reads them, in no order.
    pub fn held_tables(&self) -> Vec<TableId> {
        self.holds().list()
    }

    /// Holds the table's other writers back, waiting for the present holder. A commit that
    /// was under way may still happen: take the snapshot afterwards, and try again on `Replan`.
    pub fn hold_writes(self: &Arc<Self>, table: TableId) -> WriteHold {
        self.holds().take(table);
        WriteHold { storage: Arc::clone(self), table }
    }
}
