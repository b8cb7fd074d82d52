//! Writers of a table held back while one of them reads it to change it.

use std::sync::Arc;

use tidemark_types::EngineResult;

use crate::mutation::change::{Change, CommitReceipt};
use crate::storage::Storage;
use crate::table::schema::TableId;

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
        self.storage.holds().release(self.table);
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
