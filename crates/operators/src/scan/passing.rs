//! A slice's rows that have passed all tests so far. Cells are copied on demand, one column at a
//! time, so the cells of rows that fail a later test are never copied.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBuffer, Buffer};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::prep_null_mask_filter;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use tidemark_storage::Slice;

use super::exec::SliceScan;
use super::filter_rows::filter_rows;
use super::rows::read;
use crate::error::engine_error;

/// If fewer than one in this many rows remain, the other conditions are evaluated only on the
/// remaining rows.
const SPARSE: usize = 8;

/// The rows of a slice that pass.
pub(crate) struct Passing<'a> {
    scan: &'a SliceScan,
    slice: &'a Slice,
    rows: Range<usize>,
    /// Whether each row passes; `None` if all pass.
    mask: Option<BooleanBuffer>,
    count: usize,
}

impl<'a> Passing<'a> {
    /// Starts with all rows.
    pub(super) fn all(scan: &'a SliceScan, slice: &'a Slice, rows: Range<usize>) -> Self {
        let count = rows.len();
        Self { scan, slice, rows, mask: None, count }
    }

    /// Number of rows that pass.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns a scan column's cells for all rows, including those that failed a test.
    pub(super) fn cells(&self, column: usize) -> Result<ArrayRef> {
        let column = [self.scan.projection()[column]];
        let cells = self.slice.columns(&column, self.rows.clone()).map_err(engine_error)?;
        cells.into_iter().next().ok_or_else(|| internal_datafusion_err!("a column has no cells"))
    }

    /// Applies a test result that covers all rows, including those that failed a test. Returns
    /// whether any rows remain.
    pub(super) fn narrow(&mut self, found: BooleanBuffer) -> bool {
        let both = match self.mask.take() {
            Some(before) => &before & &found,
            None => found,
        };
        self.count = both.count_set_bits();
        self.mask = Some(both);
        self.count > 0
    }

    /// Applies a test result that covers only the remaining rows. Returns whether any rows remain.
    pub(crate) fn apply(&mut self, retained: BooleanBuffer) -> bool {
        let found = match &self.mask {
            Some(mask) => spread(mask, &retained),
            None => retained,
        };
        self.narrow(found)
    }

    /// Applies a condition. Returns whether any rows remain.
    pub(super) fn test(&mut self, condition: &Condition) -> Result<bool> {
        let is_sparse = self.count * SPARSE < self.rows.len();
        let Condition { columns, schema, .. } = condition;
        let batch =
            if is_sparse { self.batch(columns, schema) } else { self.all_rows(columns, schema) }?;
        let found = condition.holds(&batch)?;
        Ok(if is_sparse { self.apply(found) } else { self.narrow(found) })
    }

    /// Returns scan columns for all rows, including those that failed a test, without copying them.
    fn all_rows(&self, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let projection: Vec<usize> =
            columns.iter().map(|&column| self.scan.projection()[column]).collect();
        read(self.slice, &projection, self.rows.clone(), schema)
    }

    /// Returns scan columns for the rows that pass.
    pub(crate) fn batch(&self, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let batch = self.all_rows(columns, schema)?;
        match &self.mask {
            Some(mask) if self.count < self.rows.len() => filter_rows(&batch, mask.clone()),
            _ => Ok(batch),
        }
    }

    /// Returns a scan column for the rows that pass.
    pub(crate) fn column(&self, column: usize) -> Result<ArrayRef> {
        let schema = Arc::new(self.scan.schema().project(&[column])?);
        Ok(Arc::clone(self.batch(&[column], &schema)?.column(0)))
    }
}

/// Spreads the bits of `retained` over the positions of the bits set in `mask`.
fn spread(mask: &BooleanBuffer, retained: &BooleanBuffer) -> BooleanBuffer {
    let (mut retained, mut before) = (retained.set_indices().peekable(), 0);
    let words = mask.bit_chunks().iter_padded().map(|mut word| {
        let (mut found, mut at) = (0, before);
        before += word.count_ones() as usize;
        while let Some(target) = retained.next_if(|&target| target < before) {
            while at < target {
                word &= word - 1;
                at += 1;
            }
            found |= word & word.wrapping_neg();
        }
        found
    });
    BooleanBuffer::new(Buffer::from_vec(words.collect::<Vec<u64>>()), 0, mask.len())
}

/// A condition, with a list of the columns it reads.
#[derive(Debug)]
pub(super) struct Condition {
    expression: Arc<dyn PhysicalExpr>,
    /// Columns of the scan.
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl Condition {
    pub(super) fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Self {
        let all_passing = || Self {
            expression: Arc::clone(predicate),
            columns: (0..scan.projection().len()).collect(),
            schema: Arc::clone(scan.schema()),
        };
        Self::of_its_columns(scan, predicate).unwrap_or_else(|_| all_passing())
    }

    fn of_its_columns(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Result<Self> {
        let mut columns: Vec<usize> =
            collect_columns(predicate).iter().map(Column::index).collect();
        columns.sort_unstable();
        columns.dedup();
        let position = |expression: Arc<dyn PhysicalExpr>| {
            let Some(column) = expression.downcast_ref::<Column>() else {
                return Ok(Transformed::no(expression));
            };
            let Ok(position) = columns.binary_search(&column.index()) else {
                return internal_err!("a condition refers to an unknown column");
            };
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), position)) as _))
        };
        let expression = Arc::clone(predicate).transform(position).data()?;
        let schema = Arc::new(scan.schema().project(&columns)?);
        Ok(Self { expression, columns, schema })
    }

    /// Returns the rows that satisfy the condition.
    fn holds(&self, batch: &RecordBatch) -> Result<BooleanBuffer> {
        let found = self.expression.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(found) = found.as_boolean_opt() else {
            return internal_err!("unexpected filter of type {}", found.data_type());
        };
        let definite = (found.null_count() > 0).then(|| prep_null_mask_filter(found));
        Ok(definite.as_ref().unwrap_or(found).values().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_bits_are_spread_over_the_set_bits_of_the_mask() {
        let mut seed = 9_u64;
        let mut random = move |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % bound) as usize
        };
        for round in 0..300 {
            let (rows, start) = (random(400), random(70));
            let percent = [0, 2, 50, 98, 100][round % 5];
            let mut bits = |len: usize, percent: usize| -> Vec<bool> {
                (0..len).map(|_| random(100) < percent).collect()
            };
            let mask = bits(rows + start, percent);
            // A slice may begin at any offset in its buffers.
            let sliced = BooleanBuffer::from(mask.clone()).slice(start, rows);
            let retained = bits(sliced.count_set_bits(), 40);
            let mut left = retained.iter();
            let expected: Vec<bool> =
                mask[start..].iter().map(|&set| set && *left.next().unwrap()).collect();
            let found = spread(&sliced, &BooleanBuffer::from(retained));
            assert_eq!(found.iter().collect::<Vec<_>>(), expected, "round {round}");
        }
    }
}
