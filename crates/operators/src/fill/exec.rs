//! How FILL is planned: the result of SAMPLE BY is small, so it is read whole; the buckets between
//! its rows are made as they are asked for.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::filled::Filled;
use super::node::FillValue;
use crate::bounded::cell_bytes;
use crate::bucket::BucketSpec;
use crate::order::ascending;

/// Bytes of a cell whose length does not vary, about.
const CELL_BYTES: usize = 16;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct FillPlan {
    pub(crate) timestamp: usize,
    pub(crate) keys: Vec<usize>,
    pub(crate) values: Vec<FillValue>,
    pub(crate) spec: BucketSpec,
    pub(crate) range: Option<(i64, i64)>,
}

/// Adds the buckets that SAMPLE BY found no rows for.
#[derive(Debug, Clone)]
pub struct FillExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<FillPlan>,
    properties: Arc<PlanProperties>,
}

impl FillExec {
    pub(crate) fn new(
        input: Arc<dyn ExecutionPlan>,
        plan: Arc<FillPlan>,
        schema: &SchemaRef,
    ) -> Self {
        let mut equivalence = EquivalenceProperties::new(Arc::clone(schema));
        equivalence.add_ordering([ascending(&label_of(&plan, schema))]);
        let partitioning = Partitioning::UnknownPartitioning(1);
        let (emission, bounded) = (EmissionType::Final, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, plan, properties: Arc::new(properties) }
    }

    fn with_input(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(children.swap_remove(0), Arc::clone(&self.plan), &self.schema()))
    }
}

/// The column of the buckets.
pub(super) fn label_of(plan: &FillPlan, schema: &SchemaRef) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(plan.timestamp).name(), plan.timestamp))
}

/// Reads the buckets with rows: which keys there are is known only behind the last.
async fn read(
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<FillPlan>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
) -> Result<Filled> {
    let memory = MemoryConsumer::new("Fill").register(context.memory_pool());
    let input_schema = input.schema();
    let mut rows = input.execute(0, context)?;
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        let cells = CELL_BYTES * batch.num_rows() * batch.num_columns();
        // As it is read, and as a part of the whole.
        memory.try_grow(2 * (cells + cell_bytes(&batch)))?;
        batches.push(batch);
    }
    let batch = concat_batches(&input_schema, &batches)?;
    drop(batches);
    Filled::new(batch, plan, schema, memory)
}

impl DisplayAs for FillExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let FillPlan { spec, keys, values, .. } = self.plan.as_ref();
        write!(f, "FillExec: {spec} keys={keys:?} values={values:?}")
    }
}

impl ExecutionPlan for FillExec {
    fn name(&self) -> &'static str {
        "FillExec"
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
        let label = label_of(&self.plan, &self.input.schema());
        vec![Some(OrderingRequirements::from(LexOrdering::from([ascending(&label)])))]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let (input, plan) = (Arc::clone(&self.input), Arc::clone(&self.plan));
        let work = read(input, plan, self.schema(), context);
        let batches = futures::stream::once(work).map_ok(futures::stream::iter).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
