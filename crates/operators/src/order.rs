//! Time order across partitions: which plans have it, and how to combine partitions without sorting
//! or merging.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
};
use crate::plan_node::{PlanNode, with_first_input};
use crate::properties::ascending;
use crate::scan::kind::Scan;

/// Number of batches that a partition may read ahead.
const BATCHES_AHEAD: usize = 16;

/// A limit of up to this many rows can usually be satisfied by a single scan partition.
const FEW_ROWS: usize = 10_000;

/// Whether partition `i` of this plan precedes partition `i + 1` in scan order. This is true of
/// scan partitions, and row-by-row operators preserve it.
pub fn follows_scan_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.output_partitioning().partition_count() == 1 {
        return true;
    }
    let keeps = match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(node) => node.facts().preserves.partitions,
        node => node.is_row_wise() || matches!(node, PlanNode::Cooperative),
    };
    keeps && plan.children().first().is_none_or(|child| follows_scan_order(child))
}

/// Accepts an input unchanged if its partitions are in scan order; otherwise, requires a single
/// partition.
pub(crate) fn partitions_in_scan_order(inputs: &[Input]) -> Vec<Distribution> {
    let distribution = |input| {
        if follows_scan_order(input) {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        }
    };
    inputs.iter().map(distribution).collect()
}

/// Returns the plan with rows ordered by `timestamp` within and across partitions. It is sorted
/// only if no existing order can be used.
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

/// Returns the plan with its scan reversed, provided that only row-by-row operators are above the
/// scan. If none of them drops rows, the scan reads at most `limit` rows.
pub fn reversed(
    plan: &Arc<dyn ExecutionPlan>,
    limit: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let keeps_all = match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(node) => match node.facts() {
            Facts { scan: Some(Scan::Table(scan)), .. } => {
                return Ok(Some(scan.reversed(limit).plan()));
            }
            // After the reversal, a per-partition limit would apply to the wrong end.
            Facts { scan: Some(Scan::Filtered(scan)), .. } if scan.fetch().is_none() => {
                let as_one = limit.is_some_and(|limit| limit <= FEW_ROWS);
                return scan.reversed(as_one).map(|scan| Some(scan.plan()));
            }
            facts if facts.preserves.direction => facts.preserves.every_row,
            _ => return Ok(None),
        },
        PlanNode::Projection(_) | PlanNode::Cooperative | PlanNode::Values => true,
        PlanNode::Filter(_) => false,
        _ => return Ok(None),
    };
    let children = plan.children();
    let Some(child) = children.first() else { return Ok(None) };
    let Some(child) = reversed(child, limit.filter(|_| keeps_all))? else { return Ok(None) };
    with_first_input(Arc::clone(plan), |_| Ok(child)).map(Some)
}

/// Reads partitions one after another. Later partitions are read ahead into bounded queues.
pub struct TimeConcat;

impl TimeConcat {
    /// Concatenates the partitions of `input` in order.
    pub fn plan(input: Input) -> Input {
        let schema = input.schema();
        OperatorExec::plan(Self, vec![input], &schema)
    }
}

impl fmt::Display for TimeConcat {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Operator for TimeConcat {
    fn facts(&self, inputs: &[Input]) -> Facts<'_> {
        let is_one = inputs[0].output_partitioning().partition_count() == 1;
        Facts {
            name: "TimeConcatExec",
            // The queues hold a bounded number of batches.
            memory: None,
            // A sort above must not move below this operator, because concatenating sorted
            // partitions does not produce a sorted result.
            preserves: PreservedOrder {
                rows: is_one,
                partitions: false,
                direction: true,
                every_row: true,
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, _: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let input = &inputs[0];
        let mut equivalence = input.equivalence_properties().clone();
        if input.output_partitioning().partition_count() > 1 {
            equivalence.clear_per_partition_constants();
        }
        if !follows_scan_order(input) {
            // The partitions are ordered individually; their concatenation is not.
            equivalence.clear_orderings();
        }
        let properties = PlanProperties::clone(input.properties())
            .with_eq_properties(equivalence)
            .with_partitioning(Partitioning::UnknownPartitioning(1))
            .with_scheduling_type(SchedulingType::Cooperative);
        Arc::new(properties)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let partitions = run.inputs[0].output_partitioning().partition_count();
        if partitions == 1 {
            return run.rows(0, 0);
        }
        let streams: Vec<SendableRecordBatchStream> = (0..partitions)
            .map(|partition| {
                let schema = Arc::clone(&run.schema);
                let mut ahead = RecordBatchReceiverStream::builder(schema, BATCHES_AHEAD);
                let queue = ahead.tx();
                let mut rows = run.rows(0, partition)?;
                ahead.spawn(async move {
                    while let Some(batch) = rows.next().await {
                        let failed = batch.is_err();
                        // A closed queue means that the reader has stopped.
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
        Ok(Box::pin(RecordBatchStreamAdapter::new(run.schema, rows)))
    }
}
