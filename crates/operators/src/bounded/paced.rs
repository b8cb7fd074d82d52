//! The rows of a join's input, in so many at once that the join is done with them in little time:
//! each may meet very many rows of the other side, and their number is not known before.

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

/// Rows of the first slice, when nothing is known of the join.
const FIRST_ROWS: usize = 64;
/// Time that a slice should take the join.
const WANTED: Duration = Duration::from_millis(2);
/// A slice has at most so many times the rows of the one before.
const MAX_GROWTH: usize = 4;

/// The stream in slices.
pub fn paced(input: SendableRecordBatchStream) -> SendableRecordBatchStream {
    Box::pin(PacedStream { input: Slices::new(input), rows: FIRST_ROWS, handed_on: None })
}

struct PacedStream {
    input: Slices,
    /// Rows of the next slice.
    rows: usize,
    /// When the last slice went on, and when the task that took it had begun to work.
    handed_on: Option<(Instant, Option<Instant>)>,
}

impl PacedStream {
    /// Learns from how long the last slice took. Only where the join did nothing else meanwhile:
    /// when it asks within the same go.
    fn learn(&mut self) {
        let Some((then, slice)) = self.handed_on.take() else { return };
        if slice.is_none() || slice != account::slice_start() {
            return;
        }
        let took = then.elapsed().max(Duration::from_nanos(1));
        let times = WANTED.as_secs_f64() / took.as_secs_f64();
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
            self.handed_on = Some((Instant::now(), account::slice_start()));
        }
        slice
    }
}

impl RecordBatchStream for PacedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
