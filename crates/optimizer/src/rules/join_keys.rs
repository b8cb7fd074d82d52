//! Logical rule: turns equalities in a join's condition into keys. Nulls are ordinary values here.
//!
//! `IS NOT DISTINCT FROM` may therefore be one of several keys. `DataFusion`'s rule accepts it only
//! as the sole key, and otherwise compares all pairs of rows.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, NullEquality, Result};
use datafusion::logical_expr::utils::{
    can_hash, conjunction, find_valid_equijoin_key_pair, split_conjunction_owned,
};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Operator};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct JoinKeys;

impl OptimizerRule for JoinKeys {
    fn name(&self) -> &'static str {
        "join_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Join(mut join) = plan else { return Ok(Transformed::no(plan)) };
        let nulls_are_values =
            join.on.is_empty() || join.null_equality == NullEquality::NullEqualsNull;
        let Some(filter) = join.filter.take_if(|_| nulls_are_values && !join.null_aware) else {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        };
        let (known, mut others) = (join.on.len(), vec![]);
        for test in split_conjunction_owned(filter) {
            match key(&test, &join)? {
                Some(pair) => join.on.push(pair),
                None => others.push(test),
            }
        }
        join.filter = conjunction(others);
        if join.on.len() == known {
            return Ok(Transformed::no(LogicalPlan::Join(join)));
        }
        join.null_equality = NullEquality::NullEqualsNull;
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    }
}

/// Returns the left and right values that a test requires to be equal, including nulls.
fn key(test: &Expr, join: &Join) -> Result<Option<(Expr, Expr)>> {
    let Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) = test else {
        return Ok(None);
    };
    if !matches!(op, Operator::Eq | Operator::IsNotDistinctFrom) {
        return Ok(None);
    }
    let (left, right): (&Arc<DFSchema>, _) = (join.left.schema(), join.right.schema());
    let Some(pair) = find_valid_equijoin_key_pair(one, other, left, right)? else {
        return Ok(None);
    };
    let are_keys = can_hash(&pair.0.get_type(left)?) && can_hash(&pair.1.get_type(right)?);
    // `=` is not true for two nulls.
    let has_nulls = *op == Operator::Eq && pair.0.nullable(left)? && pair.1.nullable(right)?;
    Ok((are_keys && !has_nulls).then_some(pair))
}
