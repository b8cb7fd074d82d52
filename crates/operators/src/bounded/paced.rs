//! Splits a join's input into slices that the join can process quickly. A row may match a great
//! many rows on the other side, and the number of matches is not known in advance.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::RecordBatchStream;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::Stream;
use tidemark_types::account;

use super::slices::Slices;

/// Number of rows in the first slice, when the join's speed is still unknown.
const FIRST_ROWS: usize = 64;
/// How long the join should take to process a slice.
const TARGET_TIME: Duration = Duration::from_millis(2);
/// Maximum ratio of a slice's row count to that of the previous slice.
const MAX_GROWTH: usize = 4;

/// Returns the stream in slices.
pub fn paced(input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    Box::pin(PacedStream { input: Slices::new(input), rows: FIRST_ROWS, last_slice: None })
}

struct PacedStream {
    input: Slices,
    /// Number of rows in the next slice.
    rows: usize,
    /// The time at which the last slice was returned, and the time at which the task's time slice
    /// began.
    last_slice: Option<(Instant, Option<Instant>)>,
}

impl PacedStream {
    /// Adapts the slice size to the time spent on the last slice. The measurement counts only if
    /// the join polls again within the same time slice, which ensures that nothing else ran in
    /// between.
    fn learn(&mut self) {
        let Some((then, slice)) = self.last_slice.take() else { return };
        if slice.is_none() || slice != account::slice_start() {
            return;
        }
        let took = then.elapsed().max(Duration::from_nanos(1));
        let times = TARGET_TIME.as_secs_f64() / took.as_secs_f64();
        let rows = (self.rows as f64 * times) as usize;
        self.rows = rows.clamp(1, self.rows.saturating_mul(MAX_GROWTH));
    }
}

impl Stream for PacedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.learn();
        let rows = self.rows;
        let slice = self.input.poll(rows, context);
        if matches!(slice, Poll::Ready(Some(Ok(_)))) {
            self.last_slice = Some((Instant::now(), account::slice_start()));
        }
        slice
    }
}

impl RecordBatchStream for PacedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
