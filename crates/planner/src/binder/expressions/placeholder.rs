//! Placeholder values for parameters. Some functions can be resolved only with an argument's value,
//! such as a unit, a separator or a path. A statement that is only described has no values yet; it
//! is bound again with values before it runs.

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;
use tidemark_ast::NodeId;
use tidemark_functions::{Argument, ResolveError};
use tidemark_types::{EngineResult, SqlType};

use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed};

/// Placeholder values. Each function that depends on an argument's value accepts at least one of
/// these values.
fn placeholder_values() -> [ScalarValue; 9] {
    let text = |text: &str| ScalarValue::Utf8View(Some(text.to_owned()));
    [
        text("hour"),
        text("1h"),
        text("$.a"),
        text(","),
        text("UTC"),
        text("00:00"),
        text("hex"),
        ScalarValue::Float64(Some(0.5)),
        ScalarValue::Int32(Some(1)),
    ]
}

/// Resolves a call. If it is rejected because an argument has no value yet, tries placeholder
/// values for that argument.
pub(crate) fn with_placeholders<R>(
    arguments: &[Typed],
    resolve: impl Fn(&[Argument]) -> Result<R, ResolveError>,
) -> Result<R, ResolveError> {
    resolve_with(arguments, resolve).map(|(resolved, _)| resolved)
}

/// Like `with_placeholders`, and also returns the indices of the arguments that received
/// placeholder values.
fn resolve_with<R>(
    arguments: &[Typed],
    resolve: impl Fn(&[Argument]) -> Result<R, ResolveError>,
) -> Result<(R, Vec<usize>), ResolveError> {
    let mut described: Vec<Argument> = arguments.iter().map(Typed::argument).collect();
    let mut indices = Vec::new();
    let mut refused = match resolve(&described) {
        Err(refused) => refused,
        Ok(resolved) => return Ok((resolved, indices)),
    };
    // Each argument is tried once. After a placeholder is accepted for one argument, the call may
    // still be rejected because of another argument.
    for _ in 0..arguments.len() {
        let ResolveError::InvalidArgument { index, .. } = refused else { return Err(refused) };
        let Some(true) = arguments.get(index).map(is_unbound) else { return Err(refused) };
        indices.push(index);
        let mut next = None;
        for value in placeholder_values() {
            described[index].constant = Some(value);
            match resolve(&described) {
                Err(ResolveError::InvalidArgument { index: other, message }) if other != index => {
                    next = Some(ResolveError::InvalidArgument { index: other, message });
                    break;
                }
                Err(_) => {}
                Ok(resolved) => return Ok((resolved, indices)),
            }
        }
        match next {
            Some(other) => refused = other,
            None => return Err(refused),
        }
    }
    Err(refused)
}

impl Binder<'_> {
    /// The value of an expression that a clause requires to be constant. While the statement is
    /// only described, an expression with a parameter yields `stand_in`, which the clause accepts.
    pub(crate) fn demanded(
        &mut self,
        id: NodeId,
        target: SqlType,
        stand_in: ScalarValue,
    ) -> EngineResult<Typed> {
        let value = self.expression(id, &Scope::empty())?;
        let value = self.settled(value, target)?;
        Ok(if self.is_awaited(&value) { Typed::literal(stand_in, target) } else { value })
    }

    /// Whether an expression contains a parameter without a value, because the statement is only
    /// described.
    pub(crate) fn awaits_value(&mut self, id: NodeId, target: SqlType) -> EngineResult<bool> {
        let value = self.expression(id, &Scope::empty())?;
        let value = self.settled(value, target)?;
        Ok(self.is_awaited(&value))
    }

    fn is_awaited(&self, value: &Typed) -> bool {
        self.context.parameter_values.is_none() && is_unbound(value)
    }

    /// If a call can be resolved only with the values of untyped parameters, inserts these values.
    /// `types` resolves the call and returns its argument types.
    pub(crate) fn settle_constants(
        &mut self,
        arguments: &mut [Typed],
        types: impl Fn(&[Argument]) -> Result<Vec<SqlType>, ResolveError>,
    ) -> EngineResult<()> {
        let is_open = arguments.iter().any(|argument| argument.parameter.is_some());
        if self.context.parameter_values.is_none() || !is_open {
            return Ok(());
        }
        let Ok((types, indices)) = resolve_with(arguments, types) else { return Ok(()) };
        for index in indices {
            let target = types.get(index).copied().unwrap_or(SqlType::Varchar);
            arguments[index] = self.settled(arguments[index].clone(), target)?;
        }
        Ok(())
    }
}

/// Whether an argument contains a parameter without a value.
pub(crate) fn is_unbound(argument: &Typed) -> bool {
    let is_open = |node: &Expr| Ok(matches!(node, Expr::Placeholder(_)));
    argument.constant.is_none() && argument.expr.exists(is_open).unwrap_or(false)
}
