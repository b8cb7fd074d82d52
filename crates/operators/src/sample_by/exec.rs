//! Executes SAMPLE BY and GROUP BY, with one partial result per partition, merged in time order.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::cast;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::group_cache::GroupCache;
use super::groups::KeyPlan;
use super::node::SampleByNode;
use super::partial::{Partial, timestamps};
use super::plan::{AggregatePlan, BucketPlan, SampleByPlan};
use super::slots::{Digit, slots_of};
use crate::bucket::Alignment;
use crate::error::join_error;
use crate::lowering::{Lowering, key_plan, schema_of, symbols_of, unbucketed};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, ROWS_PER_GROUP, Run, Work,
};
use crate::order::{TimeConcat, follows_scan_order, in_time_order};
use crate::plan_node::scan_of;
use crate::properties::{ascending, ascending_inputs, properties};
use crate::scan::kind::Scan;
use crate::symbols::{nullable_origin, origin};

/// Aggregates one partition of the input.
async fn aggregate(
    plan: Arc<SampleByPlan>,
    mut rows: SendableRecordBatchStream,
    memory: MemoryReservation,
) -> Result<Partial> {
    let mut partial = Partial::new(&plan)?;
    while !partial.is_complete()
        && let Some(batch) = rows.try_next().await?
    {
        partial.update(&batch)?;
        memory.try_resize(partial.size())?;
    }
    Ok(partial)
}

/// Aggregates one partition, with separate results for the rows before `mark` and for all other
/// rows.
async fn aggregate_parted(
    plan: Arc<SampleByPlan>,
    mut rows: SendableRecordBatchStream,
    (memory, mark): (MemoryReservation, i64),
) -> Result<(Partial, Partial)> {
    let (mut before, mut after) = (Partial::new(&plan)?, Partial::new(&plan)?);
    let Some(bucket) = &plan.bucket else { return internal_err!("a watermark requires a bucket") };
    while let Some(batch) = rows.try_next().await? {
        let times = timestamps(&bucket.timestamp, &batch)?;
        let position = times.partition_point(|time| *time < mark);
        before.update(&batch.slice(0, position))?;
        after.update(&batch.slice(position, batch.num_rows() - position))?;
        memory.try_resize(before.size() + after.size())?;
    }
    Ok((before, after))
}

/// Resumes aggregation from the cached groups and stores the groups of rows before the mark.
async fn aggregate_on(
    run: Run,
    plan: Arc<SampleByPlan>,
    cache: &GroupCache,
) -> Result<RecordBatch> {
    let memory = run.memory();
    let mark = cache.mark();
    let groups = cache.take();
    let mut combined = groups.map(|groups| Partial::resumed(&plan, groups)).transpose()?;
    let partitions = run.inputs[0].output_partitioning().partition_count();
    let tasks = (0..partitions).map(|partition| {
        let rows = run.rows(0, partition)?;
        let partial = aggregate_parted(Arc::clone(&plan), rows, (memory.new_empty(), mark));
        Ok(SpawnedTask::spawn(partial))
    });
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let mut later = Vec::with_capacity(tasks.len());
    for task in tasks {
        let (before, after) = task.join().await.map_err(join_error)??;
        add(&mut combined, before)?;
        later.push(after);
        memory.try_resize(combined.as_ref().map_or(0, Partial::size))?;
    }
    if let Some(combined) = &combined {
        combined.store_open_groups(cache);
    }
    for after in later {
        add(&mut combined, after)?;
        memory.try_resize(combined.as_ref().map_or(0, Partial::size))?;
    }
    combined.map_or_else(|| Partial::new(&plan)?.finish(), Partial::finish)
}

/// Merges a later partial result into the earlier ones.
fn add(combined: &mut Option<Partial>, later: Partial) -> Result<()> {
    match combined {
        None => *combined = Some(later),
        Some(combined) => combined.absorb(later)?,
    }
    Ok(())
}

async fn aggregate_all(run: Run, plan: Arc<SampleByPlan>) -> Result<RecordBatch> {
    if let Some(cache) = plan.cache.clone() {
        return aggregate_on(run, plan, &cache).await;
    }
    let memory = run.memory();
    let share = |partition: usize| {
        let rows = run.rows(0, partition)?;
        Ok::<_, DataFusionError>(aggregate(Arc::clone(&plan), rows, memory.new_empty()))
    };
    let partitions = run.inputs[0].output_partitioning().partition_count();
    if partitions == 1 {
        return share(0)?.await?.finish();
    }
    let tasks = (0..partitions).map(|partition| Ok(SpawnedTask::spawn(share(partition)?)));
    let tasks = tasks.collect::<Result<Vec<_>>>()?;
    let mut combined: Option<Partial> = None;
    for task in tasks {
        let partial = task.join().await.map_err(join_error)??;
        add(&mut combined, partial)?;
        memory.try_resize(combined.as_ref().map_or(0, Partial::size))?;
    }
    combined.map_or_else(|| Partial::new(&plan)?.finish(), Partial::finish)
}

impl fmt::Display for SampleByPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(bucket) = &self.bucket {
            write!(f, "{} by {} ", bucket.timestamp, bucket.spec)?;
        }
        let how = match &self.key_plan {
            KeyPlan::None => "none",
            KeyPlan::Slots(_) => "slots",
            KeyPlan::Number(_) | KeyPlan::Values(_) | KeyPlan::Hashed(_) => "hashed",
        };
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        let names: Vec<&str> =
            self.aggregates.iter().map(|aggregate| aggregate.function.name()).collect();
        write!(f, "keys=[{}] ({how}) aggregates=[{}]", keys.join(", "), names.join(", "))
    }
}

impl Operator for SampleByPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SampleByExec",
            memory: Some("SampleBy"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: true,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        let order = self.bucket.as_ref().map(|_| {
            let label: Arc<dyn PhysicalExpr> = Arc::new(Column::new(schema.field(0).name(), 0));
            vec![ascending(&label)]
        });
        properties(schema, order, 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let timestamp = self.bucket.iter().map(|bucket| &bucket.timestamp);
        let arguments = self
            .aggregates
            .iter()
            .flat_map(|aggregate| aggregate.arguments.iter().chain(&aggregate.filter));
        timestamp.chain(&self.keys).chain(arguments).collect()
    }

    /// Partial results are merged in partition order, so partitions must be consecutive in time.
    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        vec![if self.bucket.is_none() || follows_scan_order(&inputs[0]) {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        }]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        match &self.bucket {
            Some(bucket) => ascending_inputs([&bucket.timestamp]),
            None => vec![None],
        }
    }

    /// Symbol keys use the input's dictionary.
    fn lineage(&self, column: usize, _: &[Input]) -> Option<Lineage> {
        let KeyPlan::Slots(digits) = &self.key_plan else { return None };
        let position = column.checked_sub(usize::from(self.bucket.is_some()))?;
        let (key, Digit::Symbol(_)) = self.keys.get(position).zip(digits.get(position))? else {
            return None;
        };
        let column = key.downcast_ref::<Column>()?.index();
        Some(Lineage { input: 0, column, unmatched: false })
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        if self.is_global() {
            return Some(1);
        }
        let rows = rows.first().copied().flatten()?;
        Some(match &self.key_plan {
            KeyPlan::Slots(digits) if self.bucket.is_none() => {
                slots_of(digits).map_or(rows, |slots| rows.min(slots))
            }
            _ => rows / ROWS_PER_GROUP,
        })
    }

    fn over(self: Arc<Self>, inputs: &[Input]) -> Result<Arc<dyn Operator>> {
        self.planned(&inputs[0]).map(|plan| Arc::new(plan) as Arc<dyn Operator>)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::batches(Arc::clone(&run.schema), aggregate_all(run, self)))
    }
}

/// Plans SAMPLE BY. `schema` has the column names used by the expressions.
pub fn plan_sample_by(
    node: &SampleByNode,
    schema: &DFSchema,
    mut input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut bucket_plan = None;
    if let Some(bucket) = node.bucket() {
        let timestamp = lowering.expr(&bucket.timestamp, schema)?;
        input = in_time_order(input, &timestamp)?;
        let first_row_decides = bucket.spec.alignment == Alignment::FirstObservation;
        if first_row_decides && input.output_partitioning().partition_count() > 1 {
            // Concatenates the partitions. The buckets depend on the first row, which separate
            // workers would not know.
            input = TimeConcat::plan(input);
        }
        bucket_plan = Some(BucketPlan { timestamp, spec: bucket.spec });
    }
    let keys: Vec<_> =
        node.keys().iter().map(|key| lowering.expr(key, schema)).collect::<Result<_>>()?;
    let aggregates = node
        .aggregates()
        .iter()
        .map(|aggregate| lowering.aggregate(aggregate, schema, &input))
        .collect::<Result<Vec<_>>>()?;
    let plan = SampleByPlan {
        bucket: bucket_plan,
        keys,
        key_plan: KeyPlan::None,
        aggregates,
        max_groups: None,
        input_schema: input.schema(),
        output_schema: schema_of(node),
        cache: node.cache().cloned(),
    };
    let plan = plan.planned(&input)?;
    if let Some(known) = from_statistics(&plan, &input)? {
        return Ok(known);
    }
    let schema = Arc::clone(&plan.output_schema);
    Ok(OperatorExec::plan(plan, vec![input], &schema))
}

impl SampleByPlan {
    /// Returns the plan, updated for its input's symbols.
    pub(super) fn planned(&self, input: &Input) -> Result<Self> {
        let mut plan = self.clone();
        let key_plan = key_plan(input, &plan.keys)?;
        plan.key_plan = if plan.bucket.is_none() { unbucketed(key_plan) } else { key_plan };
        let exists = plan.bucket.is_none() && plan.aggregates.is_empty();
        plan.max_groups = if exists { possible_keys(input, &plan.keys) } else { None };
        for aggregate in &mut plan.aggregates {
            aggregate.symbols = symbols_of(input, aggregate);
        }
        Ok(plan)
    }
}

/// Returns the number of possible keys, if every key is a table symbol.
pub(super) fn possible_keys(
    input: &Arc<dyn ExecutionPlan>,
    keys: &[Arc<dyn PhysicalExpr>],
) -> Option<usize> {
    keys.iter().try_fold(1_usize, |all, key| {
        let ((scan, output), nullable) = nullable_origin(input, key)?;
        all.checked_mul(scan.symbols(output)?.len() + usize::from(nullable))
    })
}

/// Computes `count()`, and `min` and `max` of the designated timestamp, for a whole scan without
/// reading any rows.
fn from_statistics(
    plan: &SampleByPlan,
    input: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let scan = scan_of(input).and_then(Scan::unfiltered).filter(|_| plan.is_global());
    let Some(scan) = scan else { return Ok(None) };
    let value = |aggregate: &AggregatePlan| -> Option<ArrayRef> {
        if aggregate.filter.is_some() || aggregate.function.is_distinct() {
            return None;
        }
        let name = aggregate.function.fun().name();
        let Some(argument) = aggregate.arguments.first() else {
            let rows = Int64Array::from(vec![scan.row_count() as i64]);
            return (name == "count").then(|| Arc::new(rows) as ArrayRef);
        };
        let (_, output) = origin(input, argument)?;
        let (min, max) = scan.time_bounds(output)?;
        let bound = match name {
            "min" => min,
            "max" => max,
            _ => return None,
        };
        let bound = Int64Array::from(vec![bound]);
        let expected = aggregate.function.field().data_type().clone();
        cast(&bound, &expected).ok()
    };
    let columns: Option<Vec<ArrayRef>> = plan.aggregates.iter().map(value).collect();
    let Some(columns) = columns.filter(|columns| !columns.is_empty()) else { return Ok(None) };
    let schema = Arc::clone(&plan.output_schema);
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)?;
    Ok(Some(MemorySourceConfig::try_new_from_batches(schema, vec![batch])?))
}
