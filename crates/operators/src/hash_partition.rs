//! Partitions a batch's rows by key hash.

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes};

/// Computes the hash of each row's keys.
pub(crate) fn hashes(keys: &[ArrayRef], rows: usize, seed: u64) -> Result<Vec<u64>> {
    let mut hashes = vec![0; rows];
    create_hashes(keys, &RandomState::with_seed(seed), &mut hashes)?;
    Ok(hashes)
}

/// Sorts rows by partition, preserving their original order within each partition. `starts` must
/// contain zeros, with one more entry than there are partitions. It receives the start of each
/// partition and the end of the last partition.
#[inline]
pub(crate) fn sort_by_partition(
    batch: &RecordBatch,
    hashes: &[u64],
    partition: impl Fn(u64) -> usize,
    starts: &mut [u32],
) -> Result<RecordBatch> {
    for &hash in hashes {
        starts[partition(hash) + 1] += 1;
    }
    for partition in 1..starts.len() {
        starts[partition] += starts[partition - 1];
    }
    let mut next = starts.to_vec();
    let mut order = vec![0_u32; hashes.len()];
    for (row, &hash) in hashes.iter().enumerate() {
        let position = &mut next[partition(hash)];
        order[*position as usize] = row as u32;
        *position += 1;
    }
    Ok(take_record_batch(batch, &UInt32Array::from(order))?)
}

/// Concatenates batches. Symbol columns with a common dictionary keep it.
pub(crate) fn joined(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> Result<RecordBatch> {
    match batches.pop() {
        Some(only) if batches.is_empty() => Ok(only),
        last => {
            batches.extend(last);
            Ok(concat_batches(schema, &batches)?)
        }
    }
}
