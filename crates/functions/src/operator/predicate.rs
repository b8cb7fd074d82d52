//! IN, BETWEEN, IS NULL, and the common type of CASE branches. Each of these forms is built from
//! several expressions.

use datafusion::common::ScalarValue;
use datafusion_expr::Expr;
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType;

use crate::cast::{CastMode, cast};
use crate::number::decimal;
use crate::operator::operand::resolve_operator;
use crate::resolve::{Argument, ResolveError};

fn literal(value: bool) -> Expr {
    Expr::Literal(ScalarValue::Boolean(Some(value)), None)
}

/// Compares two operands after casting both to the types the operator requires.
fn compare(
    op: BinaryOperator,
    (left, left_argument): (&Expr, &Argument),
    (right, right_argument): (&Expr, &Argument),
) -> Result<Expr, ResolveError> {
    let resolved = resolve_operator(op, left_argument, right_argument)?;
    let mode = CastMode::Implicit;
    let left = cast(left.clone(), left_argument.sql_type, resolved.left_type, mode)?;
    let right = cast(right.clone(), right_argument.sql_type, resolved.right_type, mode)?;
    Ok((resolved.build)(left, right))
}

/// Builds `value IS NULL`, which is always false for types that have no null.
#[must_use]
pub fn is_null(value: Expr, argument: &Argument) -> Expr {
    if argument.sql_type == SqlType::Null {
        literal(true)
    } else if argument.sql_type.is_nullable() {
        Expr::IsNull(Box::new(value))
    } else {
        literal(false)
    }
}

/// Builds `value BETWEEN a AND b`. The bounds may be in either order; the result is false if a
/// bound is null.
pub fn between(
    value: (&Expr, &Argument),
    low: (&Expr, &Argument),
    high: (&Expr, &Argument),
) -> Result<Expr, ResolveError> {
    if low.1.is_null() || high.1.is_null() || value.1.is_null() {
        return Ok(literal(false));
    }
    let inside = |low, high| -> Result<Expr, ResolveError> {
        let above = compare(BinaryOperator::GreaterOrEqual, value, low)?;
        Ok(above.and(compare(BinaryOperator::LessOrEqual, value, high)?))
    };
    if let (Some(a), Some(b)) = (&low.1.constant, &high.1.constant)
        && a.data_type() == b.data_type()
        && let Some(order) = a.partial_cmp(b)
        && low.1.text().is_none()
    {
        return if order.is_le() { inside(low, high) } else { inside(high, low) };
    }
    // `>=` is true for two nulls, but here a null value or bound must not match.
    let mut found = inside(low, high)?.or(inside(high, low)?);
    for (expr, argument) in [value, low, high] {
        if argument.may_be_null() {
            found = Expr::IsNotNull(Box::new(expr.clone())).and(found);
        }
    }
    Ok(found)
}

/// Builds `value IN (list)`, which is true if the value equals any element. Null equals null.
pub fn in_list(value: (&Expr, &Argument), list: &[(Expr, Argument)]) -> Result<Expr, ResolveError> {
    let mut terms = Vec::with_capacity(list.len());
    for (element, argument) in list {
        terms.push(compare(BinaryOperator::Equal, value, (element, argument))?);
    }
    // A balanced tree limits the nesting depth of long lists.
    while terms.len() > 1 {
        let mut paired = Vec::with_capacity(terms.len().div_ceil(2));
        let mut rest = terms.into_iter();
        while let Some(first) = rest.next() {
            paired.push(match rest.next() {
                Some(second) => first.or(second),
                None => first,
            });
        }
        terms = paired;
    }
    Ok(terms.pop().unwrap_or_else(|| literal(false)))
}

/// Returns the common type of several values in CASE branches, `coalesce` and numeric UNION
/// columns.
pub fn value_type(types: &[SqlType]) -> Result<SqlType, ResolveError> {
    let mut common = SqlType::Null;
    for &next in types {
        common = joined(common, next)
            .ok_or(ResolveError::InconvertibleTypes { from: next, to: common })?;
    }
    Ok(common)
}

fn joined(a: SqlType, b: SqlType) -> Option<SqlType> {
    use SqlType as T;
    let numbers = [T::Byte, T::Short, T::Int, T::Long, T::Float, T::Double];
    let times = [T::Date, T::Timestamp, T::TimestampNs];
    let later = |ladder: &[T]| {
        let at = |required: T| ladder.iter().position(|&step| step == required);
        ladder.get(at(a)?.max(at(b)?)).copied()
    };
    if a == b {
        return Some(a);
    }
    match (a, b) {
        (T::Null, other) | (other, T::Null) => Some(other),
        (T::Varchar, other) | (other, T::Varchar) if other.is_text() || other == T::Char => {
            Some(T::Varchar)
        }
        (x, y) if (x.is_text() || x == T::Char) && (y.is_text() || y == T::Char) => Some(T::String),
        (x, T::Long) | (T::Long, x) if times.contains(&x) => Some(x),
        _ => later(&numbers).or_else(|| later(&times)).or_else(|| decimal::common(a, b)),
    }
}

#[cfg(test)]
mod tests {
    use datafusion_expr::{col, lit};

    use super::*;

    #[test]
    fn between_sorts_its_bounds() {
        let value = (col("a"), Argument::column(SqlType::Int));
        let bound = |n: i32| (lit(n), Argument::constant(SqlType::Int, n.into()));
        let (low, high) = (bound(3), bound(1));
        let found = between((&value.0, &value.1), (&low.0, &low.1), (&high.0, &high.1)).unwrap();
        assert_eq!(found.to_string(), "a >= Int32(1) IS TRUE AND a <= Int32(3) IS TRUE");
    }

    #[test]
    fn in_list_becomes_a_balanced_or_tree() {
        let value = (col("a"), Argument::column(SqlType::Byte));
        let list: Vec<_> =
            (0..3_i8).map(|n| (lit(n), Argument::constant(SqlType::Byte, n.into()))).collect();
        let found = in_list((&value.0, &value.1), &list).unwrap();
        assert_eq!(found.to_string(), "a = Int8(0) OR a = Int8(1) OR a = Int8(2)");
        assert_eq!(in_list((&value.0, &value.1), &[]).unwrap(), literal(false));
    }

    #[test]
    fn case_branches_get_a_common_type() {
        use SqlType as T;
        assert_eq!(value_type(&[T::Null, T::Int]), Ok(T::Int));
        assert_eq!(value_type(&[T::Int, T::Double]), Ok(T::Double));
        assert_eq!(value_type(&[T::Symbol, T::Char]), Ok(T::String));
        assert_eq!(value_type(&[T::Symbol, T::Symbol]), Ok(T::Symbol));
        assert_eq!(
            value_type(&[T::Int, T::Varchar]).unwrap_err().message(),
            "inconvertible types: VARCHAR -> INT"
        );
    }
}
