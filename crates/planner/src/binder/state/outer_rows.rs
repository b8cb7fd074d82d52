//! The outer rows of a sub-query. Names that the sub-query's own sources lack are looked up in
//! these rows.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Expr;
use tidemark_types::EngineResult;

use crate::binder::error;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::state::typed::Typed;

/// The outer rows of a sub-query being bound, and the expressions that it reads from them.
#[derive(Debug, Clone)]
pub(crate) struct OuterRows {
    pub(crate) rows: Relation,
    pub(crate) captured: Vec<Expr>,
}

impl OuterRows {
    pub(crate) fn new(rows: Relation) -> Self {
        Self { rows, captured: Vec::new() }
    }

    /// Records that `outer` is read, under the name of `column`.
    pub(crate) fn capture(&mut self, outer: Expr, column: &ScopeColumn) {
        let own = &column.column;
        let named = outer.alias_qualified(own.relation.clone(), &own.name);
        if !self.captured.contains(&named) {
            self.captured.push(named);
        }
    }

    /// Inserts earlier captures before the captures that have been made since.
    pub(crate) fn capture_first(&mut self, mut before: Vec<Expr>) {
        let since = std::mem::take(&mut self.captured);
        before.extend(since);
        for expr in before {
            if !self.captured.contains(&expr) {
                self.captured.push(expr);
            }
        }
    }

    /// Converts an expression over these rows for use inside a sub-query.
    pub(crate) fn as_outer_reference(&mut self, typed: Typed) -> EngineResult<Typed> {
        let columns = self.rows.columns.clone();
        let seen = typed.expr.transform(|node| {
            let own = match &node {
                Expr::Column(column) => columns.iter().find(|own| own.column == *column),
                _ => None,
            };
            let Some(own) = own else { return Ok(Transformed::no(node)) };
            self.capture(node, own);
            Ok(Transformed::yes(outer_reference(own)))
        });
        Ok(Typed { expr: seen.data().map_err(error::plan)?, ..typed })
    }
}

/// The expression by which a sub-query's plan refers to an outer column.
pub(crate) fn outer_reference(column: &ScopeColumn) -> Expr {
    let field = Field::new(&column.name, column.sql_type.arrow_type(), true);
    Expr::OuterReferenceColumn(Arc::new(field), column.column.clone())
}
