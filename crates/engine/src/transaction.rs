//! Inserts of several statements that become visible together.

use parking_lot::Mutex;
use tidemark_storage::Change;
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::Database;

/// Changes held back until COMMIT. Rows written inside are not visible to the session itself
/// before the commit; that comes with the wire protocol's own issue.
#[derive(Debug, Default)]
pub struct Transaction {
    changes: Mutex<Option<Vec<Change>>>,
}

impl Transaction {
    /// An empty transaction.
    pub fn begin() -> Self {
        Self { changes: Mutex::new(Some(Vec::new())) }
    }

    /// Holds a change back.
    pub(crate) fn add(&self, change: Change) -> EngineResult<()> {
        self.changes.lock().as_mut().ok_or_else(ended)?.push(change);
        Ok(())
    }

    /// Commits everything at once. Blocks until durable; answers the new epoch, or `None` when
    /// there was nothing to commit.
    pub fn commit(&self, database: &Database) -> EngineResult<Option<u64>> {
        failpoint::hit("engine.transaction_commit")?;
        database.check_open()?;
        let changes = self.changes.lock().take().ok_or_else(ended)?;
        if changes.is_empty() {
            return Ok(None);
        }
        Ok(Some(database.storage.commit(changes)?.epoch))
    }

    /// Forgets everything.
    pub fn rollback(&self) -> EngineResult<()> {
        failpoint::hit("engine.transaction_rollback")?;
        self.changes.lock().take().map(drop).ok_or_else(ended)
    }
}

fn ended() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the transaction has ended")
}
