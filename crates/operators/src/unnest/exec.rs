//! How UNNEST runs: rows are repeated as often as they have elements, some at a time.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::take;
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning,
    PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::elements::Elements;
use super::node::UnnestItem;
use crate::order::visit_expressions;
use crate::scan::exec::BATCH_ROWS;

/// What is asked.
#[derive(Debug)]
pub(crate) struct UnnestPlan {
    pub(crate) arguments: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) items: Vec<UnnestItem>,
    pub(crate) keeps_empty: bool,
    pub(crate) schema: SchemaRef,
}

/// A row for each element.
#[derive(Debug, Clone)]
pub struct UnnestElementsExec {
    input: Arc<dyn ExecutionPlan>,
    plan: Arc<UnnestPlan>,
    properties: Arc<PlanProperties>,
}

impl UnnestElementsExec {
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, plan: Arc<UnnestPlan>) -> Self {
        let equivalence = EquivalenceProperties::new(Arc::clone(&plan.schema));
        let count = input.output_partitioning().partition_count();
        let partitioning = Partitioning::UnknownPartitioning(count);
        let (emission, bounded) = (EmissionType::Incremental, Boundedness::Bounded);
        let properties = PlanProperties::new(equivalence, partitioning, emission, bounded)
            .with_scheduling_type(SchedulingType::Cooperative);
        Self { input, plan, properties: Arc::new(properties) }
    }

    fn with_input(&self, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self::new(children.swap_remove(0), Arc::clone(&self.plan)))
    }
}

/// A batch, its elements, and how many rows each of its rows becomes.
struct Apart {
    batch: RecordBatch,
    elements: Vec<Elements>,
    counts: Vec<usize>,
    plan: Arc<UnnestPlan>,
}

impl Apart {
    fn new(batch: RecordBatch, plan: &Arc<UnnestPlan>) -> Result<Self> {
        let rows = batch.num_rows();
        let mut elements = Vec::with_capacity(plan.items.len());
        let mut counts = vec![usize::from(plan.keeps_empty); rows];
        for (argument, item) in plan.arguments.iter().zip(&plan.items) {
            let own = Elements::new(argument.evaluate(&batch)?.into_array(rows)?, item)?;
            for (count, length) in counts.iter_mut().zip(own.lengths()?) {
                *count = length.max(*count);
            }
            elements.push(own);
        }
        Ok(Self { batch, elements, counts, plan: Arc::clone(plan) })
    }

    /// Rows whose elements make about a batch each.
    fn pieces(&self) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let (mut start, mut total) = (0, 0);
        for (row, count) in self.counts.iter().enumerate() {
            total += count;
            if total >= BATCH_ROWS {
                pieces.push(start..row + 1);
                (start, total) = (row + 1, 0);
            }
        }
        if start < self.counts.len() {
            pieces.push(start..self.counts.len());
        }
        pieces
    }

    fn piece(&self, rows: Range<usize>) -> Result<RecordBatch> {
        let repeated = |row: usize| std::iter::repeat_n(row as u64, self.counts[row]);
        let indexes = UInt64Array::from_iter_values(rows.clone().flat_map(repeated));
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.plan.schema.fields().len());
        for column in self.batch.columns() {
            columns.push(take(column, &indexes, None)?);
        }
        for elements in &self.elements {
            columns.extend(elements.columns(rows.clone(), &self.counts)?);
        }
        let numbers = rows.flat_map(|row| 1..=self.counts[row] as i64);
        columns.push(Arc::new(Int64Array::from_iter_values(numbers)));
        debug_assert!(columns.iter().all(|column| column.len() == indexes.len()));
        Ok(RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?)
    }
}

impl DisplayAs for UnnestElementsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        let arguments: Vec<String> = self.plan.arguments.iter().map(ToString::to_string).collect();
        write!(f, "UnnestElementsExec: {}", arguments.join(", "))
    }
}

impl ExecutionPlan for UnnestElementsExec {
    fn name(&self) -> &'static str {
        "UnnestElementsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit_expressions(&self.plan.arguments, f)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_input(children))
    }

    fn execute(&self, part: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = self.input.execute(part, context)?;
        let plan = Arc::clone(&self.plan);
        let batches = rows.map(move |batch| {
            let apart = Apart::new(batch?, &plan)?;
            let pieces = futures::stream::iter(apart.pieces());
            Ok::<_, datafusion::error::DataFusionError>(pieces.map(move |rows| apart.piece(rows)))
        });
        let schema = Arc::clone(&self.plan.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }
}
