//! Compares plans that group table rows. Determines whether two plans return the same rows, if this
//! can be checked cheaply.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::is_volatile;

use crate::operator::{Input, Operator, OperatorExec};
use crate::plan_node::PlanNode;
use crate::sample_by::plan::{AggregatePlan, SampleByPlan};
use crate::scan::kind::Scan;

/// Minimum number of rows in a table at which sharing groups pays off.
const MIN_ROWS: usize = 128 * 1024;

type Expr = Arc<dyn PhysicalExpr>;

/// Whether a plan groups a table's rows deterministically and is expensive enough to be worth
/// sharing.
pub(super) fn is_worth_sharing(plan: &Input) -> bool {
    let PlanNode::Operator(operator) = PlanNode::of(plan.as_ref()) else { return false };
    let Some((groups, [input])) = operator.downcast::<SampleByPlan>() else { return false };
    groups.cache.is_none() && is_certain(groups) && has_rows(input)
}

/// Whether an operator always computes the same result from the same rows.
fn is_certain(operator: &impl Operator) -> bool {
    !operator.expressions().into_iter().any(is_volatile)
}

/// Whether the input consists of a large number of table rows, possibly projected.
fn has_rows(plan: &Input) -> bool {
    match PlanNode::of(plan.as_ref()) {
        PlanNode::Cooperative => only_child(plan).is_some_and(has_rows),
        PlanNode::Projection(projection) => {
            !projection.expr().iter().any(|own| is_volatile(&own.expr))
                && has_rows(projection.input())
        }
        PlanNode::Operator(operator) => operator.downcast::<Scan>().is_some_and(|(scan, _)| {
            let table = scan.table();
            is_certain(scan) && (table.is_cut_small() || table.row_count() >= MIN_ROWS)
        }),
        _ => false,
    }
}

/// Whether two plans are known to return the same rows in the same order. `false` means unknown.
pub(super) fn are_same(left: &Input, right: &Input) -> bool {
    match (PlanNode::of(left.as_ref()), PlanNode::of(right.as_ref())) {
        (PlanNode::Cooperative, _) => only_child(left).is_some_and(|left| are_same(left, right)),
        (_, PlanNode::Cooperative) => only_child(right).is_some_and(|right| are_same(left, right)),
        (PlanNode::Projection(left), PlanNode::Projection(right)) => {
            let (own, other) = (left.expr(), right.expr());
            own.len() == other.len()
                && own
                    .iter()
                    .zip(other)
                    .all(|(own, other)| own.alias == other.alias && own.expr.eq(&other.expr))
                && are_same(left.input(), right.input())
        }
        (PlanNode::Operator(left), PlanNode::Operator(right)) => are_same_operators(left, right),
        _ => false,
    }
}

fn are_same_operators(left: &OperatorExec, right: &OperatorExec) -> bool {
    if let (Some((left, _)), Some((right, _))) = (left.downcast(), right.downcast()) {
        return are_same_scans(left, right);
    }
    let (Some((left, [own])), Some((right, [other]))) = (left.downcast(), right.downcast()) else {
        return false;
    };
    are_same_groups(left, right) && are_same(own, other)
}

fn are_same_scans(left: &Scan, right: &Scan) -> bool {
    match (left, right) {
        (Scan::Table(left), Scan::Table(right)) => left.reads_same(right),
        (Scan::Filtered(left), Scan::Filtered(right)) => left.reads_same(right),
        _ => false,
    }
}

fn are_same_groups(left: &SampleByPlan, right: &SampleByPlan) -> bool {
    let buckets = match (&left.bucket, &right.bucket) {
        (None, None) => true,
        (Some(left), Some(right)) => left.spec == right.spec && left.timestamp.eq(&right.timestamp),
        _ => false,
    };
    buckets
        && left.cache.is_none()
        && right.cache.is_none()
        && left.output_schema == right.output_schema
        && are_same_exprs(&left.keys, &right.keys)
        && left.aggregates.len() == right.aggregates.len()
        && left.aggregates.iter().zip(&right.aggregates).all(are_same_aggregates)
}

fn are_same_aggregates((left, right): (&AggregatePlan, &AggregatePlan)) -> bool {
    let (own, other) = (&left.function, &right.function);
    let filters = match (&left.filter, &right.filter) {
        (None, None) => true,
        (Some(left), Some(right)) => left.eq(right),
        _ => false,
    };
    filters
        && own.as_ref() == other.as_ref()
        && own.is_distinct() == other.is_distinct()
        && own.ignore_nulls() == other.ignore_nulls()
        && own.order_bys() == other.order_bys()
        && are_same_exprs(&left.arguments, &right.arguments)
}

fn are_same_exprs(left: &[Expr], right: &[Expr]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.eq(right))
}

fn only_child(plan: &Input) -> Option<&Input> {
    match plan.children().as_slice() {
        [child] => Some(*child),
        _ => None,
    }
}
