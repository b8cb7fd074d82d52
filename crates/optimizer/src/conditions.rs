//! Combines many conditions into a balanced expression tree. `DataFusion` chains the conditions
//! that it moves, and each condition in a chain costs a stack frame in every traversal.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Maximum number of conditions in a chain that is left unchanged.
const SHORT: usize = 32;

/// Combines the conditions with AND into a balanced tree.
pub fn all_of(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    balanced(conditions.into_iter().collect(), Expr::and)
}

/// Combines the conditions with OR into a balanced tree.
pub fn any_of(conditions: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    balanced(conditions.into_iter().collect(), Expr::or)
}

fn balanced(mut exprs: Vec<Expr>, join: fn(Expr, Expr) -> Expr) -> Option<Expr> {
    while exprs.len() > 1 {
        let mut next = Vec::with_capacity(exprs.len().div_ceil(2));
        let mut pending = exprs.into_iter();
        while let Some(left) = pending.next() {
            next.push(match pending.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        exprs = next;
    }
    exprs.pop()
}

/// Balances the condition chains that other rules have built.
#[derive(Debug)]
pub(crate) struct BalanceConditions;

impl OptimizerRule for BalanceConditions {
    fn name(&self) -> &'static str {
        "balance_conditions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Filter(mut filter) if is_chain(&filter.predicate) => {
                filter.predicate = rebalanced(filter.predicate);
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Join(mut join) if join.filter.as_ref().is_some_and(is_chain) => {
                join.filter = join.filter.map(rebalanced);
                Ok(Transformed::yes(LogicalPlan::Join(join)))
            }
            other => Ok(Transformed::no(other)),
        }
    }
}

fn rebalanced(predicate: Expr) -> Expr {
    all_of(split_conjunction_owned(predicate)).unwrap_or_default()
}

/// Whether ANDs are nested many levels deep in their left or right operands.
fn is_chain(predicate: &Expr) -> bool {
    let is_long = |side: fn(&BinaryExpr) -> &Expr| {
        let mut at = predicate;
        for _ in 0..SHORT {
            match at {
                Expr::BinaryExpr(binary) if binary.op == Operator::And => at = side(binary),
                _ => return false,
            }
        }
        true
    };
    is_long(|binary| &binary.left) || is_long(|binary| &binary.right)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[test]
    fn a_chain_of_conditions_becomes_a_balanced_tree() {
        let conditions = || (0..10_000).map(|at| col("a").not_eq(lit(at)));
        let chain = conditions().take(1_000).reduce(Expr::and).unwrap();
        assert!(is_chain(&chain));
        let tree = rebalanced(chain);
        assert!(!is_chain(&tree));
        let order = split_conjunction_owned(tree);
        assert_eq!(order, conditions().take(1_000).collect::<Vec<_>>());
        assert!(!is_chain(&all_of(conditions()).unwrap()));
        assert_eq!(any_of([]), None);
    }
}
