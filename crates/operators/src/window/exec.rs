//! How windows run: batches pass through with their columns added; where a function looks at
//! later rows, all are read first.

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::function::{Function, Input};
use super::spec::Spec;
use crate::order::{ascending, visit_expressions};
use crate::sample_by::accumulator::RowGroups;
use crate::sample_by::groups::{GroupIndex, KeyPlan};

/// PARTITION BY.
pub(crate) struct PartitionPlan {
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) plan: KeyPlan,
}

/// One function and what it reads.
pub(crate) struct FunctionPlan {
    pub(crate) spec: Spec,
    pub(crate) argument: Option<Arc<dyn PhysicalExpr>>,
    /// Index of its PARTITION BY.
    pub(crate) partition: usize,
}

/// What is asked.
pub(crate) struct WindowPlan {
    pub(crate) timestamp: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) partitions: Vec<PartitionPlan>,
    pub(crate) functions: Vec<FunctionPlan>,
    pub(crate) schema: SchemaRef,
    /// Nanoseconds in the timestamp's unit.
    pub(crate) nanos_per_tick: i64,
}

/// Rows with a column for each window function.
#[derive(Clone)]
pub struct WindowsExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<WindowPlan>,
    properties: Arc<PlanProperties>,
}

impl WindowsExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<WindowPlan>) -> Self {
        let mut equivalence = EquivalenceProperties::new(Arc::clone(&plan.schema));
        // The input's columns come first and in the same order: a sort for a window above may
        // have been moved below.
        let ordering: Option<Vec<PhysicalSortExpr>> =
            input.output_ordering().map(|ordering| ordering.iter().cloned().collect());
        if let Some(ordering) = ordering {
            equivalence.add_ordering(ordering);
        }
        if let Some(timestamp) = &plan.timestamp {
            equivalence.add_ordering([ascending(timestamp)]);
        }
        let partitioning = Partitioning::UnknownPartitioning(1);
        let deferred = plan.functions.iter().any(|function| function.spec.is_deferred());
        let emission = if deferred { EmissionType::Final } else { EmissionType::Incremental };
        let properties =
            PlanProperties::new(equivalence, partitioning, emission, Boundedness::Bounded)
                .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, plan, properties: Arc::new(properties) }
    }

    /// Where the rows come from.
    pub(crate) fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    fn with_input(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(children.swap_remove(0), Arc::clone(&self.plan)))
    }
}

/// The work in progress.
struct Run {
    plan: Arc<WindowPlan>,
    indexes: Vec<Option<GroupIndex>>,
    functions: Vec<Function>,
    batches: usize,
}

/// A batch, the columns known so far, and the partition of each row under each PARTITION BY.
struct Passed {
    batch: RecordBatch,
    columns: Vec<Option<ArrayRef>>,
    partitions: Vec<Vec<u32>>,
}

impl Run {
    fn new(plan: &Arc<WindowPlan>) -> Result<Self> {
        let index = |partition: &PartitionPlan| match partition.keys.as_slice() {
            [] => Ok(None),
            _ => GroupIndex::new(&partition.plan).map(Some),
        };
        let width = plan.schema.fields().len() - plan.functions.len();
        let types = plan.schema.fields().iter().skip(width);
        let functions = plan.functions.iter().zip(types).map(|(function, field)| {
            Function::new(&function.spec, Some(field.data_type()), plan.nanos_per_tick)
        });
        Ok(Self {
            indexes: plan.partitions.iter().map(index).collect::<Result<_>>()?,
            functions: functions.collect(),
            plan: Arc::clone(plan),
            batches: 0,
        })
    }

    fn push(&mut self, batch: RecordBatch) -> Result<Passed> {
        let rows = batch.num_rows();
        let times = match &self.plan.timestamp {
            Some(timestamp) => {
                let times = timestamp.evaluate(&batch)?.into_array(rows)?;
                Some(cast(&times, &DataType::Int64)?)
            }
            None => None,
        };
        let times = times.as_ref().map(|times| times.as_primitive::<Int64Type>().values().as_ref());
        let mut partitions = Vec::with_capacity(self.indexes.len());
        for (partition, index) in self.plan.partitions.iter().zip(&mut self.indexes) {
            let Some(index) = index else {
                partitions.push(vec![]);
                continue;
            };
            let evaluate = partition.keys.iter().map(|key| key.evaluate(&batch)?.into_array(rows));
            let keys = evaluate.collect::<Result<Vec<_>>>()?;
            partitions.push(match index.assign(&[(0..rows, 0)], &keys)?.0 {
                RowGroups::Scattered(groups) => groups,
                RowGroups::Runs(_) => vec![],
            });
        }
        let mut columns = Vec::with_capacity(self.functions.len());
        for (function, plan) in self.functions.iter_mut().zip(&self.plan.functions) {
            let argument = match &plan.argument {
                Some(argument) => Some(argument.evaluate(&batch)?.into_array(rows)?),
                None => None,
            };
            columns.push(function.push(&Input {
                batch: self.batches,
                rows,
                argument: argument.as_ref(),
                partitions: &partitions[plan.partition],
                times,
            })?);
        }
        self.batches += 1;
        Ok(Passed { batch, columns, partitions })
    }

    fn finish(&self, number: usize, passed: Passed) -> Result<RecordBatch> {
        let rows = passed.batch.num_rows();
        let mut columns = passed.batch.columns().to_vec();
        let width = columns.len();
        for (index, column) in passed.columns.into_iter().enumerate() {
            columns.push(if let Some(column) = column {
                column
            } else {
                let partition = self.plan.functions[index].partition;
                let partitions = &passed.partitions[partition];
                let data_type = self.plan.schema.field(width + index).data_type();
                self.functions[index].finish(number, rows, partitions, data_type)?
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?)
    }
}

/// Reads everything, then yields it with its columns.
async fn run_to_the_end(
    mut rows: SendableRecordBatchStream,
    plan: Arc<WindowPlan>,
    context: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    let memory = MemoryConsumer::new("Windows").register(context.memory_pool());
    let mut run = Run::new(&plan)?;
    let mut passed = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        memory.try_grow(batch.get_array_memory_size() + 16 * batch.num_rows())?;
        passed.push(run.push(batch)?);
    }
    let schema = Arc::clone(&plan.schema);
    let batches = futures::stream::iter(passed.into_iter().enumerate());
    let batches = batches.map(move |(number, passed)| {
        // What is held is given back when the last batch has left.
        let _ = &memory;
        run.finish(number, passed)
    });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

impl fmt::Debug for WindowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_as(DisplayFormatType::Default, f)
    }
}

impl DisplayAs for WindowsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let width = self.plan.schema.fields().len() - self.plan.functions.len();
        let names = self.plan.schema.fields().iter().skip(width).map(|field| field.name().as_str());
        write!(f, "WindowsExec: [{}]", names.collect::<Vec<_>>().join(", "))
    }
}

impl ExecutionPlan for WindowsExec {
    fn name(&self) -> &'static str {
        "WindowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order =
            self.plan.timestamp.as_ref().map(|timestamp| {
                OrderingRequirements::from(LexOrdering::from([ascending(timestamp)]))
            });
        vec![order]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let keys = self.plan.partitions.iter().flat_map(|partition| &partition.keys);
        let arguments = self.plan.functions.iter().filter_map(|plan| plan.argument.as_ref());
        visit_expressions(self.plan.timestamp.iter().chain(keys).chain(arguments), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(0, Arc::clone(&context))?;
        let schema = Arc::clone(&self.plan.schema);
        if self.plan.functions.iter().any(|function| function.spec.is_deferred()) {
            let work = run_to_the_end(rows, Arc::clone(&self.plan), context);
            let batches = futures::stream::once(work).try_flatten();
            return Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)));
        }
        let mut run = Run::new(&self.plan)?;
        let batches = rows.map(move |batch| {
            let passed = run.push(batch?)?;
            run.finish(0, passed)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
