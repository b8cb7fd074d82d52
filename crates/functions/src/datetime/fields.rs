//! Parts of a time: year, quarter, day of the week, …

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use datafusion::common::Result;
use tidemark_types::calendar::{self, CivilDate, MICROS_PER_DAY};
use tidemark_types::timestamp::TimestampUnit;

use super::times::{Made, micros_of, times};
use crate::column::{Call, build};
use crate::resolve::ResolveError;
use crate::signature::Bound;

#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
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
    /// Of a zone: times are in UTC.
    Offset,
    DaysInMonth,
}

/// Days from the beginning of the Julian calendar's count to 1970.
const JULIAN_EPOCH_DAYS: i64 = 2_440_588;

impl Part {
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

pub(super) fn part(call: &Call<'_>, index: usize, part: Part) -> Result<ArrayRef> {
    let (at, unit) = times(call, index)?;
    Ok(build::<Int32Type>(call.rows, |row| at(row).map(|value| part.of(value, unit) as i32)))
}

/// The part that a call asks for; the binder passes the unit as a constant text.
pub(super) fn part_asked(bound: &Bound<'_>) -> std::result::Result<Part, ResolveError> {
    let name = bound.arguments[0].text().unwrap_or_default();
    Part::parse(&name).ok_or_else(|| {
        let message = format!("unsupported timestamp part: {name}");
        ResolveError::InvalidArgument { index: 0, message }
    })
}

/// `date_part(part, time)`: with its fraction where seconds have one.
pub(super) fn date_part(bound: &Bound<'_>) -> Made {
    let part_of = part_asked(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        Ok(build::<Float64Type>(call.rows, |row| {
            let value = at(row)?;
            Some(match part_of {
                Part::Second => {
                    part_of.of(value, unit) as f64
                        + (value.rem_euclid(unit.per_second()) as f64 / unit.per_second() as f64)
                }
                Part::MillisOfMinute => of_minute(value, unit, 1e3),
                Part::MicrosOfMinute => of_minute(value, unit, 1e6),
                Part::NanosOfMinute => of_minute(value, unit, 1e9),
                Part::Epoch => value as f64 / unit.per_second() as f64,
                Part::Julian => {
                    let of_day = micros_of(value, unit).rem_euclid(MICROS_PER_DAY);
                    part_of.of(value, unit) as f64 + of_day as f64 / MICROS_PER_DAY as f64
                }
                part_of => part_of.of(value, unit) as f64,
            })
        }))
    }))
}

/// What is past of a time's minute, in parts of a second.
fn of_minute(value: i64, unit: TimestampUnit, per_second: f64) -> f64 {
    let past = value.rem_euclid(unit.per_second() * 60);
    past as f64 * per_second / unit.per_second() as f64
}

/// `extract(part FROM time)`; `long`: as a LONG.
pub(super) fn extract(bound: &Bound<'_>, long: bool) -> Made {
    let part_of = part_asked(bound)?;
    Ok(Arc::new(move |call: &Call<'_>| {
        if !long {
            return part(call, 1, part_of);
        }
        let (at, unit) = times(call, 1)?;
        Ok(build::<Int64Type>(call.rows, |row| at(row).map(|value| part_of.of(value, unit))))
    }))
}
