//! How HORIZON JOIN runs: right sides are read once; every left batch is matched once per offset,
//! each offset with a place of its own in each right side, so that all of them only move forward.

use std::fmt;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
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
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use tokio::sync::OnceCell;

use crate::asof::exec::AsofPlan;
use crate::asof::right::RightSide;
use crate::asof::stream::Matcher;
use crate::order::{ascending_inputs, partitions_in_scan_order, visit_expressions};
use crate::sample_by::partial::timestamps;

/// What every worker needs to know.
pub(crate) struct HorizonPlan {
    /// One for each right side.
    pub(crate) sides: Vec<Arc<AsofPlan>>,
    /// Units of each right timestamp in one of the left.
    pub(crate) per_left: Vec<i64>,
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) offsets: Vec<i64>,
}

/// Joins each left row, at each offset, with the last row of each right side.
#[derive(Clone)]
pub struct HorizonJoinExec {
    left: Arc<dyn ExecutionPlan>,
    rights: Vec<Arc<dyn ExecutionPlan>>,
    plan: Arc<HorizonPlan>,
    right_sides: Arc<OnceCell<Vec<Arc<RightSide>>>>,
    properties: Arc<PlanProperties>,
}

impl HorizonJoinExec {
    pub(crate) fn new(
        left: Arc<dyn ExecutionPlan>,
        rights: Vec<Arc<dyn ExecutionPlan>>,
        plan: Arc<HorizonPlan>,
        schema: SchemaRef,
    ) -> Self {
        let equivalence = EquivalenceProperties::new(schema);
        let partitions = left.output_partitioning().partition_count();
        let partitioning = Partitioning::UnknownPartitioning(partitions);
        let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        let properties = Arc::new(properties);
        Self { left, rights, plan, right_sides: Arc::default(), properties }
    }

    /// The input that output column `index` comes from, and its index there.
    pub(crate) fn input_of(&self, index: usize) -> Option<(&Arc<dyn ExecutionPlan>, usize)> {
        let width = self.left.schema().fields().len();
        if index < width {
            return Some((&self.left, index));
        }
        let mut index = index.checked_sub(width + 2)?;
        for right in &self.rights {
            let width = right.schema().fields().len();
            if index < width {
                return Some((right, index));
            }
            index -= width;
        }
        None
    }

    fn with_inputs(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        let left = children.remove(0);
        Arc::new(Self::new(left, children, Arc::clone(&self.plan), self.schema()))
    }
}

/// One worker: its place in each right side at each offset.
struct Worker {
    plan: Arc<HorizonPlan>,
    schema: SchemaRef,
    /// By offset, then by right side.
    matchers: Vec<Vec<Matcher>>,
    memory: MemoryReservation,
}

impl Worker {
    fn new(
        plan: Arc<HorizonPlan>,
        rights: &[Arc<RightSide>],
        schema: SchemaRef,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let mut matchers = Vec::with_capacity(plan.offsets.len());
        for _ in &plan.offsets {
            let sides = plan.sides.iter().zip(rights);
            let at_offset: Vec<Matcher> = sides
                .map(|(side, right)| Matcher::new(Arc::clone(side), Arc::clone(right)))
                .collect();
            memory.try_grow(at_offset.iter().map(Matcher::size).sum())?;
            matchers.push(at_offset);
        }
        Ok(Self { plan, schema, matchers, memory })
    }

    /// A batch at the offset with this number.
    fn join(&mut self, batch: &RecordBatch, number: usize) -> Result<RecordBatch> {
        let offset = self.plan.offsets[number];
        let times = timestamps(&self.plan.left_timestamp, batch)?;
        let moved: Vec<i64> = times.iter().map(|ts| ts.saturating_add(offset)).collect();
        let mut columns = batch.columns().to_vec();
        let unit = self.schema.field(columns.len() + 1).data_type();
        let nanoseconds = *unit == DataType::Timestamp(TimeUnit::Nanosecond, None);
        let (offsets, shown) = (vec![offset; moved.len()], moved.clone());
        columns.push(Arc::new(Int64Array::from(offsets)));
        let shown: ArrayRef = if nanoseconds {
            Arc::new(TimestampNanosecondArray::from(shown))
        } else {
            Arc::new(TimestampMicrosecondArray::from(shown))
        };
        columns.push(shown);
        for (matcher, &per_left) in self.matchers[number].iter_mut().zip(&self.plan.per_left) {
            let before = matcher.size();
            let finer: Vec<i64>;
            let times = if per_left == 1 {
                &moved
            } else {
                finer = moved.iter().map(|ts| ts.saturating_mul(per_left)).collect();
                &finer
            };
            columns.extend(matcher.matched(times, batch)?);
            self.memory.try_grow(matcher.size().saturating_sub(before))?;
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl fmt::Debug for HorizonJoinExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HorizonJoinExec({:?}, {:?})", self.left, self.rights)
    }
}

impl DisplayAs for HorizonJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "HorizonJoinExec: {}", self.plan.left_timestamp)?;
        for side in &self.plan.sides {
            write!(f, ", {}", side.right_timestamp)?;
            for (left, right) in &side.keys {
                write!(f, " {left} = {right}")?;
            }
        }
        write!(f, " offsets={}", self.plan.offsets.len())
    }
}

impl ExecutionPlan for HorizonJoinExec {
    fn name(&self) -> &'static str {
        "HorizonJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        std::iter::once(&self.left).chain(&self.rights).collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        partitions_in_scan_order(self.children())
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let rights = self.plan.sides.iter().map(|side| &side.right_timestamp);
        ascending_inputs(std::iter::once(&self.plan.left_timestamp).chain(rights))
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.rights.len() + 1]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let sides = self.plan.sides.iter().flat_map(|side| {
            let keys = side.keys.iter().flat_map(|(left, right)| [left, right]);
            std::iter::once(&side.right_timestamp).chain(keys)
        });
        visit_expressions(std::iter::once(&self.plan.left_timestamp).chain(sides), f)
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
        let mut left = self.left.execute(partition, Arc::clone(&context))?;
        let (rights, plan) = (self.rights.clone(), Arc::clone(&self.plan));
        let (cell, schema) = (Arc::clone(&self.right_sides), self.schema());
        let memory = MemoryConsumer::new("HorizonJoin").register(context.memory_pool());
        let joined = async move {
            let read = || async {
                let mut sides = Vec::with_capacity(rights.len());
                for (side, right) in plan.sides.iter().zip(rights) {
                    sides.push(side.read_right(right, Arc::clone(&context)).await?);
                }
                Ok::<_, DataFusionError>(sides)
            };
            let sides = cell.get_or_try_init(read).await?;
            let worker = Worker::new(Arc::clone(&plan), sides, schema, memory)?;
            let batch = left.try_next().await?;
            let state = (left, worker, batch, 0_usize);
            Ok::<_, DataFusionError>(futures::stream::try_unfold(state, next_batch))
        };
        let rows = futures::stream::once(joined).try_flatten().boxed();
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows);
        // Many batches come from one read of the input: yield between them.
        Ok(Box::pin(cooperative(rows)))
    }
}

/// The stream's state: the left rows, the worker, the batch at hand, the offset that is next.
type State = (SendableRecordBatchStream, Worker, Option<RecordBatch>, usize);

async fn next_batch(
    (mut left, mut worker, mut batch, mut number): State,
) -> Result<Option<(RecordBatch, State)>> {
    if number == worker.plan.offsets.len() {
        (batch, number) = (left.try_next().await?, 0);
    }
    let Some(rows) = batch else { return Ok(None) };
    let joined = worker.join(&rows, number)?;
    Ok(Some((joined, (left, worker, Some(rows), number + 1))))
}
