//! A batch stream that returns at most as many rows as the reader requests.

use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;
use tidemark_types::account;

pub(super) struct Slices {
    input: SendableRecordBatchStream,
    remaining: Option<RecordBatch>,
}

impl Slices {
    pub(super) fn new(input: SendableRecordBatchStream) -> Self {
        Self { input, remaining: None }
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    /// Returns at most the next `rows` rows; yields when the task's time slice is over.
    pub(super) fn poll(
        &mut self,
        rows: usize,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<RecordBatch>>> {
        if account::is_slice_over() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let batch = match self.remaining.take() {
            Some(rest) => rest,
            None => match self.input.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(batch))) => batch,
                other => return other,
            },
        };
        let rows = batch.num_rows().min(rows);
        self.remaining =
            (rows < batch.num_rows()).then(|| batch.slice(rows, batch.num_rows() - rows));
        Poll::Ready(Some(Ok(batch.slice(0, rows))))
    }
}
