//! Two-valued logic: AND, OR, NOT, IS NULL. A predicate is never null, so `DataFusion`'s
//! three-valued logic has no effect.
//!
//! NOT is pushed inwards according to `QuestDB`'s rules: `NOT (a > 1)` is `a <= 1`, which drops
//! null rows, but `NOT (a = 1)` is `a != 1`, which keeps them.

use datafusion::logical_expr::Expr;
use tidemark_ast::{BinaryOperator, LogicalOperator, Node, NodeId, UnaryOperator};
use tidemark_optimizer::{all_of, any_of};
use tidemark_types::bounded::grown;
use tidemark_types::{EngineResult, SqlType};

use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed};

impl Binder<'_> {
    /// Binds a predicate, or its negation.
    pub(crate) fn predicate(
        &mut self,
        id: NodeId,
        scope: &Scope<'_>,
        negated: bool,
    ) -> EngineResult<Typed> {
        self.count_step(id)?;
        grown(|| self.predicate_at(id, scope, negated))
    }

    fn predicate_at(
        &mut self,
        id: NodeId,
        scope: &Scope<'_>,
        negated: bool,
    ) -> EngineResult<Typed> {
        let position = self.tree.span(id);
        match self.node(id)? {
            Node::Unary { operator: UnaryOperator::Not, operand } => {
                self.predicate(*operand, scope, !negated)
            }
            Node::Logical { operator, operands } => {
                let mut bound = Vec::with_capacity(operands.len());
                for operand in operands {
                    bound.push(self.predicate(*operand, scope, negated)?);
                }
                let and = (*operator == LogicalOperator::And) != negated;
                Ok(if and { all(bound) } else { any(bound) })
            }
            Node::Binary { operator, left, right, operator_span } if negated => {
                match opposite(*operator) {
                    Some(opposite) if !self.is_quantified(*right) => {
                        let left = self.expression(*left, scope)?;
                        let right = self.expression(*right, scope)?;
                        self.operator(opposite, left, right, *operator_span)
                    }
                    _ => {
                        let bound = self.expression(id, scope)?;
                        Ok(not(self.truth_of(bound, position)?))
                    }
                }
            }
            Node::IsNull { operand, negated: is_not } => {
                let operand = self.expression(*operand, scope)?;
                let operand = self.settled(operand, SqlType::Varchar)?;
                Ok(is_null(operand, *is_not != negated))
            }
            Node::Between { operand, low, high, negated: is_not, operator_span } => {
                let between = self.between(*operand, *low, *high, *operator_span, scope)?;
                Ok(if *is_not == negated { between } else { not(between) })
            }
            Node::InList { operand, items, bare: _, negated: is_not, operator_span } => {
                let within = self.in_list(*operand, items, *operator_span, scope)?;
                Ok(if *is_not == negated { within } else { not(within) })
            }
            Node::InQuery { operand, query, negated: is_not, operator_span } => {
                let within = self.in_query(*operand, *query, *operator_span, scope)?;
                Ok(if *is_not == negated { within } else { not(within) })
            }
            Node::Within { operand, items, operator_span: _ } => {
                let mut arguments = vec![self.expression(*operand, scope)?];
                arguments.extend(self.expressions(items, scope)?);
                let within = self.scalar_call("within", arguments, position, &[])?;
                Ok(if negated { not(within) } else { within })
            }
            _ => {
                let bound = self.expression(id, scope)?;
                let bound = self.truth_of(bound, position)?;
                Ok(if negated { not(bound) } else { bound })
            }
        }
    }
}

/// The negated comparison.
fn opposite(operator: BinaryOperator) -> Option<BinaryOperator> {
    Some(match operator {
        BinaryOperator::Equal => BinaryOperator::NotEqual,
        BinaryOperator::NotEqual => BinaryOperator::Equal,
        BinaryOperator::Less => BinaryOperator::GreaterOrEqual,
        BinaryOperator::LessOrEqual => BinaryOperator::Greater,
        BinaryOperator::Greater => BinaryOperator::LessOrEqual,
        BinaryOperator::GreaterOrEqual => BinaryOperator::Less,
        BinaryOperator::Like => BinaryOperator::NotLike,
        BinaryOperator::NotLike => BinaryOperator::Like,
        BinaryOperator::ILike => BinaryOperator::NotILike,
        BinaryOperator::NotILike => BinaryOperator::ILike,
        BinaryOperator::Matches => BinaryOperator::NotMatches,
        BinaryOperator::NotMatches => BinaryOperator::Matches,
        _ => return None,
    })
}

/// Negates a boolean value.
pub(crate) fn not(typed: Typed) -> Typed {
    match typed.as_truth() {
        Some(value) => Typed::truth(!value),
        None => Typed::computed(Expr::Not(Box::new(typed.expr)), SqlType::Boolean),
    }
}

/// Binds `operand IS [NOT] NULL`. Values of types without a null are never null.
pub(crate) fn is_null(operand: Typed, negated: bool) -> Typed {
    if !operand.sql_type.is_nullable() && operand.sql_type != SqlType::Null {
        return Typed::truth(negated);
    }
    if let Some(value) = &operand.constant {
        return Typed::truth(value.is_null() != negated);
    }
    let expr = Box::new(operand.expr);
    let test = if negated { Expr::IsNotNull(expr) } else { Expr::IsNull(expr) };
    Typed::computed(test, SqlType::Boolean)
}

/// The conjunction of predicates, with constants removed.
pub(crate) fn all(operands: Vec<Typed>) -> Typed {
    if operands.iter().any(|operand| operand.as_truth() == Some(false)) {
        return Typed::truth(false);
    }
    joined(operands, true, all_of)
}

/// The disjunction of predicates, with constants removed.
pub(crate) fn any(operands: Vec<Typed>) -> Typed {
    if operands.iter().any(|operand| operand.as_truth() == Some(true)) {
        return Typed::truth(true);
    }
    joined(operands, false, any_of)
}

fn joined(operands: Vec<Typed>, neutral: bool, join: fn(Vec<Expr>) -> Option<Expr>) -> Typed {
    let operands = operands.into_iter().filter(|operand| operand.as_truth() != Some(neutral));
    match join(operands.map(|operand| operand.expr).collect()) {
        Some(expr) => Typed::computed(expr, SqlType::Boolean),
        None => Typed::truth(neutral),
    }
}
