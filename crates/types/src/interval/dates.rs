//! Dates in an interval string, in all forms: every precision, ISO weeks, variables with
//! arithmetic, ranges.

use super::span::{Kind, Result, Span, bad_date, check_count, fail, out_of_range, shown};
use super::split::time_of_variable;
use crate::calendar::{CivilDate, MICROS_PER_DAY};
use crate::duration::{add, fixed_nanos};
use crate::timestamp::{Granularity, TimestampUnit, parse_fields, parse_time_of_day};

/// Context for resolving dates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) unit: TimestampUnit,
    /// Current time in `unit`.
    pub(super) now: i64,
}

impl Clock {
    fn of_micros(self, micros: Option<i64>, text: &str) -> Result<i64> {
        match micros.and_then(|micros| TimestampUnit::Micros.convert(micros, self.unit)) {
            Some(value) => Ok(value),
            None => out_of_range(text),
        }
    }

    fn day_of(self, value: i64) -> i64 {
        value.saturating_sub(value.rem_euclid(self.unit.per_day()))
    }

    /// Returns the spans of one string that has no brackets, zone, filter or duration.
    pub(super) fn spans(self, text: &str) -> Result<Vec<Span>> {
        if let Some((low, high)) = text.split_once("..") {
            return self.range(low.trim(), high.trim());
        }
        if text.starts_with('$') {
            return Ok(vec![self.variable(text)?]);
        }
        match text.split_once('T') {
            Some((date, time)) if matches!(date.len(), 4 | 7) && !date.contains('W') => {
                // A time of day after a year or month applies to each of its days.
                let period = self.date(date).or_else(|_| bad_date(text))?;
                period.days(self.unit).map(|day| self.at_time(day, time, text)).collect()
            }
            _ => Ok(vec![self.date(text)?]),
        }
    }

    /// Parses a date that is neither a range nor a variable.
    fn date(self, text: &str) -> Result<Span> {
        if let Some((year, rest)) = text.split_once("-W") {
            return self.iso_week(text, year, rest);
        }
        let Some(parsed) = parse_fields(text) else { return bad_date(text) };
        let (Some(lo), Some(hi)) = (parsed.start(self.unit), parsed.end(self.unit)) else {
            return out_of_range(text);
        };
        let has_time = text.len() > 10;
        // A time with an offset, or in the format that drivers send, is a single timestamp.
        if parsed.zoned || has_time && text.as_bytes()[10] == b' ' {
            let span = Span::new(lo, lo + 1, Kind::Timestamps);
            return Ok(Span { zoned: parsed.zoned, ..span });
        }
        debug_assert!(!matches!(parsed.granularity, Granularity::Nanos(0)));
        Ok(Span::new(lo, hi, if has_time { Kind::Time } else { Kind::Days }))
    }

    /// Returns the span for a time of day on a given day. The span is as long as the smallest field
    /// given.
    fn at_time(self, day: Span, time: &str, text: &str) -> Result<Span> {
        let Some((nanos, granularity)) = parse_time_of_day(time) else { return bad_date(text) };
        let tick = self.unit.nanos();
        let lo = day.lo.checked_add(nanos / tick);
        match lo.and_then(|lo| Some((lo, lo.checked_add((granularity / tick).max(1))?))) {
            Some((lo, hi)) => Ok(Span::new(lo, hi, Kind::Time)),
            None => out_of_range(text),
        }
    }

    /// `2024-W05`, `2024-W05-3`, `2024-W05-3T09:30`.
    fn iso_week(self, text: &str, year: &str, rest: &str) -> Result<Span> {
        let (date, time) = match rest.split_once('T') {
            Some((date, time)) => (date, Some(time)),
            None => (rest, None),
        };
        let (week, weekday) = match date.split_once('-') {
            Some((week, weekday)) => (week, Some(weekday)),
            None => (date, None),
        };
        let digits = |text: &str, width: usize| -> Option<i64> {
            text.parse().ok().filter(|_| text.len() == width && !text.starts_with('+'))
        };
        let (Some(year), Some(week)) = (digits(year, 4), digits(week, 2)) else {
            return bad_date(text);
        };
        let year = year as i32;
        let fourth = CivilDate { year, month: 1, day: 4 };
        let monday = fourth.to_days() + 1 - i64::from(fourth.iso_weekday()) + 7 * (week - 1);
        if !(1..=53).contains(&week) || CivilDate::from_days(monday).iso_week().0 != year {
            return bad_date(text);
        }
        let (first, days) = match weekday.map(str::parse::<i64>) {
            None => (monday, 7),
            Some(Ok(day @ 1..=7)) => (monday + day - 1, 1),
            Some(_) => return bad_date(text),
        };
        let lo = self.of_micros(first.checked_mul(MICROS_PER_DAY), text)?;
        let Some(hi) = lo.checked_add(days * self.unit.per_day()) else {
            return out_of_range(text);
        };
        let span = Span::new(lo, hi, Kind::Days);
        match time {
            None => Ok(span),
            Some(time) if days == 1 => self.at_time(span, time, text),
            // Without a weekday, it is undefined which day of the week the time belongs to.
            Some(_) => bad_date(text),
        }
    }

    /// Parses `$today`, `$now - 2h` or `$today + 3bd`, each with an optional time such as `T09:30`.
    /// The time is ignored if the variable is already a timestamp.
    fn variable(self, text: &str) -> Result<Span> {
        let (body, time) = match time_of_variable(text) {
            Some(at) => (text[..at].trim_end(), Some(&text[at + 1..])),
            None => (text.trim_end(), None),
        };
        let letters = body[1..].find(|c: char| !c.is_ascii_alphabetic());
        let (name, moves) = body.split_at(letters.map_or(body.len(), |at| at + 1));
        let day = self.unit.per_day();
        let today = self.day_of(self.now);
        let start = match name.to_ascii_lowercase().as_str() {
            "$today" => today,
            "$yesterday" => today - day,
            "$tomorrow" => today + day,
            "$now" => self.now,
            _ => return fail(format!("Unknown date variable: {}", shown(text))),
        };
        let lo = self.arithmetic(start, moves.trim(), text)?;
        let is_day = !name.eq_ignore_ascii_case("$now") && self.day_of(lo) == lo;
        let (length, kind) = if is_day { (day, Kind::Days) } else { (1, Kind::Timestamps) };
        let Some(hi) = lo.checked_add(length) else { return out_of_range(text) };
        let span = Span::new(lo, hi, kind);
        match time {
            Some(time) if is_day => self.at_time(span, time, text),
            // The time is ignored, but it must be valid.
            Some(time) => self.at_time(span, time, text).map(|_| span),
            None => Ok(span),
        }
    }

    /// Computes a sequence such as `- 5d`, `+ 2bd`, `+ 1M`, `- 2h30m`.
    fn arithmetic(self, start: i64, moves: &str, text: &str) -> Result<i64> {
        let (mut value, mut rest, mut sign) = (start, moves, 0);
        while let Some(&first) = rest.as_bytes().first() {
            sign = match first {
                b'+' => 1,
                b'-' => -1,
                // A further unit in the same duration has the same sign.
                b'0'..=b'9' if sign != 0 => sign,
                _ => return fail(format!("Expected '+' or '-' in {}", shown(text))),
            };
            rest = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim_start();
            let (number, unit, after) = amount(rest);
            let number = number.replace('_', "").parse::<i32>();
            let Ok(number) = number.map(|number| sign * i64::from(number)) else {
                return fail(format!("Expected a number after the sign in {}", shown(text)));
            };
            let mut letters = unit.chars();
            let moved = match (letters.next(), letters.next()) {
                (Some('b'), Some('d')) if unit.len() == 2 => self.business_days(value, number),
                (Some(letter), None) if is_unit(letter) => {
                    add(value, plain(letter), number, self.unit)
                }
                (None, _) => return fail(format!("Expected a unit of time in {}", shown(text))),
                _ => return fail(format!("Unknown interval unit: {}", shown(unit))),
            };
            let Some(moved) = moved else { return out_of_range(text) };
            (value, rest) = (moved, after.trim_start());
        }
        Ok(value)
    }

    /// Moves `start` by `days` business days (Monday to Friday).
    fn business_days(self, start: i64, days: i64) -> Option<i64> {
        let day = self.unit.per_day();
        let weekday = |value: i64| (value.div_euclid(day) + 3).rem_euclid(7);
        let step = days.signum();
        let (mut value, mut left) = (start, days.abs());
        let walk = |value: &mut i64, left: &mut i64| -> Option<()> {
            *value = value.checked_add(step * day)?;
            *left -= i64::from(weekday(*value) < 5);
            Some(())
        };
        while left > 0 && weekday(value) >= 5 {
            walk(&mut value, &mut left)?;
        }
        // Starting from a working day, five working days are exactly one week.
        value = value.checked_add(step.checked_mul(left / 5 * 7)?.checked_mul(day)?)?;
        left %= 5;
        while left > 0 {
            walk(&mut value, &mut left)?;
        }
        Some(value)
    }

    /// Parses `a..b`. Two timestamps denote the whole interval between them. Otherwise, the range
    /// contains each day from a to b, with the time of day that follows b.
    fn range(self, low: &str, high: &str) -> Result<Vec<Span>> {
        let text = format!("{low}..{high}");
        let (high_date, time) = split_time(high);
        if split_time(low).1.is_some() {
            return fail(format!(
                "The time of day must follow the end of the range: {}",
                shown(&text)
            ));
        }
        let end =
            |text: &str| if text.starts_with('$') { self.variable(text) } else { self.date(text) };
        let (first, last) = (end(low)?, end(high_date)?);
        if first.kind == Kind::Timestamps && last.kind == Kind::Timestamps {
            let between = Span { hi: last.hi, bounded: true, ..first };
            return Ok(if first.lo <= last.lo { vec![between] } else { Vec::new() });
        }
        let (from, to) = (self.day_of(first.lo), self.day_of(last.hi - 1));
        if from > to && !low.starts_with('$') && !high.starts_with('$') {
            return fail(format!("Range must be ascending: {}", shown(&text)));
        }
        let day = self.unit.per_day();
        let count = if from > to { 0 } else { (to - from) / day + 1 };
        check_count(count as usize)?;
        // A range that ends at a business day contains only business days.
        let business = high_date.to_ascii_lowercase().contains("bd");
        let lengths = (0..count).map(|index| from + index * day);
        let days = lengths.map(|lo| Span::new(lo, lo + day, Kind::Days));
        let selected =
            days.filter(|span| !business || (span.lo.div_euclid(day) + 3).rem_euclid(7) < 5);
        match time {
            Some(time) => selected.map(|span| self.at_time(span, time, &text)).collect(),
            None => Ok(selected.collect()),
        }
    }
}

/// Splits the end of a range into a date and a time of day.
fn split_time(text: &str) -> (&str, Option<&str>) {
    match time_of_variable(text) {
        Some(at) => (text[..at].trim_end(), Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Splits `15m…` into its number, the letters after it, and the remainder.
pub(super) fn amount(text: &str) -> (&str, &str, &str) {
    let digits = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'_').count();
    let (number, rest) = text.split_at(digits);
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (unit, rest) = rest.split_at(letters);
    (number, unit, rest)
}

/// Whether a letter is a unit, in any accepted case.
pub(super) fn is_unit(letter: char) -> bool {
    fixed_nanos(plain(letter)).is_some() || matches!(letter, 'M' | 'y' | 'Y')
}

/// Returns the unit for a letter in an alternative case.
pub(super) fn plain(letter: char) -> char {
    if matches!(letter, 'D' | 'H' | 'W' | 'Y') { letter.to_ascii_lowercase() } else { letter }
}
