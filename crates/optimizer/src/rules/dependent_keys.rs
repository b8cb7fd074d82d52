//! Logical rule: removes GROUP BY keys that are constants or functions of other keys.
//!
//! `GROUP BY 1, a, a - 1` has the same groups as `GROUP BY a`; the removed keys are computed from
//! the groups.

use std::collections::HashMap;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, ExprSchema, Result};
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tidemark_operators::as_key;

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct DependentKeys;

impl OptimizerRule for DependentKeys {
    fn name(&self) -> &'static str {
        "dependent_keys"
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
        let LogicalPlan::Aggregate(node) = plan else { return Ok(Transformed::no(plan)) };
        let columns = key_columns(&node);
        let depends = |key: &Expr| is_dependent(key, &columns);
        let dependent = node.group_expr.iter().filter(|key| depends(key)).count();
        // Without any key, an empty input would form a group.
        if dependent == 0 || dependent == node.group_expr.len() {
            return Ok(Transformed::no(LogicalPlan::Aggregate(node)));
        }
        let from_groups = |key: &Expr| {
            let (qualifier, name) = key.qualified_name();
            let group = |expr: Expr| {
                let group = expr.try_as_col().and_then(|column| columns.get(column));
                let group = group.map(|group| Expr::Column(group.clone()));
                Ok(group.map_or_else(|| Transformed::no(expr), Transformed::yes))
            };
            let computed = key.clone().unalias().transform(group).data()?;
            // Normalises the computed key here, because the rule that normalises keys no longer
            // sees it.
            let data_type = key.get_type(node.input.schema())?;
            let computed = as_key(&computed, &data_type).unwrap_or(computed);
            Ok(computed.alias_qualified(qualifier, name))
        };
        let output = node.schema.columns().into_iter().enumerate().map(|(at, column)| {
            match node.group_expr.get(at) {
                Some(key) if depends(key) => from_groups(key),
                _ => Ok(Expr::Column(column)),
            }
        });
        let output = output.collect::<Result<Vec<_>>>()?;
        let keys = node.group_expr.iter().filter(|key| !depends(key)).cloned().collect();
        let groups = Aggregate::try_new(node.input, keys, node.aggr_expr)?;
        let plan =
            LogicalPlanBuilder::from(LogicalPlan::Aggregate(groups)).project(output)?.build()?;
        Ok(Transformed::yes(plan))
    }
}

/// Returns the input columns that are keys, each with its column in the groups. A column is
/// excluded if equal values may have different bits (0.0 and -0.0), since a group keeps only one of
/// them.
fn key_columns(node: &Aggregate) -> HashMap<Column, Column> {
    let schema = node.input.schema();
    let column = |(key, group): (&Expr, Column)| {
        let own = key.clone().unalias().try_as_col()?.clone();
        let data_type = schema.field_from_column(&own).ok()?.data_type().clone();
        as_key(key, &data_type).is_none().then_some((own, group))
    };
    node.group_expr.iter().zip(node.schema.columns()).filter_map(column).collect()
}

/// Whether a key can be computed from these columns.
fn is_dependent(key: &Expr, columns: &HashMap<Column, Column>) -> bool {
    let reads_more = |expr: &Expr| {
        let more = matches!(
            expr,
            Expr::GroupingSet(_) | Expr::ScalarSubquery(_) | Expr::OuterReferenceColumn(..)
        );
        Ok(more)
    };
    let read = key.column_refs();
    let is_column = |expr: &Expr| match expr {
        Expr::Alias(alias) => alias.expr.try_as_col().is_some(),
        expr => expr.try_as_col().is_some(),
    };
    !is_column(key)
        && read.iter().all(|column| columns.contains_key(*column))
        && !key.is_volatile()
        && !key.exists(reads_more).unwrap_or(true)
}
