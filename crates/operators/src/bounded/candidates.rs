//! Input of a top-k sort. Rows that may be in the top k are copied into new batches; all other rows
//! are dropped. The sort retains every batch that contains a top-k row, and a scan's batch refers
//! to whole columns. Without the copy, ten strings could retain hundreds of megabytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::Stream;

use super::slices::Slices;

/// Number of rows in the first slice. Each later slice has more rows, up to [`MAX_ROWS`].
const FIRST_ROWS: usize = 1 << 10;
const MAX_ROWS: usize = 1 << 16;
const GROWTH: usize = 4;

/// Returns the rows that pass `filter`, which the sort tightens as it receives rows.
pub fn candidates(
    input: SendableRecordBatchStream,
    filter: Arc<dyn PhysicalExpr>,
) -> SendableRecordBatchStream {
    Box::pin(CandidateStream { input: Slices::new(input), filter, rows: FIRST_ROWS })
}

struct CandidateStream {
    input: Slices,
    filter: Arc<dyn PhysicalExpr>,
    /// Number of rows in the next slice. The filter passes every row until the sort has enough
    /// rows.
    rows: usize,
}

impl CandidateStream {
    fn of(&self, slice: &RecordBatch) -> Result<RecordBatch> {
        let passes = self.filter.evaluate(slice)?.into_array(slice.num_rows())?;
        own_rows(slice, passes.as_boolean())
    }
}

/// Copies the rows that pass; the copy shares nothing but dictionaries with the batch.
fn own_rows(batch: &RecordBatch, passes: &BooleanArray) -> Result<RecordBatch> {
    let passes = match passes.nulls() {
        Some(nulls) => passes.values() & nulls.inner(),
        None => passes.values().clone(),
    };
    let rows: UInt32Array = passes.set_indices().map(|row| row as u32).collect();
    let taken = take_record_batch(batch, &rows)?;
    let columns = taken.columns().iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as ArrayRef,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()) as ArrayRef,
        _ => Arc::clone(column),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(taken.schema(), columns.collect(), &options)?)
}

impl Stream for CandidateStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let rows = self.rows;
            let slice = match self.input.poll(rows, context) {
                Poll::Ready(Some(Ok(slice))) => slice,
                other => return other,
            };
            self.rows = (rows * GROWTH).min(MAX_ROWS);
            match self.of(&slice) {
                Ok(rows) if rows.num_rows() == 0 => {}
                rows => return Poll::Ready(Some(rows)),
            }
        }
    }
}

impl RecordBatchStream for CandidateStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
