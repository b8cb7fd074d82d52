//! Time order across partitions: who has it, and how many partitions become one without losing
//! or merging anything.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SortOptions;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, SchedulingType};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, ReplaceChildrenOptions,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::asof::exec::AsofJoinExec;
use crate::scan::exec::TableScanExec;
use crate::scan::filtered::FilteredScanExec;
use crate::unnest::exec::UnnestElementsExec;
use crate::window_join::exec::WindowJoinExec;

/// Batches a partition may be ahead of the one that is being read.
const BATCHES_AHEAD: usize = 16;

/// Whether partition `i` of this plan lies before partition `i + 1` in scan order. Partitions
/// of a scan do, and row-wise operators keep that.
pub(crate) fn follows_scan_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.output_partitioning().partition_count() == 1 {
        return true;
    }
    if plan.is::<TableScanExec>() || plan.is::<FilteredScanExec>() {
        return true;
    }
    let row_wise = plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnnestElementsExec>()
        || plan.is::<AsofJoinExec>()
        || plan.is::<WindowJoinExec>();
    row_wise && plan.children().first().is_some_and(|child| follows_scan_order(child))
}

/// Ascending order of one column.
pub(crate) fn ascending(timestamp: &Arc<dyn PhysicalExpr>) -> PhysicalSortExpr {
    let options = SortOptions { descending: false, nulls_first: true };
    PhysicalSortExpr::new(Arc::clone(timestamp), options)
}

/// Takes each input as it is where its partitions follow each other, else as one partition.
pub(crate) fn partitions_in_scan_order<'a>(
    inputs: impl IntoIterator<Item = &'a Arc<dyn ExecutionPlan>>,
) -> InputDistributionRequirements {
    let distribution = |input| {
        if follows_scan_order(input) {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        }
    };
    InputDistributionRequirements::new(inputs.into_iter().map(distribution).collect())
}

/// Wants each input ascending by its timestamp.
pub(crate) fn ascending_inputs<'a>(
    timestamps: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
) -> Vec<Option<OrderingRequirements>> {
    let by = |column| Some(OrderingRequirements::from(LexOrdering::from([ascending(column)])));
    timestamps.into_iter().map(by).collect()
}

/// Shows the expressions of an operator to `f` until it has seen enough.
pub(crate) fn visit_expressions<'a>(
    expressions: impl IntoIterator<Item = &'a Arc<dyn PhysicalExpr>>,
    f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
) -> Result<TreeNodeRecursion> {
    for expression in expressions {
        if f(expression)? == TreeNodeRecursion::Stop {
            return Ok(TreeNodeRecursion::Stop);
        }
    }
    Ok(TreeNodeRecursion::Continue)
}

/// The plan with its rows ordered by `timestamp` within and across partitions, sorted only if
/// nothing better is known.
pub(crate) fn in_time_order(
    plan: Arc<dyn ExecutionPlan>,
    timestamp: &Arc<dyn PhysicalExpr>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let ordering = LexOrdering::from([ascending(timestamp)]);
    let sorted = plan.equivalence_properties().ordering_satisfy(ordering.clone())?;
    let plan = if sorted {
        plan
    } else {
        let sort = SortExec::new(ordering.clone(), plan).with_preserve_partitioning(true);
        Arc::new(sort) as Arc<dyn ExecutionPlan>
    };
    if (sorted && follows_scan_order(&plan)) || plan.output_partitioning().partition_count() == 1 {
        return Ok(plan);
    }
    Ok(Arc::new(SortPreservingMergeExec::new(ordering, plan)))
}

/// The plan with its scan running the other way, if rows flow through it one by one. The scan
/// reads at most `limit` rows if nothing above it drops any.
pub(crate) fn reversed(
    plan: &Arc<dyn ExecutionPlan>,
    limit: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<TableScanExec>() {
        return Ok(Some(Arc::new(scan.reversed(limit))));
    }
    let keeps_all =
        plan.is::<ProjectionExec>() || plan.is::<CooperativeExec>() || plan.is::<TimeConcatExec>();
    if !keeps_all && !plan.is::<FilterExec>() {
        return Ok(None);
    }
    let children = plan.children();
    let Some(child) = children.first() else { return Ok(None) };
    let Some(child) = reversed(child, limit.filter(|_| keeps_all))? else { return Ok(None) };
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Ok(Some(Arc::clone(plan).replace_children(vec![child], options)?))
}

/// Reads partitions one after the other; the later ones work ahead into bounded queues.
#[derive(Debug, Clone)]
pub struct TimeConcatExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl TimeConcatExec {
    /// One partition out of the partitions of `input`, in their order.
    pub fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let mut equivalence = input.equivalence_properties().clone();
        if input.output_partitioning().partition_count() > 1 {
            equivalence.clear_per_partition_constants();
        }
        if !follows_scan_order(&input) {
            // Each partition has its order; one after the other, they have none.
            equivalence.clear_orderings();
        }
        let properties = PlanProperties::clone(input.properties())
            .with_eq_properties(equivalence)
            .with_partitioning(Partitioning::UnknownPartitioning(1))
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for TimeConcatExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "TimeConcatExec")
    }
}

impl ExecutionPlan for TimeConcatExec {
    fn name(&self) -> &'static str {
        "TimeConcatExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// A sort above may not move below: one partition after the other, sorted ones are not.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.input.output_partitioning().partition_count() == 1]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
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
        Ok(Arc::new(Self::new(children.swap_remove(0))))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.input.output_partitioning().partition_count();
        if partitions == 1 {
            return self.input.execute(0, context);
        }
        let streams: Vec<SendableRecordBatchStream> = (0..partitions)
            .map(|partition| {
                let mut ahead = RecordBatchReceiverStream::builder(self.schema(), BATCHES_AHEAD);
                let queue = ahead.tx();
                let mut rows = self.input.execute(partition, Arc::clone(&context))?;
                ahead.spawn(async move {
                    while let Some(batch) = rows.next().await {
                        let failed = batch.is_err();
                        // A closed queue means that nobody wants more.
                        if queue.send(batch).await.is_err() || failed {
                            break;
                        }
                    }
                    Ok(())
                });
                Ok(ahead.build())
            })
            .collect::<Result<_>>()?;
        let rows = futures::stream::iter(streams).flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
