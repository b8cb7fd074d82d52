//! Suffixes after the dates: durations, repetition and day filters.

use super::dates::{is_unit, plain};
use super::span::{Result, fail, shown};
use crate::calendar::CivilDate;
use crate::duration::{add, fixed_nanos};
use crate::timestamp::TimestampUnit;

/// Maximum number of units in a duration.
const MAX_UNITS: usize = 64;

/// A sequence of numbers with units, as in `12h30m`.
#[derive(Debug, Default)]
struct Duration {
    components: Vec<(i64, char)>,
}

impl Duration {
    /// Parses a duration. An empty string has zero length.
    fn parse(text: &str, signed: bool) -> Result<Self> {
        let text = text.trim();
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) if signed => (-1, rest),
            _ => (1, text),
        };
        let mut components = Vec::new();
        while let Some(first) = rest.chars().next() {
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
            let digits = rest.bytes().take_while(is_digit).count();
            if digits == 0 {
                return fail(format!("Expected number before unit '{first}'"));
            }
            let Ok(number) = rest[..digits].replace('_', "").parse::<i32>() else {
                return fail(format!("Duration not a number: {}", shown(&rest[..digits])));
            };
            let Some(unit) = rest[digits..].chars().next() else {
                return fail("Missing unit at end of duration");
            };
            if !is_unit(unit) {
                return fail(format!("Invalid duration unit: {unit}"));
            }
            if components.len() == MAX_UNITS {
                return fail(format!("too many units in a duration [limit={MAX_UNITS}]"));
            }
            components.push((sign * i64::from(number), plain(unit)));
            rest = &rest[digits + unit.len_utf8()..];
        }
        Ok(Self { components })
    }

    fn after(&self, value: i64, unit: TimestampUnit, is_included: fn(char) -> bool) -> Option<i64> {
        let mut components = self.components.iter().filter(|(_, letter)| is_included(*letter));
        components.try_fold(value, |value, &(number, letter)| match letter {
            'y' => add_years(value, number, unit),
            _ => add(value, letter, number, unit),
        })
    }

    fn times(&self, factor: i64) -> Option<Self> {
        let component =
            |&(number, letter): &(i64, char)| Some((number.checked_mul(factor)?, letter));
        Some(Self { components: self.components.iter().map(component).collect::<Option<_>>()? })
    }

    fn is_negative(&self) -> bool {
        self.components.iter().any(|(number, _)| *number < 0)
    }

    fn has_days(&self) -> bool {
        self.components.iter().any(|(_, letter)| is_civil(*letter))
    }
}

/// Adds years the way the reference implementation does in interval strings: 29 February plus a
/// year is 1 March, as recorded in `tests/recorded_intervals.rs`. All other year additions clamp.
fn add_years(value: i64, number: i64, unit: TimestampUnit) -> Option<i64> {
    let date = CivilDate::from_days(value.div_euclid(unit.per_day()));
    let days = i64::from(date.day - 1) * unit.per_day();
    add(value.checked_sub(days)?, 'y', number, unit)?.checked_add(days)
}

/// Whether a unit follows the calendar. In a time zone, a day may last only 23 hours.
fn is_civil(letter: char) -> bool {
    fixed_nanos(letter).is_none_or(|nanos| nanos >= 86_400_000_000_000)
}

/// `;duration` or `;duration;period;count`.
#[derive(Debug)]
pub(super) struct Suffix {
    duration: Duration,
    period: Option<Duration>,
    count: u64,
}

impl Suffix {
    pub(super) fn parse(text: &str, whole: &str) -> Result<Self> {
        let components: Vec<&str> = text.splitn(5, ';').collect();
        match components.as_slice() {
            [duration] => {
                Ok(Self { duration: Duration::parse(duration, true)?, period: None, count: 1 })
            }
            [duration, period, count] => match count.trim().parse::<i64>() {
                Ok(count) if count > 0 => Ok(Self {
                    duration: Duration::parse(duration, true)?,
                    period: Some(Duration::parse(period, true)?),
                    count: count.unsigned_abs(),
                }),
                Ok(_) => fail("Count must be positive"),
                Err(_) => fail("Count not a number"),
            },
            _ => fail(format!("Invalid interval format: {}", shown(whole))),
        }
    }

    /// Whether a period is given. If so, the days of a week or month are not separate intervals.
    pub(super) fn repeats(&self) -> bool {
        self.period.is_some()
    }

    /// Whether the duration is subtracted from the end of a span instead of added to its start.
    pub(super) fn shortens(&self) -> bool {
        self.duration.is_negative()
    }

    /// Returns two local times for each repetition: its start, and the end of its whole days;
    /// `None` if either is out of range. A period moves both times, because months differ in
    /// length.
    pub(super) fn readings(
        &self,
        (first, behind): (i64, i64),
        unit: TimestampUnit,
    ) -> impl Iterator<Item = Option<Readings>> {
        let from = if self.shortens() { behind } else { first };
        let end = self.duration.after(from, unit, is_civil);
        // Moves the last tick, because the tick after it may be in another month.
        let has_days = self.ends_by_days();
        let last = end.map(|end| if has_days { end - 1 } else { end });
        let base = last.map(|last| (first, last));
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        let positions = (0..count).scan(base, move |position, index| {
            if let Some(period) = self.period.as_ref().filter(|_| index > 0) {
                // Negative periods count from the first start, positive periods from the previous
                // repetition.
                let (from, times) =
                    if period.is_negative() { (base, index as i64) } else { (*position, 1) };
                let moved = |value| period.times(times)?.after(value, unit, |_| true);
                *position = from.and_then(|(lo, last)| Some((moved(lo)?, moved(last)?)));
            }
            Some(*position)
        });
        positions.map(move |position| {
            let (lo, last) = position?;
            Some(Readings { lo, days: last + i64::from(has_days) })
        })
    }

    /// Whether the end is computed from a local time other than the start.
    fn ends_by_days(&self) -> bool {
        self.duration.has_days() || self.shortens()
    }

    /// Returns the end for a UTC start. Days end at the same local time, whereas hours are elapsed
    /// time.
    pub(super) fn end(&self, start: i64, days: i64, unit: TimestampUnit) -> Option<i64> {
        let from = if self.ends_by_days() { days } else { start };
        self.duration.after(from, unit, |letter| !is_civil(letter))
    }
}

/// Local times of one repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Readings {
    pub(super) lo: i64,
    /// Local time at which the duration's whole days end, before its hours are added.
    pub(super) days: i64,
}

/// A filter such as `#workday`, `#weekend` or `#Mon,Sat`.
#[derive(Debug, Clone, Copy)]
pub(super) struct DayFilter {
    days: [bool; 7],
}

impl DayFilter {
    pub(super) fn parse(text: &str) -> Result<Self> {
        const NAMES: [&str; 7] =
            ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        let mut selected = [false; 7];
        for name in text.split(',').map(str::trim) {
            let lower = name.to_ascii_lowercase();
            match lower.as_str() {
                "workday" | "wd" => selected[..5].fill(true),
                "weekend" => selected[5..].fill(true),
                // A trailing comma is ignored.
                "" if selected.contains(&true) => {}
                "" => return fail("Empty day filter after '#'"),
                _ => {
                    let known = |day: &&str| **day == lower || day[..3] == lower;
                    match NAMES.iter().position(known) {
                        Some(day) => selected[day] = true,
                        None => return fail(format!("Invalid day name: {}", shown(name))),
                    }
                }
            }
        }
        Ok(Self { days: selected })
    }

    /// Whether a local time is on one of the selected days.
    pub(super) fn includes(self, local: i64, unit: TimestampUnit) -> bool {
        let weekday = (local.div_euclid(unit.per_day()) + 3).rem_euclid(7);
        self.days[weekday as usize]
    }
}
