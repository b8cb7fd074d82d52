//! Partitions a batch's rows by key.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;

use crate::hash_partition::{self, joined, sort_by_partition};
use crate::scan::rows::BATCH_ROWS;

/// Number of partitions: one for each value of a hash's first byte.
pub(super) const PARTITIONS: usize = 256;
/// Hash seed. It differs from the seed of the tables in which a partition's rows are looked up.
const SEED: u64 = 0x7469_6465;

/// Start of each partition, followed by the end of the last partition.
pub(super) struct Starts([u32; PARTITIONS + 1]);

impl Starts {
    pub(super) fn of(&self, partition: usize) -> Range<usize> {
        self.0[partition] as usize..self.0[partition + 1] as usize
    }
}

/// Returns the hash of each row's keys.
pub(super) fn hashes(keys: &[ArrayRef], rows: usize) -> Result<Vec<u64>> {
    hash_partition::hashes(keys, rows, SEED)
}

/// Sorts rows by partition, preserving their original order within each partition.
pub(super) fn spread(
    keys: &[Arc<dyn PhysicalExpr>],
    batch: &RecordBatch,
) -> Result<(RecordBatch, Starts)> {
    let mut starts = [0; PARTITIONS + 1];
    let keys = keys.iter().map(|key| key.evaluate(batch)?.into_array(batch.num_rows()));
    let hashes = hashes(&keys.collect::<Result<Vec<_>>>()?, batch.num_rows())?;
    let batch = sort_by_partition(batch, &hashes, |hash| (hash >> 56) as usize, &mut starts)?;
    Ok((batch, Starts(starts)))
}

/// Merges rows into batches of the usual size so that each batch has enough rows per partition.
pub(super) fn in_full_batches(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let batches = futures::stream::try_unfold(Some(rows), |rows| async move {
        let Some(mut rows) = rows else { return Ok(None) };
        let (schema, mut few, mut count) = (rows.schema(), vec![], 0);
        while let Some(batch) = rows.try_next().await? {
            count += batch.num_rows();
            few.push(batch);
            if count > BATCH_ROWS / 2 {
                return Ok(Some((joined(&schema, few)?, Some(rows))));
            }
        }
        Ok(if count == 0 { None } else { Some((joined(&schema, few)?, None)) })
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
