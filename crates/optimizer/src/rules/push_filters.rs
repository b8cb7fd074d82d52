//! Logical rule: moves conditions closer to the rows that they test.
//!
//! Some nodes output rows even for empty input, such as totals and filled buckets. A condition that
//! reads no column must not move below them, but `DataFusion`'s rule moves it below any node. The
//! rule also derives new conditions of this kind from conditions on constant columns. Volatile
//! conditions must not move below these nodes either: if a node outputs several rows for one input
//! row, the condition must be evaluated for each of them.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::rules::fence::{is_fence, past_fence};

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct PushFilters(PushDownFilter);

impl OptimizerRule for PushFilters {
    fn name(&self) -> &'static str {
        "push_filters"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else { return self.0.rewrite(plan, config) };
        if is_fence(below_filters(&filter.input)) {
            let (conditions, fence) = merged(filter);
            return past_fence(conditions, fence);
        }
        if !may_make_rows(below_filters(&filter.input)) {
            return self.0.rewrite(LogicalPlan::Filter(filter), config);
        }
        let (conditions, input) = merged(filter);
        let (staying, moving): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(must_stay);
        let plan = match conjunction(moving) {
            Some(moving) => {
                let filter = Filter::try_new(moving, input.into())?;
                self.0.rewrite(LogicalPlan::Filter(filter), config)?.data
            }
            None => input,
        };
        let Some(staying) = conjunction(staying) else { return Ok(Transformed::yes(plan)) };
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(staying, plan.into())?)))
    }
}

/// Whether a condition must be evaluated for each row that the node outputs.
fn must_stay(condition: &Expr) -> bool {
    condition.column_refs().is_empty() || condition.is_volatile()
}

/// Whether a node may output rows for empty input.
fn may_make_rows(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Aggregate(_) | LogicalPlan::Extension(_))
}

fn below_filters(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Filter(filter) => below_filters(&filter.input),
        other => other,
    }
}

/// Returns the conditions of consecutive filters, the lowest first, and their input.
fn merged(filter: Filter) -> (Vec<Expr>, LogicalPlan) {
    let (mut conditions, input) = match Arc::unwrap_or_clone(filter.input) {
        LogicalPlan::Filter(below) => merged(below),
        other => (Vec::new(), other),
    };
    conditions.extend(split_conjunction_owned(filter.predicate));
    (conditions, input)
}
