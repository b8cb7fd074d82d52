//! `ARRAY[…]` and `array[…]`.

use tidemark_ast::{IndexSelector, NodeId, Span};
use tidemark_functions::{Argument, Selector, resolve_array, resolve_index};
use tidemark_types::EngineResult;

use super::expression::Scope;
use super::typing::located_call;
use super::{Binder, Typed};

impl Binder<'_> {
    /// `ARRAY[items]`.
    pub(crate) fn array(
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
        self.resolved_call(resolved, elements, position)
    }

    /// `operand[selectors]`.
    pub(crate) fn element(
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
        let arguments = self.expressions(&nodes, scope)?;
        let spans: Vec<Span> = nodes.iter().map(|node| self.tree.span(*node)).collect();
        let described: Vec<Argument> = arguments.iter().map(Typed::argument).collect();
        let resolved = resolve_index(&kinds, &described)
            .map_err(|error| located_call(error, position, &spans))?;
        self.resolved_call(resolved, arguments, position)
    }
}
