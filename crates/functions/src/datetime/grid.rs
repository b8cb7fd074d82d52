//! Time grids: floor, ceiling and truncation.

use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use tidemark_types::calendar::{self, CivilDate, floor_to_months};
use tidemark_types::duration::{add, fixed_nanos, unit_months};
use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::zone::parse_shift;

use super::times::{KernelResult, build_times, micros_of, times};
use super::zones::zone_argument;
use crate::column::Call;
use crate::resolve::{Argument, ResolveError};
use crate::signature::Bound;

/// A step such as `5m` or `M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    number: i64,
    letter: char,
}

impl Step {
    fn parse(text: &str) -> Option<Self> {
        let letter = text.chars().next_back()?;
        let digits = &text[..text.len() - letter.len_utf8()];
        let number = if digits.is_empty() { 1 } else { digits.parse().ok()? };
        let known = fixed_nanos(letter).or_else(|| unit_months(letter)).is_some();
        (known && number > 0 && number <= i64::from(i32::MAX)).then_some(Self { number, letter })
    }

    /// Returns the start of the step that contains `value`. Steps are counted from `origin` if it
    /// is given. Otherwise, they follow the calendar.
    fn floor(self, value: i64, origin: Option<i64>, unit: TimestampUnit) -> Option<i64> {
        if let Some(nanos) = fixed_nanos(self.letter) {
            let length = self.number.checked_mul(nanos)? / unit.nanos();
            if length <= 1 {
                return Some(value);
            }
            let monday = if self.letter == 'w' { calendar::FIRST_MONDAY_MICROS } else { 0 };
            let origin = origin.unwrap_or(monday / 1_000_000 * unit.per_second());
            return Some(calendar::floor_to(value, length, origin));
        }
        let months = self.number.checked_mul(unit_months(self.letter)?)?;
        floor_to_months(value, months, origin.unwrap_or(0), unit.per_day())
    }

    /// Whether the step is at most one tick of the unit, so that every timestamp lies on the grid.
    fn is_one_unit(self, unit: TimestampUnit) -> bool {
        let nanos = fixed_nanos(self.letter).and_then(|nanos| nanos.checked_mul(self.number));
        nanos.is_some_and(|nanos| nanos <= unit.nanos())
    }

    fn next(self, floor: i64, unit: TimestampUnit) -> Option<i64> {
        add(floor, self.letter, self.number, unit)
    }
}

pub(super) fn step(bound: &Bound<'_>) -> Result<Step, ResolveError> {
    let text = bound.arguments[0].text().unwrap_or_default();
    Step::parse(&text).ok_or_else(|| ResolveError::InvalidArgument {
        index: 0,
        message: format!("invalid unit '{text}'"),
    })
}

pub(super) fn timestamp_floor(bound: &Bound<'_>) -> KernelResult {
    let step = step(bound)?;
    let with_origin = bound.types.len() >= 3;
    let offset = match constant_text(bound, 3)? {
        None => 0,
        Some(text) => parse_shift(&text).ok_or_else(|| ResolveError::InvalidArgument {
            index: 3,
            message: format!("invalid offset: {text}"),
        })?,
    };
    constant_text(bound, 4)?;
    let zone = zone_argument(bound, 4)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        let (origin, origin_unit) = times(call, if with_origin { 2 } else { 1 })?;
        let per_second = unit.per_second();
        let shift = offset * per_second;
        Ok(build_times(call.rows, unit, |row| {
            let value = at(row)?;
            let origin = origin(row).filter(|_| with_origin);
            let origin = origin.and_then(|origin| origin_unit.convert(origin, unit));
            let local = zone.map_or(value, |zone| zone.to_local(value, per_second));
            // As in QuestDB, the result is in local time.
            step.floor(local.checked_sub(shift)?, origin, unit)?.checked_add(shift)
        }))
    }))
}

/// Returns a text argument, which must be constant; `None` if it is omitted or null.
fn constant_text(bound: &Bound<'_>, index: usize) -> Result<Option<String>, ResolveError> {
    match bound.arguments.get(index) {
        Some(argument) if argument.constant.is_none() => {
            let message = "constant or bind variable expected".to_owned();
            Err(ResolveError::InvalidArgument { index, message })
        }
        argument => Ok(argument.and_then(Argument::text)),
    }
}

pub(super) fn timestamp_ceil(bound: &Bound<'_>) -> KernelResult {
    let step = step(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        let stays = step.is_one_unit(unit);
        // As in QuestDB, a timestamp on the grid moves to the next step, unless every timestamp is
        // on the grid.
        Ok(build_times(call.rows, unit, |row| {
            if stays { at(row) } else { step.next(step.floor(at(row)?, None, unit)?, unit) }
        }))
    }))
}

/// Computes `date(ts)`, the start of the day.
pub(super) fn date(call: &Call<'_>) -> Result<ArrayRef> {
    let (at, unit) = times(call, 0)?;
    let day = Step { number: 1, letter: 'd' };
    Ok(build_times(call.rows, unit, |row| day.floor(at(row)?, None, unit)))
}

pub(super) fn date_trunc(bound: &Bound<'_>) -> KernelResult {
    if bound.arguments[0].constant.as_ref().is_some_and(ScalarValue::is_null) {
        return Ok(Arc::new(|call: &Call<'_>| {
            let (_, unit) = times(call, 1)?;
            Ok(build_times(call.rows, unit, |_| None))
        }));
    }
    let name = bound.arguments[0].text().unwrap_or_default();
    let (number, letter) = match name.to_ascii_lowercase().trim_end_matches('s') {
        "nanosecond" => (1, 'n'),
        "microsecond" => (1, 'U'),
        "millisecond" => (1, 'T'),
        "second" => (1, 's'),
        "minute" => (1, 'm'),
        "hour" => (1, 'h'),
        "day" => (1, 'd'),
        "week" => (1, 'w'),
        "month" => (1, 'M'),
        "quarter" => (3, 'M'),
        "year" => (1, 'y'),
        "decade" => (10, 'y'),
        "century" | "centurie" => (100, 'y'),
        "millennium" => (1_000, 'y'),
        _ => {
            let message = format!("invalid unit '{name}'");
            return Err(ResolveError::InvalidArgument { index: 0, message });
        }
    };
    let step = Step { number, letter };
    // Decades are counted from year 0; centuries and millennia are counted from year 1.
    let first = match number {
        10 => Some(CivilDate { year: 0, month: 1, day: 1 }),
        100 | 1_000 => Some(CivilDate { year: 1, month: 1, day: 1 }),
        _ => None,
    };
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        Ok(build_times(call.rows, unit, |row| {
            let value = at(row)?;
            match first {
                None => step.floor(value, None, unit),
                Some(first) => {
                    let micros = step.floor(
                        micros_of(value, unit),
                        Some(first.to_micros()),
                        TimestampUnit::Micros,
                    )?;
                    TimestampUnit::Micros.convert(micros, unit)
                }
            }
        }))
    }))
}
