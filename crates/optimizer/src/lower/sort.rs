//! ORDER BY: rows already in order, a scan in the opposite direction, or a sort.

use std::sync::Arc;

use arrow_schema::SortOptions;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{Sort, SortExpr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use tidemark_operators::{PlanNode, SortRows, TopRows, follows_scan_order, reversed};

use super::inputs::{merged, sorts_by_time};
use super::planned::{Order, Plan, Planned, Requirements, mark_columns, over};
use super::walk::Walk;

/// How many rows a limit skips, and the maximum number that it returns.
pub(super) type Skipped = (usize, Option<usize>);

impl Walk<'_> {
    /// Lowers a sort with the limit directly above it.
    pub(super) fn sort(
        &self,
        sort: &Sort,
        requirements: &Requirements,
        limit: Option<Skipped>,
    ) -> Result<Planned> {
        let schema = sort.input.schema();
        let rows = [requirements.rows, sort.fetch].into_iter().flatten().min();
        let below = requirements.of(requirements.columns.clone());
        let is_needed = match requirements.order {
            Order::Any => false,
            Order::AsItIs => true,
            Order::ByTime(at) => is_by_time(sort, at),
        };
        if !is_needed && rows.is_none() {
            return self.node(&sort.input, &below);
        }
        let mut columns = requirements.columns.clone();
        for key in &sort.expr {
            mark_columns(&key.expr, schema, &mut columns)?;
        }
        let below = Requirements { rows: None, ..below.of(columns.clone()).in_any_order() };
        let input = self.node(&sort.input, &below)?;
        let keys = sort.expr.iter().map(|key| {
            let expr = self.folded(&key.expr, &input.schema)?;
            let expr = self.lowering.expr(&expr, &input.schema)?;
            let options = SortOptions { descending: !key.asc, nulls_first: key.nulls_first };
            Ok(PhysicalSortExpr::new(expr, options))
        });
        let Some(order) = LexOrdering::new(keys.collect::<Result<Vec<_>>>()?) else {
            return plan_err!("a sort has no keys");
        };
        let plan = match below_projection(&input.plan, &order)? {
            Some((below, order)) => {
                let sorted = self.sorted(below, &order, true, rows, limit)?;
                replace_children_if_necessary(Arc::clone(&input.plan), vec![sorted])?
            }
            None => self.sorted(input.plan, &order, true, rows, limit)?,
        };
        Planned { plan, schema: input.schema }.narrowed_to(requirements, &columns)
    }

    /// Sorts the rows, keeps at most the first `rows`, and adds the limit. With `into_one`, returns
    /// a single partition.
    pub(super) fn sorted(
        &self,
        input: Plan,
        order: &LexOrdering,
        into_one: bool,
        rows: Option<usize>,
        limit: Option<Skipped>,
    ) -> Result<Plan> {
        if let Some(plan) = without_sort(&input, order, into_one, rows)? {
            return match limit.or(rows.map(|rows| (0, Some(rows)))) {
                Some(limit) => self.limited(plan, rows, limit),
                None => Ok(plan),
            };
        }
        let partitions = input.output_partitioning().partition_count();
        let sorted = |sort: Plan| -> Plan {
            let plan = if into_one && partitions > 1 {
                Arc::new(SortPreservingMergeExec::new(order.clone(), sort).with_fetch(rows))
            } else {
                sort
            };
            match limit {
                Some((skip, fetch)) => Arc::new(GlobalLimitExec::new(plan, skip, fetch)),
                None => plan,
            }
        };
        let sort: Plan = Arc::new(
            SortExec::new(order.clone(), input)
                .with_fetch(rows)
                .with_preserve_partitioning(partitions > 1),
        );
        let plan = sorted(Arc::clone(&sort));
        if let Some(own) = SortRows::try_replace(&plan) {
            return Ok(own);
        }
        Ok(TopRows::below(&sort)?.map_or(plan, sorted))
    }
}

/// If the sort keys are plain columns of a projection, returns the projection's input and the order
/// expressed over that input. The sort then carries no computed columns; they are computed only for
/// the first rows.
fn below_projection(plan: &Plan, order: &LexOrdering) -> Result<Option<(Plan, LexOrdering)>> {
    let PlanNode::Projection(projection) = PlanNode::of(plan.as_ref()) else { return Ok(None) };
    let mut keys = Vec::with_capacity(order.len());
    for key in order {
        let expr = over(&key.expr, projection.expr())?;
        if !expr.is::<Column>() {
            return Ok(None);
        }
        keys.push(PhysicalSortExpr::new(expr, key.options));
    }
    let input = Arc::clone(projection.input());
    Ok(LexOrdering::new(keys).map(|order| (input, order)))
}

/// Whether rows are sorted first by the column at this position, ascending.
fn is_by_time(sort: &Sort, at: usize) -> bool {
    let column = |key: &SortExpr| {
        let column = key.expr.try_as_col().filter(|_| key.asc)?;
        sort.input.schema().maybe_index_of_column(column)
    };
    sort.expr.first().and_then(column) == Some(at)
}

/// Returns the rows in this order, if that needs no sort.
fn without_sort(
    input: &Plan,
    order: &LexOrdering,
    into_one: bool,
    rows: Option<usize>,
) -> Result<Option<Plan>> {
    if let Some(plan) = by_time(input, order, rows)? {
        return Ok(Some(plan));
    }
    if !input.equivalence_properties().ordering_satisfy(order.clone())? {
        return Ok(None);
    }
    let input = Arc::clone(input);
    Ok(Some(if into_one { merged(input, order, rows) } else { input }))
}

/// Sets the input's scan to the direction that an order by its designated timestamp requires.
fn by_time(input: &Plan, order: &LexOrdering, rows: Option<usize>) -> Result<Option<Plan>> {
    let [key] = order.as_ref() else { return Ok(None) };
    let Some(is_backward) = sorts_by_time(input, key) else { return Ok(None) };
    if !follows_scan_order(input) {
        return Ok(None);
    }
    if is_backward {
        return reversed(input, rows);
    }
    // Reversing the scan twice restores its direction. The second reversal sets the row limit.
    match reversed(input, None)? {
        Some(turned) => reversed(&turned, rows),
        None => Ok(None),
    }
}
