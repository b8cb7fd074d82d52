//! An input of a time join that is read once and shared by all workers, such as the right side of
//! ASOF JOIN.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, new_empty_array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::SchemaRef;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlanProperties;
use futures::TryStreamExt;
use tidemark_kernels::{Cursor, NO_MATCH, RightChunk, UNKNOWN, pack, upper_bound};

use super::keys::{KeySpace, Side};
use crate::bounded::bytes::memory_bytes;
use crate::error::join_error;
use crate::operator::Run;
use crate::plan_node::scan_of;
use crate::sample_by::partial::timestamps;
use crate::scan::exec::SliceScan;
use crate::scan::kind::Scan;
use crate::scan::rows::read;

/// Expressions evaluated on a side's rows in addition to its columns.
#[derive(Debug, Clone)]
pub(crate) struct SideExprs {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
}

/// The side's rows, in non-empty chunks in ascending time order.
pub(crate) struct RightSide {
    schema: SchemaRef,
    /// Chunks of each column.
    columns: Vec<Vec<ArrayRef>>,
    /// An empty array of each column's type.
    types: Vec<ArrayRef>,
    times: Vec<ScalarBuffer<i64>>,
    keys: Vec<ScalarBuffer<u32>>,
    space: KeySpace,
    /// Buffered rows count towards the query's memory usage; mapped rows do not.
    _memory: MemoryReservation,
}

impl RightSide {
    /// Reads an input. `which` is its side of the join and determines how `space` assigns key IDs.
    pub(crate) async fn read(
        run: &Run,
        input: usize,
        exprs: &SideExprs,
        (which, mut space): (Side, KeySpace),
    ) -> Result<Self> {
        let memory = run.memory();
        let schema = run.inputs[input].schema();
        let chunks = match scan_of(&run.inputs[input]).and_then(Scan::unfiltered) {
            Some(scan) if !scan.is_backward() => mapped(scan)?,
            _ => collect(run, input, &memory).await?,
        };
        // Searches read the last row of each chunk, so no chunk may be empty.
        let chunks: Vec<_> = chunks.into_iter().filter(|chunk| chunk.num_rows() > 0).collect();
        let (mut times, mut keys) = (vec![], vec![]);
        for chunk in &chunks {
            times.push(timestamps(&exprs.timestamp, chunk)?);
            let evaluate =
                |expr: &Arc<dyn PhysicalExpr>| expr.evaluate(chunk)?.into_array(chunk.num_rows());
            let columns = exprs.keys.iter().map(evaluate).collect::<Result<Vec<_>>>()?;
            keys.push(space.add(which, &columns)?);
        }
        let column = |index| chunks.iter().map(|chunk| Arc::clone(chunk.column(index))).collect();
        let columns = (0..schema.fields().len()).map(column).collect();
        let types =
            schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
        Ok(Self { schema, columns, types, times, keys, space, _memory: memory })
    }

    /// Schema of the side's columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Removes and returns the key IDs, which are needed to read the other side.
    pub(crate) fn take_space(&mut self) -> KeySpace {
        std::mem::replace(&mut self.space, KeySpace::None)
    }

    /// Evaluates an expression on the rows, chunk by chunk. Returns an empty chunk wherever
    /// `required` is false.
    pub(crate) fn evaluate(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        required: impl Fn(usize) -> bool,
    ) -> Result<Vec<ArrayRef>> {
        let chunks = self.times.iter().enumerate().map(|(index, times)| {
            let rows = if required(index) { times.len() } else { 0 };
            let columns = self.columns.iter().map(|chunks| chunks[index].slice(0, rows)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let schema = Arc::clone(&self.schema);
            let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
            expr.evaluate(&batch)?.into_array(rows)
        });
        chunks.collect()
    }

    /// Gathers one column at the matched rows.
    pub(crate) fn gather_column(&self, index: usize, matches: &[u64]) -> Result<ArrayRef> {
        super::gather::gather(&self.columns[index], matches, &self.types[index])
    }

    /// Key IDs of the right side, used to look up left keys.
    pub(crate) fn space(&self) -> &KeySpace {
        &self.space
    }

    /// Returns the times and keys in the kernels' format.
    pub(crate) fn chunks(&self) -> Vec<RightChunk<'_>> {
        let pairs = self.times.iter().zip(&self.keys);
        pairs.map(|(timestamps, keys)| RightChunk { timestamps, keys }).collect()
    }

    /// Timestamp of a matched row.
    pub(crate) fn time_of(&self, (chunk, row): (usize, usize)) -> Option<i64> {
        self.times.get(chunk)?.get(row).copied()
    }

    /// Gathers every column at the matched rows.
    pub(crate) fn gather(&self, matches: &[u64]) -> Result<Vec<ArrayRef>> {
        (0..self.columns.len()).map(|index| self.gather_column(index, matches)).collect()
    }

    /// Returns a worker's start position: the first row after `bound` and the row before it.
    pub(crate) fn seek(&self, bound: i64) -> (Cursor, u64) {
        let chunk = self.times.partition_point(|times| times.last().is_some_and(|&ts| ts <= bound));
        let row = self.times.get(chunk).map_or(0, |times| upper_bound(times, 0, bound));
        let cursor = Cursor { chunk, row };
        (cursor, self.previous(cursor).map_or(NO_MATCH, |at| pack(at.chunk, at.row)))
    }

    /// The row before a position.
    pub(crate) fn previous(&self, at: Cursor) -> Option<Cursor> {
        if let Some(row) = at.row.checked_sub(1) {
            return Some(Cursor { chunk: at.chunk, row });
        }
        let chunk = (0..at.chunk).rev().find(|&chunk| !self.times[chunk].is_empty())?;
        Some(Cursor { chunk, row: self.times[chunk].len() - 1 })
    }

    /// Walks back from `at` until it finds `key`, recording the other keys it passes. Rows before
    /// `oldest` can no longer match. Once no rows remain, every unknown key becomes [`NO_MATCH`].
    pub(crate) fn look_back(&self, at: &mut Cursor, last: &mut [u64], key: u32, oldest: i64) {
        loop {
            let (times, keys) = match (self.times.get(at.chunk), self.keys.get(at.chunk)) {
                (Some(times), Some(keys)) => (times.as_ref(), keys.as_ref()),
                _ => (&[] as &[i64], &[] as &[u32]),
            };
            while let Some(row) = at.row.checked_sub(1) {
                at.row = row;
                if times[row] < oldest {
                    *at = Cursor::default();
                    break;
                }
                let slot = &mut last[keys[row] as usize];
                if *slot == UNKNOWN {
                    *slot = pack(at.chunk, row);
                    if keys[row] == key {
                        return;
                    }
                }
            }
            let Some(chunk) = at.chunk.checked_sub(1) else { break };
            *at = Cursor { chunk, row: self.times[chunk].len() };
        }
        let unknown = last.iter_mut().filter(|slot| **slot == UNKNOWN);
        unknown.for_each(|slot| *slot = NO_MATCH);
    }
}

/// Returns a scan's slices as chunks, without copying or reading their cells.
fn mapped(scan: &SliceScan) -> Result<Vec<RecordBatch>> {
    let (schema, projection) = (scan.schema(), scan.projection());
    scan.units().map(|unit| read(&unit.slice, projection, unit.rows.clone(), schema)).collect()
}

/// Collects the batches of any other input. Reads its partitions in parallel while preserving their
/// order.
async fn collect(run: &Run, input: usize, memory: &MemoryReservation) -> Result<Vec<RecordBatch>> {
    let partitions = run.inputs[input].output_partitioning().partition_count();
    let tasks = (0..partitions).map(|partition| {
        let (mut rows, memory) = (run.rows(input, partition)?, memory.new_empty());
        Ok(SpawnedTask::spawn(async move {
            let mut batches = vec![];
            while let Some(batch) = rows.try_next().await? {
                memory.try_grow(memory_bytes(&batch))?;
                batches.push(batch);
            }
            Ok::<_, DataFusionError>((batches, memory))
        }))
    });
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let mut chunks = vec![];
    for task in tasks {
        let (batches, held) = task.join().await.map_err(join_error)??;
        let bytes = held.size();
        drop(held);
        memory.try_grow(bytes)?;
        chunks.extend(batches);
    }
    Ok(chunks)
}
