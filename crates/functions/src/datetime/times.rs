//! Timestamp columns, read in their own unit and built from integers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{
    DataType, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use datafusion::common::Result;
use datafusion_expr::{Expr, Volatility};
use tidemark_types::SqlType;
use tidemark_types::timestamp::TimestampUnit;

use crate::column::{Call, build, internal, invalid, try_build};
use crate::native::{Kernel, Native, call};
use crate::resolve::ResolveError;

pub(super) type KernelResult = std::result::Result<Kernel, ResolveError>;
pub(super) type Us = TimestampMicrosecondType;
pub(super) type Ns = TimestampNanosecondType;

/// Returns a time argument as integers in its own unit: a single value for a scalar, otherwise one
/// per row.
pub(super) fn ticks_of(call: &Call<'_>, index: usize) -> Result<(Int64Array, bool, TimestampUnit)> {
    let (array, scalar) = call.array(index)?;
    let unit = match array.data_type() {
        DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, _) => TimestampUnit::Millis,
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _) => TimestampUnit::Nanos,
        DataType::Timestamp(..) => TimestampUnit::Micros,
        other => return Err(internal(format!("{other} is not a timestamp type"))),
    };
    let wide = arrow::compute::cast(&array, &DataType::Int64)?;
    Ok((wide.as_primitive::<Int64Type>().clone(), scalar, unit))
}

/// Reads a time argument row by row, in its own unit.
pub(super) fn times(
    call: &Call<'_>,
    index: usize,
) -> Result<(impl Fn(usize) -> Option<i64> + use<>, TimestampUnit)> {
    let (wide, scalar, unit) = ticks_of(call, index)?;
    let at = move |row: usize| {
        let row = if scalar { 0 } else { row };
        wide.is_valid(row).then(|| wide.value(row))
    };
    Ok((at, unit))
}

pub(super) fn build_times(
    rows: usize,
    unit: TimestampUnit,
    value: impl FnMut(usize) -> Option<i64>,
) -> ArrayRef {
    match unit {
        TimestampUnit::Millis => build::<TimestampMillisecondType>(rows, value),
        TimestampUnit::Micros => build::<Us>(rows, value),
        TimestampUnit::Nanos => build::<Ns>(rows, value),
    }
}

/// Like [`build_times`], but computing a timestamp can fail.
pub(super) fn try_build_times(
    rows: usize,
    unit: TimestampUnit,
    value: impl FnMut(usize) -> Result<Option<i64>>,
) -> Result<ArrayRef> {
    match unit {
        TimestampUnit::Millis => try_build::<TimestampMillisecondType>(rows, value),
        TimestampUnit::Micros => try_build::<Us>(rows, value),
        TimestampUnit::Nanos => try_build::<Ns>(rows, value),
    }
}

/// Converts to microseconds, rounding down.
pub(super) fn micros_of(value: i64, unit: TimestampUnit) -> i64 {
    match unit {
        TimestampUnit::Millis => value.saturating_mul(1_000),
        TimestampUnit::Micros => value,
        TimestampUnit::Nanos => value.div_euclid(1_000),
    }
}

/// `PostgreSQL`'s epoch, 2000-01-01, in seconds. Ties are rounded away from the epoch.
const YEAR_2000: i64 = 946_684_800;

/// Rounds a time to this many fractional digits of a second.
#[must_use]
pub fn rounded_time(time: Expr, of: SqlType, digits: u32) -> Expr {
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let step = unit.per_second() / 10_i64.pow(digits.min(unit.digits() as u32));
        try_build_times(call.rows, unit, |row| {
            let Some(value) = at(row) else { return Ok(None) };
            let zero = YEAR_2000 * unit.per_second();
            let half = if value < zero { -(step / 2) } else { step / 2 };
            let rounded = value
                .checked_sub(zero)
                .and_then(|distance| distance.checked_add(half))
                .and_then(|distance| (distance / step * step).checked_add(zero));
            rounded.map(Some).ok_or_else(|| invalid("timestamp out of range"))
        })
    });
    let types = (vec![of], of);
    let function =
        Native::udf("rounded_time", digits.to_string(), types, Volatility::Immutable, kernel);
    call(&function, vec![time])
}
