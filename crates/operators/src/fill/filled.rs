//! Generates the rows of FILL, in chunks of the bucket and key grid.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::take;
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use tidemark_types::account;

use super::node::FillValue;
use super::plan::FillPlan;
use super::values::{Cells, MISSING, Values};
use crate::bounded::cell_bytes;
use crate::error::engine_error;
use crate::grid::Grid;
use crate::sample_by::partial::{label_column, timestamps};

/// Maximum number of cells in a chunk.
const MAX_CHUNK_ROWS: usize = 16 * 1024;

/// Maximum size of the copied cells in a chunk, in bytes, unless a single cell is larger.
const MAX_CHUNK_BYTES: usize = 4 << 20;

/// Maximum number of input rows. Row indexes are 32-bit, and FILL may append as many rows as it
/// reads.
const MAX_ROWS: usize = i32::MAX as usize;

/// Bytes stored per input row for its key and its neighbour in each filled column.
const ROW_BYTES: usize = 32;

/// Buckets that have not been returned yet.
pub(super) struct Filled {
    plan: Arc<FillPlan>,
    schema: SchemaRef,
    input: RecordBatch,
    times: ScalarBuffer<i64>,
    key_of_row: Vec<usize>,
    /// The first row of each key.
    first_rows: Vec<u32>,
    values: Vec<Values>,
    labels: Labels,
    label: i64,
    /// Input rows in the current bucket.
    placed: Range<usize>,
    /// Each key's row in the current bucket.
    here: Vec<u32>,
    /// Each key's latest row up to the current bucket.
    last: Vec<u32>,
    /// The next cell's key.
    key: usize,
    chunk_rows: usize,
    _memory: MemoryReservation,
}

impl Filled {
    pub(super) fn new(
        input: RecordBatch,
        plan: Arc<FillPlan>,
        schema: SchemaRef,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let rows = input.num_rows();
        if rows > MAX_ROWS {
            return Err(resources_datafusion_err!(
                "FILL reads {rows} rows: at most {MAX_ROWS} rows are allowed"
            ));
        }
        let bytes = ROW_BYTES * rows * (1 + plan.values.len());
        memory.try_grow(bytes)?;
        account::check_allocation(bytes).map_err(engine_error)?;
        let times = timestamps(&plan.label(&input.schema()), &input)?;
        let (key_of_row, first_rows) = keys_of(&input, &plan.keys)?;
        let keys = first_rows.len();
        let labels = Labels::new(&plan, &times, keys);
        let mut given = plan.values.iter();
        let mut values = Vec::with_capacity(plan.values.len());
        for (index, column) in input.columns().iter().enumerate() {
            if index == plan.timestamp || plan.keys.contains(&index) {
                continue;
            }
            let value = given.next().unwrap_or(&FillValue::Null);
            values.push(Values::new(column, value, &input, &key_of_row, keys)?);
        }
        Ok(Self {
            chunk_rows: chunk_rows(&input)?,
            times,
            key_of_row,
            values,
            labels,
            label: 0,
            placed: 0..0,
            here: vec![MISSING; keys],
            last: vec![MISSING; keys],
            key: keys,
            first_rows,
            input,
            plan,
            schema,
            _memory: memory,
        })
    }

    /// Moves to the next bucket, if there is one.
    fn open(&mut self) -> bool {
        for row in self.placed.clone() {
            self.here[self.key_of_row[row]] = MISSING;
        }
        let Some(label) = self.labels.next() else { return false };
        let mut row = self.placed.end;
        // Skips rows that have no cell because they are outside the grid.
        while self.times.get(row).is_some_and(|&ts| ts < label) {
            row += 1;
        }
        let start = row;
        while self.times.get(row) == Some(&label) {
            let key = self.key_of_row[row];
            (self.here[key], self.last[key]) = (row as u32, row as u32);
            row += 1;
        }
        (self.label, self.placed, self.key) = (label, start..row, 0);
        true
    }

    /// Returns the cells of the next chunk.
    fn cells(&mut self) -> Cells {
        let keys = self.first_rows.len();
        let mut cells = Cells::default();
        while cells.len() < self.chunk_rows {
            if self.key == keys && !self.open() {
                break;
            }
            let until = keys.min(self.key + self.chunk_rows - cells.len());
            for key in self.key..until {
                cells.push(self.label, key, self.here[key], self.last[key]);
            }
            self.key = until;
        }
        cells
    }

    fn next_chunk(&mut self) -> Result<Option<RecordBatch>> {
        let cells = self.cells();
        if cells.len() == 0 {
            return Ok(None);
        }
        account::check_allocation(MAX_CHUNK_BYTES).map_err(engine_error)?;
        let mut values = self.values.iter_mut();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.input.num_columns());
        for (index, column) in self.input.columns().iter().enumerate() {
            columns.push(if index == self.plan.timestamp {
                label_column(cells.labels(), &self.plan.spec)
            } else if self.plan.keys.contains(&index) {
                let rows = cells.keys().map(|key| self.first_rows[key]);
                take(column, &UInt32Array::from_iter_values(rows), None)?
            } else if let Some(values) = values.next() {
                values.of(&cells, &self.times)?
            } else {
                take(column, &UInt32Array::new_null(cells.len()), None)?
            });
        }
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

impl Iterator for Filled {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_chunk().transpose()
    }
}

/// The bucket timestamps from the first to the last row, extended to the requested range. Without
/// rows, the bucket timestamps of the requested range if it has both ends.
struct Labels {
    grid: Grid,
    next: Option<i64>,
    end: i64,
}

impl Labels {
    fn new(plan: &FillPlan, times: &[i64], keys: usize) -> Self {
        let rows = times.first().copied().zip(times.last().copied());
        let mut grid = Grid::new(&plan.spec, rows.map_or(0, |(first, _)| first));
        let has_both_ends = plan.spec.from.is_some() && plan.spec.to.is_some();
        let ends = match (plan.range, rows) {
            (Some((from, to)), Some((first, last))) => {
                Some((grid.run(from).label.min(first), to.saturating_sub(1).max(last)))
            }
            (Some((from, to)), None) if from < to && has_both_ends => {
                Some((grid.run(from).label, to.saturating_sub(1)))
            }
            (None, rows) => rows,
            _ => None,
        };
        let ends = ends.filter(|_| keys > 0);
        Self { grid, next: ends.map(|(start, _)| start), end: ends.map_or(0, |(_, end)| end) }
    }
}

impl Iterator for Labels {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let label = self.next.filter(|&label| label <= self.end)?;
        let following = self.grid.following(label);
        self.next = (following > label).then_some(following);
        Some(label)
    }
}

/// Returns each row's key ID and each key's first row.
fn keys_of(batch: &RecordBatch, keys: &[usize]) -> Result<(Vec<usize>, Vec<u32>)> {
    if keys.is_empty() {
        return Ok((vec![0; batch.num_rows()], vec![0]));
    }
    let columns: Vec<ArrayRef> = keys.iter().map(|&key| Arc::clone(batch.column(key))).collect();
    let fields = columns.iter().enumerate().map(|(index, column)| {
        Field::new(format!("key_{index}"), column.data_type().clone(), true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut groups = new_group_values(schema, &GroupOrdering::None)?;
    let mut ids = vec![];
    groups.intern(&columns, &mut ids)?;
    let mut first_rows = vec![MISSING; groups.len()];
    for (row, &id) in ids.iter().enumerate().rev() {
        first_rows[id] = row as u32;
    }
    Ok((ids, first_rows))
}

/// Returns the number of cells per chunk, based on the longest copied cell. Views and symbols are
/// shared rather than copied.
fn chunk_rows(batch: &RecordBatch) -> Result<usize> {
    let is_copied = |index: &usize| {
        let data_type = batch.column(*index).data_type();
        !matches!(data_type, DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(..))
    };
    let copied: Vec<usize> = (0..batch.num_columns()).filter(is_copied).collect();
    let copied = batch.project(&copied)?;
    if cell_bytes(&copied) == 0 {
        return Ok(MAX_CHUNK_ROWS);
    }
    let bytes = (0..copied.num_rows()).map(|row| cell_bytes(&copied.slice(row, 1)));
    Ok((MAX_CHUNK_BYTES / bytes.max().unwrap_or(0).max(1)).clamp(1, MAX_CHUNK_ROWS))
}
