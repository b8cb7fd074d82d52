//! The host clock, intervals, and timestamps that advance from row to row.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{Array, ArrayRef, AsArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::Result;
use tidemark_types::SqlType::Interval;
use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY};
use tidemark_types::zone::Zone;

use super::times::{Us, build_times, times};
use crate::column::{Call, build, internal, invalid};

pub(super) fn clock_nanos() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX)
}

fn interval_of(
    rows: usize,
    mut bounds: impl FnMut(usize) -> Option<(i64, i64)>,
) -> Result<ArrayRef> {
    let pairs: Vec<Option<(i64, i64)>> = (0..rows).map(&mut bounds).collect();
    let lo = build::<Us>(rows, |row| pairs[row].map(|pair| pair.0));
    let hi = build::<Us>(rows, |row| pairs[row].map(|pair| pair.1));
    let DataType::Struct(fields) = Interval.arrow_type() else {
        return Err(internal("expected an interval as a pair of bounds"));
    };
    let nulls = pairs
        .iter()
        .any(Option::is_none)
        .then(|| NullBuffer::from(pairs.iter().map(Option::is_some).collect::<Vec<bool>>()));
    Ok(Arc::new(StructArray::try_new(fields, vec![lo, hi], nulls)?))
}

pub(super) fn interval(call: &Call<'_>) -> Result<ArrayRef> {
    let (low, high) = (call.primitive::<Us>(0)?, call.primitive::<Us>(1)?);
    for row in 0..call.rows {
        if let (Some(low), Some(high)) = (low.get(row), high.get(row))
            && low > high
        {
            return Err(invalid("invalid interval boundaries"));
        }
    }
    interval_of(call.rows, |row| Some((low.get(row)?, high.get(row)?)))
}

pub(super) fn bound_of(call: &Call<'_>, column: usize) -> Result<ArrayRef> {
    let (array, scalar) = call.array(0)?;
    let pair = array.as_struct_opt().ok_or_else(|| internal("not an interval"))?;
    let values = pair.column(column).as_primitive::<Us>();
    Ok(build::<Us>(call.rows, |row| {
        let row = if scalar { 0 } else { row };
        (pair.is_valid(row) && values.is_valid(row)).then(|| values.value(row))
    }))
}

/// Returns the day `shift` days from now as an interval that includes both ends. The first argument
/// is the time zone.
pub(super) fn day_from_now(call: &Call<'_>, shift: i64) -> Result<ArrayRef> {
    let name = if call.arguments.is_empty() { None } else { call.constant_text(0)? };
    let zone = match name {
        None => Zone::Fixed(0),
        Some(name) => {
            Zone::parse(&name).ok_or_else(|| invalid(format!("invalid timezone: {name}")))?
        }
    };
    let local = zone.to_local(clock_nanos() / 1_000, 1_000_000);
    let midnight = CivilDate::from_micros(local).to_micros() + shift * MICROS_PER_DAY;
    let (lo, hi) =
        (zone.to_utc(midnight, 1_000_000), zone.to_utc(midnight + MICROS_PER_DAY, 1_000_000));
    interval_of(call.rows, |_| Some((lo, hi - 1)))
}

/// Computes a sequence of timestamps. The elapsed time carries over from batch to batch within a
/// statement.
pub(super) fn sequence(call: &Call<'_>, elapsed: &Mutex<i64>) -> Result<ArrayRef> {
    let (at, unit) = times(call, 0)?;
    let steps = call.primitive::<Int64Type>(1)?;
    let mut elapsed = elapsed.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(build_times(call.rows, unit, |row| {
        let value = at(row)?.checked_add(*elapsed);
        *elapsed = elapsed.wrapping_add(steps.get(row).unwrap_or(0));
        value
    }))
}
