//! Builds batches of matching rows. Cells are shared if the rows are consecutive; otherwise they
//! are copied.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow_array::{UInt64Array, new_empty_array, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{filter, take};
use datafusion::common::{Result, internal_err};
use tidemark_kernels::NO_ROW;

use crate::asof::gather::gather;
use crate::equi_join::join::{EquiJoin, OutputColumn};
use crate::materialize::with_schema;

/// Rows of the other side.
pub(super) enum MatchingRows<'a> {
    /// Rows of one batch; [`NO_ROW`] means no match.
    One(&'a RecordBatch, UInt32Array),
    /// Rows of several batches, each as a packed batch index and row index.
    Several(&'a [RecordBatch], UInt64Array),
    /// Only nulls, in columns of these types.
    Nulls(&'a SchemaRef),
}

/// Pairs of matching rows.
pub(super) struct Found<'a> {
    pub(super) lead: &'a RecordBatch,
    pub(super) rows: UInt32Array,
    pub(super) matching: MatchingRows<'a>,
}

impl Found<'_> {
    /// Returns the output for the pairs that satisfy the condition.
    pub(super) fn batch(mut self, join: &EquiJoin, schema: &SchemaRef) -> Result<RecordBatch> {
        if let Some(condition) = &join.filter {
            let column = |is_first: bool, column: usize| {
                if is_first { self.lead(column) } else { self.other(column) }
            };
            let mask = join.passing(condition, self.rows.len(), column)?;
            self.retain(&mask)?;
        }
        let columns = join.output.iter().map(|column| match *column {
            OutputColumn::First(column) => self.lead(column),
            OutputColumn::Other(column) => self.other(column),
            OutputColumn::Mark => internal_err!("unexpected mark column in a join"),
        });
        with_schema(schema, columns.collect::<Result<_>>()?, self.rows.len())
    }

    /// Returns a column from the leading side.
    fn lead(&self, column: usize) -> Result<ArrayRef> {
        rows_of(self.lead.column(column), &self.rows)
    }

    /// Returns a column from the other side.
    fn other(&self, column: usize) -> Result<ArrayRef> {
        match &self.matching {
            MatchingRows::One(batch, rows) => rows_of(batch.column(column), rows),
            MatchingRows::Several(batches, rows) => {
                let chunks: Vec<ArrayRef> =
                    batches.iter().map(|batch| Arc::clone(batch.column(column))).collect();
                let Some(first) = chunks.first() else {
                    return internal_err!("rows have no batch");
                };
                gather(&chunks, rows.values(), &new_empty_array(first.data_type()))
            }
            MatchingRows::Nulls(schema) => {
                Ok(new_null_array(schema.field(column).data_type(), self.rows.len()))
            }
        }
    }

    fn retain(&mut self, mask: &BooleanArray) -> Result<()> {
        self.rows = UInt32Array::from(filter(&self.rows, mask)?.to_data());
        match &mut self.matching {
            MatchingRows::One(_, rows) => *rows = UInt32Array::from(filter(rows, mask)?.to_data()),
            MatchingRows::Several(_, rows) => {
                *rows = UInt64Array::from(filter(rows, mask)?.to_data());
            }
            MatchingRows::Nulls(_) => {}
        }
        Ok(())
    }
}

/// Returns row indexes, with null for [`NO_ROW`].
pub(super) fn numbers(rows: Vec<u32>, has_none: bool) -> UInt32Array {
    if !has_none || !rows.contains(&NO_ROW) {
        return UInt32Array::new(rows.into(), None);
    }
    let found = rows.iter().map(|&row| row != NO_ROW).collect::<NullBuffer>();
    UInt32Array::new(rows.into(), Some(found))
}

/// Selects rows from a column. Returns a slice if they are consecutive.
fn rows_of(column: &ArrayRef, rows: &UInt32Array) -> Result<ArrayRef> {
    let numbers: &[u32] = rows.values();
    if let (Some(&first), Some(&last), 0) = (numbers.first(), numbers.last(), rows.null_count()) {
        let ends_fit = (last as usize).checked_sub(first as usize) == Some(numbers.len() - 1);
        // Does not exit early, so the loop is vectorised.
        let follow =
            || numbers.windows(2).fold(true, |all, two| all & (two[1] == two[0].wrapping_add(1)));
        if ends_fit && follow() {
            return Ok(column.slice(first as usize, numbers.len()));
        }
    }
    Ok(take(column, rows, None)?)
}
