//! How SAMPLE BY and GROUP BY run: a partial per partition, merged in time order.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::groups::KeyPlan;
use super::partial::Partial;
use crate::bucket::BucketSpec;
use crate::error::join_error;
use crate::order::{ascending, follows_scan_order, visit_expressions};
use crate::scan::exec::BATCH_ROWS;

/// The time axis over the physical input.
#[derive(Debug, Clone)]
pub(crate) struct BucketPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) spec: BucketSpec,
}

/// One aggregate over the physical input.
#[derive(Debug, Clone)]
pub(crate) struct AggregatePlan {
    pub(crate) function: Arc<AggregateFunctionExpr>,
    pub(crate) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    /// How many symbols there are, when the argument is a symbol of one table column.
    pub(crate) symbols: Option<usize>,
}

/// What every worker needs to know.
#[derive(Clone)]
pub(crate) struct SampleByPlan {
    pub(crate) bucket: Option<BucketPlan>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) key_plan: KeyPlan,
    pub(crate) aggregates: Vec<AggregatePlan>,
    pub(crate) input_schema: SchemaRef,
    pub(crate) output_schema: SchemaRef,
}

impl SampleByPlan {
    /// Whether the result is one row, whatever the input.
    pub(crate) fn is_global(&self) -> bool {
        self.bucket.is_none() && self.keys.is_empty()
    }
}

impl fmt::Debug for SampleByPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for SampleByPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bucket) = &self.bucket {
            write!(f, "{} by {} ", bucket.timestamp, bucket.spec)?;
        }
        let how = match &self.key_plan {
            KeyPlan::None => "none",
            KeyPlan::Symbols(_) => "slots",
            KeyPlan::Hashed(_) => "hashed",
        };
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let names: Vec<&str> =
            self.aggregates.iter().map(|aggregate| aggregate.function.name()).collect();
        write!(f, "keys=[{}] ({how}) aggregates=[{}]", keys.join(", "), names.join(", "))
    }
}

/// Aggregates over buckets and keys. Every partition of the input is aggregated by a task of
/// its own; the partial results, each later in time than the one before, are merged in order.
#[derive(Debug, Clone)]
pub struct SampleByExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<SampleByPlan>,
    properties: Arc<PlanProperties>,
}

impl SampleByExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<SampleByPlan>) -> Self {
        let schema = Arc::clone(&plan.output_schema);
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&schema));
        if plan.bucket.is_some() {
            let label: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(0).name(), 0));
            equivalence.add_ordering([ascending(&label)]);
        }
        let partitioning = Partitioning::UnknownPartitioning(1);
        let (emission, bounded) = (EmissionType::Final, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, plan, properties: Arc::new(properties) }
    }

    fn with_input(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(children.swap_remove(0), Arc::clone(&self.plan)))
    }
}

/// Aggregates one partition of the input.
async fn aggregate(
    plan: Arc<SampleByPlan>,
    mut rows: SendableRecordBatchStream,
    context: Arc<TaskContext>,
) -> Result<Partial> {
    let memory = MemoryConsumer::new("SampleBy").register(context.memory_pool());
    let mut partial = Partial::new(&plan)?;
    while let Some(batch) = rows.try_next().await? {
        partial.update(&batch)?;
        memory.try_resize(partial.size())?;
    }
    Ok(partial)
}

async fn run(
    plan: Arc<SampleByPlan>,
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
) -> Result<RecordBatch> {
    let partitions = input.output_partitioning().partition_count();
    let share = |partition: usize| {
        let rows = input.execute(partition, Arc::clone(&context))?;
        Ok::<_, DataFusionError>(aggregate(Arc::clone(&plan), rows, Arc::clone(&context)))
    };
    if partitions == 1 {
        return share(0)?.await?.finish();
    }
    let tasks = (0..partitions).map(|partition| Ok(SpawnedTask::spawn(share(partition)?)));
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let mut whole: Option<Partial> = None;
    let memory = MemoryConsumer::new("SampleBy merge").register(context.memory_pool());
    for task in tasks {
        let partial = task.join().await.map_err(join_error)??;
        match &mut whole {
            None => whole = Some(partial),
            Some(whole) => whole.absorb(partial)?,
        }
        memory.try_resize(whole.as_ref().map_or(0, Partial::size))?;
    }
    whole.map_or_else(|| Partial::new(&plan)?.finish(), Partial::finish)
}

/// A batch as a stream of batches of usual size.
pub(crate) fn in_chunks(batch: &RecordBatch) -> Vec<Result<RecordBatch>> {
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(BATCH_ROWS);
    starts.map(|start| Ok(batch.slice(start, BATCH_ROWS.min(rows - start)))).collect()
}

impl DisplayAs for SampleByExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SampleByExec: {}", self.plan)
    }
}

impl ExecutionPlan for SampleByExec {
    fn name(&self) -> &'static str {
        "SampleByExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        // Partials are merged in partition order, so partitions must follow each other in time.
        let distribution = if follows_scan_order(&self.input) || self.plan.bucket.is_none() {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        };
        InputDistributionRequirements::new(vec![distribution])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let timestamp = self.plan.bucket.as_ref().map(|bucket| &bucket.timestamp);
        let ordering = timestamp.map(|column| LexOrdering::from([ascending(column)]));
        vec![ordering.map(OrderingRequirements::from)]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let timestamp = self.plan.bucket.iter().map(|bucket| &bucket.timestamp);
        let arguments = self
            .plan
            .aggregates
            .iter()
            .flat_map(|aggregate| aggregate.arguments.iter().chain(&aggregate.filter));
        visit_expressions(timestamp.chain(&self.plan.keys).chain(arguments), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let work = run(Arc::clone(&self.plan), Arc::clone(&self.input), context);
        let batches = futures::stream::once(work)
            .map_ok(|batch| futures::stream::iter(in_chunks(&batch)))
            .try_flatten()
            .boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
