//! Values that the select list expands into rows: the arrays, and the resulting rows.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan};
use tidemark_operators::{UnnestItem, UnnestNode};
use tidemark_types::EngineResult;

use crate::binder::error;
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;

/// The values that a SELECT block's select list expands.
#[derive(Debug, Default)]
pub(crate) struct ListRows {
    /// Name prefix of the element columns. A column's name is this prefix followed by the column's
    /// index.
    prefix: String,
    arguments: Vec<Expr>,
    items: Vec<UnnestItem>,
}

impl ListRows {
    /// An empty list whose element columns have this prefix.
    pub(crate) fn named(prefix: String) -> Self {
        Self { prefix, ..Self::default() }
    }

    /// Whether the element columns have a name prefix.
    pub(crate) fn is_named(&self) -> bool {
        !self.prefix.is_empty()
    }

    /// Registers an array for expansion and returns its element column.
    pub(crate) fn element(&mut self, array: Expr, item: UnnestItem) -> Expr {
        let name = format!("{}{}", self.prefix, self.arguments.len());
        self.arguments.push(array);
        self.items.push(item);
        Expr::Column(Column::new_unqualified(name))
    }

    /// Name of the column that numbers the elements, from 1.
    pub(crate) fn number(&self) -> String {
        format!("{}n", self.prefix)
    }

    /// Whether an expression reads an element or its number.
    pub(crate) fn are_read(&self, expr: &Expr) -> bool {
        let is_element = |node: &Expr| {
            let Expr::Column(Column { relation: None, name, .. }) = node else { return Ok(false) };
            Ok(name.strip_prefix(&self.prefix).is_some_and(|position| {
                position == "n"
                    || position.parse().is_ok_and(|index: usize| index < self.items.len())
            }))
        };
        self.is_named() && expr.exists(is_element).unwrap_or(false)
    }

    /// The arrays to expand.
    pub(crate) fn arguments(&self) -> &[Expr] {
        &self.arguments
    }

    /// Transforms each array.
    pub(crate) fn mapped(
        mut self,
        change: impl FnMut(Expr) -> EngineResult<Expr>,
    ) -> EngineResult<Self> {
        self.arguments = self.arguments.into_iter().map(change).collect::<EngineResult<_>>()?;
        Ok(self)
    }

    /// The rows of `source`, each repeated once per element in its longest array.
    pub(crate) fn over(self, source: Relation) -> EngineResult<Relation> {
        if self.arguments.is_empty() {
            return Ok(source);
        }
        let plan = self.over_plan(source.plan.clone())?;
        Ok(Relation { order: source.order.shuffled(), ..source.with_plan(plan) })
    }

    /// A plan's rows, each repeated once per element in its longest array.
    pub(crate) fn over_plan(self, plan: LogicalPlan) -> EngineResult<LogicalPlan> {
        if self.arguments.is_empty() {
            return Ok(plan);
        }
        let number = self.number();
        let count = self.arguments.len();
        let element =
            |index| Expr::Column(Column::new_unqualified(format!("{}{index}", self.prefix)));
        let mut exprs: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
        exprs.extend((0..count).map(element));
        exprs.push(element(count).alias(number));
        let node = UnnestNode::try_new(plan, self.arguments, self.items, self.prefix, false);
        let node = Extension { node: Arc::new(node.map_err(error::plan)?) };
        relation::project(LogicalPlan::Extension(node), exprs)
    }
}
