//! Build side of a lookup join: its rows, and the rows of each key.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt};

use crate::bounded::bytes::held_bytes;
use crate::equi_join::grace::shared::Spilled;
use crate::equi_join::join::{EquiJoin, OTHER};
use crate::held::chained;
use crate::keys::ABSENT;
use crate::keys::numbers::KeyIndex;
use crate::keys::room::Reserved;
use crate::operator::Run;
use crate::parts::joined;
use crate::scan::rows::BATCH_ROWS;

/// Materialized rows of the build side.
pub(super) struct HeldSide {
    pub(super) rows: RecordBatch,
    pub(super) keys: KeyIndex,
    pub(super) places: Places,
    _memory: MemoryReservation,
}

/// Rows of each key.
pub(super) enum Places {
    /// Each key has one row; the row's index is the number of the key.
    Single,
    /// Rows by key; those of key `k` are at `offsets[k]..offsets[k + 1]`.
    Lists { offsets: Vec<u32>, rows: Vec<u32> },
}

/// Result of reading the build side.
pub(super) enum Held {
    Rows(Arc<HeldSide>),
    /// The rows exceed the memory limit.
    Spilled(Spilled),
}

impl Held {
    /// Reads the input, which has one partition.
    pub(super) async fn read(run: &Run, join: &EquiJoin) -> Result<Self> {
        let memory = run.memory();
        let mut rows = run.rows(OTHER, 0)?;
        let mut batches = vec![];
        while let Some(batch) = rows.try_next().await? {
            // Counted twice: once as read, and once in the concatenation.
            let has_room = run.hold(&memory, 2 * held_bytes(&batch));
            batches.push(batch);
            if !has_room {
                return Self::spilled(run, (batches, memory), rows).await;
            }
        }
        let rows = joined(&run.inputs[OTHER].schema(), batches)?;
        let (rows, memory) = match HeldSide::of(run, rows, join, memory)? {
            Ok(side) => return Ok(Self::Rows(Arc::new(side))),
            Err(rest) => rest,
        };
        memory.try_resize(held_bytes(&rows))?;
        let starts = (0..rows.num_rows()).step_by(BATCH_ROWS);
        let batch = |start| rows.slice(start, BATCH_ROWS.min(rows.num_rows() - start));
        let nothing = EmptyRecordBatchStream::new(rows.schema());
        let held = (starts.map(batch).collect(), memory);
        Self::spilled(run, held, Box::pin(nothing)).await
    }

    /// Writes the batches in memory, then the remaining rows.
    async fn spilled(
        run: &Run,
        (batches, memory): (Vec<RecordBatch>, MemoryReservation),
        rest: SendableRecordBatchStream,
    ) -> Result<Self> {
        let held = futures::stream::iter(batches).map(Ok).boxed();
        let rows = chained(rest.schema(), held, Arc::new(memory), rest.boxed());
        Ok(Self::Spilled(Spilled::write_numbered(run, OTHER, rows).await?))
    }
}

impl HeldSide {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.num_rows() == 0
    }

    /// Builds the key index over the rows. Returns the rows unchanged if memory does not suffice
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
        // Per row, either the key numbers of two columns and of their pairs, or the row lists.
        let base = held_bytes(&rows) + 3 * size_of::<u32>() * rows.num_rows();
        let room = Reserved { run, memory: &memory };
        let Some((keys, numbers)) = KeyIndex::of(&columns, join.nulls, base, &room)? else {
            return Ok(Err((rows, memory)));
        };
        let places = Places::of(&numbers, keys.len());
        let lists = match &places {
            Places::Single => 0,
            Places::Lists { offsets, rows } => size_of::<u32>() * (offsets.len() + rows.len()),
        };
        memory.try_resize(held_bytes(&rows) + keys.size() + lists)?;
        Ok(Ok(Self { rows, keys, places, _memory: memory }))
    }
}

impl Places {
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
            let place = &mut next[number as usize];
            rows[*place as usize] = row as u32;
            *place += 1;
        }
        Self::Lists { offsets, rows }
    }
}
