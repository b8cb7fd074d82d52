//! Repartitions one side at the times of the other side. Only the partitions of its scan change;
//! the operators above the scan do not.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::operator::Input;
use crate::order::follows_scan_order;
use crate::plan_node::{PlanNode, with_first_input};
use crate::scan::exec::SliceScan;
use crate::scan::kind::Scan;

/// A partition's first and last times; `None` if it has no rows.
pub(crate) type Span = Option<(i64, i64)>;

/// For a plan with rows in this scan's order, returns the time span of each partition. Returns
/// `None` if the spans are unknown.
pub(super) fn spans(plan: &Input, scan: &SliceScan) -> Result<Option<Vec<Span>>> {
    let own = scan.spans()?;
    let partitions = plan.output_partitioning().partition_count();
    if partitions == own.len() && follows_scan_order(plan) {
        return Ok(Some(own));
    }
    let all =
        own.iter().flatten().copied().reduce(|all, span| (all.0.min(span.0), all.1.max(span.1)));
    Ok((partitions == 1).then(|| vec![all]))
}

/// Returns the plan with one partition per span, each containing all rows in that span. Returns
/// `None` unless the plan is a scan with only row-by-row operators above it.
pub(super) fn cut(plan: &Input, spans: &[Span]) -> Result<Option<Input>> {
    let by_row = match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(node) => {
            let facts = node.facts();
            if let Some(scan) = facts.scan {
                return match scan {
                    Scan::Table(scan) => Ok(Some(scan.cut_at(spans)?.plan())),
                    Scan::Filtered(scan) if scan.fetch().is_some() => Ok(None),
                    Scan::Filtered(scan) => Ok(Some(scan.cut_at(spans)?.plan())),
                };
            }
            facts.preserves.partitions && facts.preserves.direction
        }
        PlanNode::Projection(_) | PlanNode::Cooperative => true,
        PlanNode::Filter(filter) => filter.fetch().is_none(),
        _ => false,
    };
    let children = plan.children();
    let Some(child) = children.first().filter(|_| by_row) else { return Ok(None) };
    let Some(child) = cut(child, spans)? else { return Ok(None) };
    with_first_input(Arc::clone(plan), |_| Ok(child)).map(Some)
}
