//! Sub-query expressions, and the joins and projections that replace them.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, JoinConstraint, JoinType, NullEquality, Result};
use datafusion::logical_expr::{Expr, Join, LogicalPlan, Projection, Subquery};

/// Returns the expressions that a sub-query expression reads from the outer rows.
pub fn captured(expr: &Expr) -> Option<&Vec<Expr>> {
    subquery_of(expr).map(|subquery| &subquery.outer_ref_columns)
}

/// Like [`captured`], but mutable.
pub fn captured_mut(expr: &mut Expr) -> Option<&mut Vec<Expr>> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(&mut subquery.outer_ref_columns),
        Expr::Exists(exists) => Some(&mut exists.subquery.outer_ref_columns),
        Expr::InSubquery(within) => Some(&mut within.subquery.outer_ref_columns),
        _ => None,
    }
}

/// Returns the sub-query if the expression is one.
pub(crate) fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::ScalarSubquery(subquery) => Some(subquery),
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        _ => None,
    }
}

/// Whether the expression contains a sub-query.
pub fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|node| Ok(subquery_of(node).is_some())).unwrap_or(false)
}

/// Returns the values that a sub-query reads, as expressions over the outer rows.
pub(super) fn outer_values(subquery: &Subquery) -> impl Iterator<Item = Expr> {
    subquery.outer_ref_columns.iter().map(|captured| captured.clone().unalias())
}

/// Builds a join in which null keys match null keys.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    on: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
    kind: JoinType,
) -> Result<LogicalPlan> {
    Join::try_new(
        Arc::new(left),
        Arc::new(right),
        on,
        filter,
        kind,
        JoinConstraint::On,
        NullEquality::NullEqualsNull,
        false,
    )
    .map(LogicalPlan::Join)
}

/// Returns the plan with only these columns.
pub(super) fn narrowed(plan: LogicalPlan, columns: Vec<Column>) -> Result<LogicalPlan> {
    if plan.schema().fields().len() == columns.len() {
        return Ok(plan);
    }
    let exprs = columns.into_iter().map(Expr::Column).collect();
    Projection::try_new(exprs, Arc::new(plan)).map(LogicalPlan::Projection)
}
