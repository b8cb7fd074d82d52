//! Keeps the order of a sub-query for aggregates to which it matters: `first`, `string_agg`. Nobody
//! else asks for it, and `DataFusion` drops sorts that nobody asks for.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, ReplaceChildrenOptions, SendableRecordBatchStream,
};

/// The plan, asking for the order of the sort that it is made of row by row, if it is.
pub(crate) fn keep_sorted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let ordering = sort.expr().clone();
        return Ok(Arc::new(SortedInputExec::new(plan, ordering)));
    }
    if !plan.is::<ProjectionExec>() && !plan.is::<FilterExec>() {
        return Ok(plan);
    }
    let children = plan.children().into_iter().map(|child| keep_sorted(Arc::clone(child)));
    let children = children.collect::<Result<Vec<_>>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options)
}

/// Hands on the rows of its input, in an order it insists on.
#[derive(Debug, Clone)]
struct SortedInputExec {
    input: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
    properties: Arc<PlanProperties>,
}

impl SortedInputExec {
    fn new(input: Arc<dyn ExecutionPlan>, ordering: LexOrdering) -> Self {
        let properties = PlanProperties::clone(input.properties())
            .with_partitioning(Partitioning::UnknownPartitioning(1));
        Self { input, ordering, properties: Arc::new(properties) }
    }
}

impl DisplayAs for SortedInputExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SortedInputExec: [{}]", self.ordering)
    }
}

impl ExecutionPlan for SortedInputExec {
    fn name(&self) -> &'static str {
        "SortedInputExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.ordering.clone()))]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::new(children.swap_remove(0), self.ordering.clone())))
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(part, context)
    }
}
