//! How ASOF JOIN runs: the right side is read once, the left side's partitions are workers.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{
    EquivalenceProperties, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use super::keys::{KeyKind, KeySpace, Side};
use super::node::AsofKind;
use super::right::{RightSide, SideExprs};
use super::stream::Matcher;
use crate::order::{ascending_inputs, partitions_in_scan_order, visit_expressions};

/// What every worker needs to know.
#[derive(Clone)]
pub(crate) struct AsofPlan {
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) right_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) key_kind: KeyKind,
    pub(crate) kind: AsofKind,
    pub(crate) tolerance: Option<i64>,
}

impl AsofPlan {
    /// Reads the right side.
    pub(crate) async fn read_right(
        &self,
        right: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<Arc<RightSide>> {
        let keys = self.keys.iter().map(|(_, right)| Arc::clone(right)).collect();
        let exprs = SideExprs { timestamp: Arc::clone(&self.right_timestamp), keys };
        let space = (Side::Right, KeySpace::new(&self.key_kind)?);
        Ok(Arc::new(RightSide::read(right, &exprs, space, context).await?))
    }
}

/// Joins each left row with the last right row before it.
#[derive(Clone)]
pub struct AsofJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<AsofPlan>,
    right_side: Arc<OnceCell<Arc<RightSide>>>,
    properties: Arc<PlanProperties>,
}

impl AsofJoinExec {
    pub(crate) fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        plan: Arc<AsofPlan>,
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
        let (right_side, properties) = (Arc::default(), Arc::new(properties));
        Self { left, right, plan, right_side, properties }
    }

    /// Both inputs.
    pub(crate) fn inputs(&self) -> (&Arc<dyn ExecutionPlan>, &Arc<dyn ExecutionPlan>) {
        (&self.left, &self.right)
    }

    fn with_inputs(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        let right = children.swap_remove(1);
        let left = children.swap_remove(0);
        Arc::new(Self::new(left, right, Arc::clone(&self.plan), self.schema()))
    }
}

impl fmt::Debug for AsofJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsofJoinExec({:?}, {:?})", self.left, self.right)
    }
}

impl DisplayAs for AsofJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let plan = &self.plan;
        write!(f, "AsofJoinExec: {:?} ", plan.kind)?;
        write!(f, "{}, {}", plan.left_timestamp, plan.right_timestamp)?;
        for (left, right) in &plan.keys {
            write!(f, ", {left} = {right}")?;
        }
        plan.tolerance.map_or(Ok(()), |tolerance| write!(f, " tolerance={tolerance}"))
    }
}

impl ExecutionPlan for AsofJoinExec {
    fn name(&self) -> &'static str {
        "AsofJoinExec"
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
        let keys = self.plan.keys.iter().flat_map(|(left, right)| [left, right]);
        let times = [&self.plan.left_timestamp, &self.plan.right_timestamp];
        visit_expressions(times.into_iter().chain(keys), f)
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
        let (cell, schema) = (Arc::clone(&self.right_side), self.schema());
        let joined = async move {
            let read = || plan.read_right(right, context);
            let side = Arc::clone(cell.get_or_try_init(read).await?);
            let mut matcher = Matcher::new(plan, side);
            Ok::<_, datafusion::error::DataFusionError>(
                left.map(move |batch| matcher.join(&batch?, &schema)),
            )
        };
        let rows = futures::stream::once(joined).try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
