//! Block joins, used when nearly all rows have the same key. Each block of the left side is joined
//! with the whole right side.
//!
//! The result for a left row is known at the end of its block, but the result for a right row only
//! after the last block. Until then, a bit records whether the right row has matched.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::FieldRef;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::{JoinType, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::joins::HashJoinExecBuilder;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::TryStreamExt;

use super::build_rows::{MaterializedRows, RemainingRows};
use super::joiner::{Joiner, LEFT, RIGHT, settled};
use super::memory_budget::MemoryBudget;
use super::spread::File;
use crate::materialize::with_schema;

/// The remaining block joins.
pub(super) struct Blocks {
    joiner: Arc<Joiner>,
    left: Option<RemainingRows>,
    /// `None` if the right side has no rows.
    right: Option<File>,
    /// Whether each right row has matched, for join types that need it.
    found: Option<BooleanBuffer>,
    /// Memory for the match bits.
    _memory: MemoryReservation,
}

/// Maps a join type that also returns unmatched right rows to the join type without them, which is
/// used to join a single block. Returns `None` for all other join types.
fn pairs(kind: JoinType) -> Option<JoinType> {
    match kind {
        JoinType::Right => Some(JoinType::Inner),
        JoinType::Full => Some(JoinType::Left),
        _ => None,
    }
}

fn keeps_right(kind: JoinType) -> bool {
    use JoinType::{Full, Right, RightAnti, RightMark, RightSemi};
    matches!(kind, Right | Full | RightSemi | RightAnti | RightMark)
}

impl Blocks {
    pub(super) fn new(
        joiner: Arc<Joiner>,
        left: SendableRecordBatchStream,
        right: Option<File>,
    ) -> Result<Self> {
        let memory = joiner.run.memory();
        let mut found = None;
        if keeps_right(*joiner.join.join_type()) {
            // Three bitmaps: the matches of all blocks so far, the matches of one block, and the
            // union of the two.
            let rows = right.as_ref().map_or(0, |right| right.rows);
            memory.try_grow(3 * rows.div_ceil(8))?;
            found = Some(BooleanBuffer::new_unset(rows));
        }
        Ok(Self { left: Some(left.into()), right, found, _memory: memory, joiner })
    }

    /// Returns the rows of all the block joins.
    pub(super) fn rows(self) -> SendableRecordBatchStream {
        let schema = self.joiner.schema();
        let rows = futures::stream::try_unfold(self, Self::next).try_flatten();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    fn right(&self) -> Result<SendableRecordBatchStream> {
        if let Some(right) = &self.right {
            return right.read();
        }
        let schema = self.joiner.schema_of(RIGHT);
        Ok(Box::pin(EmptyRecordBatchStream::new(schema)))
    }

    async fn next(mut self) -> Result<Option<(SendableRecordBatchStream, Self)>> {
        let joiner = Arc::clone(&self.joiner);
        let Some(left) = self.left.take() else {
            let Some(found) = self.found.take() else { return Ok(None) };
            return Ok(Some((self.kept(found)?, self)));
        };
        let kind = *joiner.join.join_type();
        let (materialized, rest) =
            MaterializedRows::read(&joiner.run, left, joiner.block()).await?;
        self.left = rest;
        let Some(found) = self.found.take() else {
            let rows = joiner.execute_materialized(materialized, self.right()?)?;
            return Ok(Some((rows, self)));
        };
        let (left, memory) = materialized.prepaid();
        let right = joiner.found(left.clone(), &memory, self.right()?).await?;
        self.found = Some(&found | &right);
        let schema = joiner.schema();
        let rows: SendableRecordBatchStream = match pairs(kind) {
            Some(kind) => {
                let change = |join: HashJoinExecBuilder| join.with_type(kind);
                let right = settled(&memory, self.right()?);
                let rows = joiner.execute(left, &memory, right, change)?;
                let own = Arc::clone(&schema);
                let rows = rows.and_then(move |batch| {
                    let batch = with_schema(&own, batch.columns().to_vec(), batch.num_rows());
                    futures::future::ready(batch)
                });
                Box::pin(RecordBatchStreamAdapter::new(schema, rows))
            }
            None => Box::pin(EmptyRecordBatchStream::new(schema)),
        };
        Ok(Some((rows, self)))
    }

    /// Returns the right side's output rows, after the last block.
    fn kept(&self, found: BooleanBuffer) -> Result<SendableRecordBatchStream> {
        let joiner = Arc::clone(&self.joiner);
        let schema = joiner.schema();
        let mut start = 0;
        let rows = self.right()?.and_then(move |batch| {
            let found = found.slice(start, batch.num_rows());
            start += batch.num_rows();
            futures::future::ready(joiner.kept(&batch, &found))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

impl Joiner {
    /// Determines which right rows match at least one of these left rows.
    async fn found(
        &self,
        left: Vec<RecordBatch>,
        memory: &Arc<MemoryBudget>,
        right: SendableRecordBatchStream,
    ) -> Result<BooleanBuffer> {
        let width = self.schema_of(RIGHT).fields().len();
        let mark = |join: HashJoinExecBuilder| {
            // Removes the projection first, because it refers to the original output columns.
            let join = join.with_projection(None).with_type(JoinType::RightMark);
            join.with_projection(Some(vec![width]))
        };
        let mut marks = self.execute(left, memory, right, mark)?;
        let mut found = BooleanBufferBuilder::new(0);
        while let Some(batch) = marks.try_next().await? {
            found.append_buffer(batch.column(0).as_boolean().values());
        }
        Ok(found.finish())
    }

    /// Builds the output for right rows from their match bits.
    fn kept(&self, batch: &RecordBatch, found: &BooleanBuffer) -> Result<RecordBatch> {
        let of = |found| filter_record_batch(batch, &BooleanArray::new(found, None));
        let (rows, mut columns) = match *self.join.join_type() {
            JoinType::RightMark => {
                let mark: ArrayRef = Arc::new(BooleanArray::new(found.clone(), None));
                let columns = batch.columns().iter().cloned().chain([mark]);
                (batch.num_rows(), columns.collect::<Vec<_>>())
            }
            JoinType::RightSemi => {
                let retained = of(found.clone())?;
                (retained.num_rows(), retained.columns().to_vec())
            }
            JoinType::RightAnti => {
                let retained = of(!found)?;
                (retained.num_rows(), retained.columns().to_vec())
            }
            _ => {
                let retained = of(!found)?;
                let left = self.schema_of(LEFT);
                let nulls =
                    |field: &FieldRef| new_null_array(field.data_type(), retained.num_rows());
                let left = left.fields().iter().map(nulls);
                (retained.num_rows(), left.chain(retained.columns().iter().cloned()).collect())
            }
        };
        if let Some(projection) = &self.join.projection {
            columns = projection.iter().map(|&column| Arc::clone(&columns[column])).collect();
        }
        with_schema(&self.schema(), columns, rows)
    }
}
