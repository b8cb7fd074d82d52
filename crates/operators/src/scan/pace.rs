//! Limits how long a scan, including the operators that run on its batches, works before it yields
//! and checks for cancellation. The limit is a duration rather than a number of rows, because a
//! batch may take microseconds or, below a regular expression, a tenth of a second.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use tidemark_storage::Slice;

use super::rows::BATCH_ROWS;

/// Maximum time between yields.
const TIME_SLICE: Duration = Duration::from_millis(10);
/// Duration above which a step is followed by smaller steps.
const LONG_STEP: Duration = Duration::from_millis(20);
/// Minimum number of rows in a step that follows a long step.
const MIN_STEP_ROWS: usize = 4 * 1024;
/// Number of rows in the first step of a scan that may end early, and the growth factor of its
/// steps.
const FIRST_STEP_ROWS: usize = 1024;
const GROWTH: usize = 4;
/// Time until the first yield of a scan that usually ends early. Such a scan may run on a thread
/// that other tasks need.
const FIRST_TIME_SLICE: Duration = Duration::from_millis(1);

/// Returns a stream of these batches that yields at regular intervals.
pub(crate) fn paced(
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    let begin = (batches, Yields::new());
    let rows = futures::stream::unfold(begin, |(mut batches, mut turns)| async move {
        turns.yield_when_over().await;
        batches.next().map(|batch| (batch, (batches, turns)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Yields to other tasks at regular intervals.
pub(crate) struct Yields {
    since: Instant,
    length: Duration,
}

impl Yields {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), length: TIME_SLICE }
    }

    /// Creates the time slices for a scan that may end early.
    pub(crate) fn short_at_first() -> Self {
        Self { since: Instant::now(), length: FIRST_TIME_SLICE }
    }

    pub(crate) async fn yield_when_over(&mut self) {
        if self.since.elapsed() >= self.length {
            tokio::task::yield_now().await;
            *self = Self::new();
        }
    }
}

/// Adaptive number of rows to read per step.
pub(crate) struct Step {
    pub(crate) rows: usize,
    max_rows: usize,
}

impl Step {
    /// Starts with a few rows, because a search from the end of a table usually ends soon.
    pub(crate) fn short_at_first() -> Self {
        Self { rows: FIRST_STEP_ROWS, max_rows: BATCH_ROWS }
    }

    /// Adapts the step size to how long the last step took.
    pub(crate) fn took(&mut self, time: Duration) {
        if time > LONG_STEP {
            self.max_rows = (self.rows / 4).max(MIN_STEP_ROWS);
            self.rows = self.max_rows;
        } else {
            self.rows = (self.rows * GROWTH).min(self.max_rows);
        }
    }
}

/// Rows of a slice.
type Chunk = (Arc<Slice>, Range<usize>);

/// After a long step, divides a scan's chunks into smaller steps.
pub(crate) struct Steps<I> {
    chunks: I,
    backward: bool,
    remaining: Option<Chunk>,
    step: Step,
}

impl<I: Iterator<Item = Chunk>> Steps<I> {
    pub(crate) fn new(chunks: I, backward: bool) -> Self {
        Self {
            chunks,
            backward,
            remaining: None,
            step: Step { rows: BATCH_ROWS, max_rows: BATCH_ROWS },
        }
    }

    /// Records the duration of the last step.
    pub(crate) fn took(&mut self, time: Duration) {
        self.step.took(time);
    }
}

impl<I: Iterator<Item = Chunk>> Iterator for Steps<I> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let (slice, Range { start, end }) = self.remaining.take().or_else(|| self.chunks.next())?;
        let rows = self.step.rows;
        if end - start <= rows {
            return Some((slice, start..end));
        }
        let (now, later) = if self.backward {
            let middle = end - rows;
            (middle..end, start..middle)
        } else {
            let middle = start + rows;
            (start..middle, middle..end)
        };
        self.remaining = Some((Arc::clone(&slice), later));
        Some((slice, now))
    }
}
