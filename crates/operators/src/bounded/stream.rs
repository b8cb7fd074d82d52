//! Limits the size of an operator's batches. Between batches, the query can be cancelled and other
//! tasks can run.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::{Stream, StreamExt};
use tidemark_types::account;

use super::bytes::{has_lists, rows_of_bytes, without_unused_elements};
use crate::error::engine_error;

/// Maximum size in bytes of a batch's cells; larger batches are split. An operator that copies
/// cells allocates this much at a time.
const BATCH_BYTES: usize = 4 << 20;

/// Returns the stream with size-limited batches.
pub fn in_bounds(inner: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let has_lists = has_lists(inner.schema().fields());
    Box::pin(BoundedStream { inner, remaining: None, has_lists })
}

struct BoundedStream {
    inner: SendableRecordBatchStream,
    /// Remainder of a batch that exceeded the limit.
    remaining: Option<RecordBatch>,
    has_lists: bool,
}

impl BoundedStream {
    /// Returns as many of a batch's rows as the limit allows.
    fn within_limit(&mut self, mut batch: RecordBatch) -> Result<RecordBatch> {
        let rows = rows_of_bytes(&batch, BATCH_BYTES);
        if rows < batch.num_rows() {
            self.remaining = Some(batch.slice(rows, batch.num_rows() - rows));
            batch = batch.slice(0, rows);
        }
        if self.has_lists { without_unused_elements(&batch) } else { Ok(batch) }
    }
}

impl Stream for BoundedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(error) = account::check() {
            return Poll::Ready(Some(Err(engine_error(error))));
        }
        if account::is_slice_over() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(rest) = self.remaining.take() {
            return Poll::Ready(Some(self.within_limit(rest)));
        }
        match self.inner.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(batch))) => Poll::Ready(Some(self.within_limit(batch))),
            other => other,
        }
    }
}

impl RecordBatchStream for BoundedStream {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}
