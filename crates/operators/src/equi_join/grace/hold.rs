//! As many rows of the left side as there is memory for.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::{StreamExt, TryStreamExt};

use super::share::Share;
use crate::bounded::bytes::held_bytes;
use crate::held::chained;
use crate::operator::Run;

/// What the hash join takes of memory for a row beside its cells: its places in the table, which
/// may be half empty, and in a chain, its hash, and whether it was found.
const ROW_BYTES: usize = 44;

/// How much is held.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// By these rows.
    pub(super) own: usize,
    /// By all of the query, unless these rows are fewer than `least`.
    pub(super) all: usize,
    pub(super) least: usize,
    /// The first batch is held in any case, or fails.
    pub(super) at_least_one: bool,
}

/// What is left of rows: blocks are taken from it one after the other.
pub(super) struct Rest {
    first: Option<RecordBatch>,
    rows: SendableRecordBatchStream,
}

impl From<SendableRecordBatchStream> for Rest {
    fn from(rows: SendableRecordBatchStream) -> Self {
        Self { first: None, rows }
    }
}

impl Rest {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.rows.try_next().await,
        }
    }
}

/// Rows, counted as what the hash join takes for them.
pub(super) struct HeldRows {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl HeldRows {
    /// Reads rows until they are all, or the memory is used up; with those that are left.
    pub(super) async fn read(
        run: &Run,
        mut rows: Rest,
        most: Most,
    ) -> Result<(Self, Option<Rest>)> {
        let mut held = Self { batches: vec![], memory: run.memory() };
        let pool = run.context.memory_pool();
        // Batches may share buffers.
        let mut counter = RecordBatchMemoryCounter::new();
        while let Some(batch) = rows.next().await? {
            let bytes = counter.count_batch(&batch) + ROW_BYTES * batch.num_rows();
            // All batches are put together in one.
            let wanted = bytes + held_bytes(&batch);
            if most.at_least_one && held.batches.is_empty() {
                held.memory.try_grow(wanted)?;
            } else {
                let own = held.memory.size().saturating_add(wanted);
                let all = pool.reserved().saturating_add(wanted);
                let fits = own <= most.own && (all <= most.all || own <= most.least);
                if !fits || held.memory.try_grow(wanted).is_err() {
                    rows.first = Some(batch);
                    return Ok((held, Some(rows)));
                }
            }
            held.batches.push(batch);
        }
        Ok((held, None))
    }

    /// The same rows, and those that are left.
    pub(super) fn and(self, Rest { first, rows }: Rest) -> SendableRecordBatchStream {
        let Self { batches, memory } = self;
        let held = futures::stream::iter(batches).map(Ok).boxed();
        let rest = futures::stream::iter(first.map(Ok));
        chained(rows.schema(), held, Arc::new(memory), rest.chain(rows).boxed())
    }

    /// The same rows, and their memory for joins of them.
    pub(super) fn prepaid(self) -> (Vec<RecordBatch>, Arc<Share>) {
        (self.batches, Share::held(self.memory))
    }
}
