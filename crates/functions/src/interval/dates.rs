//! The dates of interval text: periods with a time of day, ISO weeks, variables and their
//! arithmetic.

use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY};
use tidemark_types::timestamp::{TimestampUnit, parse_time_of_day};

use super::span::{Result, Span, bad_date, fail, moved};

/// A year or a month with a time of day means that time on each of its days.
pub(super) fn days_of_period(text: &str) -> Option<Vec<String>> {
    let (date, time) = text.split_once('T')?;
    let (year, month) = match date.split_once('-') {
        Some((year, month)) => (year, Some(month)),
        None => (date, None),
    };
    let digits = |text: &str, len: usize| {
        text.len() == len && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let year: i32 = year.parse().ok().filter(|_| digits(year, 4))?;
    let months = match month {
        Some(month) => {
            let month: u8 = month.parse().ok().filter(|_| digits(month, 2))?;
            (1..=12).contains(&month).then_some(month..=month)?
        }
        None => 1..=12,
    };
    let days = months.flat_map(|month| {
        let days = CivilDate { year, month, day: 1 }.days_in_month();
        (1..=days).map(move |day| format!("{year:04}-{month:02}-{day:02}T{time}"))
    });
    Some(days.collect())
}

/// `2024-W05`, `2024-W05-3`, `2024-W05-3T09:30`.
pub(super) fn iso_week(text: &str, year: &str, rest: &str) -> Result<Span> {
    let (day_part, time) = match rest.split_once('T') {
        Some((day_part, time)) => (day_part, Some(time)),
        None => (rest, None),
    };
    let (week, weekday) = match day_part.split_once('-') {
        Some((week, weekday)) => (week, Some(weekday)),
        None => (day_part, None),
    };
    let year = year.parse().ok().filter(|_| year.len() == 4);
    let week = week.parse().ok().filter(|&n: &i64| week.len() == 2 && (1..=53).contains(&n));
    let (Some(year), Some(week)) = (year, week) else { return bad_date(text) };
    let fourth = CivilDate { year, month: 1, day: 4 };
    let monday = fourth.to_days() + 1 - i64::from(fourth.iso_weekday()) + 7 * (week - 1);
    if CivilDate::from_days(monday).iso_week().0 != year {
        return bad_date(text);
    }
    let (first, days) = match weekday.map(str::parse::<i64>) {
        None => (monday, 7),
        Some(Ok(day @ 1..=7)) => (monday + day - 1, 1),
        Some(_) => return bad_date(text),
    };
    let lo = first * MICROS_PER_DAY;
    match time.map(parse_time_of_day) {
        None => Ok(Span { lo, hi: lo + days * MICROS_PER_DAY, zoned: false }),
        Some(Some((nanos, granularity))) => {
            let lo = lo + nanos / 1_000;
            Ok(Span { lo, hi: lo + (granularity / 1_000).max(1), zoned: false })
        }
        Some(None) => bad_date(text),
    }
}

/// `$today`, `$now - 2h`, `$today + 3bd`, each with an optional time `T09:30`.
pub(super) fn variable(text: &str, now: i64) -> Result<Span> {
    let end = text[1..].find(|c: char| !c.is_ascii_alphabetic()).map_or(text.len(), |at| at + 1);
    let unknown = || fail(format!("Unknown date variable: {text}"));
    // The time of day follows the name without a blank: $todayT09:30.
    let (name, after_t) = match text[..end].strip_suffix('T') {
        Some(name) => (name, true),
        None => (&text[..end], false),
    };
    let today = CivilDate::from_micros(now).to_micros();
    let (mut lo, mut length) = match name.to_ascii_lowercase().as_str() {
        "$today" => (today, MICROS_PER_DAY),
        "$yesterday" => (today - MICROS_PER_DAY, MICROS_PER_DAY),
        "$tomorrow" => (today + MICROS_PER_DAY, MICROS_PER_DAY),
        "$now" => (now, 1),
        _ => return unknown(),
    };
    let mut rest = &text[end..];
    if !after_t {
        let (moves, time) = match rest.split_once('T') {
            // `T` is also the unit of milliseconds, which has a digit before it and nothing after.
            Some((moves, time)) if time.starts_with(|c: char| c.is_ascii_digit()) => {
                (moves, Some(time))
            }
            _ => (rest, None),
        };
        lo = arithmetic(lo, moves.trim())?;
        rest = match time {
            Some(time) => time,
            None => return Ok(Span { lo, hi: lo + length, zoned: false }),
        };
    }
    let Some((nanos, granularity)) = parse_time_of_day(rest) else { return bad_date(text) };
    lo += nanos / 1_000;
    length = (granularity / 1_000).max(1);
    Ok(Span { lo, hi: lo + length, zoned: false })
}

/// `- 5d`, `+ 2bd`, `+ 1M`, `- 2h30m`, in a row.
fn arithmetic(start: i64, text: &str) -> Result<i64> {
    let mut value = start;
    let mut rest = text;
    let mut sign = 0;
    while !rest.is_empty() {
        sign = match rest.as_bytes()[0] {
            b'+' => 1,
            b'-' => -1,
            // Another unit of the same duration.
            b'0'..=b'9' if sign != 0 => sign,
            _ => return bad_date(text),
        };
        rest = rest.strip_prefix(['+', '-']).unwrap_or(rest).trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: i64 = match rest[..digits].parse() {
            Ok(number) if number <= 1_000_000 => number,
            _ => return fail(format!("Expected number in {text}")),
        };
        rest = &rest[digits..];
        let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = &rest[..length];
        let next = match unit {
            "bd" => Some(business_days(value, sign * number)),
            _ => match unit.chars().next() {
                Some(letter) if length == 1 && "nuUTsmhHdDwWMyY".contains(letter) => {
                    moved(value, &[(sign * number, letter)], 1, TimestampUnit::Micros)
                }
                _ => return fail(format!("Unknown interval unit: {unit}")),
            },
        };
        let Some(next) = next else { return fail("interval is out of range") };
        value = next;
        rest = rest[length..].trim_start();
    }
    Ok(value)
}

/// `days` steps over days from Monday to Friday.
fn business_days(start: i64, days: i64) -> i64 {
    let mut value = start;
    for _ in 0..days.abs() {
        loop {
            value += days.signum() * MICROS_PER_DAY;
            if CivilDate::from_micros(value).iso_weekday() < 6 {
                break;
            }
        }
    }
    value
}
