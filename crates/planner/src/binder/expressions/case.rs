//! CASE.

use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::Case;
use tidemark_ast::{BinaryOperator, CaseBranch, NodeId};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::unify;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds `CASE [operand] WHEN … THEN … [ELSE …] END`. Every branch is cast to the common type.
    pub(crate) fn case(
        &mut self,
        operand: Option<NodeId>,
        branches: &[CaseBranch],
        otherwise: Option<NodeId>,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let mut conditions = Vec::with_capacity(branches.len());
        let mut results = Vec::with_capacity(branches.len() + 1);
        for CaseBranch { when, then } in branches {
            let condition = match operand {
                Some(operand) => {
                    let left = self.expression(operand, scope)?;
                    let right = self.expression(*when, scope)?;
                    let position = self.tree.span(*when);
                    self.operator(BinaryOperator::Equal, left, right, position)?
                }
                None => self.predicate(*when, scope, false)?,
            };
            conditions.push(condition);
            results.push((self.expression(*then, scope)?, *then));
        }
        if let Some(otherwise) = otherwise {
            results.push((self.expression(otherwise, scope)?, otherwise));
        }
        let common = self.common_type(&results)?;
        for (value, _) in results.iter_mut().filter(|(value, _)| value.parameter.is_some()) {
            *value = self.settled(value.clone(), common)?;
        }
        // A parameter is never a CHAR or SYMBOL. Next to a value of one of these types, it is a
        // string.
        let result_type = self.common_type(&results)?;
        let mut values = Vec::with_capacity(results.len());
        for (value, id) in results {
            let position = self.tree.span(id);
            values.push(self.cast(value, result_type, CastMode::Implicit, position)?.expr);
        }
        let default = match otherwise {
            Some(_) => values.pop(),
            None if result_type == SqlType::Null => None,
            None => {
                let position = tidemark_ast::Span::default();
                let null = self.cast(Typed::null(), result_type, CastMode::Explicit, position)?;
                Some(null.expr)
            }
        };
        let pairs = conditions
            .into_iter()
            .zip(values)
            .map(|(when, then)| (Box::new(when.expr), Box::new(then)))
            .collect();
        let expr = Expr::Case(Case::new(None, pairs, default.map(Box::new)));
        Ok(Typed::computed(expr, result_type))
    }

    fn common_type(&mut self, results: &[(Typed, NodeId)]) -> EngineResult<SqlType> {
        let mut common = SqlType::Null;
        let has_length = results.iter().any(|(value, _)| value.sql_type == SqlType::Period);
        for (value, id) in results {
            if has_length && value.is_constant_text() {
                // A constant string next to PERIODs is a PERIOD.
                continue;
            }
            common = unify::branches(common, value.sql_type).ok_or_else(|| {
                let (from, to) = (value.sql_type.name(), common.name());
                error::at(
                    ErrorCode::TypeMismatch,
                    format!("inconvertible types: {from} -> {to} [from={from}, to={to}]"),
                    self.tree.span(*id),
                )
            })?;
        }
        Ok(match common {
            SqlType::Symbol if results.len() > 1 => SqlType::String,
            other => other,
        })
    }
}
