//! What a semi-join holds: keys of the inner side, or rows of the outer one.

use std::mem::take;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::empty;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::keys::KeySet;
use super::plan::{INNER, SemiJoin};
use crate::bounded::bytes::held_bytes;
use crate::held::{begin, pause, with_schema};
use crate::operator::Run;

/// What a set of some of the keys takes, at most, beside one of all.
const FOUND_SHARE: usize = 3;

/// Sets that are made at a time, and looked into for each row, at most.
const MOST_SETS: usize = 4;

/// What was held, or the rows that were to be: there is no room for them.
pub(super) type Held<T> = std::result::Result<T, SendableRecordBatchStream>;

/// Keys of the inner side.
pub(super) struct HeldKeys {
    /// With the memory of each. No key is in one of them twice.
    sets: Vec<(KeySet, MemoryReservation)>,
}

impl HeldKeys {
    /// Reads all partitions of the inner side, several at a time.
    pub(super) async fn read_all(join: &Arc<SemiJoin>, run: &Arc<Run>) -> Result<Held<Self>> {
        let partitions = run.inputs[INNER].output_partitioning().partition_count();
        let tasks = partitions.min(MOST_SETS);
        let read = |task: usize| {
            let (join, run) = (Arc::clone(join), Arc::clone(run));
            begin(tasks == 1, async move {
                let partitions = (task..partitions).step_by(MOST_SETS);
                let (own, of) = (Arc::clone(&join), Arc::clone(&run));
                let rows = futures::stream::iter(partitions.map(Ok));
                let rows = rows.and_then(move |partition| {
                    futures::future::ready(own.inner_keys(&of, partition))
                });
                let schema = Arc::clone(&join.key_schema);
                let rows = RecordBatchStreamAdapter::new(schema, rows.try_flatten());
                Self::read(&join, &run, Box::pin(rows)).await
            })
        };
        let (mut all, mut rest) = (Self { sets: vec![] }, vec![]);
        for task in (0..tasks).map(read).collect::<Vec<_>>() {
            match task.await? {
                Ok(read) => all.sets.extend(read.sets),
                Err(rows) => rest.push(rows),
            }
        }
        if rest.is_empty() {
            return Ok(Ok(all));
        }
        let held = all.sets.into_iter();
        let held = held.map(|(keys, memory)| chained(rows_of(keys, join), memory, empty().boxed()));
        let held: Vec<_> = held.collect();
        let rows = futures::stream::iter(held).flatten();
        let rows = rows.chain(futures::stream::iter(rest).flatten());
        let schema = Arc::clone(&join.key_schema);
        Ok(Err(Box::pin(RecordBatchStreamAdapter::new(schema, rows))))
    }

    /// Reads the rows of keys.
    pub(super) async fn read(
        join: &SemiJoin,
        run: &Run,
        mut rows: SendableRecordBatchStream,
    ) -> Result<Held<Self>> {
        let (mut keys, memory) = (join.no_keys()?, run.memory());
        while let Some(batch) = rows.try_next().await? {
            pause().await?;
            let own = keys.prepare(batch.columns())?;
            let more = keys.size_with(&own).saturating_sub(memory.size());
            if !run.hold(&memory, more) {
                let first = futures::stream::once(async { Ok(batch) });
                let rest = first.chain(rows).boxed();
                let rows = chained(rows_of(keys, join), memory, rest);
                let schema = Arc::clone(&join.key_schema);
                return Ok(Err(Box::pin(RecordBatchStreamAdapter::new(schema, rows))));
            }
            keys.add(&own, None)?;
        }
        memory.try_resize(keys.size())?;
        Ok(Ok(Self { sets: vec![(keys, memory)] }))
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.sets.iter().all(|(set, _)| set.len() == 0)
    }

    /// Which rows have one of the keys.
    pub(super) fn has(&self, keys: &[ArrayRef], rows: usize) -> Result<BooleanBuffer> {
        any_has(self.sets.iter().map(|(set, _)| set), keys, rows)
    }
}

/// Which rows have a key of one of the sets.
fn any_has<'a>(
    mut sets: impl Iterator<Item = &'a KeySet>,
    keys: &[ArrayRef],
    rows: usize,
) -> Result<BooleanBuffer> {
    let Some(first) = sets.next() else { return Ok(BooleanBuffer::new_unset(rows)) };
    // The form and the hashes are the same for all of them.
    let keys = first.prepare(keys)?;
    let mut found = first.has(&keys)?;
    for set in sets {
        if found.count_set_bits() == rows {
            break;
        }
        found = &found | &set.has(&keys)?;
    }
    Ok(found)
}

/// Keys as rows.
fn rows_of(keys: KeySet, join: &SemiJoin) -> Batches {
    let schema = Arc::clone(&join.key_schema);
    let batches = keys.into_batches().map(move |columns| {
        let columns = columns?;
        let rows = columns.first().map_or(0, Array::len);
        with_schema(&schema, columns, rows)
    });
    futures::stream::iter(batches).boxed()
}

type Batches = futures::stream::BoxStream<'static, Result<RecordBatch>>;

/// Rows of which the first ones are held in this memory.
fn chained(held: Batches, memory: MemoryReservation, rest: Batches) -> Batches {
    let freed = futures::stream::once(async move {
        memory.free();
        rest
    });
    held.chain(freed.flatten()).boxed()
}

/// Rows of the outer side, and their keys.
pub(super) struct HeldRows {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) keys: KeySet,
    found: Mutex<Found>,
    _memory: MemoryReservation,
}

/// Which of the keys the inner side has.
struct Found {
    /// Partitions that have not ended.
    left: usize,
    sets: Vec<KeySet>,
}

impl HeldRows {
    /// Reads the rows, for so many partitions of the inner side.
    pub(super) async fn read(
        join: &SemiJoin,
        run: &Run,
        mut rows: SendableRecordBatchStream,
        partitions: usize,
    ) -> Result<Held<Self>> {
        let (mut keys, memory, mut bytes) = (join.no_keys()?, run.memory(), 0);
        let (mut batches, schema) = (vec![], rows.schema());
        let unheld = |batches: Vec<_>, memory, rest| {
            let held = futures::stream::iter(batches).map(Ok).boxed();
            let rows = chained(held, memory, rest);
            Ok(Err(Box::pin(RecordBatchStreamAdapter::new(schema, rows)) as _))
        };
        while let Some(batch) = rows.try_next().await? {
            pause().await?;
            let own = keys.prepare(&join.outer_keys(&batch)?)?;
            bytes += held_bytes(&batch);
            let more = (bytes + keys.size_with(&own)).saturating_sub(memory.size());
            batches.push(batch);
            if !run.hold(&memory, more) {
                return unheld(batches, memory, rows.boxed());
            }
            keys.add(&own, None)?;
        }
        let all = bytes + keys.size().saturating_mul(1 + FOUND_SHARE * partitions);
        if !run.hold(&memory, all.saturating_sub(memory.size())) {
            return unheld(batches, memory, empty().boxed());
        }
        let found = Mutex::new(Found { left: partitions, sets: vec![] });
        Ok(Ok(Self { batches, keys, found, _memory: memory }))
    }

    /// The keys that a partition of the inner side has.
    pub(super) async fn gather(
        &self,
        join: &SemiJoin,
        mut rows: SendableRecordBatchStream,
    ) -> Result<KeySet> {
        let mut found = join.no_keys()?;
        while found.len() < self.keys.len() {
            let Some(batch) = rows.try_next().await? else { break };
            pause().await?;
            let own = self.keys.prepare(batch.columns())?;
            let is_ours = self.keys.has(&own)?;
            if is_ours.count_set_bits() > 0 {
                found.add(&own, Some(&is_ours))?;
            }
        }
        Ok(found)
    }

    /// Takes what a partition has found; what all have, if it is the last one.
    pub(super) fn end(&self, found: KeySet) -> Option<Vec<KeySet>> {
        let mut all = self.found.lock();
        all.sets.push(found);
        all.left = all.left.saturating_sub(1);
        (all.left == 0).then(|| take(&mut all.sets))
    }

    /// Which rows of a batch have a key that was found.
    pub(super) fn found(
        join: &SemiJoin,
        batch: &RecordBatch,
        sets: &[KeySet],
    ) -> Result<BooleanBuffer> {
        any_has(sets.iter(), &join.outer_keys(batch)?, batch.num_rows())
    }
}
