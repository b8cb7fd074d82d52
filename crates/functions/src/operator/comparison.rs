//! Comparisons in two-valued logic, where no result is ever null. `=` treats two nulls as equal;
//! `<` and `>` are false if an operand is null; `<=` and `>=` are true for two nulls.
//!
//! `DataFusion`'s own operators are used where they can express these rules, so that its kernels
//! and pruning apply. DOUBLE (tolerance, signed zero) and SYMBOL (keys instead of strings) have
//! their own kernels here.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, Float64Type, Int32Type, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{BinaryExpr, Expr, Operator};
use tidemark_ast::BinaryOperator;
use tidemark_types::{SYMBOL_EQUAL, SqlType};

use crate::array::arrays;
use crate::column::{Call, build_flags, internal};
use crate::datetime::periods::period_order;
use crate::native::Kernel;
use crate::number::decimal;
use crate::operator::infix::{always, operator};
use crate::operator::times::{compared_wide, wide_time};
use crate::resolve::{Argument, BuildOperator, ResolvedOperator};
use crate::text::parse;

/// Difference below which `=` treats two DOUBLE values as equal.
pub const DOUBLE_TOLERANCE: f64 = 1e-10;

pub(crate) fn resolve(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<ResolvedOperator> {
    let symbolic = |a: &Argument, b: &Argument| {
        a.sql_type == SqlType::Symbol
            && matches!(b.sql_type, SqlType::String | SqlType::Varchar | SqlType::Char)
    };
    let equality = matches!(op, BinaryOperator::Equal | BinaryOperator::NotEqual);
    if equality && !left.is_null() && !right.is_null() {
        if symbolic(left, right) {
            return Some(symbol_equality(op, false));
        }
        if symbolic(right, left) {
            return Some(symbol_equality(op, true));
        }
        if left.sql_type == SqlType::Symbol && right.sql_type == SqlType::Symbol {
            // For joins and grouping, symbols are compared by code rather than by string.
            return Some(plain(op, SqlType::Symbol, left.may_be_null(), right.may_be_null()));
        }
    }
    if let (true, SqlType::Geohash(one), SqlType::Geohash(other)) =
        (equality, left.sql_type, right.sql_type)
        && one != other
    {
        // Geohashes with different precisions are never equal.
        return Some(always(left.sql_type, right.sql_type, op == BinaryOperator::NotEqual));
    }
    if !left.is_null()
        && !right.is_null()
        && let Some((left_type, right_type)) = compared_wide(left, right)
    {
        let compared = plain(op, left_type, left.may_be_null(), right.may_be_null()).build;
        let build: BuildOperator = Arc::new(move |left, right| {
            compared(wide_time(left, left_type), wide_time(right, right_type))
        });
        return Some(ResolvedOperator {
            left_type,
            right_type,
            return_type: SqlType::Boolean,
            build,
        });
    }
    let common = common_type(left.sql_type, right.sql_type)?;
    let common = narrow(left, right).or_else(|| narrow(right, left)).unwrap_or(common);
    let array = matches!(common, SqlType::DoubleArray(_));
    if common == SqlType::Binary || (array && !equality) {
        return None;
    }
    if left.is_null() || right.is_null() {
        return Some(against_null(op, left, right, common));
    }
    if equality && common == SqlType::Uuid && (bad_uuid(left) || bad_uuid(right)) {
        return Some(always(left.sql_type, right.sql_type, op == BinaryOperator::NotEqual));
    }
    match common {
        SqlType::Double => Some(doubles(op)),
        SqlType::DoubleArray(_) => Some(arrays::equality(op, common)),
        SqlType::Period => {
            Some(lengths(plain(op, SqlType::Long, left.may_be_null(), right.may_be_null())))
        }
        SqlType::Interval if equality => Some(intervals(op)),
        SqlType::Interval => None,
        SqlType::Uuid | SqlType::Long256 | SqlType::Boolean | SqlType::Geohash(_) if !equality => {
            None
        }
        _ => Some(plain(op, common, left.may_be_null(), right.may_be_null())),
    }
}

/// Returns the type two operands are compared in.
pub fn common_type(left: SqlType, right: SqlType) -> Option<SqlType> {
    use SqlType as T;
    let text = |sql_type: T| sql_type.is_text();
    let time = |sql_type: T| sql_type.is_timestamp() || sql_type == T::Date;
    let number = |sql_type: T| sql_type.is_integer() || sql_type.is_floating();
    let rank = |sql_type: T| match sql_type {
        T::Date => 0,
        T::Timestamp => 1,
        _ => 2,
    };
    Some(match (left, right) {
        (T::Null, T::Null) => T::Varchar,
        (T::Null, other) | (other, T::Null) => compared_as(other),
        (a, b) if text(a) && text(b) => T::Varchar,
        (T::Char, T::Char) => T::Char,
        (T::Char, other) | (other, T::Char) if text(other) => T::Varchar,
        (T::Char, other) | (other, T::Char) if number(other) => compared_as(other),
        (a, b) if time(a) && time(b) => {
            if rank(a) >= rank(b) {
                a
            } else {
                b
            }
        }
        (a, b) | (b, a) if time(a) && b.is_floating() => T::Double,
        (a, b) | (b, a) if time(a) && (b.is_integer() || text(b)) => a,
        (a, b) if number(a) && number(b) => {
            if a.is_floating() || b.is_floating() {
                T::Double
            } else {
                widest_integer(a, b)
            }
        }
        (a, b) | (b, a) if number(a) && text(b) => compared_as(a),
        (a @ (T::Uuid | T::Ipv4 | T::Long256 | T::Geohash(_) | T::Period), b)
        | (b, a @ (T::Uuid | T::Ipv4 | T::Long256 | T::Geohash(_) | T::Period))
            if text(b) =>
        {
            a
        }
        (a, b) if a == b => a,
        (a, b) => return decimal::common(a, b),
    })
}

fn compared_as(sql_type: SqlType) -> SqlType {
    match sql_type {
        SqlType::Float => SqlType::Double,
        SqlType::Symbol | SqlType::String => SqlType::Varchar,
        other => other,
    }
}

fn widest_integer(a: SqlType, b: SqlType) -> SqlType {
    let rank = |sql_type| match sql_type {
        SqlType::Byte => 0,
        SqlType::Short => 1,
        SqlType::Int => 2,
        _ => 3,
    };
    if rank(a) >= rank(b) { a } else { b }
}

/// Returns BYTE or SHORT if one operand has that type and the other is an integer constant within
/// its range. The column is then compared without a cast.
fn narrow(own: &Argument, constant: &Argument) -> Option<SqlType> {
    let range = match own.sql_type {
        SqlType::Byte => i64::from(i8::MIN)..=i64::from(i8::MAX),
        SqlType::Short => i64::from(i16::MIN)..=i64::from(i16::MAX),
        _ => return None,
    };
    let number = constant.constant.as_ref().filter(|_| constant.sql_type.is_integer())?;
    let ScalarValue::Int64(Some(number)) = number.cast_to(&DataType::Int64).ok()? else {
        return None;
    };
    range.contains(&number).then_some(own.sql_type)
}

fn bad_uuid(argument: &Argument) -> bool {
    let text = argument.text().filter(|_| argument.sql_type != SqlType::Uuid);
    text.is_some_and(|text| parse::uuid(&text).is_none())
}

fn against_null(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
    common: SqlType,
) -> ResolvedOperator {
    let both = left.is_null() && right.is_null();
    let reflexive =
        !matches!(op, BinaryOperator::NotEqual | BinaryOperator::Less | BinaryOperator::Greater);
    if both {
        return always(left.sql_type, right.sql_type, reflexive);
    }
    let (side, left_is_null) = if left.is_null() { (right, true) } else { (left, false) };
    if matches!(op, BinaryOperator::Less | BinaryOperator::Greater) || !side.sql_type.is_nullable()
    {
        return always(left.sql_type, right.sql_type, op == BinaryOperator::NotEqual);
    }
    let negated = op == BinaryOperator::NotEqual;
    let build: BuildOperator = Arc::new(move |left, right| {
        let side = Box::new(if left_is_null { right } else { left });
        if negated { Expr::IsNotNull(side) } else { Expr::IsNull(side) }
    });
    // The null operand is dropped. The other operand keeps its type and needs no cast.
    let keep = |argument: &Argument| if argument.is_null() { common } else { argument.sql_type };
    ResolvedOperator {
        left_type: keep(left),
        right_type: keep(right),
        return_type: SqlType::Boolean,
        build,
    }
}

/// Builds `left op right` with `DataFusion`'s operators.
fn plain(
    op: BinaryOperator,
    common: SqlType,
    left_null: bool,
    right_null: bool,
) -> ResolvedOperator {
    let either = left_null || right_null;
    let both = left_null && right_null;
    let build: BuildOperator = Arc::new(move |left, right| {
        let sign = match op {
            BinaryOperator::Equal if either => Operator::IsNotDistinctFrom,
            BinaryOperator::NotEqual if either => Operator::IsDistinctFrom,
            BinaryOperator::Equal => Operator::Eq,
            BinaryOperator::NotEqual => Operator::NotEq,
            BinaryOperator::Less => Operator::Lt,
            BinaryOperator::LessOrEqual => Operator::LtEq,
            BinaryOperator::Greater => Operator::Gt,
            _ => Operator::GtEq,
        };
        let equality = matches!(op, BinaryOperator::Equal | BinaryOperator::NotEqual);
        let inclusive = matches!(op, BinaryOperator::LessOrEqual | BinaryOperator::GreaterOrEqual);
        let nulls = (inclusive && both).then(|| {
            Expr::IsNull(Box::new(left.clone())).and(Expr::IsNull(Box::new(right.clone())))
        });
        let compared = Expr::BinaryExpr(BinaryExpr::new(Box::new(left), sign, Box::new(right)));
        let definite =
            if equality || !either { compared } else { Expr::IsTrue(Box::new(compared)) };
        match nulls {
            Some(nulls) => definite.or(nulls),
            None => definite,
        }
    });
    ResolvedOperator { left_type: common, right_type: common, return_type: SqlType::Boolean, build }
}

/// Evaluates a comparison operator on the ordering of two values.
fn holds(op: BinaryOperator, ordering: std::cmp::Ordering) -> bool {
    match op {
        BinaryOperator::Equal => ordering.is_eq(),
        BinaryOperator::NotEqual => ordering.is_ne(),
        BinaryOperator::Less => ordering.is_lt(),
        BinaryOperator::LessOrEqual => ordering.is_le(),
        BinaryOperator::Greater => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// The functions that compare DOUBLE values in a plan, with their operators. A scan uses them to
/// skip data that cannot match.
pub const DOUBLE_COMPARISONS: [(&str, Operator); 5] = [
    ("double_equal", Operator::Eq),
    ("double_less", Operator::Lt),
    ("double_less_or_equal", Operator::LtEq),
    ("double_greater", Operator::Gt),
    ("double_greater_or_equal", Operator::GtEq),
];

fn doubles(op: BinaryOperator) -> ResolvedOperator {
    let kernel: Kernel = match op {
        BinaryOperator::Equal => doubles_kernel(true, |a, b| (a - b).abs() < DOUBLE_TOLERANCE),
        BinaryOperator::NotEqual => {
            return negated(doubles(BinaryOperator::Equal));
        }
        BinaryOperator::Less => doubles_kernel(false, |a, b| a < b),
        BinaryOperator::LessOrEqual => doubles_kernel(true, |a, b| a <= b),
        BinaryOperator::Greater => doubles_kernel(false, |a, b| a > b),
        _ => doubles_kernel(true, |a, b| a >= b),
    };
    let types = (SqlType::Double, SqlType::Double, SqlType::Boolean);
    let [equal, less, less_or_equal, greater, greater_or_equal] = DOUBLE_COMPARISONS;
    let (name, _) = match op {
        BinaryOperator::Equal => equal,
        BinaryOperator::Less => less,
        BinaryOperator::LessOrEqual => less_or_equal,
        BinaryOperator::Greater => greater,
        _ => greater_or_equal,
    };
    operator(name, types, "", kernel)
}

fn negated(operator: ResolvedOperator) -> ResolvedOperator {
    let build = operator.build;
    ResolvedOperator {
        build: Arc::new(move |left, right| Expr::Not(Box::new(build(left, right)))),
        ..operator
    }
}

fn doubles_kernel<F>(two_nulls: bool, test: F) -> Kernel
where
    F: Fn(f64, f64) -> bool + Send + Sync + 'static,
{
    Arc::new(move |call: &Call<'_>| {
        let (left, right) = (call.primitive::<Float64Type>(0)?, call.primitive::<Float64Type>(1)?);
        let dense = left.nulls.is_none() && right.nulls.is_none();
        Ok(match (dense, left.scalar, right.scalar) {
            (true, false, false) => {
                build_flags(call.rows, |row| test(left.values[row], right.values[row]))
            }
            (true, false, true) => {
                let bound = right.values[0];
                let words = tidemark_kernels::matching(&left.values, |value| test(value, bound));
                let found = BooleanBuffer::new(Buffer::from_vec(words), 0, left.values.len());
                Arc::new(BooleanArray::new(found, None))
            }
            _ => build_flags(call.rows, |row| match (left.get(row), right.get(row)) {
                (Some(a), Some(b)) => test(a, b),
                (None, None) => two_nulls,
                _ => false,
            }),
        })
    })
}

/// Compares periods by their length in microseconds.
fn lengths(of: ResolvedOperator) -> ResolvedOperator {
    let build = of.build;
    let build: BuildOperator =
        Arc::new(move |left, right| build(period_order(left), period_order(right)));
    ResolvedOperator { left_type: SqlType::Period, right_type: SqlType::Period, build, ..of }
}

fn intervals(op: BinaryOperator) -> ResolvedOperator {
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let bounds = |index: usize| -> Result<_> {
            let (array, scalar) = call.array(index)?;
            let pair = array.as_struct_opt().ok_or_else(|| internal("not an interval"))?;
            let of = |column: usize| {
                let values = pair.column(column).as_primitive::<TimestampMicrosecondType>().clone();
                move |row: usize| values.is_valid(row).then(|| values.value(row))
            };
            let (lo, hi) = (of(0), of(1));
            Ok(move |row: usize| {
                let row = if scalar { 0 } else { row };
                (lo(row), hi(row))
            })
        };
        let (left, right) = (bounds(0)?, bounds(1)?);
        Ok(build_flags(call.rows, |row| holds(op, left(row).cmp(&right(row)))))
    });
    operator(
        "compare_interval",
        (SqlType::Interval, SqlType::Interval, SqlType::Boolean),
        op.sign(),
        kernel,
    )
}

fn symbol_equality(op: BinaryOperator, swapped: bool) -> ResolvedOperator {
    let keys = Mutex::new(None);
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| symbol_equal(call, &keys));
    let types = (SqlType::Symbol, SqlType::Varchar, SqlType::Boolean);
    let plain = operator(SYMBOL_EQUAL, types, "", kernel);
    let build = plain.build;
    let build: BuildOperator =
        if swapped { Arc::new(move |left, right| build(right, left)) } else { build };
    let (left_type, right_type) = if swapped {
        (SqlType::Varchar, SqlType::Symbol)
    } else {
        (SqlType::Symbol, SqlType::Varchar)
    };
    let resolved = ResolvedOperator { left_type, right_type, return_type: SqlType::Boolean, build };
    if op == BinaryOperator::NotEqual { negated(resolved) } else { resolved }
}

/// A string's keys in one dictionary. All batches in a snapshot share the dictionary, so one lookup
/// serves a whole scan.
struct FoundKeys {
    dictionary: ArrayRef,
    text: String,
    keys: Vec<i32>,
}

fn symbol_equal(call: &Call<'_>, cache: &Mutex<Option<FoundKeys>>) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let symbols = array
        .as_any_dictionary_opt()
        .and_then(|_| array.as_any().downcast_ref::<DictionaryArray<Int32Type>>())
        .ok_or_else(|| internal("not a symbol"))?;
    let texts = call.texts(1)?;
    let values = symbols.values().as_string::<i32>();
    let symbol_at = |row: usize| {
        let row = if scalar { 0 } else { row };
        symbols.key(row).map(|key| values.value(key))
    };
    if scalar || !texts.scalar {
        return Ok(build_flags(call.rows, |row| symbol_at(row) == texts.get(row)));
    }
    let Some(text) = texts.get(0) else {
        return Ok(build_flags(call.rows, |row| symbols.is_null(row)));
    };
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let known = cache.as_ref().is_some_and(|found| {
        Arc::ptr_eq(&found.dictionary, symbols.values()) && found.text == text
    });
    if !known {
        let matching = (0..values.len()).filter(|&key| values.value(key) == text);
        let keys = matching.map(|key| key as i32).collect();
        *cache = Some(FoundKeys {
            dictionary: Arc::clone(symbols.values()),
            text: text.to_owned(),
            keys,
        });
    }
    let keys = cache.as_ref().map_or(Vec::new(), |found| found.keys.clone());
    drop(cache);
    let rows = symbols.keys().values();
    let found = match keys.as_slice() {
        [] => BooleanBuffer::new_unset(call.rows),
        [key] => {
            let words = tidemark_kernels::matching(rows, |row| row == *key);
            BooleanBuffer::new(Buffer::from_vec(words), 0, call.rows)
        }
        keys => BooleanBuffer::collect_bool(call.rows, |row| keys.contains(&rows[row])),
    };
    let found = match symbols.nulls() {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    };
    Ok(Arc::new(BooleanArray::new(found, None)))
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;
    use datafusion::common::ScalarValue;
    use datafusion_expr::{ColumnarValue, col, lit};

    use super::*;
    use crate::operator::operand::resolve_operator;

    fn flags(array: &ArrayRef) -> Vec<bool> {
        assert_eq!(array.null_count(), 0);
        array.as_boolean().values().iter().collect()
    }

    #[test]
    fn comparisons_of_nullable_operands_are_null_safe() {
        let int = Argument::column(SqlType::Int);
        let text_of = |op| {
            let resolved = resolve_operator(op, &int, &int).unwrap();
            (resolved.build)(col("a"), col("b")).to_string()
        };
        assert_eq!(text_of(BinaryOperator::Equal), "a IS NOT DISTINCT FROM b");
        assert_eq!(text_of(BinaryOperator::Less), "a < b IS TRUE");
        assert_eq!(
            text_of(BinaryOperator::LessOrEqual),
            "a <= b IS TRUE OR a IS NULL AND b IS NULL"
        );
        let byte = Argument::column(SqlType::Byte);
        let resolved = resolve_operator(BinaryOperator::Equal, &byte, &byte).unwrap();
        assert_eq!((resolved.build)(col("a"), col("b")).to_string(), "a = b");
    }

    #[test]
    fn comparison_with_null_becomes_a_null_test() {
        let null = Argument::constant(SqlType::Null, ScalarValue::Null);
        let int = Argument::column(SqlType::Int);
        let resolved = resolve_operator(BinaryOperator::NotEqual, &int, &null).unwrap();
        assert_eq!((resolved.build)(col("a"), lit(ScalarValue::Null)).to_string(), "a IS NOT NULL");
        let short = Argument::column(SqlType::Short);
        let resolved = resolve_operator(BinaryOperator::Equal, &null, &short).unwrap();
        assert_eq!(
            (resolved.build)(lit(ScalarValue::Null), col("a")),
            Expr::Literal(ScalarValue::Boolean(Some(false)), None)
        );
    }

    #[test]
    fn doubles_are_equal_within_the_tolerance() {
        let kernel = doubles_kernel(true, |a, b| (a - b).abs() < DOUBLE_TOLERANCE);
        let left = Float64Array::from(vec![Some(0.1 + 0.2), Some(1.0), None, Some(-0.0), None]);
        let right =
            Float64Array::from(vec![Some(0.3), Some(1.000_000_000_1), None, Some(0.0), Some(1.0)]);
        let arguments =
            [ColumnarValue::Array(Arc::new(left)), ColumnarValue::Array(Arc::new(right))];
        let found = kernel(&Call { arguments: &arguments, rows: 5, random: None }).unwrap();
        assert_eq!(flags(&found), [true, false, true, true, false]);
    }

    #[test]
    fn symbols_are_compared_by_key() {
        let symbols: DictionaryArray<Int32Type> =
            [Some("a"), Some("b"), None, Some("a")].into_iter().collect();
        let text = |text: Option<&str>| {
            ColumnarValue::Scalar(ScalarValue::Utf8View(text.map(str::to_owned)))
        };
        let cache = Mutex::new(None);
        let column = ColumnarValue::Array(Arc::new(symbols));
        let run = |value: Option<&str>| {
            let arguments = [column.clone(), text(value)];
            flags(
                &symbol_equal(&Call { arguments: &arguments, rows: 4, random: None }, &cache)
                    .unwrap(),
            )
        };
        assert_eq!(run(Some("a")), [true, false, false, true]);
        assert_eq!(run(Some("b")), [false, true, false, false]);
        assert_eq!(run(Some("z")), [false; 4]);
        assert_eq!(run(None), [false, false, true, false]);
    }
}
