//! Rows of a table's slices: which ones, and their cells as batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use tidemark_storage::{Slice, TimeRange};

use crate::bounded::bytes::{has_lists, without_others};
use crate::error::engine_error;

/// Rows per batch: large enough to drown per-batch costs, small enough for the second-level
/// cache and for quick cancellation.
pub(crate) const BATCH_ROWS: usize = 64 * 1024;

/// Some rows of one slice.
#[derive(Debug, Clone)]
pub struct ScanUnit {
    pub slice: Arc<Slice>,
    pub rows: Range<usize>,
}

/// What a plan reads of its table.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The ranges it read by, none for all.
    pub known: &'a [TimeRange],
    /// The ranges it is to read by.
    pub ranges: &'a [TimeRange],
    /// What is to hold for its rows; `None`: what it was before.
    pub predicate: Option<Test<'a>>,
}

/// What is to hold for rows.
#[derive(Debug, Clone, Copy)]
pub enum Test<'a> {
    /// By the names of columns.
    Named(&'a Expr),
    /// Over the scan's columns.
    Lowered(&'a Arc<dyn PhysicalExpr>),
}

/// The cells of some rows as a batch; nothing is copied. Lists come without the elements of other
/// rows: Arrow allocates for all of them where it takes rows.
pub(crate) fn read(
    slice: &Slice,
    projection: &[usize],
    rows: Range<usize>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = slice.columns(projection, rows).map_err(engine_error)?;
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    if has_lists(schema.fields()) { without_others(&batch) } else { Ok(batch) }
}

/// Rows in the opposite order.
pub(crate) fn reverse(batch: &RecordBatch) -> Result<RecordBatch> {
    let indices = UInt32Array::from_iter_values((0..batch.num_rows() as u32).rev());
    Ok(take_record_batch(batch, &indices)?)
}
