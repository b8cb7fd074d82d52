//! Fences keep conditions written by a view's readers away from rows that the view excludes.
//!
//! A condition that moves below the view's own condition would be evaluated for every row. If it
//! can fail, as `'a' ~ c` and `rpad('x', c, 'y') = 'x'` can, its errors would reveal rows that the
//! reader may not see. A fence is a limit that removes no rows: `DataFusion` never moves a
//! condition past a limit. [`past_fence`] moves conditions that cannot fail, so they still prune
//! partitions. Fences are removed before a plan runs.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Limit, LogicalPlan, Operator};
use tidemark_types::SYMBOL_EQUAL;

/// Functions that cannot fail for any value. Constant patterns have already been compiled.
const SAFE_FUNCTIONS: &[&str] = &[
    SYMBOL_EQUAL,
    "double_equal",
    "double_less",
    "double_less_or_equal",
    "double_greater",
    "double_greater_or_equal",
];
const SAFE_PATTERNS: &[&str] = &["like", "ilike"];

/// Fences a plan: only conditions that cannot fail may move into it.
#[must_use]
pub fn fenced(plan: LogicalPlan) -> LogicalPlan {
    LogicalPlan::Limit(Limit { skip: None, fetch: None, input: Arc::new(plan) })
}

pub(crate) fn is_fence(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Limit(Limit { skip: None, fetch: None, .. }))
}

/// Moves conditions that cannot fail below a fence.
pub(crate) fn past_fence(
    conditions: Vec<Expr>,
    fence: LogicalPlan,
) -> Result<Transformed<LogicalPlan>> {
    let (moving, staying): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_safe);
    let above = |plan: LogicalPlan| -> Result<LogicalPlan> {
        Ok(match conjunction(staying) {
            Some(staying) => LogicalPlan::Filter(Filter::try_new(staying, plan.into())?),
            None => plan,
        })
    };
    let (Some(moving), LogicalPlan::Limit(limit)) = (conjunction(moving), &fence) else {
        return above(fence).map(Transformed::no);
    };
    let below = Filter::try_new(moving, Arc::clone(&limit.input))?;
    above(fenced(LogicalPlan::Filter(below))).map(Transformed::yes)
}

/// Whether a condition cannot fail for any row.
fn is_safe(condition: &Expr) -> bool {
    let mut safe = true;
    let visited = condition.apply(|node| {
        safe = is_safe_part(node);
        Ok(if safe { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    safe && visited.is_ok()
}

fn is_safe_part(node: &Expr) -> bool {
    match node {
        Expr::Column(_)
        | Expr::Literal(..)
        | Expr::Not(_)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::Between(_)
        | Expr::InList(_) => true,
        Expr::BinaryExpr(binary) => is_safe_operator(binary.op),
        Expr::ScalarFunction(call) => {
            let is_constant = matches!(call.args.last(), Some(Expr::Literal(..)));
            SAFE_FUNCTIONS.contains(&call.name())
                || (is_constant && SAFE_PATTERNS.contains(&call.name()))
        }
        _ => false,
    }
}

fn is_safe_operator(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::And
            | Operator::Or
            | Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}
