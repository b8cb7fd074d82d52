//! Lengths of time as `PostgreSQL` has them: months, days and microseconds, each for itself,
//! because a month has no fixed number of days and a day of a zone none of hours.

use std::fmt::Write;

use arrow_buffer::IntervalMonthDayNano;

use crate::calendar::{MICROS_PER_DAY, add_months};
use crate::timestamp::TimestampUnit;

/// Days of a month where a part of one is meant, and where lengths are compared.
const MONTH_DAYS: i64 = 30;
/// Most bytes of a period's text.
const MOST_BYTES: usize = 256;
/// Months, more than time has.
const MOST_MONTHS: f64 = 1_200_000.0;
/// Microseconds whose nanoseconds are an integer of 64 bits, about.
const MOST_MICROS: f64 = 9.2e15;
const MICROS_PER_SECOND: i64 = 1_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// A length of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Period {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

impl Period {
    /// `1 year 2 mons`, `1.5 hours`, `-2 days 04:05:06`, `3 h ago`; a number alone is seconds. The
    /// forms of ISO 8601 (`P1Y2M3DT4H5M6S`) and of SQL (`1-2 3 04:05:06`) are read, too.
    /// `None` for another text, and for a length out of range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim().trim_start_matches('@').trim();
        if trimmed.is_empty() || trimmed.len() > MOST_BYTES {
            return None;
        }
        let lower = trimmed.to_ascii_lowercase();
        if let Some(designated) = lower.strip_prefix('p') {
            return Parts::of_iso(designated)?.whole();
        }
        let (body, sign) = match lower.strip_suffix("ago") {
            Some(body) => (body.trim_end(), -1.0),
            None => (lower.as_str(), 1.0),
        };
        let mut parts = Parts::default();
        let mut rest = body;
        while !rest.is_empty() {
            rest =
                parts.add_part(rest)?.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        }
        parts.times(sign).whole()
    }

    /// The text of `PostgreSQL`: `1 year 2 mons 3 days 04:05:06.5`, `00:00:00`.
    #[must_use]
    pub fn text(self) -> String {
        let mut out = String::new();
        // A part behind a negative one says that it is positive.
        let mut after_negative = false;
        let (years, months) = (self.months / 12, self.months % 12);
        for (value, unit) in [(years, "year"), (months, "mon"), (self.days, "day")] {
            if value == 0 {
                continue;
            }
            if !out.is_empty() {
                out.push(' ');
            }
            let sign = if after_negative && value > 0 { "+" } else { "" };
            let plural = if value == 1 { "" } else { "s" };
            // Writing to a text cannot fail.
            let _ = write!(out, "{sign}{value} {unit}{plural}");
            after_negative = value < 0;
        }
        if self.micros != 0 || out.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(match self.micros {
                ..0 => "-",
                _ if after_negative => "+",
                _ => "",
            });
            out.push_str(&clock(self.micros.unsigned_abs()));
        }
        out
    }

    /// All of it in microseconds, a month taken for 30 days and a day for 24 hours: what lengths
    /// are compared by. Lengths beyond the range of an integer are the greatest or the least.
    #[must_use]
    pub fn order(self) -> i64 {
        let days = i64::from(self.months) * MONTH_DAYS + i64::from(self.days);
        days.saturating_mul(MICROS_PER_DAY).saturating_add(self.micros)
    }

    /// So many times it; `None` out of range.
    #[must_use]
    pub fn times(self, factor: f64) -> Option<Self> {
        Parts::of(self).times(factor).whole()
    }

    /// Both; `None` out of range.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// It the other way; `None` out of range.
    #[must_use]
    pub fn negated(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    /// A time moved by it, months first, the day clamped to the month's end; `None` beyond the
    /// range of times.
    #[must_use]
    pub fn after(self, time: i64, unit: TimestampUnit) -> Option<i64> {
        let base = unit.convert(time, TimestampUnit::Micros)?;
        let by_months = add_months(base, i64::from(self.months)).checked_sub(base)?;
        let days = i64::from(self.days).checked_mul(MICROS_PER_DAY)?;
        let micros = by_months.checked_add(days)?.checked_add(self.micros)?;
        time.checked_add(TimestampUnit::Micros.convert(micros, unit)?)
    }

    /// The value of a column; `None` where its nanoseconds are out of range.
    #[must_use]
    pub fn native(self) -> Option<IntervalMonthDayNano> {
        let nanoseconds = self.micros.checked_mul(NANOS_PER_MICRO)?;
        Some(IntervalMonthDayNano { months: self.months, days: self.days, nanoseconds })
    }

    /// Whole hours of 24 become days.
    #[must_use]
    pub fn with_days(self) -> Option<Self> {
        let days = i32::try_from(self.micros / MICROS_PER_DAY).ok()?;
        Some(Self {
            days: self.days.checked_add(days)?,
            micros: self.micros % MICROS_PER_DAY,
            ..self
        })
    }

    /// Whole days of 30 become months.
    #[must_use]
    pub fn with_months(self) -> Option<Self> {
        let months = self.days / MONTH_DAYS as i32;
        Some(Self {
            months: self.months.checked_add(months)?,
            days: self.days % MONTH_DAYS as i32,
            ..self
        })
    }
}

/// `04:05:06.789`, hours as many as there are.
fn clock(micros: u64) -> String {
    let seconds = micros / MICROS_PER_SECOND as u64;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let mut text = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    let fraction = micros % MICROS_PER_SECOND as u64;
    if fraction > 0 {
        text.push_str(format!(".{fraction:06}").trim_end_matches('0'));
    }
    text
}

impl From<IntervalMonthDayNano> for Period {
    fn from(value: IntervalMonthDayNano) -> Self {
        let micros = value.nanoseconds / NANOS_PER_MICRO;
        Self { months: value.months, days: value.days, micros }
    }
}

/// A length whose parts may be fractions.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    months: f64,
    days: f64,
    micros: f64,
}

impl Parts {
    fn of(period: Period) -> Self {
        Self {
            months: f64::from(period.months),
            days: f64::from(period.days),
            micros: period.micros as f64,
        }
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
        if let Some(at) = number.rfind('-').filter(|at| *at > 0) {
            // Years and months of the SQL standard, the sign before both.
            let months: f64 = number[at + 1..].parse().ok().filter(|months| *months < 12.0)?;
            let years: f64 = number[..at].parse().ok()?;
            self.months += years * 12.0 + if number.starts_with('-') { -months } else { months };
            return Some(rest);
        }
        let number: f64 = number.parse().ok()?;
        let rest = rest.trim_start();
        if rest.split(char::is_whitespace).next().is_some_and(|next| next.contains(':')) {
            self.days += number;
            return Some(rest);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        self.add(number, unit)?;
        Some(rest)
    }

    /// What follows the P of ISO 8601: numbers with designators, those of the time behind a T.
    fn of_iso(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once('t') {
            Some((_, "")) => return None,
            Some((date, time)) => (date, time),
            None => (text, ""),
        };
        if date.is_empty() && time.is_empty() {
            return None;
        }
        let mut parts = Self::default();
        let units: [&[_]; 2] = [
            &[('y', "years"), ('m', "months"), ('w', "weeks"), ('d', "days")],
            &[('h', "hours"), ('m', "minutes"), ('s', "seconds")],
        ];
        for (mut rest, units) in [date, time].into_iter().zip(units) {
            while !rest.is_empty() {
                let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
                let designator = rest[end..].chars().next()?;
                let (_, unit) = units.iter().find(|(known, _)| *known == designator)?;
                parts.add(rest[..end].parse().ok()?, unit)?;
                rest = &rest[end + 1..];
            }
        }
        Some(parts)
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

    /// Whole parts: parts of a month are days, parts of a day are time.
    fn whole(self) -> Option<Period> {
        let days = self.days + self.months.fract() * MONTH_DAYS as f64;
        let micros = (days.fract() * MICROS_PER_DAY as f64 + self.micros).round();
        let fits = self.months.abs() <= MOST_MONTHS
            && days.abs() < f64::from(i32::MAX)
            && micros.abs() < MOST_MICROS;
        fits.then_some(Period {
            months: self.months.trunc() as i32,
            days: days.trunc() as i32,
            micros: micros as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn reads_what_postgresql_writes_and_reads() {
        for (text, expected) in [
            ("1 hour", (0, 0, HOUR)),
            ("1 day", (0, 1, 0)),
            ("1 year 2 mons -3 days", (14, -3, 0)),
            ("2 days 04:05:06.5", (0, 2, 4 * HOUR + 306_500_000)),
            ("-04:05", (0, 0, -4 * HOUR - 300_000_000)),
            ("1.5 months", (1, 15, 0)),
            ("1.5 days", (0, 1, 12 * HOUR)),
            ("90", (0, 0, 90_000_000)),
            ("3 h ago", (0, 0, -3 * HOUR)),
            ("@ 1 minute", (0, 0, 60_000_000)),
            ("1w,2d", (0, 9, 0)),
            ("5 MINUTES", (0, 0, 300_000_000)),
            ("250 ms", (0, 0, 250_000)),
            ("P1Y2M3DT4H5M6S", (14, 3, 4 * HOUR + 306_000_000)),
            ("p2w", (0, 14, 0)),
            ("PT-1.5S", (0, 0, -1_500_000)),
            ("P-1MT90M", (-1, 0, HOUR + HOUR / 2)),
            ("1-2", (14, 0, 0)),
            ("-1-2", (-14, 0, 0)),
            ("1-2 3 4:05:06", (14, 3, 4 * HOUR + 306_000_000)),
            ("-3 4:05", (0, -3, 4 * HOUR + 300_000_000)),
        ] {
            let found = Period::parse(text).map(|one| (one.months, one.days, one.micros));
            assert_eq!(found, Some(expected), "{text}");
        }
        let long = format!("{} s", "1".repeat(300));
        let far = "1e9";
        for text in [
            "",
            "day",
            "1 parsec",
            "1 hour x",
            "::",
            "1:",
            "--1 s",
            "1..2 s",
            "é",
            &long,
            far,
            "9999999999 days",
            "9999999 years",
            "99999999999999 s",
            "P",
            "PT",
            "P1",
            "P1H",
            "PT1D",
            "P1é",
            "PP1D",
            "1-12",
            "1-2-3",
            "1--2",
        ] {
            assert_eq!(Period::parse(text), None, "{text}");
        }
    }

    #[test]
    fn writes_what_postgresql_writes() {
        for (text, written) in [
            ("0 s", "00:00:00"),
            ("14 months", "1 year 2 mons"),
            ("-14 months", "-1 years -2 mons"),
            ("1 day", "1 day"),
            ("-1 day 2 h", "-1 days +02:00:00"),
            ("1 day -02:03:04.5", "1 day -02:03:04.5"),
            ("-1 month 3 days", "-1 mons +3 days"),
            ("100 hours", "100:00:00"),
            ("1 us", "00:00:00.000001"),
        ] {
            let period = Period::parse(text).unwrap();
            assert_eq!(period.text(), written, "{text}");
            assert_eq!(Period::parse(written), Some(period), "{written}");
        }
    }

    #[test]
    fn lengths_are_compared_and_computed_with() {
        let of = |text: &str| Period::parse(text).unwrap();
        assert_eq!(of("1 day").order(), of("24 hours").order());
        assert!(of("1 month").order() < of("31 days").order());
        assert_eq!(of("1 month").times(1.5), Some(of("1 month 15 days")));
        assert_eq!(of("50 hours").with_days(), Some(of("2 days 2 hours")));
        assert_eq!(of("65 days").with_months(), Some(of("2 months 5 days")));
        let january = 1_706_659_200_000_000; // 2024-01-31
        let moved = of("1 month 1 hour").after(january, TimestampUnit::Micros);
        assert_eq!(moved, Some(january + 29 * 24 * HOUR + HOUR));
        assert_eq!(of("1000000 days").after(i64::MAX - 1, TimestampUnit::Nanos), None);
        assert_eq!(of("100000 years").times(100.0), None);
    }
}
