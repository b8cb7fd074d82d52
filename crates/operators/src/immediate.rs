//! Plans that are done before a thread could be woken for them.

use datafusion::physical_plan::ExecutionPlan;

use crate::plan_node::PlanNode;

/// Rows that a projection computes in some microseconds.
const MAX_ROWS: usize = 64;

/// Whether a plan only projects a few rows that are in memory: `SELECT 1`, `SELECT count() FROM t`.
/// It reads no file, waits for nothing and yields nothing to wait for.
pub fn is_immediate(plan: &dyn ExecutionPlan) -> bool {
    match PlanNode::of(plan) {
        PlanNode::Projection(_)
        | PlanNode::Cooperative
        | PlanNode::GlobalLimit
        | PlanNode::LocalLimit => plan.children().iter().all(|child| is_immediate(child.as_ref())),
        leaf => leaf.known_rows().is_some_and(|rows| rows <= MAX_ROWS),
    }
}
