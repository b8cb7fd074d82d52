//! How FILL runs: the result of SAMPLE BY is small, so it is read whole and laid out as a grid.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::arrow::compute::{concat_batches, take};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
};
use datafusion::physical_plan::aggregates::group_values::new_group_values;
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};
use tidemark_types::account;

use super::node::FillValue;
use super::values::Cells;
use crate::bucket::BucketSpec;
use crate::error::engine_error;
use crate::grid::Grid;
use crate::measured::measured;
use crate::order::ascending;
use crate::sample_by::exec::in_chunks;
use crate::sample_by::partial::{label_column, timestamps};

/// Cells of a filled result: rows are numbered in 32 bits.
const MAX_CELLS: usize = u32::MAX as usize - 1;

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
    metrics: ExecutionPlanMetricsSet,
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
        let metrics = ExecutionPlanMetricsSet::new();
        Self { input, plan, properties: Arc::new(properties), metrics }
    }

    fn with_input(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(children.swap_remove(0), Arc::clone(&self.plan), &self.schema()))
    }
}

fn label_of(plan: &FillPlan, schema: &SchemaRef) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(schema.field(plan.timestamp).name(), plan.timestamp))
}

async fn fill(
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<FillPlan>,
    schema: SchemaRef,
    context: Arc<TaskContext>,
) -> Result<RecordBatch> {
    let mut memory = MemoryConsumer::new("Fill").register(context.memory_pool());
    let input_schema = input.schema();
    let mut rows = input.execute(0, context)?;
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        memory.try_grow(2 * batch.get_array_memory_size())?;
        batches.push(batch);
    }
    let batch = concat_batches(&input_schema, &batches)?;
    drop(batches);
    lay_out(&batch, &plan, schema, &mut memory)
}

/// The filled batch.
fn lay_out(
    batch: &RecordBatch,
    plan: &FillPlan,
    schema: SchemaRef,
    memory: &mut MemoryReservation,
) -> Result<RecordBatch> {
    if batch.num_rows() == 0 && (plan.spec.from.is_none() || plan.spec.to.is_none()) {
        return Ok(RecordBatch::new_empty(schema));
    }
    let times = timestamps(&label_of(plan, &batch.schema()), batch)?;
    let (key_of_row, first_rows) = keys_of(batch, &plan.keys)?;
    let keys = first_rows.len();
    let labels = labels(&times, plan, keys, memory)?;
    let width = batch.get_array_memory_size() / batch.num_rows().max(1) + 16;
    let bytes = labels.len().saturating_mul(keys).saturating_mul(width);
    memory.try_grow(bytes)?;
    account::room(bytes).map_err(engine_error)?;
    let mut rows = vec![u32::MAX; labels.len() * keys];
    let mut bucket = 0;
    for (row, (&ts, &key)) in times.iter().zip(&key_of_row).enumerate() {
        bucket += labels[bucket..].partition_point(|&label| label < ts);
        if labels.get(bucket) == Some(&ts) {
            rows[bucket * keys + key] = row as u32;
        }
    }
    let cells = Cells { labels, keys, rows };
    let mut values = plan.values.iter();
    let columns = (0..batch.num_columns()).map(|index| -> Result<ArrayRef> {
        account::check().map_err(engine_error)?;
        let column = batch.column(index);
        if index == plan.timestamp {
            let repeated = cells.labels.iter().flat_map(|&label| std::iter::repeat_n(label, keys));
            return Ok(label_column(&repeated.collect::<Vec<_>>(), &plan.spec));
        }
        if plan.keys.contains(&index) {
            let rows = std::iter::repeat_n(&first_rows, cells.labels.len()).flatten().copied();
            return Ok(take(column, &UInt32Array::from_iter_values(rows), None)?);
        }
        match values.next().unwrap_or(&FillValue::Null) {
            FillValue::PrevOf(of) => cells.fill_from(column, batch.column(*of)),
            value => cells.fill(column, value),
        }
    });
    Ok(RecordBatch::try_new(schema, columns.collect::<Result<Vec<_>>>()?)?)
}

/// The key of each row, numbered, and the first row of each key.
fn keys_of(batch: &RecordBatch, keys: &[usize]) -> Result<(Vec<usize>, Vec<u32>)> {
    if keys.is_empty() {
        return Ok((vec![0; batch.num_rows()], vec![0]));
    }
    let columns: Vec<ArrayRef> = keys.iter().map(|&key| Arc::clone(batch.column(key))).collect();
    let fields = columns.iter().enumerate().map(|(index, column)| {
        Field::new(format!("key_{index}"), column.data_type().clone(), true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut groups = new_group_values(schema, &GroupOrdering::None)?;
    let mut ids = vec![];
    groups.intern(&columns, &mut ids)?;
    let mut first_rows = vec![u32::MAX; groups.len()];
    for (row, &id) in ids.iter().enumerate().rev() {
        first_rows[id] = row as u32;
    }
    Ok((ids, first_rows))
}

/// Labels between two looks whether the query may go on.
const LOOK_LABELS: usize = 64 * 1024;

/// All bucket timestamps from the first to the last, widened to the range asked for; without
/// rows, those of a range with two ends.
fn labels(
    times: &[i64],
    plan: &FillPlan,
    keys: usize,
    memory: &mut MemoryReservation,
) -> Result<Vec<i64>> {
    let rows = times.first().copied().zip(times.last().copied());
    let mut grid = Grid::new(&plan.spec, rows.map_or(0, |(first, _)| first));
    let (start, end) = match (plan.range, rows) {
        (Some((from, to)), Some((first, last))) => {
            (grid.run(from).label.min(first), to.saturating_sub(1).max(last))
        }
        (Some((from, to)), None) if from < to => (grid.run(from).label, to.saturating_sub(1)),
        (None, Some(rows)) => rows,
        _ => return Ok(vec![]),
    };
    let mut labels = vec![];
    let mut label = start;
    while label <= end && keys > 0 {
        if labels.len() % LOOK_LABELS == 0 {
            // It doubles as it grows.
            account::room(2 * size_of_val(labels.as_slice())).map_err(engine_error)?;
        }
        if labels.len() == labels.capacity() {
            memory.try_grow(size_of::<i64>() * labels.len().max(1))?;
        }
        labels.push(label);
        if labels.len().saturating_mul(keys) > MAX_CELLS {
            return Err(resources_datafusion_err!("FILL would add more than {MAX_CELLS} rows"));
        }
        let next = grid.following(label);
        if next <= label {
            break;
        }
        label = next;
    }
    Ok(labels)
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let measure = Arc::clone(&context);
        let (input, plan) = (Arc::clone(&self.input), Arc::clone(&self.plan));
        let work = fill(input, plan, self.schema(), context);
        let batches = futures::stream::once(work)
            .map_ok(|batch| futures::stream::iter(in_chunks(&batch)))
            .try_flatten()
            .boxed();
        let rows = Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches));
        Ok(measured(rows, &self.metrics, partition, &measure))
    }
}
