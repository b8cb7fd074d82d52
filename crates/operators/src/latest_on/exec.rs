//! How LATEST ON runs: from the newest row backward, until every key has been seen.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
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
use futures::{StreamExt, TryStreamExt};

use super::stream::Picker;
use crate::order::{ascending, visit_expressions};
use crate::sample_by::exec::in_chunks;
use crate::scan::exec::{BATCH_ROWS, TableScanExec, read};
use crate::scan::filtered::FilteredScanExec;

/// How keys are told apart.
#[derive(Debug, Clone)]
pub(crate) enum KeyKind {
    /// One symbol column of a table: how many symbols it has, and whether it holds nulls.
    Symbol { symbols: usize, nullable: bool },
    /// Values of these types.
    Hashed(Vec<DataType>),
}

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct LatestOnPlan {
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) kind: KeyKind,
    /// Whether the input was turned around and yields its newest row first.
    pub(crate) newest_first: bool,
}

/// The last row of each key.
#[derive(Debug, Clone)]
pub struct LatestOnExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<LatestOnPlan>,
    properties: Arc<PlanProperties>,
}

impl LatestOnExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<LatestOnPlan>) -> Self {
        let mut equivalence = EquivalenceProperties::new(input.schema());
        equivalence.add_ordering([ascending(&plan.timestamp)]);
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

async fn pick(
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<LatestOnPlan>,
    context: Arc<TaskContext>,
) -> Result<RecordBatch> {
    let schema = input.schema();
    let memory = MemoryConsumer::new("LatestOn").register(context.memory_pool());
    let mut picker = Picker::new(&plan)?;
    if let Some(scan) = input.downcast_ref::<TableScanExec>()
        && !scan.is_backward()
    {
        pick_from_scan(scan, &mut picker).await?;
        return picker.finish(&schema);
    }
    if let Some(scan) = input.downcast_ref::<FilteredScanExec>()
        && !scan.scan().is_backward()
    {
        pick_from_filtered(scan, &plan, &mut picker).await?;
        return picker.finish(&schema);
    }
    let mut rows = input.execute(0, context)?;
    if plan.newest_first {
        while let Some(batch) = rows.try_next().await? {
            picker.update(&batch, true)?;
            memory.try_resize(picker.size())?;
            if picker.is_complete() {
                break;
            }
        }
        return picker.finish(&schema);
    }
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        memory.try_grow(batch.get_array_memory_size())?;
        batches.push(batch);
    }
    for batch in batches.iter().rev() {
        if picker.is_complete() {
            break;
        }
        picker.update(batch, false)?;
    }
    picker.finish(&schema)
}

/// Reads a table's slices from the end; rows need not be turned around for that.
async fn pick_from_scan(scan: &TableScanExec, picker: &mut Picker) -> Result<()> {
    let schema = scan.schema();
    for unit in scan.units().rev() {
        let mut end = unit.rows.end;
        while end > unit.rows.start {
            if picker.is_complete() {
                return Ok(());
            }
            let start = unit.rows.start.max(end.saturating_sub(BATCH_ROWS));
            picker.update(&read(&unit.slice, scan.projection(), start..end, &schema)?, false)?;
            end = start;
            tokio::task::coop::consume_budget().await;
        }
    }
    Ok(())
}

/// The same where a filter drops rows: with a predicate on the key, fewer keys are waited for.
async fn pick_from_filtered(
    filtered: &FilteredScanExec,
    plan: &LatestOnPlan,
    picker: &mut Picker,
) -> Result<()> {
    let key = plan.keys.first().and_then(|key| key.downcast_ref::<Column>());
    if let Some(passes) = key.and_then(|key| filtered.passing_keys(key.index())) {
        picker.expect_only(&passes);
    }
    for unit in filtered.scan().units().rev() {
        let mut end = unit.rows.end;
        while end > unit.rows.start {
            if picker.is_complete() {
                return Ok(());
            }
            let start = unit.rows.start.max(end.saturating_sub(BATCH_ROWS));
            if let Some(batch) = filtered.read(&unit.slice, start..end)? {
                picker.update(&batch, false)?;
            }
            end = start;
            tokio::task::coop::consume_budget().await;
        }
    }
    Ok(())
}

impl DisplayAs for LatestOnExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let keys: Vec<String> = self.plan.keys.iter().map(ToString::to_string).collect();
        write!(f, "LatestOnExec: {} keys=[{}]", self.plan.timestamp, keys.join(", "))
    }
}

impl ExecutionPlan for LatestOnExec {
    fn name(&self) -> &'static str {
        "LatestOnExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let walks = self.input.is::<TableScanExec>() || self.input.is::<FilteredScanExec>();
        let distribution = if walks {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        };
        InputDistributionRequirements::new(vec![distribution])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let mut order = ascending(&self.plan.timestamp);
        order.options.descending = self.plan.newest_first;
        vec![Some(OrderingRequirements::from(LexOrdering::from([order])))]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_expressions(std::iter::once(&self.plan.timestamp).chain(&self.plan.keys), f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let work = pick(Arc::clone(&self.input), Arc::clone(&self.plan), context);
        let batches = futures::stream::once(work)
            .map_ok(|batch| futures::stream::iter(in_chunks(&batch)))
            .try_flatten()
            .boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}
