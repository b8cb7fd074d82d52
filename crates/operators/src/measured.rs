//! Measures an operator's rows and time for EXPLAIN ANALYZE. Other executions are not measured,
//! because a cached plan would accumulate metrics forever.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, TaskContext};
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet};
use futures::{Stream, StreamExt};

/// Session configuration extension that requests metrics.
#[derive(Debug)]
pub struct Analyze;

/// Measures the stream if requested for this execution. The time includes everything below the
/// operator.
pub fn measured(
    stream: SendableRecordBatchStream,
    metrics: &ExecutionPlanMetricsSet,
    partition: usize,
    context: &TaskContext,
) -> SendableRecordBatchStream {
    if context.session_config().get_extension::<Analyze>().is_none() {
        return stream;
    }
    Box::pin(Measured { inner: stream, figures: BaselineMetrics::new(metrics, partition) })
}

struct Measured {
    inner: SendableRecordBatchStream,
    figures: BaselineMetrics,
}

impl Stream for Measured {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let time = self.figures.elapsed_compute().clone();
        let timer = time.timer();
        let poll = self.inner.poll_next_unpin(context);
        drop(timer);
        self.figures.record_poll(poll)
    }
}

impl RecordBatchStream for Measured {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}
