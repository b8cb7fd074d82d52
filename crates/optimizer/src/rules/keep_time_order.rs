//! The physical rule that keeps rows in timestamp order without sorting.
//!
//! A scan's partitions follow each other in time. What `DataFusion` would merge row by row, mix, or
//! sort backwards is read one partition after the other, or from the end.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use tidemark_operators::{
    PlanNode, TimeConcat, follows_scan_order, is_right_join, origin, reversed, with_first_input,
};

/// See the file's head.
#[derive(Debug)]
pub(crate) struct KeepTimeOrder;

impl PhysicalOptimizerRule for KeepTimeOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = in_turn(plan.transform_up(keep_order).data()?)?;
        // A result is read partition by partition, too.
        if plan.output_partitioning().partition_count() > 1 && follows_scan_order(&plan) {
            return Ok(TimeConcat::plan(plan));
        }
        Ok(plan)
    }

    fn name(&self) -> &'static str {
        "KeepTimeOrder"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn keep_order(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let node = PlanNode::of(plan.as_ref());
    if let PlanNode::Coalesce(merge) = node
        && is_read_in_turn(merge.input())
    {
        return Ok(Transformed::yes(concat(merge.input(), merge.fetch())));
    }
    if let PlanNode::Merge(merge) = node
        && let [order] = merge.expr().as_ref()
        && follows_scan_order(merge.input())
        && sorts_by_time(merge.input(), order).is_some()
    {
        return Ok(Transformed::yes(concat(merge.input(), merge.fetch())));
    }
    if let PlanNode::Sort(sort) = node
        && let [order] = sort.expr().as_ref()
        && let Some(backward) = sorts_by_time(sort.input(), order)
        && follows_scan_order(sort.input())
        && let Some(turned) = turn(sort.input(), backward, sort.fetch())?
    {
        let turned = match sort.fetch() {
            Some(fetch) => Arc::new(LocalLimitExec::new(turned, fetch)),
            None => turned,
        };
        return Ok(Transformed::yes(turned));
    }
    Ok(Transformed::no(plan))
}

/// Whether the rows have an order when one partition is read after the other: those of a scan, and
/// those of a UNION ALL, whose sides follow each other as they were written.
fn is_read_in_turn(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let node = PlanNode::of(plan.as_ref());
    match plan.children().as_slice() {
        _ if follows_scan_order(plan) => true,
        [first, ..] if node.is_row_wise() => is_read_in_turn(first),
        sides => matches!(node, PlanNode::Union) && sides.iter().all(|side| is_read_in_turn(side)),
    }
}

/// The plan, with the partitions of a join whose order is kept read one after the other where the
/// rows of the result, or a limit's, come from them.
fn in_turn(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let node = PlanNode::of(plan.as_ref());
    if let PlanNode::Coalesce(merge) = node {
        let ordered = is_joined_in_turn(merge.input());
        return Ok(if ordered { concat(merge.input(), merge.fetch()) } else { plan });
    }
    if !node.is_row_wise() && !matches!(node, PlanNode::GlobalLimit) {
        return Ok(plan);
    }
    with_first_input(plan, in_turn)
}

/// Whether rows have an order when one partition is read after the other, also behind joins that
/// hold one side, and have every row of the other in its place.
fn is_joined_in_turn(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let node = PlanNode::of(plan.as_ref());
    match plan.children().as_slice() {
        [_, read] if is_right_join(plan) => is_read_in_turn(read) || is_joined_in_turn(read),
        [input, ..] if node.is_row_wise() => is_joined_in_turn(input),
        _ => false,
    }
}

/// One partition after the other, at most `fetch` rows.
fn concat(input: &Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Arc<dyn ExecutionPlan> {
    let plan: Arc<dyn ExecutionPlan> = if input.output_partitioning().partition_count() == 1 {
        Arc::clone(input)
    } else {
        TimeConcat::plan(Arc::clone(input))
    };
    match fetch {
        Some(fetch) => Arc::new(GlobalLimitExec::new(plan, 0, Some(fetch))),
        None => plan,
    }
}

/// Whether this order is that of the designated timestamp of the scan below, and whether the
/// scan runs the other way.
fn sorts_by_time(input: &Arc<dyn ExecutionPlan>, order: &PhysicalSortExpr) -> Option<bool> {
    let (scan, output) = origin(input, &order.expr)?;
    scan.is_timestamp(output).then(|| scan.is_backward() != order.options.descending)
}

/// The input in the order wanted, its scan reading no more than `fetch` rows where that is
/// certain to do.
fn turn(
    input: &Arc<dyn ExecutionPlan>,
    backward: bool,
    fetch: Option<usize>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if backward {
        return reversed(input, fetch);
    }
    match reversed(input, None)? {
        Some(plan) => reversed(&plan, fetch),
        None => Ok(None),
    }
}
