//! Reads as many left-side rows as fit in memory.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::{StreamExt, TryStreamExt};

use super::memory_budget::MemoryBudget;
use crate::bounded::bytes::memory_bytes;
use crate::materialize::chained;
use crate::operator::Run;

/// Memory that the hash join needs per row, in bytes, in addition to the cells. It covers an entry
/// in the table, which may be half empty, an entry in a chain, the hash, and the match bit.
const ROW_BYTES: usize = 44;

/// Memory limits while reading the build side, in bytes.
#[derive(Clone, Copy)]
pub(super) struct MemoryLimits {
    /// Limit for the build side's rows.
    pub(super) own: usize,
    /// Limit for the whole query. It does not apply while these rows use at most `guaranteed`
    /// bytes.
    pub(super) all: usize,
    pub(super) guaranteed: usize,
    /// Whether to read the first batch regardless of the limits; the join fails if it runs out of
    /// memory.
    pub(super) at_least_one: bool,
}

/// Remaining rows, to be read block by block.
pub(super) struct RemainingRows {
    first: Option<RecordBatch>,
    rows: SendableRecordBatchStream,
}

impl From<SendableRecordBatchStream> for RemainingRows {
    fn from(rows: SendableRecordBatchStream) -> Self {
        Self { first: None, rows }
    }
}

impl RemainingRows {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.rows.try_next().await,
        }
    }
}

/// Materialized rows, together with the memory that the hash join needs for them.
pub(super) struct MaterializedRows {
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl MaterializedRows {
    /// Reads rows until the input ends or the memory limit is reached. Also returns the remaining
    /// rows.
    pub(super) async fn read(
        run: &Run,
        mut rows: RemainingRows,
        max: MemoryLimits,
    ) -> Result<(Self, Option<RemainingRows>)> {
        let mut materialized = Self { batches: vec![], memory: run.memory() };
        let pool = run.context.memory_pool();
        // Batches may share buffers, which are counted only once.
        let mut counter = RecordBatchMemoryCounter::new();
        while let Some(batch) = rows.next().await? {
            let bytes = counter.count_batch(&batch) + ROW_BYTES * batch.num_rows();
            // The hash join concatenates all batches, so each batch is counted twice.
            let required = bytes + memory_bytes(&batch);
            if max.at_least_one && materialized.batches.is_empty() {
                materialized.memory.try_grow(required)?;
            } else {
                let own = materialized.memory.size().saturating_add(required);
                let all = pool.reserved().saturating_add(required);
                let fits = own <= max.own && (all <= max.all || own <= max.guaranteed);
                if !fits || materialized.memory.try_grow(required).is_err() {
                    rows.first = Some(batch);
                    return Ok((materialized, Some(rows)));
                }
            }
            materialized.batches.push(batch);
        }
        Ok((materialized, None))
    }

    /// Returns these rows, followed by the remaining rows.
    pub(super) fn and(
        self,
        RemainingRows { first, rows }: RemainingRows,
    ) -> SendableRecordBatchStream {
        let Self { batches, memory } = self;
        let materialized = futures::stream::iter(batches).map(Ok).boxed();
        let rest = futures::stream::iter(first.map(Ok));
        chained(rows.schema(), materialized, Arc::new(memory), rest.chain(rows).boxed())
    }

    /// Returns these rows, and their reserved memory as a budget for the joins that use them.
    pub(super) fn prepaid(self) -> (Vec<RecordBatch>, Arc<MemoryBudget>) {
        (self.batches, MemoryBudget::reserved(self.memory))
    }
}
