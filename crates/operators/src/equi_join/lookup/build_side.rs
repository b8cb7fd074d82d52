//! The build side of a lookup join: its rows, and each key's rows.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt};

use crate::bounded::bytes::memory_bytes;
use crate::equi_join::grace::shared::Spilled;
use crate::equi_join::join::{EquiJoin, OTHER};
use crate::hash_partition::joined;
use crate::keys::ABSENT;
use crate::keys::memory::Reserved;
use crate::keys::numbers::KeyIndex;
use crate::materialize::chained;
use crate::operator::Run;
use crate::scan::rows::BATCH_ROWS;

/// Materialized rows of the build side.
pub(super) struct BuildSide {
    pub(super) rows: RecordBatch,
    pub(super) keys: KeyIndex,
    pub(super) key_rows: KeyRows,
    _memory: MemoryReservation,
}

/// The rows of each key.
pub(super) enum KeyRows {
    /// Each key has one row; the row index is the key ID.
    Single,
    /// Rows grouped by key; the rows of key `k` are at `offsets[k]..offsets[k + 1]`.
    Lists { offsets: Vec<u32>, rows: Vec<u32> },
}

/// Result of reading the build side.
pub(super) enum BuildResult {
    Rows(Arc<BuildSide>),
    /// The rows exceed the memory limit.
    Spilled(Spilled),
}

impl BuildResult {
    /// Reads the input, which has a single partition.
    pub(super) async fn read(run: &Run, join: &EquiJoin) -> Result<Self> {
        let memory = run.memory();
        let mut rows = run.rows(OTHER, 0)?;
        let mut batches = vec![];
        while let Some(batch) = rows.try_next().await? {
            // Each batch is counted twice: once as read, and once in the concatenation.
            let has_room = run.try_reserve(&memory, 2 * memory_bytes(&batch));
            batches.push(batch);
            if !has_room {
                return Self::spilled(run, (batches, memory), rows).await;
            }
        }
        let rows = joined(&run.inputs[OTHER].schema(), batches)?;
        let (rows, memory) = match BuildSide::of(run, rows, join, memory)? {
            Ok(side) => return Ok(Self::Rows(Arc::new(side))),
            Err(rest) => rest,
        };
        memory.try_resize(memory_bytes(&rows))?;
        let starts = (0..rows.num_rows()).step_by(BATCH_ROWS);
        let batch = |start| rows.slice(start, BATCH_ROWS.min(rows.num_rows() - start));
        let nothing = EmptyRecordBatchStream::new(rows.schema());
        let in_memory = (starts.map(batch).collect(), memory);
        Self::spilled(run, in_memory, Box::pin(nothing)).await
    }

    /// Writes the batches that are in memory, followed by the remaining rows.
    async fn spilled(
        run: &Run,
        (batches, memory): (Vec<RecordBatch>, MemoryReservation),
        rest: SendableRecordBatchStream,
    ) -> Result<Self> {
        let in_memory = futures::stream::iter(batches).map(Ok).boxed();
        let rows = chained(rest.schema(), in_memory, Arc::new(memory), rest.boxed());
        Ok(Self::Spilled(Spilled::write_numbered(run, OTHER, rows).await?))
    }
}

impl BuildSide {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.num_rows() == 0
    }

    /// Builds the key index over the rows. Returns the rows unchanged if there is not enough memory
    /// for the index.
    fn of(
        run: &Run,
        rows: RecordBatch,
        join: &EquiJoin,
        memory: MemoryReservation,
    ) -> Result<Result<Self, (RecordBatch, MemoryReservation)>> {
        let keys =
            join.keys.iter().map(|(_, own)| own.evaluate(&rows)?.into_array(rows.num_rows()));
        let columns = keys.collect::<Result<Vec<_>>>()?;
        // Each row needs three numbers: the IDs of two key columns and of their pairs, or the row
        // lists.
        let base = memory_bytes(&rows) + 3 * size_of::<u32>() * rows.num_rows();
        let reserved = Reserved { run, memory: &memory };
        let Some((keys, numbers)) = KeyIndex::of(&columns, join.nulls, base, &reserved)? else {
            return Ok(Err((rows, memory)));
        };
        let key_rows = KeyRows::of(&numbers, keys.len());
        let lists = match &key_rows {
            KeyRows::Single => 0,
            KeyRows::Lists { offsets, rows } => size_of::<u32>() * (offsets.len() + rows.len()),
        };
        memory.try_resize(memory_bytes(&rows) + keys.size() + lists)?;
        Ok(Ok(Self { rows, keys, key_rows, _memory: memory }))
    }
}

impl KeyRows {
    fn of(numbers: &[u32], keys: usize) -> Self {
        if numbers.len() == keys {
            return Self::Single;
        }
        let mut offsets = vec![0_u32; keys + 1];
        let with_key = || numbers.iter().filter(|&&number| number != ABSENT);
        for &number in with_key() {
            offsets[number as usize + 1] += 1;
        }
        let mut rows = 0;
        for offset in &mut offsets {
            rows += *offset;
            *offset = rows;
        }
        let mut next = offsets.clone();
        let mut rows = vec![0; rows as usize];
        for (row, &number) in numbers.iter().enumerate().filter(|(_, number)| **number != ABSENT) {
            let offset = &mut next[number as usize];
            rows[*offset as usize] = row as u32;
            *offset += 1;
        }
        Self::Lists { offsets, rows }
    }
}
