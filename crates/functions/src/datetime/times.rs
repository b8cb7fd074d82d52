//! Columns of instants: read in their own unit, and built.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{
    DataType, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use datafusion::common::Result;
use tidemark_types::timestamp::TimestampUnit;

use crate::column::{Call, build, internal, try_build};
use crate::native::Kernel;
use crate::resolve::ResolveError;

pub(super) type Made = std::result::Result<Kernel, ResolveError>;
pub(super) type Us = TimestampMicrosecondType;
pub(super) type Ns = TimestampNanosecondType;

/// A time argument by row, in its own unit.
pub(super) fn times(
    call: &Call<'_>,
    index: usize,
) -> Result<(impl Fn(usize) -> Option<i64> + use<>, TimestampUnit)> {
    let (array, scalar) = call.array(index)?;
    let unit = match array.data_type() {
        DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, _) => TimestampUnit::Millis,
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _) => TimestampUnit::Nanos,
        DataType::Timestamp(..) => TimestampUnit::Micros,
        other => return Err(internal(format!("{other} is no time"))),
    };
    let wide = arrow::compute::cast(&array, &DataType::Int64)?;
    let wide = wide.as_primitive::<Int64Type>().clone();
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

/// The same, for instants whose computation can fail.
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

/// A floor toward the past into microseconds.
pub(super) fn micros_of(value: i64, unit: TimestampUnit) -> i64 {
    match unit {
        TimestampUnit::Millis => value.saturating_mul(1_000),
        TimestampUnit::Micros => value,
        TimestampUnit::Nanos => value.div_euclid(1_000),
    }
}
