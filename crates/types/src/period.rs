//! Time intervals as in `PostgreSQL`. Months, days and microseconds are separate, because a month
//! has no fixed number of days and a local day has no fixed number of hours.

use std::fmt::Write;

use arrow_buffer::IntervalMonthDayNano;

use crate::calendar::{CivilDate, MICROS_PER_DAY, move_months};
use crate::timestamp::TimestampUnit;

/// Length of a month in days, for fractions of a month and for comparisons.
const MONTH_DAYS: i64 = 30;
/// Maximum length of a period string in bytes.
const MAX_BYTES: usize = 256;
/// Maximum number of months, which exceeds the range of timestamps.
const MAX_MONTHS: f64 = 1_200_000.0;
/// Maximum number of microseconds, which is about the 64-bit range in nanoseconds.
const MAX_MICROS: f64 = 9.2e15;
const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: f64 = 86_400.0;
const NANOS_PER_MICRO: i64 = 1_000;

/// A time interval.
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
    /// Parses `1 year 2 mons`, `1.5 hours`, `-2 days 04:05:06` or `3 h ago`. A plain number is a
    /// number of seconds. Also parses the ISO 8601 form (`P1Y2M3DT4H5M6S`) and the SQL form (`1-2 3
    /// 04:05:06`). Returns `None` for other strings and for periods out of range.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let trimmed = text.trim().trim_start_matches('@').trim();
        if trimmed.is_empty() || trimmed.len() > MAX_BYTES {
            return None;
        }
        let lower = trimmed.to_ascii_lowercase();
        if let Some(designated) = lower.strip_prefix('p') {
            return FractionalPeriod::of_iso(designated)?.rounded();
        }
        let (body, sign) = match lower.strip_suffix("ago") {
            Some(body) => (body.trim_end(), -1.0),
            None => (lower.as_str(), 1.0),
        };
        let mut fields = FractionalPeriod::default();
        let mut rest = body;
        while !rest.is_empty() {
            rest =
                fields.add_field(rest)?.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        }
        fields.times(sign).rounded()
    }

    /// Returns `PostgreSQL`'s string form: `1 year 2 mons 3 days 04:05:06.5`, `00:00:00`.
    #[must_use]
    pub fn text(self) -> String {
        let mut out = String::new();
        // A positive field after a negative one gets an explicit plus sign.
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
            // Writing to a string cannot fail.
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

    /// Returns the total number of microseconds with 30-day months and 24-hour days, for
    /// comparisons. Saturates at the integer limits.
    #[must_use]
    pub fn order(self) -> i64 {
        let days = i64::from(self.months) * MONTH_DAYS + i64::from(self.days);
        days.saturating_mul(MICROS_PER_DAY).saturating_add(self.micros)
    }

    /// Returns the same form for all periods of the same length: months if the length is a multiple
    /// of 30 days, otherwise days and a time.
    #[must_use]
    pub fn canonical(self) -> Self {
        let length = self.order();
        let (days, micros) = (length / MICROS_PER_DAY, length % MICROS_PER_DAY);
        let months = if micros == 0 && days % MONTH_DAYS == 0 { days / MONTH_DAYS } else { 0 };
        let fields = (i32::try_from(months), i32::try_from(days - months * MONTH_DAYS));
        let (Ok(months), Ok(days)) = fields else { return self };
        Self { months, days, micros }
    }

    /// Multiplies by `factor`; `None` when out of range.
    #[must_use]
    pub fn times(self, factor: f64) -> Option<Self> {
        self.scaled(|field| field * factor)
    }

    /// Divides by `divisor`; `None` when out of range.
    #[must_use]
    pub fn divided(self, divisor: f64) -> Option<Self> {
        self.scaled(|field| field / divisor)
    }

    /// Scales each field as `PostgreSQL` does. A fraction of a month becomes days, and a fraction
    /// of a day becomes time. Both are rounded to a millionth of their unit, so a third of a month
    /// is ten days.
    fn scaled(self, scale: impl Fn(f64) -> f64) -> Option<Self> {
        let rounded = |value: f64| (value * 1e6).round_ties_even() / 1e6;
        let months = scale(f64::from(self.months));
        let days = scale(f64::from(self.days));
        let of_months = rounded(months.fract() * MONTH_DAYS as f64);
        let of_days = rounded((days.fract() + of_months.fract()) * SECONDS_PER_DAY);
        let more_days = (of_days / SECONDS_PER_DAY).trunc();
        let seconds = of_days - more_days * SECONDS_PER_DAY;
        let fields = FractionalPeriod {
            months: months.trunc(),
            days: days.trunc() + of_months.trunc() + more_days,
            micros: scale(self.micros as f64) + seconds * 1e6,
        };
        fields.rounded()
    }

    /// Adds two periods; `None` when out of range.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            micros: self.micros.checked_add(other.micros)?,
        })
    }

    /// Changes the sign; `None` when out of range.
    #[must_use]
    pub fn negated(self) -> Option<Self> {
        Some(Self {
            months: self.months.checked_neg()?,
            days: self.days.checked_neg()?,
            micros: self.micros.checked_neg()?,
        })
    }

    /// Adds the period to a timestamp: months first, with the day clamped to the end of the month.
    /// Returns `None` if the result is out of range.
    #[must_use]
    pub fn after(self, time: i64, unit: TimestampUnit) -> Option<i64> {
        let moved = move_months(time, i64::from(self.months), unit.per_day())?;
        let days = i64::from(self.days).checked_mul(unit.per_day())?;
        // If fields have opposite signs, the value may leave the valid range and return to it.
        let ticks = i128::from(moved)
            + i128::from(days)
            + i128::from(TimestampUnit::Micros.convert(self.micros, unit)?);
        i64::try_from(ticks).ok()
    }

    /// Returns the value stored in a column; `None` if its nanoseconds are out of range.
    #[must_use]
    pub fn native(self) -> Option<IntervalMonthDayNano> {
        let nanoseconds = self.micros.checked_mul(NANOS_PER_MICRO)?;
        Some(IntervalMonthDayNano { months: self.months, days: self.days, nanoseconds })
    }

    /// Converts 24-hour periods to days; the time gets the sign of the days.
    #[must_use]
    pub fn with_days(self) -> Option<Self> {
        let days = i32::try_from(self.micros / MICROS_PER_DAY).ok()?;
        let days = self.days.checked_add(days)?;
        Self { days, micros: self.micros % MICROS_PER_DAY, ..self }.with_time_of_one_sign()
    }

    /// Converts 30-day periods to months; the days get the sign of the months.
    #[must_use]
    pub fn with_months(self) -> Option<Self> {
        let month = MONTH_DAYS as i32;
        let months = self.months.checked_add(self.days / month)?;
        let days = self.days % month;
        let (months, days) = match (months.signum(), days.signum()) {
            (1, -1) => (months - 1, days + month),
            (-1, 1) => (months + 1, days - month),
            _ => (months, days),
        };
        Some(Self { months, days, ..self })
    }

    /// Converts 24-hour periods to days and 30-day periods to months; all fields get the same sign.
    #[must_use]
    pub fn justified(self) -> Option<Self> {
        let month = MONTH_DAYS as i32;
        let days = i64::from(self.days) + self.micros / MICROS_PER_DAY;
        let micros = self.micros % MICROS_PER_DAY;
        let months = i64::from(self.months) + days / MONTH_DAYS;
        let (months, days) = (i32::try_from(months).ok()?, (days % MONTH_DAYS) as i32);
        let below = if days == 0 { micros.signum() } else { i64::from(days.signum()) };
        let (months, days) = match (months.signum(), below) {
            (1, -1) => (months - 1, days + month),
            (-1, 1) => (months + 1, days - month),
            _ => (months, days),
        };
        Self { months, days, micros }.with_time_of_one_sign()
    }

    /// Borrows a day when the time and the days have different signs.
    fn with_time_of_one_sign(self) -> Option<Self> {
        let (days, micros) = match (self.days.signum(), self.micros.signum()) {
            (1, -1) => (self.days - 1, self.micros + MICROS_PER_DAY),
            (-1, 1) => (self.days + 1, self.micros - MICROS_PER_DAY),
            _ => (self.days, self.micros),
        };
        Some(Self { days, micros, ..self })
    }

    /// Returns the calendar difference between two timestamps in microseconds, as years, months,
    /// days and time. The difference is negative if `to` is earlier. If a day must be borrowed, it
    /// is taken from the month of the earlier timestamp. Returns `None` if the result is out of
    /// range.
    #[must_use]
    pub fn between(from: i64, to: i64) -> Option<Self> {
        if to < from {
            return Self::between(to, from)?.negated();
        }
        let (first, last) = (CivilDate::from_micros(from), CivilDate::from_micros(to));
        let mut months =
            (last.year - first.year) * 12 + i32::from(last.month) - i32::from(first.month);
        let mut days = i32::from(last.day) - i32::from(first.day);
        let mut micros = to.rem_euclid(MICROS_PER_DAY) - from.rem_euclid(MICROS_PER_DAY);
        if micros < 0 {
            micros += MICROS_PER_DAY;
            days -= 1;
        }
        if days < 0 {
            days += i32::from(first.days_in_month());
            months -= 1;
        }
        Some(Self { months, days, micros })
    }
}

/// Formats a time such as `04:05:06.789`; the hours may have more than two digits.
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

/// A period whose fields may have fractions.
#[derive(Debug, Clone, Copy, Default)]
struct FractionalPeriod {
    months: f64,
    days: f64,
    micros: f64,
}

impl FractionalPeriod {
    /// Parses the first field of a string and returns the remainder.
    fn add_field<'t>(&mut self, text: &'t str) -> Option<&'t str> {
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
            // In the SQL standard's year-month form, one sign applies to both.
            let months: f64 = number[at + 1..].parse().ok().filter(|months| *months < 12.0)?;
            let years: f64 = number[..at].parse().ok()?;
            self.months += years * 12.0 + if number.starts_with('-') { -months } else { months };
            return Some(rest);
        }
        let number = Number::parse(number)?;
        let rest = rest.trim_start();
        if rest.split(char::is_whitespace).next().is_some_and(|next| next.contains(':')) {
            self.add_days(number);
            return Some(rest);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        self.add(number, unit)?;
        Some(rest)
    }

    /// Parses an ISO 8601 period after the `P`: numbers with designators; time fields follow a `T`.
    fn of_iso(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once('t') {
            Some((_, "")) => return None,
            Some((date, time)) => (date, time),
            None => (text, ""),
        };
        if date.is_empty() && time.is_empty() {
            return None;
        }
        let mut fields = Self::default();
        let units: [&[_]; 2] = [
            &[('y', "years"), ('m', "months"), ('w', "weeks"), ('d', "days")],
            &[('h', "hours"), ('m', "minutes"), ('s', "seconds")],
        ];
        for (mut rest, units) in [date, time].into_iter().zip(units) {
            while !rest.is_empty() {
                let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
                let designator = rest[end..].chars().next()?;
                let (_, unit) = units.iter().find(|(known, _)| *known == designator)?;
                fields.add(Number::parse(&rest[..end])?, unit)?;
                rest = &rest[end + 1..];
            }
        }
        Some(fields)
    }

    fn add(&mut self, number: Number, unit: &str) -> Option<()> {
        match unit {
            "us" | "usec" | "usecs" | "microsecond" | "microseconds" => self.add_time(number, 1.0),
            "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => self.add_time(number, 1e3),
            "" | "s" | "sec" | "secs" | "second" | "seconds" => self.add_time(number, 1e6),
            "m" | "min" | "mins" | "minute" | "minutes" => self.add_time(number, 60e6),
            "h" | "hr" | "hrs" | "hour" | "hours" => self.add_time(number, 3_600e6),
            "d" | "day" | "days" => self.add_days(number),
            "w" | "week" | "weeks" => self.add_days(number.times(7.0)),
            "mon" | "mons" | "month" | "months" => self.add_months(number),
            "quarter" | "quarters" => self.add_months(number.times(3.0)),
            "y" | "yr" | "yrs" | "year" | "years" => self.add_years(number, 12.0),
            "decade" | "decades" => self.add_years(number, 120.0),
            "century" | "centuries" => self.add_years(number, 1_200.0),
            _ => return None,
        }
        Some(())
    }

    /// Adds a number of units of `months` months each, such as years. A fraction of a unit becomes
    /// whole months.
    fn add_years(&mut self, number: Number, months: f64) {
        self.months += number.integer * months + (number.fraction * months).round_ties_even();
    }

    /// Adds a number of months. A fraction of a month becomes days of a 30-day month.
    fn add_months(&mut self, number: Number) {
        self.months += number.integer;
        let days = number.fraction * MONTH_DAYS as f64;
        self.add_days(Number { integer: days.trunc(), fraction: days.fract() });
    }

    /// Adds a number of days. A fraction of a day becomes time.
    fn add_days(&mut self, number: Number) {
        self.days += number.integer;
        self.micros += (number.fraction * MICROS_PER_DAY as f64).round_ties_even();
    }

    fn add_time(&mut self, number: Number, micros: f64) {
        self.micros += number.integer * micros + (number.fraction * micros).round_ties_even();
    }

    fn times(self, factor: f64) -> Self {
        let Self { months, days, micros } = self;
        Self { months: months * factor, days: days * factor, micros: micros * factor }
    }

    /// Returns the period, with the time rounded to microseconds.
    fn rounded(self) -> Option<Period> {
        let micros = self.micros.round_ties_even();
        let fits = self.months.abs() <= MAX_MONTHS
            && self.days.abs() < f64::from(i32::MAX)
            && micros.abs() < MAX_MICROS;
        fits.then_some(Period {
            months: self.months as i32,
            days: self.days as i32,
            micros: micros as i64,
        })
    }
}

/// A parsed number. The fraction is parsed separately, because 1.9 minus 1 is not exactly 0.9.
#[derive(Debug, Clone, Copy)]
struct Number {
    integer: f64,
    /// The fraction is less than 1 and has the number's sign.
    fraction: f64,
}

impl Number {
    fn parse(text: &str) -> Option<Self> {
        let all: f64 = text.parse().ok().filter(|all: &f64| all.is_finite())?;
        let Some((_, digits)) = text.split_once('.') else {
            return Some(Self { integer: all, fraction: 0.0 });
        };
        let fraction = if digits.is_empty() { 0.0 } else { format!("0.{digits}").parse().ok()? };
        let sign = if text.starts_with('-') { -1.0 } else { 1.0 };
        Some(Self { integer: all.trunc(), fraction: fraction * sign })
    }

    /// Multiplies by `factor`.
    fn times(self, factor: f64) -> Self {
        let fraction = self.fraction * factor;
        Self { integer: self.integer * factor + fraction.trunc(), fraction: fraction.fract() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn postgresql_interval_strings_are_parsed() {
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
    fn intervals_are_formatted_as_in_postgresql() {
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
    fn intervals_are_compared_scaled_and_added() {
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

    #[test]
    fn interval_fractions_match_postgresql() {
        let of = |text: &str| Period::parse(text).unwrap();
        for (text, factor, expected) in [
            ("4 years 7 mons", 1.0 / 3.0, "1 year 6 mons 10 days"),
            ("1 mon", 0.3, "9 days"),
            ("-1 mon", 0.1, "-3 days"),
            ("1 mon 1 day", 0.5, "15 days 12:00:00"),
            ("10 days 10:00", 1.5, "15 days 15:00:00"),
            ("1 year 1 mon 1 day 1 hour", -2.5, "-2 years -8 mons -17 days -14:30:00"),
        ] {
            assert_eq!(of(text).times(factor).unwrap().text(), expected, "{text} * {factor}");
        }
        for (text, divisor, expected) in [
            ("4 years 7 mons", 3.0, "1 year 6 mons 10 days"),
            ("1 mon", 30.0, "1 day"),
            ("1 mon", 7.0, "4 days 06:51:25.6896"),
            ("-1 day", 7.0, "-03:25:42.857143"),
        ] {
            assert_eq!(of(text).divided(divisor).unwrap().text(), expected, "{text} / {divisor}");
        }
        for (text, expected) in [
            ("1.9 months", "1 mon 27 days"),
            ("1.3 years", "1 year 4 mons"),
            ("-0.5 weeks", "-3 days -12:00:00"),
            ("1.5 days 1.5 days", "2 days 24:00:00"),
            ("0.1 decades", "1 year"),
        ] {
            assert_eq!(of(text).text(), expected, "{text}");
        }
    }

    #[test]
    fn all_fields_of_a_justified_interval_have_the_same_sign() {
        let of = |text: &str| Period::parse(text).unwrap();
        let shown = |period: Option<Period>| period.unwrap().text();
        assert_eq!(shown(of("-9 days 10:00").with_days()), "-8 days -14:00:00");
        assert_eq!(shown(of("2 days -50:00").with_days()), "-02:00:00");
        assert_eq!(shown(of("1 mon -40 days").with_months()), "-10 days");
        assert_eq!(shown(of("2 mons -40 days").with_months()), "20 days");
        assert_eq!(shown(of("1 mon -1 hour").justified()), "29 days 23:00:00");
        assert_eq!(shown(of("-1 mon 1 day 1 hour").justified()), "-28 days -23:00:00");
        assert_eq!(shown(of("40 days 60 hours").justified()), "1 mon 12 days 12:00:00");
    }

    #[test]
    fn age_borrows_days_from_the_month_of_the_earlier_date() {
        let at = |text: &str| crate::timestamp::parse(text, TimestampUnit::Micros).unwrap();
        for (to, from, expected) in [
            ("2001-04-10", "1957-06-13", "43 years 9 mons 27 days"),
            ("1957-06-13", "2001-04-10", "-43 years -9 mons -27 days"),
            ("2024-03-01", "2024-01-31", "1 mon 1 day"),
            ("2024-03-30", "2024-02-29", "1 mon 1 day"),
            ("2023-03-01", "2023-02-28T12:00", "12:00:00"),
            ("2024-03-01", "2024-02-28T12:00", "1 day 12:00:00"),
            ("2024-01-01", "2024-01-01", "00:00:00"),
        ] {
            assert_eq!(Period::between(at(from), at(to)).unwrap().text(), expected, "{to} {from}");
        }
        assert!(Period::between(i64::MIN, i64::MAX).is_some());
    }
}
