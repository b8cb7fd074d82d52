//! The interface of this crate's operators, and the plan node that runs them. Only the node has
//! inputs and properties, accounts for memory and rows, limits batches, and checks for
//! cancellation.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::physical_expr::{
    Distribution, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{Stream, StreamExt, TryFutureExt, TryStreamExt};
use tokio::sync::OnceCell;

use crate::bounded::stream::in_bounds;
use crate::error::check_stop;
use crate::measured::measured;
use crate::scan::kind::Scan;
use crate::scan::rows::BATCH_ROWS;

/// An input plan of an operator.
pub(crate) type Input = Arc<dyn ExecutionPlan>;

/// The source of an output column that is passed through unchanged.
pub struct Lineage {
    pub input: usize,
    pub column: usize,
    /// Whether the column is null in rows that have no match in its input.
    pub unmatched: bool,
}

/// Properties of an operator.
pub struct Facts<'a> {
    /// The operator's name in EXPLAIN.
    pub name: &'static str,
    /// The name under which the operator's memory is accounted; `None` if the operator keeps at
    /// most one batch.
    pub memory: Option<&'static str>,
    /// The properties of the first input's order that the operator preserves.
    pub preserves: PreservedOrder,
    /// Number of rows that the operator processes.
    pub work: Work,
    /// Whether the planner would choose the same plan for any contents of the table.
    pub suits_any_rows: bool,
    /// The table scan, if the operator is a scan.
    pub scan: Option<&'a Scan>,
}

/// Properties of the first input's order that an operator preserves.
#[derive(Debug, Clone, Copy)]
pub struct PreservedOrder {
    /// Whether the order of rows within a partition is preserved.
    pub rows: bool,
    /// Whether the partitions are in the order of the scan below.
    pub partitions: bool,
    /// Whether running the input backward produces the same rows in reverse order.
    pub direction: bool,
    /// Whether every row of the first input is kept.
    pub every_row: bool,
}

impl PreservedOrder {
    /// The output is in a different order, or unordered.
    pub const NOTHING: Self =
        Self { rows: false, partitions: false, direction: false, every_row: false };
}

/// Operators that can spill leave 1/n of the query's memory free.
const FREE_MEMORY_DIVISOR: usize = 4;

/// Number of rows per group, assumed when there are no statistics.
pub(crate) const ROWS_PER_GROUP: usize = 8;

/// Number of rows that an operator processes.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// The rows its scan reads.
    Scanned,
    /// The product of its inputs' row counts.
    Inputs,
    /// The input rows, read from the end until the result is complete.
    FromEnd,
    /// At most this many rows of its input.
    AtMost(usize),
    /// Unknown, because it depends on the values of the cells.
    Cells,
}

/// An operator; `Display` describes it in EXPLAIN. Neither [`Facts`] nor any method has a default,
/// so an operator does not compile unless it declares its memory, order and limits.
pub trait Operator: Any + fmt::Display + Send + Sync {
    /// Returns the operator's properties.
    fn facts(&self, inputs: &[Input]) -> Facts<'_>;

    /// Returns the order, partitioning and emission of the output.
    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties>;

    /// Returns the expressions that the operator evaluates on its inputs.
    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>>;

    /// Returns the partitioning required of each input.
    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution>;

    /// Returns the order required of each input.
    fn input_order(&self, inputs: &[Input]) -> Vec<Option<OrderingRequirements>>;

    /// Returns the source of an output column.
    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage>;

    /// Estimates the number of output rows from the inputs' row counts. Joins build the side with
    /// fewer rows.
    fn rows(&self, inputs: &[Input], rows: &[Option<usize>]) -> Option<usize>;

    /// Returns the operator, planned again for inputs that optimizer rules have replaced.
    fn over(self: Arc<Self>, inputs: &[Input]) -> Result<Arc<dyn Operator>>;

    /// Executes one partition of the output.
    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream>;
}

/// The execution of a single partition of an operator.
pub struct Run {
    pub inputs: Vec<Input>,
    pub schema: SchemaRef,
    pub partition: usize,
    pub context: Arc<TaskContext>,
    memory: &'static str,
    shared: Shared,
}

/// State shared by all partitions in one execution.
type Shared = Arc<OnceCell<Arc<dyn Any + Send + Sync>>>;

impl Run {
    /// Returns the rows in a partition of an input.
    pub fn rows(&self, input: usize, partition: usize) -> Result<SendableRecordBatchStream> {
        self.inputs[input].execute(partition, Arc::clone(&self.context))
    }

    /// Creates a reservation under the operator's name.
    pub fn memory(&self) -> MemoryReservation {
        MemoryConsumer::new(self.memory).register(self.context.memory_pool())
    }

    /// Reserves memory if at least 1/[`FREE_MEMORY_DIVISOR`] of the query's memory remains free.
    /// Returns whether the reservation succeeded.
    pub fn try_reserve(&self, memory: &MemoryReservation, bytes: usize) -> bool {
        let reserved = self.context.memory_pool().reserved();
        reserved.saturating_add(bytes) <= self.memory_limit() && memory.try_grow(bytes).is_ok()
    }

    /// Maximum total memory for all operators that can spill.
    pub fn memory_limit(&self) -> usize {
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => limit - limit / FREE_MEMORY_DIVISOR,
            _ => usize::MAX,
        }
    }

    /// Creates a reservation for rows that can be passed to a spilling operator.
    pub fn spilling_memory(&self) -> MemoryReservation {
        let consumer = MemoryConsumer::new(self.memory).with_can_spill(true);
        consumer.register(self.context.memory_pool())
    }

    /// Returns the state shared by all partitions in one execution. The first caller creates it.
    pub async fn shared<T: Send + Sync + 'static>(
        &self,
        make: impl Future<Output = Result<T>>,
    ) -> Result<Arc<T>> {
        let make = || async move { Ok(Arc::new(make.await?) as Arc<dyn Any + Send + Sync>) };
        let shared: Result<_> = self.shared.get_or_try_init(make).await;
        let shared = Arc::clone(shared?).downcast::<T>();
        shared.map_err(|_| {
            internal_datafusion_err!("an operator's shared state has an unexpected type")
        })
    }

    /// Returns the rows of a stream created asynchronously.
    pub fn stream<S>(
        schema: SchemaRef,
        future: impl Future<Output = Result<S>> + Send + 'static,
    ) -> SendableRecordBatchStream
    where
        S: Stream<Item = Result<RecordBatch>> + Send + 'static,
    {
        let rows = futures::stream::once(future).try_flatten().boxed();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// Splits one batch into batches of the usual size.
    pub fn batches(
        schema: SchemaRef,
        future: impl Future<Output = Result<RecordBatch>> + Send + 'static,
    ) -> SendableRecordBatchStream {
        let batches = future.map_ok(|batch| {
            let rows = batch.num_rows();
            futures::stream::iter(
                (0..rows)
                    .step_by(BATCH_ROWS)
                    .map(move |start| Ok(batch.slice(start, BATCH_ROWS.min(rows - start)))),
            )
        });
        Self::stream(schema, batches)
    }
}

/// A plan node that runs an operator of this crate.
pub struct OperatorExec {
    operator: Arc<dyn Operator>,
    inputs: Vec<Input>,
    properties: Arc<PlanProperties>,
    shared: Shared,
    metrics: ExecutionPlanMetricsSet,
}

impl OperatorExec {
    /// Creates a plan node for the operator with these inputs and this output schema.
    pub fn plan(operator: impl Operator, inputs: Vec<Input>, schema: &SchemaRef) -> Input {
        let properties = operator.properties(schema, &inputs);
        Arc::new(Self::new(Arc::new(operator), inputs, properties))
    }

    fn new(
        operator: Arc<dyn Operator>,
        inputs: Vec<Input>,
        properties: Arc<PlanProperties>,
    ) -> Self {
        let (shared, metrics) = (Shared::default(), ExecutionPlanMetricsSet::new());
        Self { operator, inputs, properties, shared, metrics }
    }

    /// Returns the operator's properties.
    pub fn facts(&self) -> Facts<'_> {
        self.operator.facts(&self.inputs)
    }

    /// Returns the operator and its inputs, if the operator has this type.
    pub(crate) fn downcast<O: Operator>(&self) -> Option<(&O, &[Input])> {
        let operator: &dyn Any = self.operator.as_ref();
        Some((operator.downcast_ref()?, &self.inputs))
    }

    /// Returns a column's source: the input, the column's index there, and whether it may be
    /// unmatched.
    pub fn lineage(&self, column: usize) -> Option<(&Input, usize, bool)> {
        let Lineage { input, column, unmatched } = self.operator.lineage(column, &self.inputs)?;
        Some((self.inputs.get(input)?, column, unmatched))
    }
}

/// Returns the source of an output column that belongs to the first input. These columns come first
/// in the output.
pub(crate) fn of_first(column: usize, inputs: &[Input]) -> Option<Lineage> {
    let width = inputs.first()?.schema().fields().len();
    (column < width).then_some(Lineage { input: 0, column, unmatched: false })
}

/// Returns the order of the first input. Its columns come first in the output.
pub(crate) fn order_of_first(inputs: &[Input]) -> Option<Vec<PhysicalSortExpr>> {
    let ordering = inputs.first()?.properties().output_ordering()?;
    Some(ordering.iter().cloned().collect())
}

impl fmt::Debug for OperatorExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", self.facts().name, self.inputs)
    }
}

impl DisplayAs for OperatorExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let shown = self.operator.to_string();
        let colon = if shown.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{shown}", self.facts().name)
    }
}

impl ExecutionPlan for OperatorExec {
    fn name(&self) -> &'static str {
        self.facts().name
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Input> {
        self.inputs.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        let first = self.facts().preserves.rows;
        (0..self.inputs.len()).map(|input| first && input == 0).collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(self.operator.distribution(&self.inputs))
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.operator.input_order(&self.inputs)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for expression in self.operator.expressions() {
            if visit(expression)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        inputs: Vec<Input>,
        options: ReplaceChildrenOptions,
    ) -> Result<Input> {
        // Checks for cancellation here, since every rule that rewrites a plan calls this function.
        check_stop()?;
        let operator = Arc::clone(&self.operator).over(&inputs)?;
        let properties = match options.children_properties {
            ChildrenPropertiesMode::Keep => Arc::clone(&self.properties),
            ChildrenPropertiesMode::Recompute => operator.properties(&self.schema(), &inputs),
        };
        Ok(Arc::new(Self::new(operator, inputs, properties)))
    }

    fn with_new_children(self: Arc<Self>, inputs: Vec<Input>) -> Result<Input> {
        self.replace_children(
            inputs,
            ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute),
        )
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let facts = self.facts();
        let rows = Arc::clone(&self.operator).run(Run {
            inputs: self.inputs.clone(),
            schema: self.schema(),
            partition,
            context: Arc::clone(&context),
            memory: facts.memory.unwrap_or(facts.name),
            shared: Arc::clone(&self.shared),
        })?;
        // A scan has its own limits and returns the table's data without copying it.
        let rows = if facts.scan.is_some() { rows } else { in_bounds(rows) };
        Ok(measured(rows, &self.metrics, partition, &context))
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        self.inputs.iter().map(|_| ChildStats::At(None)).collect()
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let unknown = Statistics::new_unknown(&self.schema());
        let exact =
            self.facts().scan.and_then(Scan::unfiltered).map(|scan| match args.partition() {
                Some(partition) => scan.rows_of(partition),
                None => scan.row_count(),
            });
        let estimated = || {
            let rows: Vec<Option<usize>> =
                inputs.iter().map(|input| input.num_rows.get_value().copied()).collect();
            self.operator.rows(&self.inputs, &rows).map_or(Precision::Absent, Precision::Inexact)
        };
        let rows = exact.map_or_else(estimated, Precision::Exact);
        Ok(Arc::new(unknown.with_num_rows(rows)))
    }
}
