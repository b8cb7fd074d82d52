//! Rows waiting for a commit, and their visibility within their own session.
//!
//! The state machine that applies commits also applies these rows to a snapshot. However, they are
//! not logged, and other sessions do not see them. Discarded rows leave only symbol strings that no
//! row uses, as discarded bulk writes do.

use std::sync::Arc;

use arrow::compute::concat;
use arrow_array::{Array, RecordBatch};
use tidemark_types::{EngineError, EngineResult};

use crate::mutation::change::CommitReceipt;
use crate::mutation::prepare::{Prepared, Rows, existing, in_time_order, sorted_rows};
use crate::snapshot::Snapshot;
use crate::state::apply::apply;
use crate::state::context::{ApplyContext, PendingRewrites};
use crate::state::resolve::resolve;
use crate::storage::Storage;
use crate::table::schema::{TableId, TableSchema};

/// Maximum size of combined pending rows, in bytes.
const JOINED_BYTES: usize = 64 << 20;

/// Checked rows of one table that wait for a commit, ascending in time.
#[derive(Debug, Clone)]
pub struct PendingRows {
    schema: Arc<TableSchema>,
    rows: Rows,
    bytes: usize,
}

impl PendingRows {
    fn new(schema: Arc<TableSchema>, rows: Rows) -> Self {
        let bytes = rows.columns.iter().map(Array::get_array_memory_size).sum();
        Self { schema, rows, bytes }
    }

    /// Table that the rows belong to.
    pub fn table(&self) -> TableId {
        self.schema.id
    }

    /// Size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends later rows to these rows. Returns `None` if the tables or definitions differ, or if
    /// the result would be too large.
    pub fn joined(&self, later: &Self) -> EngineResult<Option<Self>> {
        let (ours, theirs) = (&self.rows.columns, &later.rows.columns);
        let same = Arc::ptr_eq(&self.schema, &later.schema)
            && ours.iter().zip(theirs).all(|(a, b)| a.data_type() == b.data_type());
        if !same || self.bytes + later.bytes > JOINED_BYTES {
            return Ok(None);
        }
        let both = ours.iter().zip(theirs).map(|(a, b)| concat(&[a.as_ref(), b.as_ref()]));
        let columns = both.collect::<Result<_, _>>();
        let columns = columns.map_err(|error| EngineError::internal(error.to_string()))?;
        let count = self.rows.count + later.rows.count;
        let rows = in_time_order(&self.schema, Rows { count, columns })?;
        Ok(Some(Self::new(Arc::clone(&self.schema), rows)))
    }

    fn prepared(self) -> Prepared {
        let (table, schema_version) = (self.schema.id, self.schema.version);
        Prepared::Append { table, schema_version, rows: self.rows }
    }
}

impl Storage {
    /// Checks rows for a later commit. The batch has the columns of the given definition version,
    /// with rows in any order. Fails whenever committing the rows would fail.
    pub fn pend(
        &self,
        table: TableId,
        schema_version: u64,
        batch: &RecordBatch,
    ) -> EngineResult<PendingRows> {
        let schema = existing(&self.snapshot(), table, schema_version)?;
        let rows = sorted_rows(&schema, batch, self.options())?;
        Ok(PendingRows::new(schema, rows))
    }

    /// Commits pending rows, like [`Self::commit`]. Fails with `Replan` if a table was dropped or
    /// its definition changed.
    pub fn commit_pending(&self, rows: Vec<PendingRows>) -> EngineResult<CommitReceipt> {
        self.commit_prepared(rows.into_iter().map(PendingRows::prepared).collect())
    }

    /// Returns `shown` with these rows added. `committed` is the snapshot that `shown` is derived
    /// from, or `shown` itself. Other readers do not see the rows. Fails with `Replan` like
    /// [`Self::commit_pending`].
    pub fn preview(
        &self,
        committed: &Snapshot,
        shown: &Snapshot,
        rows: &[PendingRows],
    ) -> EngineResult<Arc<Snapshot>> {
        let mut shown = shown.clone();
        for rows in rows {
            shown.lsn += 1;
            let op = resolve(&shown, rows.clone().prepared())?;
            let mut context = ApplyContext {
                vfs: self.vfs(),
                lsn: shown.lsn,
                // Committed runs are shared with all readers, so they are not merged with pending
                // runs.
                frozen_lsn: committed.lsn,
                run_rows: self.options().run_rows,
                removed: &mut Vec::new(),
                unsynced: &mut Vec::new(),
                pending_rewrites: &mut PendingRewrites::default(),
                steps: &mut Vec::new(),
            };
            apply(&mut shown, &op, &mut context)?;
        }
        Ok(Arc::new(shown))
    }
}
