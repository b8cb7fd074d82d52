//! Writes a reader's rows into one table. A thread writes the batches while the reader continues;
//! at most a few batches are queued. Rows become visible on commit. Without a commit, nothing is
//! left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use tidemark_storage::TableSchema;
use tidemark_types::{EngineError, EngineResult, failpoint};

use super::feed::ended;
use super::queue::Queue;
use crate::database::Database;
use crate::ingest::transaction::Transaction;
use crate::ingest::writer::{TableIndex, Writer};
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;

/// Maximum number of batches waiting to be written.
const BATCHES_AHEAD: usize = 4;

pub(super) struct RowSink {
    database: Arc<Database>,
    has_failed: AtomicBool,
    failure: Mutex<Option<EngineError>>,
    batches: Mutex<Queue<RecordBatch>>,
    target: Mutex<Option<Target>>,
}

/// Destination of the rows.
pub(super) enum Target {
    /// A separate commit.
    Commit(Writer, TableIndex),
    /// A transaction block, with the table's definition.
    Block(Arc<Transaction>, Arc<TableSchema>),
}

impl RowSink {
    pub(super) fn new(database: &Arc<Database>, target: Target) -> Arc<Self> {
        Arc::new(Self {
            database: Arc::clone(database),
            has_failed: AtomicBool::new(false),
            failure: Mutex::new(None),
            batches: Queue::new(),
            target: Mutex::new(Some(target)),
        })
    }

    /// Queues rows; fails if earlier rows could not be written.
    pub(super) fn push(self: &Arc<Self>, batch: RecordBatch) -> EngineResult<()> {
        let (begins, waiting) = {
            let mut batches = self.batches.lock();
            (batches.add(batch), batches.len())
        };
        if begins {
            let sink = Arc::clone(self);
            self.database.handle().spawn_blocking(move || while sink.write_next() {});
        }
        if waiting > BATCHES_AHEAD {
            // If the queue is full, the reader writes a batch itself instead of waiting, because a
            // writer thread might never be scheduled.
            self.write_next();
        }
        self.check()
    }

    /// Writes the remaining rows, and commits them unless they belong to a transaction block.
    /// Blocks.
    pub(super) fn commit(&self) -> EngineResult<()> {
        while self.write_next() {}
        self.check()?;
        let target = self.target.lock().take();
        match target.ok_or_else(ended)? {
            Target::Commit(writer, _) => writer.commit(&CancelToken::default()).map(drop),
            Target::Block(..) => Ok(()),
        }
    }

    /// Discards all rows that do not belong to a block. No rows are written afterwards.
    pub(super) async fn given_up(self: Arc<Self>) -> EngineResult<()> {
        guard::run_blocking("writer", move || {
            let target = self.target.lock().take();
            self.batches.lock().clear();
            drop(target);
            Ok(())
        })
        .await
    }

    /// Writes the first waiting batch; returns false if there is none.
    fn write_next(&self) -> bool {
        let mut target = self.target.lock();
        let Some(batch) = self.batches.lock().next() else { return false };
        if self.has_failed.load(Ordering::Acquire) {
            return true;
        }
        let written = guard::catch("writer", || {
            failpoint::hit("engine.writer")?;
            match target.as_mut().ok_or_else(ended)? {
                Target::Commit(writer, table) => writer.push(*table, batch),
                Target::Block(block, schema) => {
                    // Adds the batch to the block.
                    let mut writer = Writer::new(&self.database);
                    let table = writer.table(schema);
                    writer.buffer(table, batch)?;
                    writer.pend(block).map(drop)
                }
            }
        });
        if let Err(error) = written {
            self.failure.lock().get_or_insert(error);
            self.has_failed.store(true, Ordering::Release);
        }
        true
    }

    /// The first call returns the failure; later calls return a generic error.
    fn check(&self) -> EngineResult<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(self.failure.lock().take().unwrap_or_else(ended))
    }
}
