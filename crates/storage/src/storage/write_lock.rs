//! Blocks a table's writers while one of them reads the table in order to change it.

use std::sync::Arc;

use tidemark_types::EngineResult;

use crate::mutation::change::{Change, CommitReceipt};
use crate::storage::Storage;
use crate::table::schema::TableId;

/// While this lock exists, other commits that touch the table wait. Readers are not blocked.
#[derive(Debug)]
pub struct WriteLock {
    storage: Arc<Storage>,
    table: TableId,
}

impl WriteLock {
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Commits without waiting for this lock.
    pub fn commit(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        self.storage.commit_as_lock_holder(changes)
    }
}

impl Drop for WriteLock {
    fn drop(&mut self) {
        self.storage.write_locks().release(self.table);
    }
}

impl Storage {
    /// Returns, in no particular order, the tables whose writers are blocked while a change reads
    /// the table.
    pub fn write_locked_tables(&self) -> Vec<TableId> {
        self.write_locks().list()
    }

    /// Blocks other writers of the table, after waiting for the current holder. A commit in
    /// progress may still complete, so take the snapshot afterwards and retry on `Replan`.
    pub fn lock_writes(self: &Arc<Self>, table: TableId) -> WriteLock {
        self.write_locks().take(table);
        WriteLock { storage: Arc::clone(self), table }
    }
}
