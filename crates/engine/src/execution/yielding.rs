//! Lets a query be cancelled, and others run, while a join multiplies rows.

use std::fmt;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::ChildrenPropertiesMode;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
    SendableRecordBatchStream,
};
use futures::StreamExt;
use tidemark_operators::rows_read;
use tidemark_types::EngineResult;

use tidemark_operators::from_datafusion;

/// Pairs of rows that a join may compare before it yields: some milliseconds.
const PAIRS_AT_ONCE: usize = 4 << 20;

/// Changes joins that compare all pairs of rows. `EnsureCooperative` makes leaves yield, but such
/// a join reads a leaf rarely: each batch of one side meets every row of the other. What it hands
/// on yields; what it reads comes in slices, since a condition may let nothing through for long.
pub(crate) fn let_joins_yield(
    plan: Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let node = match node.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => {
                let slices = Slices::before(join.left().as_ref(), Arc::clone(join.right()));
                let inputs = vec![Arc::clone(join.left()), Arc::new(slices) as _];
                let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
                Arc::clone(&node).replace_children(inputs, options)?
            }
            // Rows with one key may meet many: what comes of a few batches is polled for long.
            None if node.is::<CrossJoinExec>() || node.is::<HashJoinExec>() => node,
            None => return Ok(Transformed::no(node)),
        };
        Ok(Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>))
    });
    changed.map(|transformed| transformed.data).map_err(from_datafusion)
}

/// The same rows in small batches, one each time it is polled.
#[derive(Debug)]
struct Slices {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl Slices {
    /// Slices that meet `other` in no long time each.
    fn before(other: &dyn ExecutionPlan, input: Arc<dyn ExecutionPlan>) -> Self {
        let pairs = rows_read(other).map_or(0, |rows| PAIRS_AT_ONCE / rows.max(1));
        Self { input, rows: pairs.max(1) }
    }
}

impl DisplayAs for Slices {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Slices: rows={}", self.rows)
    }
}

impl ExecutionPlan for Slices {
    fn name(&self) -> &'static str {
        "Slices"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().unwrap_or_else(|| Arc::clone(&self.input));
        Ok(Arc::new(Self { input, rows: self.rows }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let (schema, most) = (input.schema(), self.rows);
        let slices =
            futures::stream::try_unfold((input, None), move |(mut input, rest)| async move {
                tokio::task::yield_now().await;
                let batch: RecordBatch = match rest {
                    Some(rest) => rest,
                    None => match input.next().await.transpose()? {
                        Some(batch) => batch,
                        None => return Ok(None),
                    },
                };
                let len = batch.num_rows().min(most);
                let rest =
                    (len < batch.num_rows()).then(|| batch.slice(len, batch.num_rows() - len));
                Ok(Some((batch.slice(0, len), (input, rest))))
            });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, slices)))
    }
}
