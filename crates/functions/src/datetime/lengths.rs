//! Lengths of time as `PostgreSQL` writes intervals: adding one to a time, and grids of them.

use std::sync::Arc;

use arrow::datatypes::Float64Type;
use datafusion::common::Result;
use tidemark_types::calendar::{self, MICROS_PER_DAY, add_months};
use tidemark_types::timestamp::TimestampUnit;

use super::times::{Made, micros_of, times, try_build_times};
use crate::column::{Call, invalid};
use crate::resolve::ResolveError;
use crate::signature::Bound;

/// 2000-01-03, a Monday, in microseconds: where grids of `time_bucket` begin.
const FIRST_BUCKET: i64 = 946_857_600_000_000;
/// 2000-01-01: where its grids of months begin.
const FIRST_MONTH: i64 = 946_684_800_000_000;
/// Days of a month where a part of one is meant.
const MONTH_DAYS: f64 = 30.0;
/// Most bytes of an interval's text.
const MOST_BYTES: usize = 256;

/// A length; months have no fixed number of days.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Length {
    months: f64,
    days: f64,
    micros: f64,
}

impl Length {
    /// `1 year 2 mons`, `1.5 hours`, `-2 days 04:05:06`, `3 h ago`; a number alone is seconds.
    fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim().trim_start_matches('@').trim();
        if trimmed.is_empty() || trimmed.len() > MOST_BYTES {
            return None;
        }
        let lower = trimmed.to_ascii_lowercase();
        let (body, sign) = match lower.strip_suffix("ago") {
            Some(body) => (body.trim_end(), -1.0),
            None => (lower.as_str(), 1.0),
        };
        let mut length = Self::default();
        let mut rest = body;
        while !rest.is_empty() {
            rest =
                length.add_part(rest)?.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        }
        Some(length.times(sign))
    }

    /// Adds the first part of a text, gives the text behind it.
    fn add_part<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let digits = text.find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.'));
        let (number, rest) = text.split_at(digits.unwrap_or(text.len()));
        if let Some(clock) = rest.strip_prefix(':') {
            let end = clock.find(|c: char| !matches!(c, '0'..='9' | ':' | '.'));
            let (clock, rest) = clock.split_at(end.unwrap_or(clock.len()));
            let (minutes, seconds) = clock.split_once(':').unwrap_or((clock, "0"));
            let hours: f64 = number.trim_start_matches(['+', '-']).parse().ok()?;
            let seconds = minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?;
            let all = (hours * 3_600.0 + seconds) * 1e6;
            self.micros += if number.starts_with('-') { -all } else { all };
            return Some(rest);
        }
        let number: f64 = number.parse().ok()?;
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        self.add(number, unit)?;
        Some(rest)
    }

    fn add(&mut self, number: f64, unit: &str) -> Option<()> {
        let (part, size) = match unit {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => (&mut self.micros, 1.0),
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => (&mut self.micros, 1e3),
            "" | "s" | "sec" | "secs" | "second" | "seconds" => (&mut self.micros, 1e6),
            "m" | "min" | "mins" | "minute" | "minutes" => (&mut self.micros, 60e6),
            "h" | "hr" | "hrs" | "hour" | "hours" => (&mut self.micros, 3_600e6),
            "d" | "day" | "days" => (&mut self.days, 1.0),
            "w" | "week" | "weeks" => (&mut self.days, 7.0),
            "mon" | "mons" | "month" | "months" => (&mut self.months, 1.0),
            "quarter" | "quarters" => (&mut self.months, 3.0),
            "y" | "yr" | "yrs" | "year" | "years" => (&mut self.months, 12.0),
            "decade" | "decades" => (&mut self.months, 120.0),
            "century" | "centuries" => (&mut self.months, 1_200.0),
            _ => return None,
        };
        *part += number * size;
        Some(())
    }

    fn times(self, factor: f64) -> Self {
        let Self { months, days, micros } = self;
        Self { months: months * factor, days: days * factor, micros: micros * factor }
    }

    /// Whole months and microseconds: parts of a month are days, parts of a day are time.
    fn whole(self) -> Option<(i64, i64)> {
        let days = self.days + self.months.fract() * MONTH_DAYS;
        let micros = (days * MICROS_PER_DAY as f64 + self.micros).round();
        let fits = self.months.abs() <= 1_200_000.0 && micros.abs() < 9.2e18;
        fits.then_some((self.months.trunc() as i64, micros as i64))
    }
}

/// The length that an argument says, where it is the same for all rows.
fn known(bound: &Bound<'_>, index: usize) -> std::result::Result<Option<Length>, ResolveError> {
    let Some(text) = bound.arguments[index].text() else { return Ok(None) };
    let message = || refusal(&text);
    Length::parse(&text)
        .map(Some)
        .ok_or_else(|| ResolveError::InvalidArgument { index, message: message() })
}

fn refusal(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    format!("invalid interval: '{shown}', expected for example '1 month 2 days 03:04:05'")
}

/// The length of a row.
fn length_of(known: Option<Length>, text: Option<&str>) -> Result<Option<Length>> {
    match (known, text) {
        (Some(length), _) => Ok(Some(length)),
        (None, Some(text)) => Length::parse(text).map(Some).ok_or_else(|| invalid(refusal(text))),
        (None, None) => Ok(None),
    }
}

/// `time + INTERVAL`: months first, the day clamped to the month's end; then the rest.
pub(super) fn add_interval(bound: &Bound<'_>) -> Made {
    let length = known(bound, 1)?;
    let is_scaled = bound.types.len() == 3;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 0)?;
        let texts = call.texts(1)?;
        let factors = if is_scaled { Some(call.primitive::<Float64Type>(2)?) } else { None };
        try_build_times(call.rows, unit, |row| {
            let Some(value) = at(row) else { return Ok(None) };
            let factor = match &factors {
                None => 1.0,
                Some(factors) => match factors.get(row) {
                    None => return Ok(None),
                    Some(factor) => factor,
                },
            };
            let length = length_of(length, texts.get(row))?;
            let Some(length) = length else { return Ok(None) };
            let whole = length.times(factor).whole();
            let (months, micros) = whole.ok_or_else(|| invalid("interval out of range"))?;
            Ok(moved(value, months, micros, unit))
        })
    }))
}

/// `None` beyond the range of times.
fn moved(value: i64, months: i64, micros: i64, unit: TimestampUnit) -> Option<i64> {
    let base = micros_of(value, unit);
    let by_months = add_months(base, months).checked_sub(base)?;
    let shift = TimestampUnit::Micros.convert(by_months.checked_add(micros)?, unit)?;
    value.checked_add(shift)
}

/// The start of the step of this length that holds a time, counted from `origin`.
fn floored(value: i64, months: i64, micros: i64, origin: Option<i64>) -> Option<i64> {
    if months == 0 {
        return Some(calendar::floor_to(value, micros, origin.unwrap_or(FIRST_BUCKET)));
    }
    let origin = origin.unwrap_or(FIRST_MONTH);
    let index = |micros| {
        let date = calendar::CivilDate::from_micros(micros);
        i64::from(date.year) * 12 + i64::from(date.month) - 1
    };
    let mut steps = (index(value) - index(origin)).div_euclid(months);
    if add_months(origin, steps.checked_mul(months)?) > value {
        steps -= 1;
    }
    Some(add_months(origin, steps.checked_mul(months)?))
}

/// `date_bin(stride, time, origin)` and `time_bucket(width, time, [origin])`.
pub(super) fn time_bucket(bound: &Bound<'_>) -> Made {
    let length = known(bound, 0)?;
    let has_origin = bound.types.len() == 3;
    Ok(Arc::new(move |call: &Call<'_>| {
        let (at, unit) = times(call, 1)?;
        let (origin_at, origin_unit) = times(call, if has_origin { 2 } else { 1 })?;
        let texts = call.texts(0)?;
        try_build_times(call.rows, unit, |row| {
            let Some(value) = at(row) else { return Ok(None) };
            let Some(length) = length_of(length, texts.get(row))? else { return Ok(None) };
            let (months, micros) =
                length.whole().ok_or_else(|| invalid("interval out of range"))?;
            if months < 0 || micros < 0 || (months == 0) == (micros == 0) {
                let message =
                    "a step of time must be more than nothing, and months or a fixed length";
                return Err(invalid(message));
            }
            let origin = if has_origin {
                let Some(origin) = origin_at(row) else { return Ok(None) };
                Some(micros_of(origin, origin_unit))
            } else {
                None
            };
            let floor = floored(micros_of(value, unit), months, micros, origin);
            Ok(floor.and_then(|floor| TimestampUnit::Micros.convert(floor, unit)))
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(i64, i64)> {
        Length::parse(text).and_then(Length::whole)
    }

    #[test]
    fn reads_what_postgresql_writes_and_reads() {
        const HOUR: i64 = 3_600_000_000;
        for (text, expected) in [
            ("1 hour", (0, HOUR)),
            ("1 day", (0, 24 * HOUR)),
            ("1 year 2 mons -3 days", (14, -72 * HOUR)),
            ("2 days 04:05:06.5", (0, 52 * HOUR + 306_500_000)),
            ("-04:05", (0, -4 * HOUR - 300_000_000)),
            ("1.5 months", (1, 15 * 24 * HOUR)),
            ("1.5 days", (0, 36 * HOUR)),
            ("90", (0, 90_000_000)),
            ("3 h ago", (0, -3 * HOUR)),
            ("@ 1 minute", (0, 60_000_000)),
            ("1w,2d", (0, 9 * 24 * HOUR)),
            ("5 MINUTES", (0, 300_000_000)),
            ("250 ms", (0, 250_000)),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
        let long = format!("{} s", "1".repeat(300));
        for text in ["", "day", "1 parsec", "1 hour x", "::", "1:", "--1 s", "1..2 s", "é", &long]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
