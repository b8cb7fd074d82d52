//! Plans that finish in less time than it takes to wake a thread.

use datafusion::physical_plan::ExecutionPlan;

use crate::plan_node::PlanNode;

/// Maximum number of rows that a projection can compute within a few microseconds.
const MAX_ROWS: usize = 64;

/// Whether a plan only projects a few rows in memory, such as `SELECT 1` or `SELECT count() FROM
/// t`. Such a plan never reads a file and never waits.
pub fn is_immediate(plan: &dyn ExecutionPlan) -> bool {
    match PlanNode::of(plan) {
        PlanNode::Projection(_)
        | PlanNode::Cooperative
        | PlanNode::GlobalLimit
        | PlanNode::LocalLimit => plan.children().iter().all(|child| is_immediate(child.as_ref())),
        leaf => leaf.known_rows().is_some_and(|rows| rows <= MAX_ROWS),
    }
}
