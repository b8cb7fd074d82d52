//! What every operator of this crate says of itself, and the one plan node that runs them all: it
//! alone has inputs and properties, counts memory and rows, keeps within bounds and stops.

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

/// A plan that an operator reads.
pub(crate) type Input = Arc<dyn ExecutionPlan>;

/// Where a column of the output comes from unchanged.
pub struct Lineage {
    pub input: usize,
    pub column: usize,
    /// Whether it is null where no row of its input was found.
    pub unmatched: bool,
}

/// What an operator says of itself.
pub struct Facts<'a> {
    /// Its name in EXPLAIN.
    pub name: &'static str,
    /// The name under which it counts what it holds; `None` where that is a batch at most.
    pub memory: Option<&'static str>,
    /// What it keeps of the order of its first input.
    pub keeps: Keeps,
    /// How many rows it works on.
    pub work: Work,
    /// Whether its plan is the same whatever rows of a table it reads.
    pub suits_any_rows: bool,
    /// The table that it reads itself.
    pub scan: Option<&'a Scan>,
}

/// What an operator keeps of the order of its first input.
#[derive(Debug, Clone, Copy)]
pub struct Keeps {
    /// The order of the rows in a partition.
    pub rows: bool,
    /// That its partitions follow each other in the order of the scan below.
    pub partitions: bool,
    /// Its direction: of an input that runs backward it makes the same rows backward.
    pub direction: bool,
    /// Whether it drops no row of its first input.
    pub every_row: bool,
}

impl Keeps {
    /// It has an order of its own, or none.
    pub const NOTHING: Self =
        Self { rows: false, partitions: false, direction: false, every_row: false };
}

/// What goes on by files where it does not fit leaves one part in so many of its query's memory.
const LEFT_SHARE: usize = 4;

/// Rows of a group, for want of knowledge.
pub(crate) const ROWS_PER_GROUP: usize = 8;

/// How many rows an operator works on.
#[derive(Debug, Clone, Copy)]
pub enum Work {
    /// Those that its scan looks at.
    Scanned,
    /// Those of its inputs, each with each.
    Inputs,
    /// Those of its input from the end, until it has what it looks for.
    FromEnd,
    /// So many of its input's.
    AtMost(usize),
    /// The cells of its rows decide.
    Cells,
}

/// An operator; `Display` shows in EXPLAIN what it does. Neither [`Facts`] nor a method has a
/// default: an operator that does not state its memory, its order and its bound does not compile.
pub trait Operator: Any + fmt::Display + Send + Sync {
    /// What it says of itself.
    fn facts(&self, inputs: &[Input]) -> Facts<'_>;

    /// Order, partitions and emission of its output.
    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties>;

    /// What it computes of the rows of its inputs.
    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>>;

    /// How the partitions of each input have to be.
    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution>;

    /// The order that each input has to have.
    fn input_order(&self, inputs: &[Input]) -> Vec<Option<OrderingRequirements>>;

    /// Where a column comes from.
    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage>;

    /// How many rows it makes of inputs with so many, about: joins hold the side with fewer.
    fn rows(&self, inputs: &[Input], rows: &[Option<usize>]) -> Option<usize>;

    /// The same operator, planned for inputs that rules have put in the place of others.
    fn over(self: Arc<Self>, inputs: &[Input]) -> Result<Arc<dyn Operator>>;

    /// A partition of its output.
    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream>;
}

/// One partition's run of an operator.
pub struct Run {
    pub inputs: Vec<Input>,
    pub schema: SchemaRef,
    pub partition: usize,
    pub context: Arc<TaskContext>,
    memory: &'static str,
    shared: Shared,
}

/// What the partitions of one execution share.
type Shared = Arc<OnceCell<Arc<dyn Any + Send + Sync>>>;

impl Run {
    /// The rows of an input's partition.
    pub fn rows(&self, input: usize, partition: usize) -> Result<SendableRecordBatchStream> {
        self.inputs[input].execute(partition, Arc::clone(&self.context))
    }

    /// Counts what is held, under the operator's name.
    pub fn memory(&self) -> MemoryReservation {
        MemoryConsumer::new(self.memory).register(self.context.memory_pool())
    }

    /// Takes so many bytes more, if they leave one part in [`LEFT_SHARE`] of the query's memory to
    /// others; whether they do.
    pub fn hold(&self, memory: &MemoryReservation, bytes: usize) -> bool {
        let reserved = self.context.memory_pool().reserved();
        reserved.saturating_add(bytes) <= self.held_at_most() && memory.try_grow(bytes).is_ok()
    }

    /// What all operators that could go on by files may hold together.
    pub fn held_at_most(&self) -> usize {
        match self.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => limit - limit / LEFT_SHARE,
            _ => usize::MAX,
        }
    }

    /// Counts what is held and can be handed to an operator that spills.
    pub fn spilling_memory(&self) -> MemoryReservation {
        let consumer = MemoryConsumer::new(self.memory).with_can_spill(true);
        consumer.register(self.context.memory_pool())
    }

    /// What the partitions of one execution share; the first to come here makes it.
    pub async fn shared<T: Send + Sync + 'static>(
        &self,
        make: impl Future<Output = Result<T>>,
    ) -> Result<Arc<T>> {
        let make = || async move { Ok(Arc::new(make.await?) as Arc<dyn Any + Send + Sync>) };
        let shared: Result<_> = self.shared.get_or_try_init(make).await;
        let shared = Arc::clone(shared?).downcast::<T>();
        shared.map_err(|_| internal_datafusion_err!("an operator shares two things"))
    }

    /// The rows of a stream that has to be made first.
    pub fn stream<S>(
        schema: SchemaRef,
        made: impl Future<Output = Result<S>> + Send + 'static,
    ) -> SendableRecordBatchStream
    where
        S: Stream<Item = Result<RecordBatch>> + Send + 'static,
    {
        let rows = futures::stream::once(made).try_flatten().boxed();
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }

    /// The rows of one batch, in batches of usual size.
    pub fn batches(
        schema: SchemaRef,
        made: impl Future<Output = Result<RecordBatch>> + Send + 'static,
    ) -> SendableRecordBatchStream {
        let batches = made.map_ok(|batch| {
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

/// An operator of this crate in a plan.
pub struct OperatorExec {
    operator: Arc<dyn Operator>,
    inputs: Vec<Input>,
    properties: Arc<PlanProperties>,
    shared: Shared,
    metrics: ExecutionPlanMetricsSet,
}

impl OperatorExec {
    /// The operator over these inputs, with rows of this schema.
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

    /// What the operator says of itself.
    pub fn facts(&self) -> Facts<'_> {
        self.operator.facts(&self.inputs)
    }

    /// The operator, if it is one of this kind, with its inputs.
    pub(crate) fn downcast<O: Operator>(&self) -> Option<(&O, &[Input])> {
        let operator: &dyn Any = self.operator.as_ref();
        Some((operator.downcast_ref()?, &self.inputs))
    }

    /// The input that a column comes from, its place there, and whether it may be unmatched.
    pub fn lineage(&self, column: usize) -> Option<(&Input, usize, bool)> {
        let Lineage { input, column, unmatched } = self.operator.lineage(column, &self.inputs)?;
        Some((self.inputs.get(input)?, column, unmatched))
    }
}

/// The column of the first input, whose columns come first, if it is one.
pub(crate) fn of_first(column: usize, inputs: &[Input]) -> Option<Lineage> {
    let width = inputs.first()?.schema().fields().len();
    (column < width).then_some(Lineage { input: 0, column, unmatched: false })
}

/// The order of the first input, whose columns come first.
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
        let first = self.facts().keeps.rows;
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
        // A rule that is applied once walks over the plan, some many times; all come by here.
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
        // A scan has its own pace, and hands on what the table holds without copying it.
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
