//! Reads as many rows of the left side as fit in memory.

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

/// Memory that the hash join needs per row, in addition to the cells: an entry in the table, which
/// may be half empty, an entry in a chain, the hash, and the match bit.
const ROW_BYTES: usize = 44;

/// Memory limits while the build side is read, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Most {
    /// Limit for these rows.
    pub(super) own: usize,
    /// Limit for the whole query. It does not apply while these rows use at most `least`.
    pub(super) all: usize,
    pub(super) least: usize,
    /// Whether to read the first batch regardless of the limits; the join fails if memory runs out.
    pub(super) at_least_one: bool,
}

/// Remaining rows, from which blocks are taken one after the other.
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

/// Materialized rows, with the memory that the hash join needs for them.
pub(super) struct HeldRows {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl HeldRows {
    /// Reads rows until they end or the memory is used up. Also returns the remaining rows.
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
            // The hash join concatenates all batches into one.
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

    /// Returns these rows, followed by the remaining rows.
    pub(super) fn and(self, Rest { first, rows }: Rest) -> SendableRecordBatchStream {
        let Self { batches, memory } = self;
        let held = futures::stream::iter(batches).map(Ok).boxed();
        let rest = futures::stream::iter(first.map(Ok));
        chained(rows.schema(), held, Arc::new(memory), rest.chain(rows).boxed())
    }

    /// Returns these rows, and their reserved memory as the budget for the joins that use them.
    pub(super) fn prepaid(self) -> (Vec<RecordBatch>, Arc<Share>) {
        (self.batches, Share::held(self.memory))
    }
}
