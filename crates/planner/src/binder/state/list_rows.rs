//! What the select list takes apart into rows: the arrays it found, and the rows they make.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan};
use tidemark_operators::{UnnestItem, UnnestNode};
use tidemark_types::EngineResult;

use crate::binder::error;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, ScopeColumn};

/// What the list of one SELECT block takes apart.
#[derive(Debug, Default)]
pub(crate) struct ListRows {
    /// What the columns of the elements are called, before their numbers.
    prefix: String,
    arguments: Vec<Expr>,
    items: Vec<UnnestItem>,
}

impl ListRows {
    /// Nothing yet, under columns of this name.
    pub(crate) fn named(prefix: String) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Whether its columns have their name.
    pub(crate) fn is_named(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Takes an array apart: the column of its elements.
    pub(crate) fn element(&mut self, array: Expr, item: UnnestItem) -> Expr {
        let name = format!("{}{}", self.prefix, self.arguments.len());
        self.arguments.push(array);
        self.items.push(item);
        Expr::Column(Column::new_unqualified(name))
    }

    /// The column that numbers the elements, from 1.
    pub(crate) fn number(&self) -> String {
        format!("{}n", self.prefix)
    }

    /// The rows of `source`, each as often as its longest array has elements.
    pub(crate) fn over(self, source: Relation) -> EngineResult<Relation> {
        if self.arguments.is_empty() {
            return Ok(source);
        }
        let number = self.number();
        let count = self.arguments.len();
        let element = |index: usize| format!("{}{index}", self.prefix);
        let mut exprs: Vec<Expr> = source.columns.iter().map(ScopeColumn::expr).collect();
        exprs.extend((0..count).map(|index| Expr::Column(Column::new_unqualified(element(index)))));
        exprs.push(Expr::Column(Column::new_unqualified(element(count))).alias(number));
        exprs.extend(source.unselected());
        let node = UnnestNode::try_new(
            source.plan.clone(),
            self.arguments,
            self.items,
            self.prefix,
            false,
        );
        let node = Extension { node: Arc::new(node.map_err(error::plan)?) };
        let plan = relation::project(LogicalPlan::Extension(node), exprs)?;
        Ok(Relation { order: source.order.shuffled(), ..source.with_plan(plan) })
    }
}
