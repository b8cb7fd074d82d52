//! Evaluates INT arithmetic in 64 bits, so that it does not wrap before a comparison or an
//! operation in a wider type.

use datafusion::common::ScalarValue;
use datafusion_expr::Expr;
use datafusion_expr::expr::ScalarFunction;
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType;
use tidemark_types::bounded::grown;

use crate::cast::{CastMode, converted};
use crate::native::Native;
use crate::number::arithmetic;
use crate::operator::infix::{function_name, operator};

/// Recomputes INT arithmetic as a LONG, without wrapping at any step; `None` for any other
/// expression.
#[must_use]
pub fn in_64_bits(expr: &Expr) -> Option<Expr> {
    let (op, left, right) = int_arithmetic(expr)?;
    let types = (SqlType::Long, SqlType::Long, SqlType::Long);
    let kernel = arithmetic::kernel(op, types.0, types.1, types.2)?;
    let operator = operator(function_name(op), types, &SqlType::Long.name(), kernel);
    // The recursion is as deep as the expression.
    let (left, right) = (grown(|| as_long(left))?, grown(|| as_long(right))?);
    Some((operator.build)(left, right))
}

fn as_long(expr: &Expr) -> Option<Expr> {
    let types = (SqlType::Int, SqlType::Long);
    let cast = || converted(expr.clone(), types, CastMode::Implicit, None);
    Some(in_64_bits(expr).unwrap_or_else(cast))
}

/// Returns a LONG that was cast from at most 32 bits, and the constant added to it or subtracted
/// from it.
#[must_use]
pub fn moved_by_constant(expr: &Expr) -> Option<(&Expr, i64)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let native = func.inner().downcast_ref::<Native>()?;
    let [left, right] = args.as_slice() else { return None };
    if native.returns() != SqlType::Long || native.argument_types() != [SqlType::Long; 2] {
        return None;
    }
    let is = |op| func.name() == function_name(op);
    let (is_sum, is_difference) = (is(BinaryOperator::Add), is(BinaryOperator::Subtract));
    match (constant(widened(left)?), constant(widened(right)?)) {
        (None, Some(by)) if is_sum => Some((left, by)),
        (None, Some(by)) if is_difference => Some((left, -by)),
        (Some(by), None) if is_sum => Some((right, by)),
        _ => None,
    }
}

/// Returns the operand of a cast from at most 32 bits to LONG.
fn widened(expr: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let native = func.inner().downcast_ref::<Native>()?;
    let is_narrow =
        matches!(native.argument_types(), [SqlType::Byte | SqlType::Short | SqlType::Int]);
    let is_cast = func.name() == "cast_value" && native.returns() == SqlType::Long;
    (is_cast && is_narrow).then(|| args.first()).flatten()
}

/// Whether the combined constants in a chain of `+` and `-`, or of `*`, exceed the range of INT.
/// For example, `i * 3600 * 1000000` is a LONG.
#[must_use]
pub fn is_long_chain(op: BinaryOperator, left: &Expr, right: &Expr) -> bool {
    if constant(left).is_none() && constant(right).is_none() {
        return false;
    }
    let all = match (chained(op, left, MAX_LINKS), chained(op, right, MAX_LINKS)) {
        (Some(left), Some(right)) => combined(op, left, right),
        _ => return false,
    };
    i32::try_from(all).is_err()
}

/// Maximum number of links examined in a chain. The limit bounds the cost, because each operation
/// in a chain examines the chain again.
const MAX_LINKS: usize = 16;

/// Returns the combined constants in a chain of one operation, if any.
fn chained(op: BinaryOperator, expr: &Expr, links: usize) -> Option<i64> {
    if let Some(constant) = constant(expr) {
        return Some(constant);
    }
    let links = links.checked_sub(1)?;
    let (own, left, right) = int_arithmetic(expr)?;
    let sums = |op| matches!(op, BinaryOperator::Add | BinaryOperator::Subtract);
    if own != op && !(sums(own) && sums(op)) {
        return None;
    }
    match (chained(own, left, links), chained(own, right, links)) {
        (Some(left), Some(right)) => Some(combined(own, left, right)),
        (None, Some(right)) if own == BinaryOperator::Subtract => Some(-right),
        (left, right) => left.or(right),
    }
}

fn combined(op: BinaryOperator, left: i64, right: i64) -> i64 {
    match op {
        BinaryOperator::Add => left.saturating_add(right),
        BinaryOperator::Subtract => left.saturating_sub(right),
        BinaryOperator::Multiply => left.saturating_mul(right),
        _ => 0,
    }
}

fn constant(expr: &Expr) -> Option<i64> {
    match expr {
        Expr::Literal(ScalarValue::Int32(value), _) => value.map(i64::from),
        _ => None,
    }
}

/// Returns the operator and operands of arithmetic that yields an INT.
fn int_arithmetic(expr: &Expr) -> Option<(BinaryOperator, &Expr, &Expr)> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
    let native = func.inner().downcast_ref::<Native>()?;
    let [left, right] = args.as_slice() else { return None };
    let op = [
        BinaryOperator::Add,
        BinaryOperator::Subtract,
        BinaryOperator::Multiply,
        BinaryOperator::Divide,
        BinaryOperator::Modulo,
    ]
    .into_iter()
    .find(|op| function_name(*op) == func.name())?;
    let is_int = native.returns() == SqlType::Int
        && native.argument_types().iter().all(|used| *used == SqlType::Int);
    is_int.then_some((op, left, right))
}
