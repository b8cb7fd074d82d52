//! ORDER BY. Null is the smallest value of every type but FLOAT and DOUBLE, where it is the
//! greatest.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, LogicalPlan, Sort, SortExpr};
use tidemark_ast::{Node, NullsOrder, OrderItem, Span};
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::state::scope::Relation;
use crate::binder::{Binder, error};

/// One key of ORDER BY.
#[derive(Debug, Clone)]
pub(crate) struct SortKey {
    /// Over the rows below the list.
    pub(crate) expr: Expr,
    /// The output column it is, if it is one.
    pub(crate) output: Option<usize>,
    pub(crate) descending: bool,
    nulls_first: bool,
}

impl SortKey {
    pub(crate) fn new(
        item: &OrderItem,
        expr: Expr,
        sql_type: SqlType,
        output: Option<usize>,
    ) -> Self {
        let nulls_first = match item.nulls {
            Some(nulls) => nulls == NullsOrder::First,
            None => sql_type.is_floating() == item.descending,
        };
        Self { expr, output, descending: item.descending, nulls_first }
    }

    /// The key over another expression of the same value.
    pub(crate) fn sort(&self, expr: Expr) -> SortExpr {
        SortExpr::new(expr, !self.descending, self.nulls_first)
    }
}

/// Sorted rows.
pub(crate) fn sort(
    plan: LogicalPlan,
    keys: impl Iterator<Item = SortExpr>,
) -> EngineResult<LogicalPlan> {
    let expr: Vec<SortExpr> = keys.collect();
    if expr.is_empty() {
        return Ok(plan);
    }
    Ok(LogicalPlan::Sort(Sort { expr, input: Arc::new(plan), fetch: None }))
}

/// The index a position such as `2` means.
pub(crate) fn position(text: &str, columns: usize, at: Span) -> EngineResult<usize> {
    match text.parse::<usize>() {
        Ok(position) if (1..=columns).contains(&position) => Ok(position - 1),
        _ => Err(error::at(
            ErrorCode::ColumnNotFound,
            format!("order column position is out of range [max={columns}]"),
            at,
        )),
    }
}

impl Binder<'_> {
    /// ORDER BY over a query whose select list is not in scope: set operations, SHOW.
    pub(crate) fn ordered(
        &mut self,
        relation: Relation,
        order_by: &[OrderItem],
    ) -> EngineResult<Relation> {
        if order_by.is_empty() {
            return Ok(relation);
        }
        let mut keys = Vec::with_capacity(order_by.len());
        for item in order_by {
            let at = self.tree.span(item.expression);
            let key = if let Node::Integer { text } = self.node(item.expression)? {
                let index = position(text, relation.columns.len(), at)?;
                let column = &relation.columns[index];
                SortKey::new(item, column.expr(), column.sql_type, Some(index))
            } else {
                let scope = crate::binder::state::scope::Scope::rows(&relation);
                let value = self.expression(item.expression, &scope)?;
                let output = relation.columns.iter().position(|column| column.is(&value.expr));
                SortKey::new(item, value.expr, value.sql_type, output)
            };
            keys.push(key);
        }
        let plan = sort(relation.plan.clone(), keys.iter().map(|key| key.sort(key.expr.clone())))?;
        let mut relation = relation.with_plan(plan);
        relation.designate_by(&keys);
        Ok(relation)
    }
}
