//! Adds to times, and computes the distance between two times.

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow::datatypes::Int64Type;
use datafusion::common::ScalarValue;
use tidemark_types::SqlType;
use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY};
use tidemark_types::duration::{add, fixed_nanos, unit_months};
use tidemark_types::timestamp::TimestampUnit;

use super::times::{KernelResult, build_times, micros_of, times};
use super::zones::{Zones, zone_argument};
use crate::column::{Call, Texts, build};
use crate::resolve::{Argument, ResolveError, types_of};
use crate::signature::Bound;

fn is_unit(letter: char) -> bool {
    fixed_nanos(letter).or_else(|| unit_months(letter)).is_some()
}

/// What is known about the unit argument before the first row.
enum KnownUnit {
    /// The unit varies by row.
    Unknown,
    Letter(char),
    /// A constant that is not a unit.
    Invalid,
}

fn known_unit(argument: &Argument) -> KnownUnit {
    let Some(text) = argument.text() else { return KnownUnit::Unknown };
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if is_unit(letter) => KnownUnit::Letter(letter),
        _ => KnownUnit::Invalid,
    }
}

fn period(bound: &Bound<'_>, index: usize) -> Result<Option<char>, ResolveError> {
    match known_unit(&bound.arguments[index]) {
        KnownUnit::Unknown => Ok(None),
        KnownUnit::Letter(letter) => Ok(Some(letter)),
        KnownUnit::Invalid => {
            let text = bound.arguments[index].text().unwrap_or_default();
            let message = format!("invalid time period [unit={text}]");
            Err(ResolveError::InvalidArgument { index, message })
        }
    }
}

/// Returns a row's unit. `known` is the unit if it is constant.
fn letter_at(letters: &Texts, known: Option<char>, row: usize) -> Option<char> {
    known.or_else(|| letters.get(row)?.chars().next().filter(|letter| is_unit(*letter)))
}

pub(super) fn dateadd(bound: &Bound<'_>) -> KernelResult {
    if bound.arguments[0].text().is_some_and(|unit| unit.chars().count() > 1) {
        let types = types_of(bound.arguments);
        return Err(ResolveError::NoOverload { name: "dateadd".into(), types });
    }
    // A parameter that has no value yet does not count as null.
    for (index, what) in ["period", "stride"].into_iter().enumerate() {
        if bound.arguments[index].constant.as_ref().is_some_and(ScalarValue::is_null) {
            let message = format!("`null` is not a valid {what}");
            return Err(ResolveError::InvalidArgument { index, message });
        }
    }
    let letter = period(bound, 0)?;
    let zoned = bound.arguments.len() == 4;
    let known_zone = if zoned { zone_argument(bound, 3)? } else { None };
    Ok(Arc::new(move |call: &Call<'_>| {
        let letters = call.texts(0)?;
        let numbers = call.primitive::<Int64Type>(1)?;
        let (at, unit) = times(call, 2)?;
        let zones = if zoned { Some(Zones::new(call, 3, known_zone)?) } else { None };
        Ok(build_times(call.rows, unit, |row| {
            let letter = letter_at(&letters, letter, row)?;
            let (number, value) = (numbers.get(row)?, at(row)?);
            match &zones {
                None => add(value, letter, number, unit),
                Some(zones) => {
                    let (zone, per_second) = (zones.get(row)?, unit.per_second());
                    let moved = add(zone.to_local(value, per_second), letter, number, unit)?;
                    Some(zone.to_utc(moved, per_second))
                }
            }
        }))
    }))
}

/// Returns the number of complete units between two timestamps, in either order.
fn difference(a: i64, b: i64, letter: char, unit: TimestampUnit) -> Option<i64> {
    let (low, high) = (a.min(b), a.max(b));
    if let Some(nanos) = fixed_nanos(letter) {
        let distance = high.checked_sub(low)?;
        return if nanos >= unit.nanos() {
            Some(distance / (nanos / unit.nanos()))
        } else {
            distance.checked_mul(unit.nanos() / nanos)
        };
    }
    let (low, high) = (micros_of(low, unit), micros_of(high, unit));
    let index = |micros| {
        let date = CivilDate::from_micros(micros);
        i64::from(date.year) * 12 + i64::from(date.month)
    };
    let within = |micros: i64| {
        let date = CivilDate::from_micros(micros);
        (date.day, micros.rem_euclid(MICROS_PER_DAY))
    };
    let months = index(high) - index(low) - i64::from(within(high) < within(low));
    Some(if letter == 'M' { months } else { months / 12 })
}

/// Returns the result type, which is LONG. If a constant unit is invalid, the result is null and
/// has a timestamp type.
pub(super) fn difference_type(types: &[SqlType], arguments: &[Argument]) -> SqlType {
    match known_unit(&arguments[0]) {
        KnownUnit::Invalid if types[1..].contains(&SqlType::TimestampNs) => SqlType::TimestampNs,
        KnownUnit::Invalid => SqlType::Timestamp,
        _ => SqlType::Long,
    }
}

pub(super) fn datediff(bound: &Bound<'_>) -> KernelResult {
    let letter = match known_unit(&bound.arguments[0]) {
        KnownUnit::Invalid => {
            let null = bound.returns.arrow_type();
            return Ok(Arc::new(move |call: &Call<'_>| Ok(new_null_array(&null, call.rows))));
        }
        KnownUnit::Letter(letter) => Some(letter),
        KnownUnit::Unknown => None,
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        let letters = call.texts(0)?;
        let ((a, a_unit), (b, b_unit)) = (times(call, 1)?, times(call, 2)?);
        let unit = a_unit.max(b_unit);
        Ok(build::<Int64Type>(call.rows, |row| {
            let letter = letter_at(&letters, letter, row)?;
            let (a, b) = (a_unit.convert(a(row)?, unit)?, b_unit.convert(b(row)?, unit)?);
            difference(a, b, letter, unit)
        }))
    }))
}
