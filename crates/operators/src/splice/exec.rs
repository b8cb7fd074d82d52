//! How SPLICE JOIN runs: both sides are read, mapped tables without a copy, and merged once.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::{EquivalenceProperties, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::merge::Merge;
use crate::asof::keys::{KeyKind, KeySpace, Side};
use crate::asof::right::{RightSide, SideExprs};
use crate::order::{ascending_inputs, partitions_in_scan_order, visit_expressions};
use crate::scan::exec::BATCH_ROWS;

/// What is asked.
pub(crate) struct SplicePlan {
    pub(crate) left: SideExprs,
    pub(crate) right: SideExprs,
    pub(crate) key_kind: KeyKind,
}

/// Merges two sides by time, each row with the other side's last row.
#[derive(Clone)]
pub struct SpliceJoinExec {
    left: Arc<dyn ExecutionPlan>,
    right: Arc<dyn ExecutionPlan>,
    plan: Arc<SplicePlan>,
    properties: Arc<PlanProperties>,
}

impl SpliceJoinExec {
    pub(crate) fn new(
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        plan: Arc<SplicePlan>,
        schema: SchemaRef,
    ) -> Self {
        let equivalence = EquivalenceProperties::new(schema);
        let partitioning = Partitioning::UnknownPartitioning(1);
        let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { left, right, plan, properties: Arc::new(properties) }
    }

    fn with_inputs(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        let right = children.swap_remove(1);
        let left = children.swap_remove(0);
        Arc::new(Self::new(left, right, Arc::clone(&self.plan), self.schema()))
    }
}

/// Both sides and the merge in progress.
struct Splice {
    left: RightSide,
    right: RightSide,
    merge: Merge,
    schema: SchemaRef,
    memory: MemoryReservation,
}

impl Splice {
    async fn read(
        (left, right): (Arc<dyn ExecutionPlan>, Arc<dyn ExecutionPlan>),
        plan: &SplicePlan,
        schema: SchemaRef,
        context: Arc<TaskContext>,
    ) -> Result<Self> {
        let memory = MemoryConsumer::new("SpliceJoin").register(context.memory_pool());
        let space = (Side::Right, KeySpace::new(&plan.key_kind)?);
        let mut right = RightSide::read(right, &plan.right, space, Arc::clone(&context)).await?;
        let space = (Side::Left, right.take_space());
        let left = RightSide::read(left, &plan.left, space, context).await?;
        Ok(Self { left, right, merge: Merge::default(), schema, memory })
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let pairs = self.merge.next(self.left.chunks(), self.right.chunks(), BATCH_ROWS);
        if pairs.left.is_empty() {
            return Ok(None);
        }
        self.memory.try_resize(self.merge.size())?;
        let mut columns = self.left.gather(&pairs.left)?;
        columns.extend(self.right.gather(&pairs.right)?);
        Ok(Some(RecordBatch::try_new(Arc::clone(&self.schema), columns)?))
    }
}

impl fmt::Debug for SpliceJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpliceJoinExec({:?}, {:?})", self.left, self.right)
    }
}

impl DisplayAs for SpliceJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let SplicePlan { left, right, .. } = self.plan.as_ref();
        write!(f, "SpliceJoinExec: {}, {}", left.timestamp, right.timestamp)?;
        for (left, right) in left.keys.iter().zip(&right.keys) {
            write!(f, ", {left} = {right}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for SpliceJoinExec {
    fn name(&self) -> &'static str {
        "SpliceJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.left, &self.right]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        partitions_in_scan_order([&self.left, &self.right])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.plan.left.timestamp, &self.plan.right.timestamp])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let SplicePlan { left, right, .. } = self.plan.as_ref();
        let times = [&left.timestamp, &right.timestamp];
        visit_expressions(times.into_iter().chain(&left.keys).chain(&right.keys), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_inputs(children))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let sides = (Arc::clone(&self.left), Arc::clone(&self.right));
        let (plan, schema) = (Arc::clone(&self.plan), self.schema());
        let merged = async move {
            let splice = Splice::read(sides, &plan, schema, context).await?;
            Ok::<_, DataFusionError>(futures::stream::try_unfold(splice, |mut splice| async move {
                Ok(splice.next()?.map(|batch| (batch, splice)))
            }))
        };
        let rows = futures::stream::once(merged).try_flatten().boxed();
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows);
        // Many batches come from one read of the input: yield between them.
        Ok(Box::pin(cooperative(rows)))
    }
}
