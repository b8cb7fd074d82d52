//! The rows around a sub-query: where a name is looked up that its own sources do not have.

use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Expr;
use tidemark_types::EngineResult;

use crate::binder::error;
use crate::binder::state::scope::{Relation, ScopeColumn};
use crate::binder::state::typed::Typed;

/// The rows around a sub-query that is being bound, and what it reads of them.
#[derive(Debug, Clone)]
pub(crate) struct OuterRows {
    pub(crate) rows: Relation,
    pub(crate) captured: Vec<Expr>,
}

impl OuterRows {
    pub(crate) fn new(rows: Relation) -> Self {
        Self { rows, captured: Vec::new() }
    }

    /// Notes that `outer` is read, under the name of `column`.
    pub(crate) fn capture(&mut self, outer: Expr, column: &ScopeColumn) {
        let own = &column.column;
        let named = outer.alias_qualified(own.relation.clone(), &own.name);
        if !self.captured.contains(&named) {
            self.captured.push(named);
        }
    }

    /// Puts what was read before in front of what was read since.
    pub(crate) fn capture_first(&mut self, mut before: Vec<Expr>) {
        let since = std::mem::take(&mut self.captured);
        before.extend(since);
        for expr in before {
            if !self.captured.contains(&expr) {
                self.captured.push(expr);
            }
        }
    }

    /// An expression over these rows, as a sub-query beside them sees it.
    pub(crate) fn seen_from_inside(&mut self, typed: Typed) -> EngineResult<Typed> {
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

/// A column of the rows around, as a sub-query's plan refers to it.
pub(crate) fn outer_reference(column: &ScopeColumn) -> Expr {
    let field = Field::new(&column.name, column.sql_type.arrow_type(), true);
    Expr::OuterReferenceColumn(Arc::new(field), column.column.clone())
}
