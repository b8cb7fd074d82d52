//! `ARRAY[…]` and `array[…]`.

use datafusion::logical_expr::{Expr, lit};
use tidemark_ast::{IndexSelector, Node, NodeId, Span};
use tidemark_functions::{Argument, CastMode, Selector, resolve_array, resolve_index};
use tidemark_types::{CatalogType, EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::typing::located_call;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds `ARRAY[…]` or `array[…]`.
    pub(crate) fn array(
        &mut self,
        node: &Node,
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        match node {
            Node::Array { items } => self.literal_array(items, position, scope),
            Node::Index { operand, selectors } => {
                self.element(*operand, selectors, position, scope)
            }
            _ => Err(EngineError::internal("expected an array or an array index")),
        }
    }

    /// Binds `ARRAY[items]`.
    fn literal_array(
        &mut self,
        items: &[NodeId],
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let elements = self.expressions(items, scope)?;
        let spans: Vec<Span> = items.iter().map(|item| self.tree.span(*item)).collect();
        let described: Vec<Argument> = elements.iter().map(Typed::argument).collect();
        let resolved =
            resolve_array(&described).map_err(|error| located_call(error, position, &spans))?;
        self.resolved_call(resolved, elements, position, &spans)
    }

    /// Binds `operand[selectors]`.
    fn element(
        &mut self,
        operand: NodeId,
        selectors: &[IndexSelector],
        position: Span,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let mut nodes = vec![operand];
        let mut kinds = Vec::with_capacity(selectors.len());
        for selector in selectors {
            match selector {
                IndexSelector::Item { index } => {
                    nodes.push(*index);
                    kinds.push(Selector::Item);
                }
                IndexSelector::Slice { low, high } => {
                    nodes.push(*low);
                    nodes.extend(*high);
                    kinds.push(if high.is_some() { Selector::Range } else { Selector::From });
                }
            }
        }
        let mut arguments = self.expressions(&nodes, scope)?;
        let spans: Vec<Span> = nodes.iter().map(|node| self.tree.span(*node)).collect();
        // Catalog arrays are stored as strings, but an ordinary string column is not an array.
        let [array, ..] = arguments.as_slice() else {
            return Err(EngineError::internal("an index has no array"));
        };
        let of = catalog_type(array, scope).filter(|_| kinds == [Selector::Item]);
        let is_array = of.is_some() || !matches!(array.expr, Expr::Column(_));
        if array.sql_type.is_text() && is_array && kinds == [Selector::Item] {
            return self.scalar_call("pg_array_item", arguments, position, &spans);
        }
        if of.is_some_and(CatalogType::is_vector) {
            let index = arguments[1].clone();
            let index = self.cast(index, SqlType::Long, CastMode::Explicit, spans[1])?;
            arguments[1] = Typed::computed(index.expr + lit(1_i64), SqlType::Long);
        }
        let described: Vec<Argument> = arguments.iter().map(Typed::argument).collect();
        if let Some(at) = described.iter().skip(1).position(|index| index.integer() == Some(0)) {
            let message = "array index must be at least 1 [index=0]";
            return Err(error::at(ErrorCode::InvalidValue, message, spans[at + 1]));
        }
        let resolved = resolve_index(&kinds, &described)
            .map_err(|error| located_call(error, position, &spans))?;
        let element = self.resolved_call(resolved, arguments, position, &spans)?;
        match of {
            // Column numbers and OIDs are integers.
            Some(_) => self.cast(element, SqlType::Int, CastMode::Explicit, position),
            None => Ok(element),
        }
    }
}

/// The `PostgreSQL` catalog type of a catalog column; `None` for other values.
pub(crate) fn catalog_type(value: &Typed, scope: &Scope<'_>) -> Option<CatalogType> {
    let Expr::Column(column) = &value.expr else { return None };
    scope.relation?.catalog_type(column)
}
