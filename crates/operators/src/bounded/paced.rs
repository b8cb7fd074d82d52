//! The rows of a join's input, in so many at once that the join is done with them in little time:
//! each may meet very many rows of the other side, and nobody knows how many before.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{RecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};
use tidemark_types::account;

/// Rows of the first slice, when nothing is known of the join.
const FIRST_ROWS: usize = 64;
/// Time that a slice should take the join.
const WANTED: Duration = Duration::from_millis(2);
/// A slice has at most so many times the rows of the one before.
const MOST_GROWTH: usize = 4;

/// An input that is handed on in slices.
#[derive(Debug)]
pub(super) struct Paced {
    input: Arc<dyn ExecutionPlan>,
}

impl Paced {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input }
    }
}

impl DisplayAs for Paced {
    fn fmt_as(&self, how: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.input.fmt_as(how, f)
    }
}

/// It shows as its input.
impl ExecutionPlan for Paced {
    fn name(&self) -> &str {
        self.input.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.input.as_ref())
    }

    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.input.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.input.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.input.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = if children.is_empty() {
            Arc::clone(&self.input)
        } else {
            Arc::clone(&self.input).replace_children(children, options)?
        };
        Ok(Arc::new(Self { input }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { input: Arc::clone(&self.input).reset_state()? }))
    }

    fn with_new_state(
        &self,
        state: Arc<dyn std::any::Any + Send + Sync>,
    ) -> Option<Arc<dyn ExecutionPlan>> {
        let input = self.input.with_new_state(state)?;
        Some(Arc::new(Self { input }))
    }

    fn metrics(&self) -> Option<datafusion::physical_plan::metrics::MetricsSet> {
        self.input.metrics()
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        Ok(Box::pin(PacedStream { input, rest: None, rows: FIRST_ROWS, handed_on: None }))
    }
}

struct PacedStream {
    input: SendableRecordBatchStream,
    rest: Option<RecordBatch>,
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
        self.rows = rows.clamp(1, self.rows.saturating_mul(MOST_GROWTH));
    }
}

impl Stream for PacedStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.learn();
        if account::is_slice_over() {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let batch = match self.rest.take() {
            Some(rest) => rest,
            None => match self.input.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(batch))) => batch,
                other => return other,
            },
        };
        let rows = batch.num_rows().min(self.rows);
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        self.handed_on = Some((Instant::now(), account::slice_start()));
        Poll::Ready(Some(Ok(batch.slice(0, rows))))
    }
}

impl RecordBatchStream for PacedStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
