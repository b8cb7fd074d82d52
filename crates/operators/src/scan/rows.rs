//! Row ranges of table slices, and their cells as batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use tidemark_storage::{Slice, TimeRange};

use crate::bounded::bytes::{has_lists, without_unused_elements};
use crate::error::engine_error;

/// Rows per batch: enough to amortise the cost per batch, but few enough for the second-level cache
/// and for quick cancellation.
pub(crate) const BATCH_ROWS: usize = 64 * 1024;

/// A range of rows in one slice.
#[derive(Debug, Clone)]
pub struct ScanUnit {
    pub slice: Arc<Slice>,
    pub rows: Range<usize>,
}

/// A restriction on the rows that a plan reads from its table.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The time ranges the plan was built for; empty for all rows.
    pub known: &'a [TimeRange],
    /// The time ranges the plan should read.
    pub ranges: &'a [TimeRange],
    /// The new condition on its rows; `None` leaves the condition as it is.
    pub predicate: Option<Test<'a>>,
}

/// A condition on rows.
#[derive(Debug, Clone, Copy)]
pub enum Test<'a> {
    /// Refers to columns by name.
    Named(&'a Expr),
    /// Refers to the scan's columns.
    Lowered(&'a Arc<dyn PhysicalExpr>),
}

/// Returns the cells of some rows as a batch, without copying. Lists are reduced to these rows'
/// elements, because Arrow allocates memory for all elements when it selects rows.
pub(crate) fn read(
    slice: &Slice,
    projection: &[usize],
    rows: Range<usize>,
    schema: &SchemaRef,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    let columns = slice.columns(projection, rows).map_err(engine_error)?;
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    if has_lists(schema.fields()) { without_unused_elements(&batch) } else { Ok(batch) }
}

/// Returns the rows in the opposite order.
pub(crate) fn reverse(batch: &RecordBatch) -> Result<RecordBatch> {
    let indices = UInt32Array::from_iter_values((0..batch.num_rows() as u32).rev());
    Ok(take_record_batch(batch, &indices)?)
}
