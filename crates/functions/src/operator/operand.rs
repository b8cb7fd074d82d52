//! Binds infix and prefix operators: determines which types can be combined, which types the
//! operands are cast to, and the resulting expression.

use std::sync::Arc;

use datafusion_expr::{Expr, Volatility};
use tidemark_ast::{BinaryOperator, UnaryOperator};
use tidemark_types::SqlType;

use crate::array::arrays;
use crate::datetime::periods;
use crate::native::{Native, call};
use crate::number::{arithmetic, decimal};
use crate::operator::comparison;
use crate::operator::infix::{function_name, operator};
use crate::resolve::{Argument, ResolveError, ResolvedOperator};
use crate::text::pattern;

/// Binds an infix operator.
pub fn resolve_operator(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Result<ResolvedOperator, ResolveError> {
    if let Some(arrays) = arrays::arithmetic(op, left, right) {
        return arrays;
    }
    if let Some(lengths) = periods::arithmetic(op, left, right) {
        return Ok(lengths);
    }
    if let Some(decimals) = decimal::arithmetic(op, left, right) {
        return decimals;
    }
    let resolved = match op {
        BinaryOperator::Add
        | BinaryOperator::Subtract
        | BinaryOperator::Multiply
        | BinaryOperator::Divide
        | BinaryOperator::Modulo
        | BinaryOperator::BitAnd
        | BinaryOperator::BitOr
        | BinaryOperator::BitXor => arithmetic_operator(op, left, right),
        BinaryOperator::Equal
        | BinaryOperator::NotEqual
        | BinaryOperator::Less
        | BinaryOperator::LessOrEqual
        | BinaryOperator::Greater
        | BinaryOperator::GreaterOrEqual => comparison::resolve(op, left, right),
        _ => return pattern::resolve(op, left, right),
    };
    resolved.ok_or(ResolveError::NoOperator {
        sign: op.sign(),
        left: left.sql_type,
        right: right.sql_type,
    })
}

/// Builds a prefix operator's expression from its operand.
pub type BuildUnary = Arc<dyn Fn(Expr) -> Expr + Send + Sync>;

/// Binds a prefix operator. The second element is the type to cast the operand to; the third is the
/// result type.
pub fn resolve_unary(
    op: UnaryOperator,
    operand: &Argument,
) -> Result<(BuildUnary, SqlType, SqlType), ResolveError> {
    let none = || ResolveError::NoOverload {
        name: match op {
            UnaryOperator::Minus => "-",
            UnaryOperator::Plus => "+",
            UnaryOperator::BitNot => "~",
            UnaryOperator::Not => "not",
        }
        .into(),
        types: vec![operand.sql_type],
    };
    let source = operand.sql_type;
    let (name, target, kernel) = match op {
        UnaryOperator::Not => {
            let boolean = matches!(source, SqlType::Boolean | SqlType::Null);
            return boolean
                .then(|| -> (BuildUnary, SqlType, SqlType) {
                    (Arc::new(|x| Expr::Not(Box::new(x))), SqlType::Boolean, SqlType::Boolean)
                })
                .ok_or_else(none);
        }
        UnaryOperator::Plus => return Ok((Arc::new(|x| x), source, source)),
        UnaryOperator::Minus => {
            let target = match source {
                SqlType::Null => SqlType::Int,
                source if source.is_text() => SqlType::Double,
                SqlType::Char => SqlType::Int,
                source => source,
            };
            let kernel = match target {
                SqlType::DoubleArray(_) => Some(arrays::negation()),
                SqlType::Period => Some(periods::negation()),
                target => arithmetic::negation(target),
            };
            ("negate", target, kernel.ok_or_else(none)?)
        }
        UnaryOperator::BitNot => {
            let target = match source {
                SqlType::Byte | SqlType::Short | SqlType::Null => SqlType::Int,
                source => source,
            };
            ("bit_not", target, arithmetic::bit_not(target).ok_or_else(none)?)
        }
    };
    let types = (vec![target], target);
    let udf = Native::udf(name, target.name(), types, Volatility::Immutable, kernel);
    Ok((Arc::new(move |x| call(&udf, vec![x])), target, target))
}

fn arithmetic_operator(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<ResolvedOperator> {
    let (l, r, returns) = arithmetic_types(op, left, right)?;
    let kernel = arithmetic::kernel(op, l, r, returns)?;
    Some(operator(function_name(op), (l, r, returns), &returns.name(), kernel))
}

/// Returns the operand types of an arithmetic or bit operator, and the result type.
fn arithmetic_types(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<(SqlType, SqlType, SqlType)> {
    use SqlType as T;
    let (l, r) = (left.sql_type, right.sql_type);
    let bitwise =
        matches!(op, BinaryOperator::BitAnd | BinaryOperator::BitOr | BinaryOperator::BitXor);
    let additive = matches!(op, BinaryOperator::Add | BinaryOperator::Subtract);
    match (l, r) {
        (T::Ipv4, T::Ipv4) if bitwise => return Some((l, r, T::Ipv4)),
        (T::Ipv4, T::Ipv4) if op == BinaryOperator::Subtract => return Some((l, r, T::Long)),
        (T::Ipv4, integer) if additive && integer.is_integer() => {
            return Some((l, T::Long, T::Ipv4));
        }
        (integer, T::Ipv4) if op == BinaryOperator::Add && integer.is_integer() => {
            return Some((T::Long, r, T::Ipv4));
        }
        _ => {}
    }
    let is_time = |sql_type: T| sql_type.is_timestamp() || sql_type == T::Date;
    if additive && (is_time(l) || is_time(r)) {
        return time_arithmetic(op, left, right);
    }
    // A constant FLOAT combined with a constant integer or FLOAT stays FLOAT. A FLOAT column is
    // computed as DOUBLE.
    if left.constant.is_some() && right.constant.is_some() && !bitwise {
        let integer = |sql_type: T| sql_type.is_integer();
        if (l == T::Float && (integer(r) || r == T::Float)) || (r == T::Float && integer(l)) {
            return Some((T::Float, T::Float, T::Float));
        }
    }
    let common = match (number_like(l)?, number_like(r)?) {
        (T::Null, T::Null) => T::Int,
        (T::Null, other) | (other, T::Null) => other,
        (a, b) => wider(a, b),
    };
    (!bitwise || common.is_integer()).then_some((common, common, common))
}

/// Returns the type an operand has in arithmetic.
fn number_like(sql_type: SqlType) -> Option<SqlType> {
    Some(match sql_type {
        SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Char => SqlType::Int,
        SqlType::Long | SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs => SqlType::Long,
        SqlType::Float | SqlType::Double => SqlType::Double,
        text if text.is_text() => SqlType::Double,
        SqlType::Null => SqlType::Null,
        _ => return None,
    })
}

fn wider(a: SqlType, b: SqlType) -> SqlType {
    if a == SqlType::Double || b == SqlType::Double {
        SqlType::Double
    } else if a == SqlType::Long || b == SqlType::Long {
        SqlType::Long
    } else {
        SqlType::Int
    }
}

fn time_arithmetic(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<(SqlType, SqlType, SqlType)> {
    use SqlType as T;
    // DATE is converted to microseconds for arithmetic.
    let timestamp = |sql_type: T| match sql_type {
        T::Date | T::Timestamp => Some(T::Timestamp),
        T::TimestampNs => Some(T::TimestampNs),
        _ => None,
    };
    // Text is read as a number of time units; SYMBOL is not accepted.
    let whole = |sql_type: T| {
        sql_type.is_integer() || matches!(sql_type, T::Null | T::Char | T::String | T::Varchar)
    };
    match (timestamp(left.sql_type), timestamp(right.sql_type)) {
        (Some(l), Some(r)) => {
            let unit = if l == r { l } else { T::TimestampNs };
            // A nanosecond difference with a constant operand has the timestamp type. A microsecond
            // difference is a number unless both operands are constant.
            let known = [left, right].iter().filter(|side| side.constant.is_some()).count();
            let retained = if unit == T::TimestampNs { known > 0 } else { known == 2 };
            let difference = op == BinaryOperator::Subtract && !retained;
            Some((unit, unit, if difference { T::Long } else { unit }))
        }
        (Some(l), None) if whole(right.sql_type) => Some((l, T::Long, l)),
        (None, Some(r)) if whole(left.sql_type) => Some((T::Long, r, r)),
        (Some(_), None) if right.sql_type.is_floating() => Some((T::Double, T::Double, T::Double)),
        (None, Some(_)) if left.sql_type.is_floating() => Some((T::Double, T::Double, T::Double)),
        _ => None,
    }
}
