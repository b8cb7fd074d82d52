//! Named windows in scope. A window can refer only to windows declared before it, so references
//! cannot form a cycle. Each window is resolved once, at its declaration, so a long chain of
//! references costs no extra stack or time.

use std::sync::Arc;

use hashbrown::HashMap;
use tidemark_ast::{Anchor, Frame, Name, NamedWindow, NodeId, OrderItem, WindowSpec};
use tidemark_types::{EngineResult, ErrorCode, identifier};

use crate::binder::error;

/// A window after its reference to another window has been resolved. The two windows share their
/// lists.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    pub(crate) partition_by: Arc<[NodeId]>,
    pub(crate) order_by: Arc<[OrderItem]>,
    pub(crate) frame: Option<Frame>,
    pub(crate) anchor: Option<Anchor>,
}

/// The windows of the SELECT blocks that enclose the current expression, innermost last.
#[derive(Debug, Default)]
pub(crate) struct NamedWindows {
    blocks: Vec<HashMap<String, Window>>,
}

impl NamedWindows {
    /// Enters a SELECT block. Call [`leave`](Self::leave) at its end, even after an error.
    pub(crate) fn enter(&mut self, windows: &[NamedWindow]) -> EngineResult<()> {
        self.blocks.push(HashMap::with_capacity(windows.len()));
        for NamedWindow { name, spec } in windows {
            let window = self.resolve(spec, Some((name, windows)))?;
            let block = self.blocks.last_mut();
            let known = block.and_then(|block| block.insert(identifier::fold(&name.text), window));
            if known.is_some() {
                let message = format!("duplicate window name: '{}'", name.text);
                return Err(error::at(ErrorCode::InvalidName, message, name.span));
            }
        }
        Ok(())
    }

    /// Leaves the innermost SELECT block.
    pub(crate) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Resolves the window of an OVER clause.
    pub(crate) fn over(&self, spec: &WindowSpec) -> EngineResult<Window> {
        if let Some(anchor) = &spec.anchor {
            let message = "ANCHOR is only allowed in a named WINDOW";
            return Err(error::at(ErrorCode::NotSupported, message, anchor.span));
        }
        self.resolve(spec, None)
    }

    /// Combines a window with the clauses of the window that it references. For a named window,
    /// `declared` contains its name and the windows declared in the same block.
    fn resolve(
        &self,
        spec: &WindowSpec,
        declared: Option<(&Name, &[NamedWindow])>,
    ) -> EngineResult<Window> {
        let WindowSpec { name, partition_by, order_by, frame, anchor } = spec;
        let base = name.as_ref().map(|name| self.named(name, declared)).transpose()?;
        let (base_keys, base_order, base_frame, base_anchor) = match base {
            Some(Window { partition_by, order_by, frame, anchor }) => {
                (Some(partition_by), Some(order_by), frame.as_ref(), anchor.as_ref())
            }
            None => (None, None, None, None),
        };
        Ok(Window {
            partition_by: list(partition_by, base_keys),
            order_by: list(order_by, base_order),
            frame: frame.as_ref().or(base_frame).cloned(),
            anchor: anchor.as_ref().or(base_anchor).cloned(),
        })
    }

    fn named(
        &self,
        name: &Name,
        declared: Option<(&Name, &[NamedWindow])>,
    ) -> EngineResult<&Window> {
        let key = identifier::fold(&name.text);
        if let Some(window) = self.blocks.iter().rev().find_map(|block| block.get(&key)) {
            return Ok(window);
        }
        let later = declared.filter(|(_, all)| {
            all.iter().any(|window| identifier::same(&window.name.text, &name.text))
        });
        let message = match later {
            Some((own, _)) if identifier::same(&own.text, &name.text) => {
                format!("window '{}' is not defined: it refers to itself", name.text)
            }
            Some((own, _)) => {
                let (base, own) = (&name.text, &own.text);
                format!("window '{base}' is not defined before window '{own}'")
            }
            None => format!("window '{}' is not defined", name.text),
        };
        Err(error::at(ErrorCode::InvalidName, message, name.span))
    }
}

/// A clause's items; if the clause is absent, the items from the referenced window.
fn list<T: Clone>(own: &[T], base: Option<&Arc<[T]>>) -> Arc<[T]> {
    base.filter(|_| own.is_empty()).map_or_else(|| own.into(), Arc::clone)
}
