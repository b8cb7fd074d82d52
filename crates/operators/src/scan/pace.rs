//! How long a scan, and what is computed from its batches, runs before others get their turn and
//! the query can be stopped. The clock decides: a batch costs microseconds or, behind a regular
//! expression, a tenth of a second.

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

/// Time from one turn of the others to the next.
const TURN: Duration = Duration::from_millis(10);
/// A step that takes longer is followed by smaller ones.
const LONG_STEP: Duration = Duration::from_millis(20);
/// Fewest rows of a step.
const MIN_STEP_ROWS: usize = 4 * 1024;
/// Rows of the first step of a scan that may end early, and how fast its steps grow.
const FIRST_STEP_ROWS: usize = 1024;
const GROWTH: usize = 4;
/// Time to the first turn of the others, where a scan that mostly ends early goes on: its caller
/// may have run it on a thread that others wait for.
const FIRST_TURN: Duration = Duration::from_millis(1);

/// A stream of these batches that yields by the clock.
pub(crate) fn paced(
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> SendableRecordBatchStream {
    let begin = (batches, Turns::new());
    let rows = futures::stream::unfold(begin, |(mut batches, mut turns)| async move {
        turns.yield_when_over().await;
        batches.next().map(|batch| (batch, (batches, turns)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// Lets others have their turn, by the clock.
pub(crate) struct Turns {
    since: Instant,
    length: Duration,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), length: TURN }
    }

    /// Turns of a scan that may end early.
    pub(crate) fn short_at_first() -> Self {
        Self { since: Instant::now(), length: FIRST_TURN }
    }

    pub(crate) async fn yield_when_over(&mut self) {
        if self.since.elapsed() >= self.length {
            tokio::task::yield_now().await;
            *self = Self::new();
        }
    }
}

/// How many rows are read at once.
pub(crate) struct Step {
    pub(crate) rows: usize,
    most_rows: usize,
}

impl Step {
    /// Few at first: what is looked for from the end of a table is mostly found soon.
    pub(crate) fn short_at_first() -> Self {
        Self { rows: FIRST_STEP_ROWS, most_rows: BATCH_ROWS }
    }

    /// Says how long the last one took.
    pub(crate) fn took(&mut self, time: Duration) {
        if time > LONG_STEP {
            self.most_rows = (self.rows / 4).max(MIN_STEP_ROWS);
            self.rows = self.most_rows;
        } else {
            self.rows = (self.rows * GROWTH).min(self.most_rows);
        }
    }
}

/// Rows of a slice.
type Chunk = (Arc<Slice>, Range<usize>);

/// The chunks of a scan in smaller steps once one took long.
pub(crate) struct Steps<I> {
    chunks: I,
    backward: bool,
    rest: Option<Chunk>,
    step: Step,
}

impl<I: Iterator<Item = Chunk>> Steps<I> {
    pub(crate) fn new(chunks: I, backward: bool) -> Self {
        Self {
            chunks,
            backward,
            rest: None,
            step: Step { rows: BATCH_ROWS, most_rows: BATCH_ROWS },
        }
    }

    /// Says how long the last step took.
    pub(crate) fn took(&mut self, time: Duration) {
        self.step.took(time);
    }
}

impl<I: Iterator<Item = Chunk>> Iterator for Steps<I> {
    type Item = Chunk;

    fn next(&mut self) -> Option<Chunk> {
        let (slice, Range { start, end }) = self.rest.take().or_else(|| self.chunks.next())?;
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
        self.rest = Some((Arc::clone(&slice), later));
        Some((slice, now))
    }
}
