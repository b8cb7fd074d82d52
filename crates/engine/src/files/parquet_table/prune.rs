//! Excludes data that cannot match a predicate: files by their directory names, row groups by their
//! statistics in the footer.
//!
//! Pruning may retain rows that do not match, but never drops a matching row. The filter above the
//! scan still tests every row.

use std::cmp::Ordering;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, Operator};
use parquet::file::statistics::Statistics;
use tidemark_functions::{DOUBLE_COMPARISONS, DOUBLE_TOLERANCE};
use tidemark_types::{SYMBOL_EQUAL, SqlType};

/// A value in a form that can be compared with bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Integer(i64),
    /// Nanoseconds since 1970.
    Timestamp(i128),
    Float(f64),
    Text(String),
}

/// Minimum and maximum value of a column in a row group or file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    pub(super) low: Value,
    pub(super) high: Value,
}

/// Whether a predicate can exclude any data.
pub(super) fn is_useful(filter: &Expr) -> bool {
    match filter {
        Expr::IsTrue(inner) => is_useful(inner),
        Expr::BinaryExpr(binary) => match binary.op {
            Operator::And => is_useful(&binary.left) || is_useful(&binary.right),
            Operator::Or => is_useful(&binary.left) && is_useful(&binary.right),
            _ => comparison(filter).is_some(),
        },
        Expr::InList(list) => !list.negated && column_of(&list.expr).is_some(),
        Expr::Between(between) => !between.negated && column_of(&between.expr).is_some(),
        Expr::IsNull(inner) => matches!(inner.as_ref(), Expr::Literal(..)),
        _ => comparison(filter).is_some(),
    }
}

/// Whether the predicate may be true for rows within these column bounds.
pub(super) fn may_pass(filter: &Expr, bounds: &dyn Fn(&str) -> Option<Bounds>) -> bool {
    match filter {
        Expr::IsTrue(inner) => may_pass(inner, bounds),
        Expr::BinaryExpr(binary) if binary.op == Operator::And => {
            may_pass(&binary.left, bounds) && may_pass(&binary.right, bounds)
        }
        Expr::BinaryExpr(binary) if binary.op == Operator::Or => {
            may_pass(&binary.left, bounds) || may_pass(&binary.right, bounds)
        }
        Expr::InList(list) if !list.negated => {
            let Some(column) = column_of(&list.expr) else { return true };
            list.list.iter().any(|item| may_match(&column, Operator::Eq, literal(item), bounds))
        }
        Expr::Between(between) if !between.negated => {
            let Some(column) = column_of(&between.expr) else { return true };
            may_match(&column, Operator::GtEq, literal(&between.low), bounds)
                && may_match(&column, Operator::LtEq, literal(&between.high), bounds)
        }
        Expr::IsNull(inner) => match inner.as_ref() {
            Expr::Literal(value, _) => value.is_null(),
            _ => true,
        },
        _ => comparison(filter)
            .is_none_or(|(column, op, value)| may_match(&column, op, Some(value), bounds)),
    }
}

/// A comparison's column operand.
#[derive(Debug, Clone, PartialEq)]
struct Operand<'a> {
    name: &'a str,
    as_float: bool,
}

/// Parses a comparison between a column and a literal, in either order.
fn comparison(filter: &Expr) -> Option<(Operand<'_>, Operator, &ScalarValue)> {
    let (left, op, right) = match filter {
        Expr::BinaryExpr(binary) => (binary.left.as_ref(), binary.op, binary.right.as_ref()),
        Expr::ScalarFunction(call) => {
            let [left, right] = call.args.as_slice() else { return None };
            let name = call.func.name();
            let mut known = DOUBLE_COMPARISONS.into_iter().chain([(SYMBOL_EQUAL, Operator::Eq)]);
            let (_, op) = known.find(|(known, _)| *known == name)?;
            (left, op, right)
        }
        _ => return None,
    };
    let op = if op == Operator::IsNotDistinctFrom { Operator::Eq } else { op };
    let ordered =
        matches!(op, Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if !ordered {
        return None;
    }
    if let (Some(column), Some(value)) = (column_of(left), literal(right)) {
        return Some((column, op, value));
    }
    Some((column_of(right)?, op.swap()?, literal(left)?))
}

/// Returns a column operand. The column may be cast to a wider type that preserves its order.
fn column_of(expr: &Expr) -> Option<Operand<'_>> {
    use arrow::datatypes::DataType;
    match expr {
        Expr::Column(column) => Some(Operand { name: &column.name, as_float: false }),
        Expr::Cast(cast) => {
            let inner = column_of(&cast.expr)?;
            match cast.field.data_type() {
                DataType::Int64 | DataType::Utf8 | DataType::Utf8View => Some(inner),
                DataType::Float64 => Some(Operand { as_float: true, ..inner }),
                _ => None,
            }
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

fn may_match(
    column: &Operand<'_>,
    op: Operator,
    value: Option<&ScalarValue>,
    bounds: &dyn Fn(&str) -> Option<Bounds>,
) -> bool {
    let known = value.and_then(value_of).zip(bounds(column.name));
    let Some((value, Bounds { low, high })) = known else { return true };
    if matches!(value, Value::Text(_)) && op != Operator::Eq {
        return true; // The dialect orders strings differently.
    }
    let (low, high) = if column.as_float { (float(low), float(high)) } else { (low, high) };
    // Two DOUBLE values are equal if they differ by at most this tolerance.
    let slack = if matches!(value, Value::Float(_)) { DOUBLE_TOLERANCE } else { 0.0 };
    let low = compare(&low, &value, -slack);
    let high = compare(&high, &value, slack);
    let (Some(low), Some(high)) = (low, high) else { return true };
    match op {
        Operator::Lt => low.is_lt(),
        Operator::LtEq => low.is_le(),
        Operator::Gt => high.is_gt(),
        Operator::GtEq => high.is_ge(),
        _ => low.is_le() && high.is_ge(),
    }
}

fn float(value: Value) -> Value {
    match value {
        Value::Integer(value) => Value::Float(value as f64),
        other => other,
    }
}

impl Value {
    /// Whether this value is less than or equal to `other`; false for values of different kinds.
    pub(super) fn is_at_most(&self, other: &Self) -> bool {
        compare(self, other, 0.0).is_some_and(Ordering::is_le)
    }
}

/// Compares two values; returns `None` if they are of different kinds.
fn compare(bound: &Value, value: &Value, slack: f64) -> Option<Ordering> {
    match (bound, value) {
        (Value::Integer(bound), Value::Integer(value)) => Some(bound.cmp(value)),
        (Value::Timestamp(bound), Value::Timestamp(value)) => Some(bound.cmp(value)),
        (Value::Float(bound), Value::Float(value)) => (bound + slack).partial_cmp(value),
        (Value::Text(bound), Value::Text(value)) => Some(bound.as_str().cmp(value)),
        _ => None,
    }
}

const NANOS_PER_MICRO: i128 = 1_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// Returns the literal as a comparable value; `None` for null and for types without a supported
/// order.
pub(super) fn value_of(scalar: &ScalarValue) -> Option<Value> {
    Some(match scalar {
        ScalarValue::Int8(value) => Value::Integer(i64::from((*value)?)),
        ScalarValue::Int16(value) => Value::Integer(i64::from((*value)?)),
        ScalarValue::Int32(value) => Value::Integer(i64::from((*value)?)),
        ScalarValue::Int64(value) => Value::Integer((*value)?),
        ScalarValue::TimestampMillisecond(value, None) => {
            Value::Timestamp(i128::from((*value)?) * NANOS_PER_MILLI)
        }
        ScalarValue::TimestampMicrosecond(value, None) => {
            Value::Timestamp(i128::from((*value)?) * NANOS_PER_MICRO)
        }
        ScalarValue::TimestampNanosecond(value, None) => Value::Timestamp(i128::from((*value)?)),
        ScalarValue::Float32(value) => Value::Float(f64::from((*value)?)),
        ScalarValue::Float64(value) => Value::Float((*value)?),
        ScalarValue::Utf8(value) | ScalarValue::Utf8View(value) | ScalarValue::LargeUtf8(value) => {
            Value::Text(value.clone()?)
        }
        ScalarValue::Dictionary(_, value) => value_of(value)?,
        _ => return None,
    })
}

/// Returns the bounds of a column whose type in the file is `sql_type`. `scale` is the number of
/// nanoseconds per unit of a stored timestamp.
pub(super) fn bounds_of(
    statistics: &Statistics,
    sql_type: SqlType,
    scale: Option<i128>,
) -> Option<Bounds> {
    let integers = |low: i64, high: i64| {
        let value = |value: i64| match scale {
            Some(scale) => Value::Timestamp(i128::from(value) * scale),
            None => Value::Integer(value),
        };
        Bounds { low: value(low), high: value(high) }
    };
    let is_whole =
        matches!(sql_type, SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Long);
    let is_integer = is_whole || scale.is_some();
    let is_float = matches!(sql_type, SqlType::Float | SqlType::Double);
    let is_text = matches!(sql_type, SqlType::Varchar | SqlType::String | SqlType::Symbol);
    Some(match statistics {
        Statistics::Int32(of) if is_integer => {
            integers(i64::from(*of.min_opt()?), i64::from(*of.max_opt()?))
        }
        Statistics::Int64(of) if is_integer => integers(*of.min_opt()?, *of.max_opt()?),
        Statistics::Float(of) if is_float => Bounds {
            low: Value::Float(f64::from(*of.min_opt()?)),
            high: Value::Float(f64::from(*of.max_opt()?)),
        },
        Statistics::Double(of) if is_float => {
            Bounds { low: Value::Float(*of.min_opt()?), high: Value::Float(*of.max_opt()?) }
        }
        Statistics::ByteArray(of) if is_text && !statistics.is_min_max_deprecated() => {
            let text = |bytes: &[u8]| std::str::from_utf8(bytes).ok().map(str::to_owned);
            let low = text(of.min_bytes_opt()?)?;
            let high = text(of.max_bytes_opt()?)?;
            Bounds { low: Value::Text(low), high: Value::Text(high) }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::{col, lit};

    fn ten_to_twenty(name: &str) -> Option<Bounds> {
        match name {
            "x" => Some(Bounds { low: Value::Integer(10), high: Value::Integer(20) }),
            "d" => Some(Bounds { low: Value::Float(1.0), high: Value::Float(2.0) }),
            "s" => Some(Bounds { low: Value::Text("b".into()), high: Value::Text("d".into()) }),
            _ => None,
        }
    }

    #[test]
    fn row_groups_that_cannot_match_are_pruned() {
        let may = |filter: &Expr| may_pass(filter, &ten_to_twenty);
        for (filter, expected) in [
            (col("x").gt(lit(20_i64)), false),
            (col("x").gt_eq(lit(20_i64)), true),
            (lit(10_i32).gt(col("x")), false),
            (col("x").lt_eq(lit(10_i32)), true),
            (col("x").eq(lit(9_i64)), false),
            (col("x").eq(lit(15_i64)).is_true(), true),
            (col("x").not_eq(lit(15_i64)), true),
            (col("x").gt(lit(30_i64)).or(col("x").lt(lit(5_i64))), false),
            (col("x").gt(lit(30_i64)).or(col("other").lt(lit(5_i64))), true),
            (col("x").gt(lit(30_i64)).and(col("other").lt(lit(5_i64))), false),
            (col("x").between(lit(21_i64), lit(25_i64)), false),
            (col("x").in_list(vec![lit(1_i64), lit(12_i64)], false), true),
            (col("x").in_list(vec![lit(1_i64), lit(2_i64)], false), false),
            (col("x").in_list(vec![lit(1_i64)], true), true),
            (col("s").eq(lit("a")), false),
            (col("s").eq(lit("c")), true),
            (col("d").gt(lit(2.000_000_000_01)), true),
            (col("d").gt(lit(2.1)), false),
            (col("x").eq(lit("12")), true),
            (col("s").gt(lit("e")), true),
            (col("x").is_null(), true),
        ] {
            assert_eq!(may(&filter), expected, "{filter}");
        }
        assert!(is_useful(&col("x").gt(lit(20_i64)).is_true()));
        assert!(!is_useful(&col("x").gt(lit(1_i64)).or(col("x").is_null())));
    }
}
