//! The side that a join holds: its rows, and which of them have a key.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::concat;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::PhysicalExpr;
use futures::TryStreamExt;
use tidemark_types::account;

use super::index::{ABSENT, KeyIndex};
use crate::bounded::bytes::held_bytes;
use crate::error::engine_error;
use crate::operator::Run;

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

impl HeldSide {
    /// Reads an input, of which there is one partition.
    pub(super) async fn read(
        run: &Run,
        input: usize,
        keys: &[Arc<dyn PhysicalExpr>],
        nulls: bool,
    ) -> Result<Self> {
        let memory = run.memory();
        let mut stream = run.rows(input, 0)?;
        let mut batches = vec![];
        while let Some(batch) = stream.try_next().await? {
            // Once as it came, and once among all.
            memory.try_grow(2 * held_bytes(&batch))?;
            batches.push(batch);
        }
        let rows = together(run, input, &batches)?;
        drop(batches);
        let evaluate =
            |key: &Arc<dyn PhysicalExpr>| key.evaluate(&rows)?.into_array(rows.num_rows());
        let columns = keys.iter().map(evaluate).collect::<Result<Vec<_>>>()?;
        // The numbers of rows of two columns, and of pairs, or lists of them.
        let base = held_bytes(&rows) + 3 * size_of::<u32>() * rows.num_rows();
        let hold = |keys: usize| {
            account::check().map_err(engine_error)?;
            memory.try_resize(base + keys)
        };
        let (keys, numbers) = KeyIndex::new(&columns, nulls, &hold)?;
        let places = Places::of(&numbers, keys.len());
        let lists = match &places {
            Places::Single => 0,
            Places::Lists { offsets, rows } => size_of::<u32>() * (offsets.len() + rows.len()),
        };
        memory.try_resize(held_bytes(&rows) + keys.size() + lists)?;
        Ok(Self { rows, keys, places, _memory: memory })
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
