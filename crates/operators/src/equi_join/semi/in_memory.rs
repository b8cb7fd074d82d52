//! In-memory data for a semi-join: either keys of the inner side or outer rows.

use std::mem::take;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::BooleanBuffer;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{BoxStream, empty};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use super::plan::SemiJoin;
use crate::bounded::bytes::memory_bytes;
use crate::equi_join::join::OTHER;
use crate::keys::ABSENT;
use crate::keys::memory::{Counted, KeyMemory, Reserved};
use crate::keys::numbers::{KeyIndex, KnownTexts};
use crate::keys::set::KeySet;
use crate::materialize::{begin, chained, pause, with_schema};
use crate::operator::Run;

/// Maximum ratio of the size of the keys found in a partition to the size of all outer keys.
const FOUND_KEYS_RATIO: usize = 3;

/// Number of ID arrays in use while key IDs are assigned: one for each of two columns and one for
/// their pairs.
const NUMBERS: usize = 3;

/// Maximum number of tasks that read keys, and of sets probed per row.
const MAX_TASKS: usize = 4;

/// A side in memory, or its rows as a stream if they do not fit.
pub(super) type Materialized<T> = std::result::Result<T, SendableRecordBatchStream>;

/// Keys of the inner side.
pub(super) struct InnerKeys {
    keys: Keys,
    _memory: Arc<MemoryReservation>,
}

enum Keys {
    /// A key may occur in several sets.
    Sets(Vec<Arc<KeySet>>),
    Few(KeyIndex),
}

impl InnerKeys {
    /// Reads all partitions of the inner side, several at a time.
    pub(super) async fn read_all(
        join: &Arc<SemiJoin>,
        run: &Arc<Run>,
    ) -> Result<Materialized<Self>> {
        let partitions = run.inputs[OTHER].output_partitioning().partition_count();
        let tasks = partitions.min(MAX_TASKS);
        let read = |task: usize| {
            let (own, of) = (Arc::clone(join), Arc::clone(run));
            let partitions = (task..partitions).step_by(MAX_TASKS);
            let rows = futures::stream::iter(partitions.map(Ok));
            let rows = rows
                .and_then(move |partition| futures::future::ready(own.inner_keys(&of, partition)));
            let schema = Arc::clone(&join.key_schema);
            Box::pin(RecordBatchStreamAdapter::new(schema, rows.try_flatten())) as _
        };
        Self::read_some(join, run, (0..tasks).map(read).collect()).await
    }

    /// Reads rows that consist only of keys.
    pub(super) async fn read(
        join: &Arc<SemiJoin>,
        run: &Arc<Run>,
        rows: SendableRecordBatchStream,
    ) -> Result<Materialized<Self>> {
        Self::read_some(join, run, vec![rows]).await
    }

    async fn read_some(
        join: &Arc<SemiJoin>,
        run: &Arc<Run>,
        rows: Vec<SendableRecordBatchStream>,
    ) -> Result<Materialized<Self>> {
        let (tasks, memory) = (rows.len(), Arc::new(run.memory()));
        let first = Arc::new(join.no_keys(tasks)?);
        let (mut sets, mut running) = (vec![], vec![]);
        for rows in rows {
            let set = if sets.is_empty() || first.is_parted() {
                Arc::clone(&first)
            } else {
                Arc::new(join.no_keys(tasks)?)
            };
            sets.push(Arc::clone(&set));
            let (run, memory) = (Arc::clone(run), Arc::clone(&memory));
            let read = async move { add_all(&run, &set, &memory, rows).await };
            running.push(begin(tasks == 1, read));
        }
        drop(first);
        let mut rest = vec![];
        for task in running {
            rest.extend(task.await?);
        }
        sets.dedup_by(|one, other| Arc::ptr_eq(one, other));
        if rest.is_empty() {
            let few = Self::few(join, run, &sets, &memory)?;
            let keys = few.map_or(Keys::Sets(sets), Keys::Few);
            return Ok(Ok(Self { keys, _memory: memory }));
        }
        let keys_of = |set| {
            let keys = Arc::into_inner(set);
            keys.ok_or_else(|| internal_datafusion_err!("the key set is still in use"))
        };
        let materialized = sets.into_iter().map(|set| Ok(rows_of(keys_of(set)?, join)));
        let materialized = materialized.collect::<Result<Vec<_>>>()?;
        let materialized = futures::stream::iter(materialized).flatten().boxed();
        let rest = futures::stream::iter(rest).flatten().boxed();
        Ok(Err(chained(Arc::clone(&join.key_schema), materialized, memory, rest)))
    }

    /// Assigns IDs to the keys if there are few of them and enough memory is available.
    fn few(
        join: &SemiJoin,
        run: &Run,
        sets: &[Arc<KeySet>],
        memory: &MemoryReservation,
    ) -> Result<Option<KeyIndex>> {
        let [set] = sets else { return Ok(None) };
        // The key columns need about as much memory as the set does.
        if !run.try_reserve(memory, set.size()) {
            return Ok(None);
        }
        let Some(columns) = set.few()? else {
            memory.shrink(set.size());
            return Ok(None);
        };
        let bytes: usize = columns.iter().map(Array::get_array_memory_size).sum();
        let base = set.size() + bytes + NUMBERS * size_of::<u32>() * set.len();
        let reserved = Reserved { run, memory };
        let numbered = KeyIndex::of(&columns, join.join.nulls, base, &reserved)?;
        let size = numbered.as_ref().map_or(set.size(), |(keys, _)| keys.size());
        memory.try_resize(size)?;
        Ok(numbered.map(|(keys, _)| keys))
    }

    /// Whether the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        match &self.keys {
            Keys::Sets(sets) => sets.iter().all(|set| set.len() == 0),
            Keys::Few(keys) => keys.len() == 0,
        }
    }

    /// Returns which rows of a batch have one of the keys.
    pub(super) fn has(
        &self,
        join: &SemiJoin,
        batch: &RecordBatch,
        known: &mut KnownTexts,
    ) -> Result<BooleanBuffer> {
        let (own, rows) = (join.outer_keys(batch)?, batch.num_rows());
        match &self.keys {
            Keys::Sets(sets) => any_has(sets.iter().map(Arc::as_ref), &own, rows),
            Keys::Few(keys) => {
                let numbers = keys.find(&own, known)?;
                Ok(BooleanBuffer::collect_bool(rows, |row| numbers[row] != ABSENT))
            }
        }
    }
}

/// Adds rows to the key set. If memory runs out, returns the remaining rows, some of whose keys may
/// already have been added.
async fn add_all(
    run: &Run,
    keys: &KeySet,
    memory: &MemoryReservation,
    mut rows: SendableRecordBatchStream,
) -> Result<Option<Batches>> {
    while let Some(batch) = rows.try_next().await? {
        pause().await?;
        let own = keys.prepare(batch.columns())?;
        if !keys.add(&own, None, &Reserved { run, memory })? {
            let first = futures::stream::once(async { Ok(batch) });
            return Ok(Some(first.chain(rows).boxed()));
        }
    }
    Ok(None)
}

/// Returns which rows have a key in one of the sets.
fn any_has<'a>(
    mut sets: impl Iterator<Item = &'a KeySet>,
    keys: &[ArrayRef],
    rows: usize,
) -> Result<BooleanBuffer> {
    let Some(first) = sets.next() else { return Ok(BooleanBuffer::new_unset(rows)) };
    // All sets use the same encoding and the same hashes.
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

/// Returns the keys as batches.
fn rows_of(keys: KeySet, join: &SemiJoin) -> Batches {
    let schema = Arc::clone(&join.key_schema);
    let batches = keys.into_batches().map(move |columns| {
        let columns = columns?;
        let rows = columns.first().map_or(0, Array::len);
        with_schema(&schema, columns, rows)
    });
    futures::stream::iter(batches).boxed()
}

type Batches = BoxStream<'static, Result<RecordBatch>>;

/// Rows of the outer side, and their keys.
pub(super) struct OuterRows {
    pub(super) batches: Vec<RecordBatch>,
    pub(super) keys: KeySet,
    found: Mutex<Found>,
    _memory: Arc<MemoryReservation>,
}

/// The keys that also occur on the inner side.
struct Found {
    /// Number of partitions not yet finished.
    left: usize,
    sets: Vec<KeySet>,
}

impl OuterRows {
    /// Reads the outer rows. `partitions` is the number of inner-side partitions.
    pub(super) async fn read(
        join: &SemiJoin,
        run: &Run,
        mut rows: SendableRecordBatchStream,
        partitions: usize,
    ) -> Result<Materialized<Self>> {
        let (keys, memory, mut bytes) = (join.no_keys(1)?, Arc::new(run.memory()), 0);
        let (mut batches, schema) = (vec![], rows.schema());
        let unheld = |batches: Vec<_>, memory, rest| {
            let materialized = futures::stream::iter(batches).map(Ok).boxed();
            Ok(Err(chained(schema, materialized, memory, rest)))
        };
        while let Some(batch) = rows.try_next().await? {
            pause().await?;
            let own = keys.prepare(&join.outer_keys(&batch)?)?;
            let more = memory_bytes(&batch);
            bytes += more;
            batches.push(batch);
            let reserved = Reserved { run, memory: &memory };
            if !reserved.try_reserve(more) || !keys.add(&own, None, &reserved)? {
                return unheld(batches, memory, rows.boxed());
            }
        }
        let all = bytes + keys.size().saturating_mul(1 + FOUND_KEYS_RATIO * partitions);
        if !run.try_reserve(&memory, all.saturating_sub(memory.size())) {
            return unheld(batches, memory, empty().boxed());
        }
        let found = Mutex::new(Found { left: partitions, sets: vec![] });
        Ok(Ok(Self { batches, keys, found, _memory: memory }))
    }

    /// Collects the outer keys that occur in a partition of the inner side.
    pub(super) async fn gather(
        &self,
        join: &SemiJoin,
        mut rows: SendableRecordBatchStream,
    ) -> Result<KeySet> {
        let found = join.no_keys(1)?;
        while found.len() < self.keys.len() {
            let Some(batch) = rows.try_next().await? else { break };
            pause().await?;
            let own = self.keys.prepare(batch.columns())?;
            let is_ours = self.keys.has(&own)?;
            if is_ours.count_set_bits() > 0 {
                found.add(&own, Some(&is_ours), &Counted)?;
            }
        }
        Ok(found)
    }

    /// Adds the keys found in a partition. For the last partition, returns the keys found in all
    /// partitions.
    pub(super) fn end(&self, found: KeySet) -> Option<Vec<KeySet>> {
        let mut all = self.found.lock();
        all.sets.push(found);
        all.left = all.left.saturating_sub(1);
        (all.left == 0).then(|| take(&mut all.sets))
    }

    /// Returns which rows of a batch have a key that occurs on the inner side.
    pub(super) fn found(
        join: &SemiJoin,
        batch: &RecordBatch,
        sets: &[KeySet],
    ) -> Result<BooleanBuffer> {
        any_has(sets.iter(), &join.outer_keys(batch)?, batch.num_rows())
    }
}
