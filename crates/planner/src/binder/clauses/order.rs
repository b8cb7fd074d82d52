//! ORDER BY positions, and ORDER BY over queries whose select list is not in scope.

use tidemark_ast::{Node, OrderItem, Span};
use tidemark_types::{EngineResult, ErrorCode};

use crate::binder::expressions::sort_key::SortKey;
use crate::binder::state::relation;
use crate::binder::state::scope::{Relation, TimeOrder};
use crate::binder::{Binder, error};

/// The column index for a position such as `2`.
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
    /// Applies ORDER BY to a query whose select list is not in scope: a set operation or SHOW.
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
        let plan = relation::sort(
            relation.plan.clone(),
            keys.iter().map(|key| key.sort(key.expr.clone())),
        )?;
        let mut relation = relation.with_plan(plan);
        relation.designate_by(&keys);
        Ok(relation)
    }
}

impl Relation {
    /// Updates the designated timestamp after ORDER BY. It is retained only if it is the first sort
    /// key. If the first key is a different timestamp in ascending order, that timestamp becomes
    /// the designated one.
    pub(crate) fn designate_by(&mut self, keys: &[SortKey]) {
        let Some(first) = keys.first() else { return };
        let designated = first.output.filter(|index| {
            let is_time = self.columns[*index].sql_type.is_timestamp();
            is_time && (!first.descending || self.timestamp == Some(*index))
        });
        self.timestamp = designated;
        self.order = match designated {
            None => TimeOrder::Unknown,
            Some(_) => first.time_order(),
        };
    }
}
