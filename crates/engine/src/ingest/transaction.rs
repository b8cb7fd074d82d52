//! Transaction blocks. A session sees its own block's rows immediately. Other sessions see these
//! rows, all at once, after the commit.
//!
//! A block is open until it is committed or rolled back. After that, all calls are rejected.

use std::sync::Arc;

use parking_lot::Mutex;
use tidemark_border::Permission;
use tidemark_planner::Access;
use tidemark_storage::{PendingRows, Snapshot, TableId};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::Database;
use crate::runtime::pool::SharedPool;

/// A transaction block of INSERT statements. Dropping the block rolls it back.
#[derive(Debug)]
pub struct Transaction {
    block: Mutex<Option<Block>>,
}

/// Rows waiting for COMMIT, in statement order.
#[derive(Debug)]
struct Block {
    memory: Arc<SharedPool>,
    waiting: Vec<Waiting>,
    /// Number of additions so far. A savepoint stores this number.
    added: u32,
    view: Option<View>,
}

#[derive(Debug, Clone)]
struct Waiting {
    rows: PendingRows,
    /// Memory reserved for the rows.
    bytes: usize,
    /// Number of the last addition that these rows include.
    number: u32,
    /// Whether a savepoint directly follows these rows. If so, rows that are added later must not
    /// be merged with them.
    closed: bool,
}

/// The snapshot that the block's statements see.
#[derive(Debug)]
struct View {
    /// The committed snapshot that the block's snapshot is based on.
    committed: Arc<Snapshot>,
    shown: Arc<Snapshot>,
    /// Number of waiting entries that the snapshot includes.
    count: usize,
}

impl Transaction {
    /// Begins an empty block.
    pub fn begin(database: &Database) -> Self {
        let memory = Arc::clone(&database.memory);
        let block = Block { memory, waiting: Vec::new(), added: 0, view: None };
        Self { block: Mutex::new(Some(block)) }
    }

    /// Adds all of a statement's rows or none. Fails if all blocks and queries together exceed the
    /// memory limit.
    pub(crate) fn add(&self, rows: Vec<PendingRows>) -> EngineResult<()> {
        let mut block = self.block.lock();
        let block = block.as_mut().ok_or_else(ended)?;
        if !block.memory.take(rows.iter().map(PendingRows::bytes).sum()) {
            let limit = block.memory.limit() >> 20;
            let message = format!(
                "out of memory for uncommitted rows: transactions and queries can use at most \
                 {limit} MiB"
            );
            return Err(
                EngineError::new(ErrorCode::ResourceLimit, message).with_hint("commit more often")
            );
        }
        block.added += 1;
        let number = block.added;
        let waiting = |rows: PendingRows| {
            let bytes = rows.bytes();
            Waiting { rows, bytes, number, closed: false }
        };
        block.waiting.extend(rows.into_iter().map(waiting));
        Ok(())
    }

    /// Rejects a statement that commits immediately if it would change a table for which this block
    /// has pending rows.
    pub(crate) fn refuse_changes(
        &self,
        command: &str,
        accesses: &[Access],
        snapshot: &Snapshot,
    ) -> EngineResult<()> {
        let changes = |access: &&Access| {
            !matches!(access.permission, Permission::Select | Permission::Insert)
        };
        for Access { table, .. } in accesses.iter().filter(changes) {
            let id = snapshot.table(table).map(|table| table.schema().id);
            if id.is_some_and(|id| self.contains(id)) {
                let message = format!(
                    "{command} commits immediately, but the transaction has uncommitted rows in \
                     table '{table}'"
                );
                return Err(EngineError::new(ErrorCode::NotSupported, message)
                    .with_hint("commit or roll back the transaction first"));
            }
        }
        Ok(())
    }

    fn contains(&self, table: TableId) -> bool {
        let block = self.block.lock();
        let mut waiting = block.iter().flat_map(|block| &block.waiting);
        waiting.any(|waiting| waiting.rows.table() == table)
    }

    /// Returns a snapshot of all committed data and the block's own rows.
    pub(crate) fn snapshot(&self, database: &Database) -> EngineResult<Arc<Snapshot>> {
        let committed = database.snapshot()?;
        self.block.lock().as_mut().ok_or_else(ended)?.snapshot(database, committed)
    }

    /// Commits all rows together. Blocks until they are durable. Returns the epoch of the commit,
    /// or `None` if the block is empty.
    pub fn commit(&self, database: &Database) -> EngineResult<Option<u64>> {
        failpoint::hit("engine.transaction_commit")?;
        database.check_open()?;
        let mut block = self.block.lock().take().ok_or_else(ended)?;
        if block.waiting.is_empty() {
            return Ok(None);
        }
        block.join()?;
        let rows = block.waiting.iter().map(|waiting| waiting.rows.clone()).collect();
        Ok(Some(database.storage.commit_pending(rows)?.epoch))
    }

    /// Creates a savepoint for [`Self::rollback_to`].
    pub fn savepoint(&self) -> EngineResult<u32> {
        failpoint::hit("engine.transaction_savepoint")?;
        let mut block = self.block.lock();
        let block = block.as_mut().ok_or_else(ended)?;
        if let Some(last) = block.waiting.last_mut() {
            last.closed = true;
        }
        Ok(block.added)
    }

    /// Discards rows added after a savepoint.
    pub fn rollback_to(&self, savepoint: u32) -> EngineResult<()> {
        failpoint::hit("engine.transaction_rollback")?;
        let mut block = self.block.lock();
        let block = block.as_mut().ok_or_else(ended)?;
        let remaining = block.waiting.partition_point(|waiting| waiting.number <= savepoint);
        block.release_after(remaining);
        block.waiting.truncate(remaining);
        block.view.take_if(|view| view.count > remaining);
        Ok(())
    }

    /// Discards all rows.
    pub fn rollback(&self) -> EngineResult<()> {
        failpoint::hit("engine.transaction_rollback")?;
        self.block.lock().take().map(drop).ok_or_else(ended)
    }
}

impl Block {
    fn snapshot(
        &mut self,
        database: &Database,
        committed: Arc<Snapshot>,
    ) -> EngineResult<Arc<Snapshot>> {
        if self.waiting.is_empty() {
            return Ok(committed);
        }
        let known = self.view.take().filter(|view| Arc::ptr_eq(&view.committed, &committed));
        let (before, seen) = if let Some(view) = known {
            (view.shown, view.count)
        } else {
            self.join()?;
            (Arc::clone(&committed), 0)
        };
        let count = self.waiting.len();
        let shown = if seen == count {
            before
        } else {
            let new: Vec<_> = self.waiting[seen..].iter().map(|w| w.rows.clone()).collect();
            database.storage.preview(&committed, &before, &new)?
        };
        self.view = Some(View { committed, shown: Arc::clone(&shown), count });
        Ok(shown)
    }

    /// Merges adjacent entries that no savepoint separates, so many small statements form only a
    /// few entries. Only entries of similar size are merged, so each row is copied O(log n) times.
    fn join(&mut self) -> EngineResult<()> {
        self.view = None;
        let mut joined: Vec<Waiting> = Vec::with_capacity(self.waiting.len());
        for mut next in self.waiting.iter().cloned() {
            while let Some(last) = joined.last()
                && !last.closed
                && last.rows.bytes() <= next.rows.bytes().saturating_mul(2)
                && let Some(rows) = last.rows.joined(&next.rows)?
            {
                next.rows = rows;
                next.bytes += last.bytes;
                joined.pop();
            }
            joined.push(next);
        }
        self.waiting = joined;
        Ok(())
    }

    /// Releases the memory of all entries except the first `remaining`.
    fn release_after(&self, remaining: usize) {
        self.memory.release(self.waiting[remaining..].iter().map(|waiting| waiting.bytes).sum());
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.release_after(0);
    }
}

fn ended() -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, "the transaction has ended")
}
