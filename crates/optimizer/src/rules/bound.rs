//! Wraps a `DataFusion` operator to keep it within memory and time limits. Tidemark's operators
//! enforce these limits themselves. Code that inspects a plan sees only the wrapped operator.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    ChildrenPropertiesMode, ReplaceChildrenOptions, replace_children_if_necessary,
};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};
use tidemark_operators::{PlanNode, candidates, in_bounds, measured, paced};

/// Wraps each operator in the plan.
pub(crate) fn bounded(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let is_measured_leaf = node.children().is_empty() && node.metrics().is_some();
        if is_measured_leaf || is_wrapped(&node) {
            return Ok(Transformed::no(node));
        }
        let node = match PlanNode::of(node.as_ref()) {
            PlanNode::Operator(_) => return Ok(Transformed::no(node)),
            PlanNode::MergingJoin => with_paced_inputs(node, 0)?,
            // The whole left input is the build side.
            PlanNode::HoldingJoin => with_paced_inputs(node, 1)?,
            _ => node,
        };
        Ok(Transformed::yes(Arc::new(BoundedExec::new(node)) as Arc<dyn ExecutionPlan>))
    });
    changed.map(|changed| changed.data)
}

fn is_wrapped(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let any: &dyn Any = plan.as_ref();
    any.is::<BoundedExec>()
}

/// Slices the join's inputs, starting with the input at index `first`. A single input row may
/// produce a huge number of output rows, and a huge number of input rows may produce none.
fn with_paced_inputs(join: Arc<dyn ExecutionPlan>, first: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let paced = |(number, input): (usize, &Arc<dyn ExecutionPlan>)| {
        let input = Arc::clone(input);
        if number < first { input } else { Arc::new(BoundedExec::paced(input)) }
    };
    let inputs = join.children().into_iter().enumerate().map(paced).collect();
    replace_children_if_necessary(join, inputs)
}

/// Adds a candidate filter below a top-k sort. The filter is added at execution time, because each
/// execution creates a new dynamic filter for the sort.
fn of_candidates(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let PlanNode::Sort(sort) = PlanNode::of(plan.as_ref()) else { return Ok(None) };
    let filter = sort.dynamic_expressions_produced().pop();
    let (Some(_), Some(filter)) = (sort.fetch(), filter) else { return Ok(None) };
    let input = BoundedExec { inner: Arc::clone(sort.input()), how: How::Candidates(filter) };
    replace_children_if_necessary(Arc::clone(plan), vec![Arc::new(input)]).map(Some)
}

#[derive(Debug)]
struct BoundedExec {
    inner: Arc<dyn ExecutionPlan>,
    how: How,
}

#[derive(Debug)]
enum How {
    /// An operator, with metrics if it has none of its own.
    Bounded(Option<ExecutionPlanMetricsSet>),
    /// A join input that is passed to the join in slices.
    Paced,
    /// The input of a top-k sort, with the sort's dynamic filter.
    Candidates(Arc<dyn PhysicalExpr>),
}

impl BoundedExec {
    fn new(inner: Arc<dyn ExecutionPlan>) -> Self {
        let metrics = inner.metrics().is_none().then(ExecutionPlanMetricsSet::new);
        Self { inner, how: How::Bounded(metrics) }
    }

    fn paced(inner: Arc<dyn ExecutionPlan>) -> Self {
        Self { inner, how: How::Paced }
    }

    /// Wraps a different plan in the same way.
    fn around(&self, inner: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(match self.how {
            How::Bounded(_) => Self::new(inner),
            How::Paced => Self::paced(inner),
            How::Candidates(ref filter) => Self { inner, how: How::Candidates(Arc::clone(filter)) },
        })
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
        Ok(self.around(Arc::clone(&self.inner).replace_children(children, options)?))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.around(Arc::clone(&self.inner).reset_state()?))
    }

    fn with_new_state(&self, state: Arc<dyn Any + Send + Sync>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(self.around(self.inner.with_new_state(state)?))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        match &self.how {
            How::Bounded(Some(metrics)) => Some(metrics.clone_inner()),
            _ => self.inner.metrics(),
        }
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let rows = match of_candidates(&self.inner)? {
            Some(sort) => sort.execute(partition, Arc::clone(&context))?,
            None => self.inner.execute(partition, Arc::clone(&context))?,
        };
        Ok(match &self.how {
            How::Bounded(Some(metrics)) => measured(in_bounds(rows), metrics, partition, &context),
            How::Bounded(None) => in_bounds(rows),
            How::Paced => paced(rows),
            How::Candidates(filter) => candidates(rows, Arc::clone(filter)),
        })
    }
}
