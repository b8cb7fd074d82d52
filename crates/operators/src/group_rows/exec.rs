//! Executes GROUP BY with many groups. Rows are partitioned by key hash, and each partition is
//! grouped separately. If the rows do not fit in memory, `DataFusion`'s two aggregation steps,
//! which can spill, are used instead.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SendableRecordBatchStream};
use futures::{StreamExt, TryStreamExt};

use super::sample::has_many_keys;
use super::spread::{PARTITIONS, Starts, in_full_batches, spread};
use crate::hash_partition::joined;
use crate::lowering::{counted_rows, hashed_keys, unbucketed};
use crate::materialize::{Materialized, Read, RemainingInput, pause};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, ROWS_PER_GROUP, Run, Work,
};
use crate::plan_node::{Grouping, grouped_over, grouping};
use crate::properties::properties;
use crate::sample_by::fallback::is_kernel;
use crate::sample_by::partial::Partial;
use crate::sample_by::plan::{AggregatePlan, SampleByPlan};
use crate::scan::rows::BATCH_ROWS;
use crate::sort::exec::is_copied_by_rows;

/// Approximate number of rows grouped per step in a partition.
const ROWS_AT_ONCE: usize = 8 * 1024;
/// Bytes per group, excluding its states: key, table entry, row count and output.
const GROUP_BYTES: usize = 64;
/// Approximate size of a state in bytes: its value, its count of non-null values, and spare
/// capacity.
const STATE_BYTES: usize = 48;

/// Groups rows in hash partitions.
pub struct GroupRows {
    /// `DataFusion` operators that produce the same result and can spill.
    aggregate: Input,
    plan: Arc<SampleByPlan>,
    workers: usize,
}

impl GroupRows {
    /// Returns the replacement for the two steps of GROUP BY if there are many keys.
    pub fn try_replace(plan: &Input, workers: usize) -> Result<Option<Input>> {
        match grouping(plan) {
            Some(rows) if has_many_keys(rows.input, &rows.keys) => Self::any(plan, workers),
            _ => Ok(None),
        }
    }

    /// Returns the replacement for the two steps of GROUP BY, regardless of the number of keys.
    pub fn any(plan: &Input, workers: usize) -> Result<Option<Input>> {
        let Some(Grouping { keys, functions, filters, input }) = grouping(plan) else {
            return Ok(None);
        };
        let (schema, workers) = (input.schema(), workers.max(1));
        let aggregates = functions.iter().zip(filters);
        let aggregates =
            aggregates.map(|(function, filter)| aggregate(function, filter.as_ref(), &schema));
        let Some(aggregates) = aggregates.collect::<Result<Option<Vec<_>>>>()? else {
            return Ok(None);
        };
        // Rows without columns all have the same key, so they cannot be partitioned.
        if schema.fields().is_empty() || !is_copied_by_rows(&schema) {
            return Ok(None);
        }
        let grouped = SampleByPlan {
            bucket: None,
            key_plan: unbucketed(hashed_keys(input, &keys)?),
            keys,
            aggregates,
            max_groups: None,
            input_schema: schema,
            output_schema: plan.schema(),
            cache: None,
        };
        let operator = Self { aggregate: Arc::clone(plan), plan: Arc::new(grouped), workers };
        Ok(Some(OperatorExec::plan(operator, vec![Arc::clone(input)], &plan.schema())))
    }

    async fn grouped(&self, run: &Run) -> Result<Grouped> {
        let rows = |partition| Ok(in_full_batches(run.rows(0, partition)?));
        let plan = Arc::clone(&self.plan);
        let by_keys = move |batch: RecordBatch| spread(&plan.keys, &batch);
        let materialized = match Materialized::read(run, rows, 0, by_keys).await? {
            Read::All(materialized) => materialized,
            Read::Partial(materialized, rest) => return self.spilling(materialized, rest, run),
        };
        // In the worst case, every row in a partition has a distinct key that is as long as the
        // row.
        let sizes = (0..PARTITIONS)
            .map(|part| materialized.partitions().flatten().map(move |b| b.keys.of(part).len()));
        let max = sizes.map(Iterator::sum::<usize>).max().unwrap_or(0);
        let rows: usize =
            materialized.partitions().flatten().map(|batch| batch.rows.num_rows()).sum();
        let row_bytes = materialized.bytes() / rows.max(1);
        let states = STATE_BYTES * self.plan.aggregates.len();
        if !materialized.grow(self.workers * max * (GROUP_BYTES + states + 2 * row_bytes)) {
            return self.spilling(materialized, vec![], run);
        }
        Ok(Grouped::InMemory(Arc::new(materialized)))
    }

    /// Groups the rows using operators that can spill.
    fn spilling(
        &self,
        materialized: Materialized<Starts>,
        rest: RemainingInput,
        run: &Run,
    ) -> Result<Grouped> {
        let again = materialized.again(rest, &run.inputs[0].schema());
        grouped_over(&self.aggregate, again, self.workers).map(Grouped::Spilled)
    }
}

/// Returns an aggregate with a fixed-size state.
fn aggregate(
    function: &Arc<AggregateFunctionExpr>,
    filter: Option<&Arc<dyn PhysicalExpr>>,
    schema: &SchemaRef,
) -> Result<Option<AggregatePlan>> {
    let arguments = counted_rows(function);
    let argument = arguments.first().map(|argument| argument.data_type(schema)).transpose()?;
    let is_ours = filter.is_none() && is_kernel(function, argument.as_ref());
    let plan =
        || AggregatePlan { function: Arc::clone(function), arguments, filter: None, symbols: None };
    Ok(is_ours.then(plan))
}

/// Rows partitioned by key hash.
enum Grouped {
    InMemory(Arc<Materialized<Starts>>),
    Spilled(Arc<dyn ExecutionPlan>),
}

/// Groups the rows of a partition.
async fn groups(
    materialized: Arc<Materialized<Starts>>,
    plan: Arc<SampleByPlan>,
    partition: usize,
) -> Result<RecordBatch> {
    let mut partial = Partial::new(&plan)?;
    let (mut slices, mut count) = (vec![], 0);
    for batch in materialized.partitions().flatten() {
        let rows = batch.keys.of(partition);
        if rows.is_empty() {
            continue;
        }
        count += rows.len();
        slices.push(batch.rows.slice(rows.start, rows.len()));
        if count >= ROWS_AT_ONCE {
            pause().await?;
            partial.update(&joined(&plan.input_schema, std::mem::take(&mut slices))?)?;
            count = 0;
        }
    }
    if count > 0 {
        partial.update(&joined(&plan.input_schema, slices)?)?;
    }
    pause().await?;
    partial.finish()
}

impl fmt::Display for GroupRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plan.fmt(f)
    }
}

impl Operator for GroupRows {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "GroupRowsExec",
            memory: Some("GroupRows"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        properties(schema, [], self.workers, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let arguments = self.plan.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
        self.plan.keys.iter().chain(arguments).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    /// Spilled rows have keys from different dictionaries.
    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        Some(rows.first().copied().flatten()? / ROWS_PER_GROUP)
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::stream(Arc::clone(&run.schema), async move {
            let materialized = match run.shared(self.grouped(&run)).await?.as_ref() {
                Grouped::InMemory(materialized) => Arc::clone(materialized),
                Grouped::Spilled(plan) => {
                    return Ok(plan.execute(run.partition, run.context)?.left_stream());
                }
            };
            let plan = Arc::clone(&self.plan);
            let partitions = (run.partition..PARTITIONS).step_by(self.workers);
            let batches = futures::stream::iter(partitions)
                .then(move |partition| {
                    groups(Arc::clone(&materialized), Arc::clone(&plan), partition)
                })
                .map_ok(|batch| {
                    let starts = (0..batch.num_rows()).step_by(BATCH_ROWS);
                    let slice =
                        move |start| batch.slice(start, BATCH_ROWS.min(batch.num_rows() - start));
                    futures::stream::iter(starts.map(slice).map(Ok).collect::<Vec<_>>())
                })
                .try_flatten();
            Ok(batches.right_stream())
        }))
    }
}
