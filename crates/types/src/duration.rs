//! Time units, identified by their letters, and arithmetic that adds them to timestamps.

use crate::calendar::move_months;
use crate::timestamp::TimestampUnit;

/// Returns a fixed unit's length in nanoseconds; `None` for months and years.
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

/// Returns the number of months in a unit without a fixed length.
#[must_use]
pub fn unit_months(letter: char) -> Option<i64> {
    match letter {
        'M' => Some(1),
        'y' => Some(12),
        _ => None,
    }
}

/// Adds `number` units of `letter` to `value`; `None` if the result is out of range. Months and
/// years are clamped to the end of a shorter month: 29 February plus a year is 28 February.
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
    move_months(value, number.checked_mul(unit_months(letter)?)?, unit.per_day())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::{CivilDate, floor_to_months};
    use crate::period::Period;

    /// Returns the clamped date, found by looping over the months in between.
    fn month_later(date: CivilDate, months: i64) -> CivilDate {
        let (mut year, mut month) = (date.year, i64::from(date.month));
        for _ in 0..months.abs() {
            month += months.signum();
            match month {
                0 => (year, month) = (year - 1, 12),
                13 => (year, month) = (year + 1, 1),
                _ => {}
            }
        }
        let first = CivilDate { year, month: month as u8, day: 1 };
        let next = match month {
            12 => CivilDate { year: year + 1, month: 1, day: 1 },
            _ => CivilDate { month: month as u8 + 1, ..first },
        };
        let length = (next.to_days() - first.to_days()) as u8;
        CivilDate { day: date.day.min(length), ..first }
    }

    #[test]
    fn adding_months_and_years_yields_the_same_date_in_every_unit() {
        const TIME_OF_DAY_NANOS: i64 = 86_399_123_456_789;
        let years = [1, 1599, 1600, 1899, 1900, 1969, 1970, 1999, 2000, 2023, 2024, 2100, 2261];
        let units = [TimestampUnit::Millis, TimestampUnit::Micros, TimestampUnit::Nanos];
        let ends = (1..=12).flat_map(|month| [1, 15, 28, 29, 30, 31].map(|day| (month, day)));
        for (year, (month, day)) in
            years.into_iter().flat_map(|year| ends.clone().map(move |end| (year, end)))
        {
            let date = CivilDate { year, month, day };
            if day > date.days_in_month() {
                continue;
            }
            for unit in units {
                let at = |date: CivilDate| {
                    let midnight = date.to_days().checked_mul(unit.per_day())?;
                    midnight.checked_add(TIME_OF_DAY_NANOS / unit.nanos())
                };
                let Some(value) = at(date) else { continue };
                for (letter, number) in
                    [1, 2, 11, 12, 13, 48, 1_200].into_iter().flat_map(|number| {
                        [('M', number), ('M', -number), ('y', number), ('y', -number)]
                    })
                {
                    let months = number * unit_months(letter).unwrap();
                    let expected = at(month_later(date, months));
                    let shown = format!("{date:?} {unit:?} {number}{letter}");
                    assert_eq!(add(value, letter, number, unit), expected, "{shown}");
                    let period = Period { months: months as i32, days: 0, micros: 0 };
                    assert_eq!(period.after(value, unit), expected, "{shown}");
                    if let Some(line) = expected.filter(|_| months > 0) {
                        let floor = floor_to_months(line, months, value, unit.per_day());
                        assert_eq!(floor, Some(line), "{shown}");
                        let floor = floor_to_months(line - 1, months, value, unit.per_day());
                        assert_eq!(floor, Some(value), "{shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn out_of_range_results_are_none() {
        for unit in [TimestampUnit::Millis, TimestampUnit::Micros, TimestampUnit::Nanos] {
            for value in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX] {
                for letter in ['n', 'u', 'T', 's', 'm', 'h', 'd', 'w', 'M', 'y'] {
                    for number in [i64::MIN, -i64::from(i32::MAX), i64::from(i32::MAX), i64::MAX] {
                        let moved = add(value, letter, number, unit);
                        let fits = moved.is_none_or(|moved| (moved >= value) == (number >= 0));
                        assert!(fits, "{value} {number}{letter} {unit:?}");
                    }
                }
            }
        }
    }
}
