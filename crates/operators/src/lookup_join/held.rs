//! The side that a join holds: its rows, and which of them have a key.

use std::cell::Cell;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat;
use datafusion::common::{Result, resources_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{EmptyRecordBatchStream, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt};
use tidemark_types::account;

use super::index::{ABSENT, KeyIndex};
use crate::bounded::bytes::held_bytes;
use crate::error::engine_error;
use crate::grace_join::shared::Spilled;
use crate::operator::Run;
use crate::scan::rows::BATCH_ROWS;

/// The held rows.
pub(super) struct HeldSide {
    pub(super) rows: RecordBatch,
    pub(super) keys: KeyIndex,
    pub(super) places: Places,
    _memory: MemoryReservation,
}

/// Where the rows of a key are.
pub(super) enum Places {
    /// Each key has one row: that of its number.
    Single,
    /// Rows by key; those of key `k` are at `offsets[k]..offsets[k + 1]`.
    Lists { offsets: Vec<u32>, rows: Vec<u32> },
}

/// What was read of a side that should be held.
pub(super) enum Held {
    Rows(Arc<HeldSide>),
    /// There are more than may be held.
    Spilled(Spilled),
}

impl Held {
    /// Reads an input, of which there is one partition.
    pub(super) async fn read(
        run: &Run,
        input: usize,
        keys: &[Arc<dyn PhysicalExpr>],
        nulls: bool,
    ) -> Result<Self> {
        let memory = run.memory();
        let mut rows = run.rows(input, 0)?;
        let mut batches = vec![];
        while let Some(batch) = rows.try_next().await? {
            // Once as it came, and once among all.
            let has_room = run.hold(&memory, 2 * held_bytes(&batch));
            batches.push(batch);
            if !has_room {
                return Self::spilled(run, input, (batches, memory), rows).await;
            }
        }
        let rows = together(run, input, &batches)?;
        drop(batches);
        let (rows, memory) = match HeldSide::of(run, rows, keys, nulls, memory)? {
            Ok(side) => return Ok(Self::Rows(Arc::new(side))),
            Err(rest) => rest,
        };
        memory.try_resize(held_bytes(&rows))?;
        let starts = (0..rows.num_rows()).step_by(BATCH_ROWS);
        let batch = |start| rows.slice(start, BATCH_ROWS.min(rows.num_rows() - start));
        let nothing = EmptyRecordBatchStream::new(rows.schema());
        let held = (starts.map(batch).collect(), memory);
        Self::spilled(run, input, held, Box::pin(nothing)).await
    }

    /// Writes batches that are held, and the rows after them.
    async fn spilled(
        run: &Run,
        input: usize,
        (batches, memory): (Vec<RecordBatch>, MemoryReservation),
        rest: SendableRecordBatchStream,
    ) -> Result<Self> {
        let schema = rest.schema();
        let last = futures::stream::once(async move {
            memory.free();
            Ok(None)
        });
        let held = futures::stream::iter(batches).map(|batch| Ok(Some(batch)));
        let held = held.chain(last).try_filter_map(|batch| futures::future::ready(Ok(batch)));
        let rows = RecordBatchStreamAdapter::new(schema, held.chain(rest));
        Ok(Self::Spilled(Spilled::write_numbered(run, input, Box::pin(rows)).await?))
    }
}

impl HeldSide {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.num_rows() == 0
    }

    /// The rows with their keys; the rows alone where there is no room for the keys.
    fn of(
        run: &Run,
        rows: RecordBatch,
        keys: &[Arc<dyn PhysicalExpr>],
        nulls: bool,
        memory: MemoryReservation,
    ) -> Result<Result<Self, (RecordBatch, MemoryReservation)>> {
        let evaluate =
            |key: &Arc<dyn PhysicalExpr>| key.evaluate(&rows)?.into_array(rows.num_rows());
        let columns = keys.iter().map(evaluate).collect::<Result<Vec<_>>>()?;
        // The numbers of rows of two columns, and of pairs, or lists of them.
        let base = held_bytes(&rows) + 3 * size_of::<u32>() * rows.num_rows();
        let is_full = Cell::new(false);
        let hold = |keys: usize| {
            account::check().map_err(engine_error)?;
            let more = (base + keys).saturating_sub(memory.size());
            if !run.hold(&memory, more) {
                is_full.set(true);
                return resources_err!("too many keys to be held");
            }
            memory.try_resize(base + keys)
        };
        let (keys, numbers) = match KeyIndex::new(&columns, nulls, &hold) {
            Ok(keys) => keys,
            Err(_) if is_full.get() => return Ok(Err((rows, memory))),
            Err(error) => return Err(error),
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

/// The batches as one. Symbols of one dictionary keep it.
fn together(run: &Run, input: usize, batches: &[RecordBatch]) -> Result<RecordBatch> {
    let schema = run.inputs[input].schema();
    if let [only] = batches {
        return Ok(only.clone());
    }
    if batches.is_empty() {
        return Ok(RecordBatch::new_empty(schema));
    }
    let column = |index: usize| {
        let chunks: Vec<&ArrayRef> = batches.iter().map(|batch| batch.column(index)).collect();
        if let Some(symbols) = symbols(&chunks)? {
            return Ok(symbols);
        }
        let chunks: Vec<&dyn Array> = chunks.into_iter().map(AsRef::as_ref).collect();
        Ok(concat(&chunks)?)
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<Vec<_>>>()?;
    let rows = batches.iter().map(RecordBatch::num_rows).sum();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

fn symbols(chunks: &[&ArrayRef]) -> Result<Option<ArrayRef>> {
    let symbols: Option<Vec<_>> =
        chunks.iter().map(|chunk| chunk.as_dictionary_opt::<Int32Type>()).collect();
    let Some(symbols) = symbols else { return Ok(None) };
    let Some(texts) = symbols.first().map(|first| Arc::clone(first.values())) else {
        return Ok(None);
    };
    if symbols.iter().any(|chunk| !Arc::ptr_eq(chunk.values(), &texts)) {
        return Ok(None);
    }
    let keys: Vec<&dyn Array> = symbols.iter().map(|chunk| chunk.keys() as &dyn Array).collect();
    let keys = concat(&keys)?;
    let keys = keys.as_primitive::<Int32Type>().clone();
    Ok(Some(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts)?)))
}
