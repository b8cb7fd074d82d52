//! How WINDOW JOIN runs: the right side is read and arranged once, the left side's partitions are
//! workers.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::{
    EquivalenceProperties, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use super::index::Kind;
use super::side::WindowSide;
use super::stream::Worker;
use crate::asof::keys::KeyKind;
use crate::order::{ascending_inputs, partitions_in_scan_order, visit_expressions};
use crate::sample_by::exec::AggregatePlan;

/// One end of the windows.
#[derive(Debug, Clone)]
pub(crate) struct BoundPlan {
    /// Number of units, over the left row.
    pub(crate) distance: Arc<dyn PhysicalExpr>,
    pub(crate) unit: i64,
    pub(crate) following: bool,
}

impl BoundPlan {
    /// Whether the distance is the same for all rows.
    pub(crate) fn is_constant(&self) -> bool {
        self.distance.is::<Literal>()
    }

    /// The distance from the timestamp where it is the same for all rows and not null.
    pub(crate) fn constant(&self) -> Option<i64> {
        match self.distance.downcast_ref::<Literal>()?.value() {
            ScalarValue::Int64(Some(units)) => Some(self.signed(*units)),
            _ => None,
        }
    }

    /// Units as a distance: what is negative means 0.
    pub(crate) fn signed(&self, units: i64) -> i64 {
        let distance = units.max(0).saturating_mul(self.unit);
        if self.following { distance } else { -distance }
    }
}

/// How an aggregate is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Computed {
    /// From an index of ranges over right rows; the arguments read the right side.
    Indexed(Kind),
    /// Over pairs of rows; the arguments read both sides.
    Pairs,
}

/// One aggregate.
#[derive(Debug, Clone)]
pub(crate) struct WindowAggregate {
    pub(crate) plan: AggregatePlan,
    pub(crate) computed: Computed,
}

/// What every worker needs to know.
#[derive(Clone)]
pub(crate) struct WindowPlan {
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) right_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) key_kind: KeyKind,
    pub(crate) low: BoundPlan,
    pub(crate) high: BoundPlan,
    pub(crate) include_prevailing: bool,
    /// A condition over pairs.
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregates: Vec<WindowAggregate>,
    pub(crate) pair_schema: SchemaRef,
    /// Columns of the pairs that are read.
    pub(crate) paired: HashSet<usize>,
    /// No window holds an instant outside of these, as far as is known.
    pub(crate) reach: Option<(i64, i64)>,
}

/// Adds to each left row aggregates over the right rows around it.
#[derive(Clone)]
pub struct WindowJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<WindowPlan>,
    side: Arc<OnceCell<Arc<WindowSide>>>,
    properties: Arc<PlanProperties>,
}

impl WindowJoinExec {
    pub(crate) fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        plan: Arc<WindowPlan>,
        schema: SchemaRef,
    ) -> Self {
        let mut equivalence = EquivalenceProperties::new(schema);
        // The left columns come first and in the same order.
        let ordering: Option<Vec<PhysicalSortExpr>> =
            left.output_ordering().map(|ordering| ordering.iter().cloned().collect());
        if let Some(ordering) = ordering {
            equivalence.add_ordering(ordering);
        }
        let partitions = left.output_partitioning().partition_count();
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { left, right, plan, side: Arc::default(), properties: Arc::new(properties) }
    }

    /// The left side, whose columns come first.
    pub(crate) fn left(&self) -> &Arc<dyn ExecutionPlan> {
        &self.left
    }

    fn with_inputs(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        let right = children.swap_remove(1);
        let left = children.swap_remove(0);
        Arc::new(Self::new(left, right, Arc::clone(&self.plan), self.schema()))
    }
}

impl fmt::Debug for WindowJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowJoinExec({:?}, {:?})", self.left, self.right)
    }
}

impl DisplayAs for WindowJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let plan = &self.plan;
        write!(f, "WindowJoinExec: {}, {}", plan.left_timestamp, plan.right_timestamp)?;
        for (left, right) in &plan.keys {
            write!(f, ", {left} = {right}")?;
        }
        if let Some(filter) = &plan.filter {
            write!(f, ", {filter}")?;
        }
        let aggregates = plan.aggregates.iter().map(|aggregate| {
            let how = if aggregate.computed == Computed::Pairs { "pairs" } else { "index" };
            format!("{} ({how})", aggregate.plan.function.name())
        });
        write!(f, " aggregates=[{}]", aggregates.collect::<Vec<_>>().join(", "))?;
        if plan.include_prevailing { write!(f, " prevailing") } else { Ok(()) }
    }
}

impl ExecutionPlan for WindowJoinExec {
    fn name(&self) -> &'static str {
        "WindowJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true, false]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        partitions_in_scan_order([&self.left, &self.right])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.plan.left_timestamp, &self.plan.right_timestamp])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let plan = &self.plan;
        let keys = plan.keys.iter().flat_map(|(left, right)| [left, right]);
        let ends =
            [&plan.left_timestamp, &plan.right_timestamp, &plan.low.distance, &plan.high.distance];
        let arguments = plan.aggregates.iter().flat_map(|one| &one.plan.arguments);
        visit_expressions(ends.into_iter().chain(keys).chain(&plan.filter).chain(arguments), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_inputs(children))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let left = self.left.execute(partition, Arc::clone(&context))?;
        let (right, plan) = (Arc::clone(&self.right), Arc::clone(&self.plan));
        let (cell, schema) = (Arc::clone(&self.side), self.schema());
        let joined = async move {
            let read = || async {
                let side = WindowSide::read(right, &plan, context).await?;
                Ok::<_, DataFusionError>(Arc::new(side))
            };
            let side = Arc::clone(cell.get_or_try_init(read).await?);
            let worker = Worker::new(plan, side, schema);
            let next = |(mut left, mut worker): (SendableRecordBatchStream, Worker)| async move {
                let Some(batch) = left.try_next().await? else { return Ok(None) };
                let joined = worker.join(&batch).await?;
                Ok(Some((joined, (left, worker))))
            };
            Ok::<_, DataFusionError>(futures::stream::try_unfold((left, worker), next))
        };
        let rows = futures::stream::once(joined).try_flatten().boxed();
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows);
        Ok(Box::pin(cooperative(rows)))
    }
}
