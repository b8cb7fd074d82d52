//! An operator within bounds. It shows as the operator itself, so that whoever looks at a plan sees
//! no other.

use std::any::Any;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::{RecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt};
use tidemark_types::account;

use super::bytes::{has_lists, rows_of_bytes, without_others};
use super::paced::Paced;
use crate::error::engine_error;
use crate::measured::measured;

/// Bytes of cells in a batch, beyond which it is handed on in parts: whoever copies cells takes so
/// much at once.
const BATCH_BYTES: usize = 4 << 20;

/// Puts every operator of a plan within bounds. The last of the rules.
#[derive(Debug)]
pub struct Bound;

impl PhysicalOptimizerRule for Bound {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        bounded(plan)
    }

    fn name(&self) -> &'static str {
        "bound"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with each of its operators within bounds.
pub(crate) fn bounded(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let any: &dyn Any = node.as_ref();
        let is_measured_leaf = node.children().is_empty() && node.metrics().is_some();
        if is_measured_leaf || any.is::<BoundedExec>() {
            return Ok(Transformed::no(node));
        }
        let node = if is_join(node.as_ref()) { with_paced_inputs(node)? } else { node };
        Ok(Transformed::yes(Arc::new(BoundedExec::new(node)) as Arc<dyn ExecutionPlan>))
    });
    changed.map(|changed| changed.data)
}

/// Whether one row of an input may make very many of the output, or none of very many.
fn is_join(plan: &dyn ExecutionPlan) -> bool {
    plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<SortMergeJoinExec>()
}

fn with_paced_inputs(join: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
    let inputs: Vec<Arc<dyn ExecutionPlan>> = join.children().into_iter().map(Arc::clone).collect();
    let [left, right] = inputs.as_slice() else { return Ok(join) };
    let right = Arc::new(Paced::new(Arc::clone(right))) as Arc<dyn ExecutionPlan>;
    // Only a merge reads both inputs row by row; others hold all of the left one.
    let left: Arc<dyn ExecutionPlan> = if join.is::<SortMergeJoinExec>() {
        Arc::new(Paced::new(Arc::clone(left)))
    } else {
        Arc::clone(left)
    };
    join.replace_children(vec![left, right], ReplaceChildrenOptions::new(Recompute))
}

#[derive(Debug)]
struct BoundedExec {
    inner: Arc<dyn ExecutionPlan>,
    /// Of an operator that has none of its own.
    metrics: Option<ExecutionPlanMetricsSet>,
}

impl BoundedExec {
    fn new(inner: Arc<dyn ExecutionPlan>) -> Self {
        let metrics = inner.metrics().is_none().then(ExecutionPlanMetricsSet::new);
        Self { inner, metrics }
    }
}

impl DisplayAs for BoundedExec {
    fn fmt_as(&self, how: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.inner.fmt_as(how, f)
    }
}

impl ExecutionPlan for BoundedExec {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn downcast_delegate(&self) -> Option<&dyn ExecutionPlan> {
        Some(self.inner.as_ref())
    }

    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.inner.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inner.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            return Ok(self);
        }
        Ok(Arc::new(Self::new(Arc::clone(&self.inner).replace_children(children, options)?)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode::Recompute;
        self.replace_children(children, ReplaceChildrenOptions::new(Recompute))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(Arc::clone(&self.inner).reset_state()?)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.metrics
            .as_ref()
            .map_or_else(|| self.inner.metrics(), |metrics| Some(metrics.clone_inner()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let inner = self.inner.execute(partition, Arc::clone(&context))?;
        let rows: SendableRecordBatchStream = Box::pin(BoundedStream::new(inner));
        Ok(match &self.metrics {
            Some(metrics) => measured(rows, metrics, partition, &context),
            None => rows,
        })
    }
}

struct BoundedStream {
    inner: SendableRecordBatchStream,
    /// What is left of a batch that has too many bytes.
    rest: Option<RecordBatch>,
    has_lists: bool,
}

impl BoundedStream {
    fn new(inner: SendableRecordBatchStream) -> Self {
        let has_lists = has_lists(inner.schema().fields());
        Self { inner, rest: None, has_lists }
    }

    /// As much of a batch as may go on at once.
    fn part(&mut self, mut batch: RecordBatch) -> Result<RecordBatch> {
        let rows = rows_of_bytes(&batch, BATCH_BYTES);
        if rows < batch.num_rows() {
            self.rest = Some(batch.slice(rows, batch.num_rows() - rows));
            batch = batch.slice(0, rows);
        }
        if self.has_lists { without_others(&batch) } else { Ok(batch) }
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
        if let Some(rest) = self.rest.take() {
            return Poll::Ready(Some(self.part(rest)));
        }
        match self.inner.poll_next_unpin(context) {
            Poll::Ready(Some(Ok(batch))) => Poll::Ready(Some(self.part(batch))),
            other => other,
        }
    }
}

impl RecordBatchStream for BoundedStream {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}
