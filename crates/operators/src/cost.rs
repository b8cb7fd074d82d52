//! Estimates how much work a plan does before it runs.

use datafusion::physical_plan::ExecutionPlan;

use crate::operator::{Facts, Work};
use crate::plan_node::PlanNode;

/// Returns the number of rows that a plan processes: the rows its scans read, multiplied at joins
/// because each row may match every row of the other input. Returns `None` if the number is
/// unknown, as for files, sequences and rows expanded from one row.
pub fn rows_read(plan: &dyn ExecutionPlan) -> Option<usize> {
    let node = PlanNode::of(plan);
    if let Some(rows) = node.known_rows() {
        return Some(rows);
    }
    let apart = matches!(node, PlanNode::Union | PlanNode::Values);
    let together = if apart { usize::saturating_add } else { join };
    let inputs = plan.children();
    let rows = inputs.iter().map(|input| rows_read(input.as_ref()));
    let rows = rows.reduce(|all, rows| Some(together(all?, rows?)));
    match node {
        PlanNode::Operator(node) => match node.facts() {
            Facts { work: Work::Scanned, scan, .. } => Some(scan?.table().row_count()),
            Facts { work: Work::Inputs | Work::FromEnd, .. } => rows?,
            Facts { work: Work::AtMost(max), .. } => Some(rows??.min(max)),
            Facts { work: Work::Cells, .. } => None,
        },
        _ => rows?,
    }
}

/// Whether a plan reads its only table backward and usually stops after a small fraction of the
/// rows.
pub fn ends_early(plan: &dyn ExecutionPlan) -> bool {
    let begins = match PlanNode::of(plan) {
        PlanNode::Operator(node) => matches!(node.facts().work, Work::FromEnd),
        _ => false,
    };
    begins || matches!(plan.children()[..], [input] if ends_early(input.as_ref()))
}

/// A join with one empty input still reads its other input.
fn join(left: usize, right: usize) -> usize {
    left.max(1).saturating_mul(right.max(1))
}
