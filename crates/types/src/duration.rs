//! Units of time by their letter, and times moved by a number of them.

use crate::calendar::{CivilDate, MICROS_PER_DAY, add_months};
use crate::timestamp::TimestampUnit;

/// Months and years beyond this lead out of the calendar.
const MOST_MONTHS: i64 = 1_000_000;

/// The length of a fixed unit in nanoseconds; `None` for months and years.
#[must_use]
pub fn fixed_nanos(letter: char) -> Option<i64> {
    Some(match letter {
        'n' => 1,
        'u' | 'U' => 1_000,
        'T' => 1_000_000,
        's' => 1_000_000_000,
        'm' => 60_000_000_000,
        'h' => 3_600_000_000_000,
        'd' => 86_400_000_000_000,
        'w' => 604_800_000_000_000,
        _ => return None,
    })
}

/// `value` moved by `number` units of `letter`; `None` when that is out of range. Months keep to
/// the end of a shorter month; 29 February plus a year is 1 March.
#[must_use]
pub fn add(value: i64, letter: char, number: i64, unit: TimestampUnit) -> Option<i64> {
    if let Some(nanos) = fixed_nanos(letter) {
        let step = if nanos >= unit.nanos() {
            number.checked_mul(nanos / unit.nanos())?
        } else {
            number / (unit.nanos() / nanos)
        };
        return value.checked_add(step);
    }
    if number.abs() > MOST_MONTHS {
        return None;
    }
    let micros = match unit {
        TimestampUnit::Nanos => value.div_euclid(1_000),
        _ => unit.convert(value, TimestampUnit::Micros)?,
    };
    let moved = if letter == 'M' {
        add_months(micros, number)
    } else {
        let date = CivilDate::from_micros(micros);
        let first = CivilDate { day: 1, year: date.year + number as i32, ..date };
        let days = first.to_days() + i64::from(date.day) - 1;
        days.checked_mul(MICROS_PER_DAY)?.checked_add(micros.rem_euclid(MICROS_PER_DAY))?
    };
    value.checked_add(TimestampUnit::Micros.convert(moved.checked_sub(micros)?, unit)?)
}
