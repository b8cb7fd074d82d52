//! Compares times with different units as 128-bit nanoseconds, which cannot overflow. If times were
//! compared as 64-bit integers in the finer unit, dates after 2262 would become null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Expr, Volatility};
use tidemark_types::SqlType;
use tidemark_types::timestamp::TimestampUnit;

use crate::cast::{CastMode, cast_value, unit_of};
use crate::column::{Call, internal};
use crate::native::{Kernel, Native, call};
use crate::resolve::Argument;

/// A type with enough digits for a time in any unit, in nanoseconds.
const WIDE: SqlType = SqlType::Decimal(38, 0);

/// Whether columns of these types are compared with [`wide_time`].
#[must_use]
pub fn is_wide(one: SqlType, other: SqlType) -> bool {
    one != other && unit_of(one).is_some() && unit_of(other).is_some()
}

/// Converts a time to nanoseconds, in an integer wide enough for every unit.
#[must_use]
pub fn wide_time(time: Expr, from: SqlType) -> Expr {
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| widened(call, from));
    let types = (vec![from], WIDE);
    let udf = Native::udf("wide_time", from.name(), types, Volatility::Immutable, kernel);
    call(&udf, vec![time])
}

fn widened(call: &Call<'_>, from: SqlType) -> Result<ArrayRef> {
    let unit = unit_of(from).ok_or_else(|| internal("not a time"))?;
    let (array, _) = call.array(0)?;
    let ticks = cast(&array, &DataType::Int64)?;
    let ticks = ticks.as_primitive::<Int64Type>();
    let nanos = i128::from(TimestampUnit::Nanos.per_second() / unit.per_second());
    let values = ticks.values().iter().map(|&tick| i128::from(tick) * nanos).collect();
    let wide = Decimal128Array::new(values, ticks.nulls().cloned());
    Ok(Arc::new(wide.with_precision_and_scale(38, 0)?))
}

/// Returns the types of two times if they are compared with [`wide_time`]; `None` if either type
/// can represent both times.
pub(crate) fn compared_wide(left: &Argument, right: &Argument) -> Option<(SqlType, SqlType)> {
    let (l, r) = (time_type(left, right)?, time_type(right, left)?);
    let (left_unit, right_unit) = (unit_of(l)?, unit_of(r)?);
    let (coarse, from, to) = if left_unit.per_second() < right_unit.per_second() {
        (left, left_unit, right_unit)
    } else {
        (right, right_unit, left_unit)
    };
    let fits = |value: &ScalarValue| ticks(value).is_some_and(|at| from.convert(at, to).is_some());
    let is_known = coarse.constant.as_ref().is_some_and(fits);
    (l != r && !is_known).then_some((l, r))
}

/// Returns an operand's time type. Constant text next to a time is read in microseconds if
/// nanoseconds cannot represent it.
fn time_type(operand: &Argument, other: &Argument) -> Option<SqlType> {
    if unit_of(operand.sql_type).is_some() {
        return Some(operand.sql_type);
    }
    operand.text()?;
    let unit = unit_of(other.sql_type)?;
    let value = operand.constant.as_ref()?;
    let of = |to: SqlType| {
        let value = cast_value(value, operand.sql_type, to, CastMode::Explicit).ok().flatten();
        value.filter(|value| !value.is_null())
    };
    let is_beyond = unit == TimestampUnit::Nanos && of(other.sql_type).is_none();
    (is_beyond && of(SqlType::Timestamp).is_some()).then_some(SqlType::Timestamp)
}

fn ticks(value: &ScalarValue) -> Option<i64> {
    match value {
        ScalarValue::TimestampMillisecond(at, _)
        | ScalarValue::TimestampMicrosecond(at, _)
        | ScalarValue::TimestampNanosecond(at, _) => *at,
        _ => None,
    }
}
