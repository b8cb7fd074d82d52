//! Sub-queries that only test whether rows with equal values exist. The enclosing rows are joined
//! with the sub-query's rows directly, without a domain.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, Limit, LogicalPlan, Projection, SkipType, Subquery,
};

use super::domain::Domain;
use super::rewrite::rewritten;
use super::subquery::{has_subquery, outer_values};
use crate::conditions::all_of;

/// A sub-query's rows, and the equalities that they must satisfy.
pub(super) struct Keyed {
    pub(super) plan: LogicalPlan,
    /// Outer expressions, and the names of the `plan` columns that must equal them.
    pub(super) on: Vec<(Expr, String)>,
    /// Additional condition over outer expressions and unqualified columns of `plan`. If there is
    /// one, `plan` has one row per key.
    pub(super) filter: Option<Expr>,
}

impl Domain {
    /// Returns the rows of a sub-query that reads this domain only in equalities and in at most one
    /// comparison. With `value`, its first column is included under its name. `None` if the
    /// sub-query reads the domain anywhere else.
    pub(super) fn keyed(&self, subquery: &Subquery, value: bool) -> Result<Option<Keyed>> {
        let Some((filter, first)) = filtered(&subquery.subquery, value) else { return Ok(None) };
        if self.in_plan(&filter.input)? || first.is_some_and(|first| self.in_expr(first)) {
            return Ok(None);
        }
        let (own, shared): (Vec<_>, Vec<_>) = split_conjunction_owned(filter.predicate.clone())
            .into_iter()
            .partition(|test| !self.in_expr(test));
        if shared.is_empty() {
            return Ok(None);
        }
        let mut columns: Vec<_> = first.cloned().into_iter().collect();
        let (mut on, mut others) = (vec![], vec![]);
        for (number, test) in shared.iter().enumerate() {
            let Some((read, equal)) = self.key(test)? else {
                others.push(test);
                continue;
            };
            let name = self.name_of_key(number);
            columns.push(equal.alias(&name));
            on.push((self.outer(read, subquery)?, name));
        }
        let compared = match others[..] {
            [] => None,
            [test] if !on.is_empty() => {
                let Some(compared) = self.comparison(test, filter.input.schema())? else {
                    return Ok(None);
                };
                columns.push(compared.own.clone().alias(self.name_of_value()));
                Some(compared)
            }
            _ => return Ok(None),
        };
        let mut plan = filter.input.as_ref().clone();
        if let Some(test) = all_of(own) {
            plan = LogicalPlan::Filter(Filter::try_new(test, Arc::new(plan))?);
        }
        let plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        let Some(compared) = compared else { return Ok(Some(Keyed { plan, on, filter: None })) };
        let plan = self.ends(plan)?;
        let filter = self.between_ends(&compared)?;
        let filter = Some(self.outer(self.resolved(filter, self.plan.schema())?, subquery)?);
        Ok(Some(Keyed { plan, on, filter }))
    }

    /// Rewrites an expression over the domain in terms of the outer rows.
    fn outer(&self, expr: Expr, subquery: &Subquery) -> Result<Expr> {
        let named = |column: &str| self.names().position(|name| name == column);
        rewritten(expr, &mut |node| {
            let Expr::Column(column) = node else { return Ok(None) };
            let number = named(&column.name);
            Ok(number.and_then(|number| outer_values(subquery).nth(number)))
        })
    }
}

/// Returns the WHERE clause below nodes that do not change which rows exist; with `value`, also the
/// rows' first column.
fn filtered(plan: &LogicalPlan, value: bool) -> Option<(&Filter, Option<&Expr>)> {
    match plan {
        LogicalPlan::Filter(filter) if !value => Some((filter, None)),
        LogicalPlan::Projection(node) if value => {
            let (filter, _) = filtered(&node.input, false)?;
            let is_below = matches!(node.input.as_ref(), LogicalPlan::Filter(_));
            is_below.then_some((filter, node.expr.first()))
        }
        LogicalPlan::Projection(node) if !node.expr.iter().any(has_subquery) => {
            filtered(&node.input, value)
        }
        LogicalPlan::SubqueryAlias(node) => filtered(&node.input, value),
        LogicalPlan::Sort(node) if node.fetch.is_none() => filtered(&node.input, value),
        LogicalPlan::Distinct(Distinct::All(input)) => filtered(input, value),
        LogicalPlan::Limit(node) if !value && has_first(node) => filtered(&node.input, value),
        _ => None,
    }
}

/// Whether a limit keeps the first row.
fn has_first(limit: &Limit) -> bool {
    matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
        && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(fetch)) if fetch != Some(0))
}
