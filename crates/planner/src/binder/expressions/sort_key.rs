//! ORDER BY keys, in a query or a window. Null sorts before every other value, except in FLOAT and
//! DOUBLE, where it sorts last.

use datafusion::logical_expr::{Expr, SortExpr};
use tidemark_ast::{NullsOrder, OrderItem};
use tidemark_functions::{array_order, period_order};
use tidemark_types::SqlType;

use crate::binder::state::scope::TimeOrder;

/// An ORDER BY key.
#[derive(Debug, Clone)]
pub(crate) struct SortKey {
    /// The expression over the rows below the select list.
    pub(crate) expr: Expr,
    /// Index of the output column, if the key is an output column.
    pub(crate) output: Option<usize>,
    pub(crate) descending: bool,
    nulls_first: bool,
    sql_type: SqlType,
}

impl SortKey {
    /// The time order of rows that are sorted by this key.
    pub(crate) fn time_order(&self) -> TimeOrder {
        if self.descending { TimeOrder::Descending } else { TimeOrder::Ascending }
    }

    pub(crate) fn new(
        item: &OrderItem,
        expr: Expr,
        sql_type: SqlType,
        output: Option<usize>,
    ) -> Self {
        let OrderItem { expression: _, descending, nulls } = item;
        let nulls_first = match nulls {
            Some(nulls) => *nulls == NullsOrder::First,
            None => sql_type.is_floating() == *descending,
        };
        Self { expr, output, descending: *descending, nulls_first, sql_type }
    }

    /// Applies this key's sort options to another expression with the same value.
    pub(crate) fn sort(&self, expr: Expr) -> SortExpr {
        let expr = match self.sql_type {
            SqlType::Period => period_order(expr),
            SqlType::DoubleArray(dimensions) => array_order(expr, dimensions),
            _ => expr,
        };
        SortExpr::new(expr, !self.descending, self.nulls_first)
    }
}
