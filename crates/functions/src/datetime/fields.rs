//! Fields of a time, such as the year, quarter or day of the week.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int32Array};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use datafusion::common::Result;
use tidemark_types::calendar::{self, CivilDate, MICROS_PER_DAY};
use tidemark_types::timestamp::TimestampUnit;

use super::times::{KernelResult, micros_of, ticks_of, times};
use crate::column::{Call, build};
use crate::resolve::{Argument, ResolveError};
use crate::signature::Bound;

#[derive(Debug, Clone, Copy)]
pub(super) enum TimeField {
    Millennium,
    Century,
    Decade,
    Year,
    IsoYear,
    Quarter,
    Month,
    Week,
    DayOfYear,
    DayOfWeek,
    IsoDayOfWeek,
    SundayFirst,
    Day,
    Hour,
    Minute,
    Second,
    MillisOfMinute,
    MicrosOfMinute,
    NanosOfMinute,
    Millis,
    Micros,
    Nanos,
    Epoch,
    Julian,
    /// The UTC offset, which is 0 because times are in UTC.
    Offset,
    DaysInMonth,
}

/// Days from the start of the Julian day count to 1970-01-01.
const JULIAN_EPOCH_DAYS: i64 = 2_440_588;

impl TimeField {
    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millenniums" | "millennia" | "mil" | "mils" => Self::Millennium,
            "century" | "centuries" | "cent" | "c" => Self::Century,
            "decade" | "decades" | "dec" | "decs" => Self::Decade,
            "year" | "years" | "yr" | "yrs" | "y" => Self::Year,
            "isoyear" => Self::IsoYear,
            "quarter" | "qtr" => Self::Quarter,
            "month" | "months" | "mon" | "mons" => Self::Month,
            "week" | "weeks" | "w" => Self::Week,
            "doy" => Self::DayOfYear,
            "dow" => Self::DayOfWeek,
            "isodow" => Self::IsoDayOfWeek,
            "day" | "days" | "d" => Self::Day,
            "hour" | "hours" | "hr" | "hrs" | "h" => Self::Hour,
            "minute" | "minutes" | "min" | "mins" | "m" => Self::Minute,
            "second" | "seconds" | "sec" | "secs" | "s" => Self::Second,
            "millisecond" | "milliseconds" | "msec" | "msecs" | "ms" => Self::MillisOfMinute,
            "microsecond" | "microseconds" | "usec" | "usecs" | "us" => Self::MicrosOfMinute,
            "nanosecond" | "nanoseconds" => Self::NanosOfMinute,
            "epoch" => Self::Epoch,
            "julian" => Self::Julian,
            "timezone" | "timezone_hour" | "timezone_minute" => Self::Offset,
            _ => return None,
        })
    }

    /// Returns the minimum and maximum value; `None` if the range is large or depends on the time.
    pub(super) fn range(self) -> Option<(i64, i64)> {
        Some(match self {
            Self::Quarter => (1, 4),
            Self::Month => (1, 12),
            Self::Week => (1, 53),
            Self::DayOfYear => (1, 366),
            Self::DayOfWeek => (0, 6),
            Self::IsoDayOfWeek | Self::SundayFirst => (1, 7),
            Self::Day => (1, 31),
            Self::DaysInMonth => (28, 31),
            Self::Hour => (0, 23),
            Self::Minute | Self::Second => (0, 59),
            Self::Millis | Self::Micros | Self::Nanos => (0, 999),
            Self::Offset => (0, 0),
            Self::Millennium
            | Self::Century
            | Self::Decade
            | Self::Year
            | Self::IsoYear
            | Self::MillisOfMinute
            | Self::MicrosOfMinute
            | Self::NanosOfMinute
            | Self::Epoch
            | Self::Julian => return None,
        })
    }

    /// Returns the length in seconds of the aligned intervals in which the field is constant, or 0
    /// if they are shorter than a second.
    fn period(self) -> i64 {
        match self {
            Self::Hour => 3_600,
            Self::Minute => 60,
            Self::Second | Self::Epoch => 1,
            Self::MillisOfMinute
            | Self::MicrosOfMinute
            | Self::NanosOfMinute
            | Self::Millis
            | Self::Micros
            | Self::Nanos => 0,
            _ => 86_400,
        }
    }

    /// Returns a function that computes the field for successive times. It caches the value until
    /// the field's period ends, so nearby times are cheap.
    fn of_each(self, unit: TimestampUnit) -> impl FnMut(i64) -> i64 {
        let length = self.period() * unit.per_second();
        let (mut start, mut known, mut field) = (0, 0, 0);
        move |value| {
            if (value.wrapping_sub(start) as u64) < known {
                return field;
            }
            field = self.of(value, unit);
            if length > 0 {
                (start, known) = (value.wrapping_sub(value.rem_euclid(length)), length as u64);
            }
            field
        }
    }

    fn of(self, value: i64, unit: TimestampUnit) -> i64 {
        let micros = micros_of(value, unit);
        let date = CivilDate::from_micros(micros);
        let of_day = micros.rem_euclid(MICROS_PER_DAY);
        let year = i64::from(date.year);
        let fraction_nanos = value.rem_euclid(unit.per_second()) * unit.nanos();
        let ordinal = |length: i64| {
            if year > 0 { (year - 1) / length + 1 } else { year.div_euclid(length) }
        };
        match self {
            Self::Millennium => ordinal(1_000),
            Self::Century => ordinal(100),
            Self::Decade => year.div_euclid(10),
            Self::Year => year,
            Self::IsoYear => i64::from(date.iso_week().0),
            Self::Quarter => i64::from((date.month - 1) / 3 + 1),
            Self::Month => i64::from(date.month),
            Self::Week => i64::from(date.iso_week().1),
            Self::DayOfYear => i64::from(date.day_of_year()),
            Self::DayOfWeek => i64::from(date.iso_weekday() % 7),
            Self::IsoDayOfWeek => i64::from(date.iso_weekday()),
            Self::SundayFirst => i64::from(date.iso_weekday() % 7 + 1),
            Self::Day => i64::from(date.day),
            Self::DaysInMonth => i64::from(date.days_in_month()),
            Self::Hour => of_day / calendar::MICROS_PER_HOUR,
            Self::Minute => of_day / calendar::MICROS_PER_MINUTE % 60,
            Self::Second => of_day / calendar::MICROS_PER_SECOND % 60,
            Self::MillisOfMinute | Self::Millis => fraction_nanos / 1_000_000,
            Self::MicrosOfMinute => fraction_nanos / 1_000,
            Self::Micros => fraction_nanos / 1_000 % 1_000,
            Self::NanosOfMinute => fraction_nanos,
            Self::Nanos => fraction_nanos % 1_000,
            Self::Julian => micros.div_euclid(MICROS_PER_DAY) + JULIAN_EPOCH_DAYS,
            Self::Offset => 0,
            Self::Epoch => micros.div_euclid(calendar::MICROS_PER_SECOND),
        }
    }
}

pub(super) fn time_field(call: &Call<'_>, index: usize, field: TimeField) -> Result<ArrayRef> {
    let (times, scalar, unit) = ticks_of(call, index)?;
    let mut part_of = field.of_each(unit);
    if scalar {
        let time = times.is_valid(0).then(|| part_of(times.value(0)) as i32);
        return Ok(build::<Int32Type>(call.rows, |_| time));
    }
    let values: Vec<i32> = times.values().iter().map(|&time| part_of(time) as i32).collect();
    Ok(Arc::new(Int32Array::new(values.into(), times.nulls().cloned())))
}

/// Returns the requested field. The binder passes its name as constant text.
pub(super) fn requested_field(bound: &Bound<'_>) -> std::result::Result<TimeField, ResolveError> {
    let name = bound.arguments[0].text().unwrap_or_default();
    TimeField::parse(&name).ok_or_else(|| {
        let message = format!("unsupported timestamp part: {name}");
        ResolveError::InvalidArgument { index: 0, message }
    })
}

/// Returns the minimum and maximum value of the requested field.
pub(super) fn requested_range(arguments: &[Argument]) -> Option<(i64, i64)> {
    TimeField::parse(&arguments.first()?.text()?)?.range()
}

/// Builds the kernel for `date_part(time_field, time)`. Seconds include their fraction.
pub(super) fn date_part(bound: &Bound<'_>) -> KernelResult {
    let part_of = requested_field(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        let mut of_each = part_of.of_each(unit);
        Ok(build::<Float64Type>(call.rows, |row| {
            let value = at(row)?;
            Some(match part_of {
                TimeField::Second => {
                    part_of.of(value, unit) as f64
                        + (value.rem_euclid(unit.per_second()) as f64 / unit.per_second() as f64)
                }
                TimeField::MillisOfMinute => of_minute(value, unit, 1e3),
                TimeField::MicrosOfMinute => of_minute(value, unit, 1e6),
                TimeField::NanosOfMinute => of_minute(value, unit, 1e9),
                TimeField::Epoch => value as f64 / unit.per_second() as f64,
                TimeField::Julian => {
                    let of_day = micros_of(value, unit).rem_euclid(MICROS_PER_DAY);
                    part_of.of(value, unit) as f64 + of_day as f64 / MICROS_PER_DAY as f64
                }
                _ => of_each(value) as f64,
            })
        }))
    }))
}

/// Returns the time since the start of the minute, in units of 1/`per_second` of a second.
fn of_minute(value: i64, unit: TimestampUnit, per_second: f64) -> f64 {
    let past = value.rem_euclid(unit.per_second() * 60);
    past as f64 * per_second / unit.per_second() as f64
}

/// Builds the kernel for `extract(time_field FROM time)`. With `long`, the result is a LONG.
pub(super) fn extract(bound: &Bound<'_>, long: bool) -> KernelResult {
    let part_of = requested_field(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        if !long {
            return time_field(call, 1, part_of);
        }
        let (at, unit) = times(call, 1)?;
        let mut part_of = part_of.of_each(unit);
        Ok(build::<Int64Type>(call.rows, |row| at(row).map(&mut part_of)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [TimeField; 26] = [
        TimeField::Millennium,
        TimeField::Century,
        TimeField::Decade,
        TimeField::Year,
        TimeField::IsoYear,
        TimeField::Quarter,
        TimeField::Month,
        TimeField::Week,
        TimeField::DayOfYear,
        TimeField::DayOfWeek,
        TimeField::IsoDayOfWeek,
        TimeField::SundayFirst,
        TimeField::Day,
        TimeField::Hour,
        TimeField::Minute,
        TimeField::Second,
        TimeField::MillisOfMinute,
        TimeField::MicrosOfMinute,
        TimeField::NanosOfMinute,
        TimeField::Millis,
        TimeField::Micros,
        TimeField::Nanos,
        TimeField::Epoch,
        TimeField::Julian,
        TimeField::Offset,
        TimeField::DaysInMonth,
    ];

    /// Generates times in arbitrary order, many of them close together. Each cached field must
    /// equal the field computed for that time alone and lie within the field's range.
    #[test]
    fn cached_calendar_fields_are_correct_for_times_in_any_order() {
        let mut seed = 31_u64;
        let mut random = move |bound: i64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 11) as i64).rem_euclid(bound)
        };
        for unit in [TimestampUnit::Millis, TimestampUnit::Micros, TimestampUnit::Nanos] {
            let second = unit.per_second();
            let mut time = 0;
            let times: Vec<i64> = (0..4_000)
                .map(|_| {
                    let step = [1, second / 2, 100 * second, 90_000 * second][random(4) as usize];
                    time = match random(50) {
                        0 => (random(200) - 100) * 86_400 * second,
                        1 => (random(200) - 100) * second - 1,
                        _ => time + random(step + 1),
                    };
                    time
                })
                .collect();
            for field in FIELDS {
                let mut of_each = field.of_each(unit);
                for &time in &times {
                    let alone = field.of(time, unit);
                    assert_eq!(of_each(time), alone, "{field:?} of {time} {unit:?}");
                    if let Some((min, greatest)) = field.range() {
                        assert!((min..=greatest).contains(&alone), "{field:?} of {time}");
                    }
                }
            }
        }
    }
}
