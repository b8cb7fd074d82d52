//! Proleptic Gregorian calendar arithmetic on microseconds since 1970 UTC.
//!
//! chrono is not used, because these functions run per row and per partition, and because chrono's
//! range (±262,000 years) is narrower than TIMESTAMP's.

/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;
/// Microseconds in a minute.
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
/// Microseconds in an hour.
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
/// Microseconds in a week.
pub const MICROS_PER_WEEK: i64 = 7 * MICROS_PER_DAY;
/// Monday 1969-12-29, the origin of week grids.
pub const FIRST_MONDAY_MICROS: i64 = -3 * MICROS_PER_DAY;

/// A day in the proleptic Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CivilDate {
    /// Astronomical year.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

impl CivilDate {
    /// Returns the day that is `days` days after 1970-01-01.
    #[must_use]
    pub fn from_days(days: i64) -> Self {
        // Days since 0000-03-01 split into 400-year eras (Howard Hinnant's civil_from_days).
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let march_month = (5 * day_of_year + 2) / 153;
        let day = (day_of_year - (153 * march_month + 2) / 5 + 1) as u8;
        let month = if march_month < 10 { march_month + 3 } else { march_month - 9 } as u8;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Self { year: year as i32, month, day }
    }

    /// Returns the number of days since 1970-01-01.
    #[must_use]
    pub fn to_days(self) -> i64 {
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let march_month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * march_month + 2) / 5 + i64::from(self.day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// Returns the day that contains this timestamp.
    #[must_use]
    pub fn from_micros(ts_micros: i64) -> Self {
        Self::from_days(ts_micros.div_euclid(MICROS_PER_DAY))
    }

    /// Returns midnight on this day, saturating at the limits of the range.
    #[must_use]
    pub fn to_micros(self) -> i64 {
        self.to_days().saturating_mul(MICROS_PER_DAY)
    }

    /// Returns the weekday, from 1 (Monday) to 7 (Sunday).
    #[must_use]
    pub fn iso_weekday(self) -> u8 {
        ((self.to_days() + 3).rem_euclid(7) + 1) as u8
    }

    /// Returns the day of the year, from 1.
    #[must_use]
    pub fn day_of_year(self) -> u16 {
        (self.to_days() - Self { month: 1, day: 1, ..self }.to_days() + 1) as u16
    }

    /// Returns the ISO year and week.
    #[must_use]
    pub fn iso_week(self) -> (i32, u8) {
        // The week belongs to the year of its Thursday.
        let thursday = Self::from_days(self.to_days() + 4 - i64::from(self.iso_weekday()));
        (thursday.year, ((thursday.day_of_year() - 1) / 7 + 1) as u8)
    }

    /// Returns the number of days in this date's month.
    #[must_use]
    pub fn days_in_month(self) -> u8 {
        match self.month {
            4 | 6 | 9 | 11 => 30,
            2 if is_leap_year(self.year) => 29,
            2 => 28,
            _ => 31,
        }
    }
}

/// Whether the year is a leap year.
#[must_use]
pub fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Returns the greatest `origin + k * step` that is not after `ts`. `step` must be positive.
#[must_use]
pub fn floor_to(ts: i64, step: i64, origin: i64) -> i64 {
    let offset = ts.wrapping_sub(origin).rem_euclid(step);
    ts.saturating_sub(offset)
}

/// Returns the number of months from year 0 to a date's month.
fn month_index(date: CivilDate) -> i64 {
    i64::from(date.year) * 12 + i64::from(date.month) - 1
}

/// Moves `value` by a number of months, in a unit with `per_day` ticks per day. The day is clamped
/// to the end of the month, and the time of day is unchanged. Returns `None` if the result is out
/// of range.
///
/// All month and year arithmetic in the dialect uses this function.
#[must_use]
pub fn move_months(value: i64, months: i64, per_day: i64) -> Option<i64> {
    let date = CivilDate::from_days(value.div_euclid(per_day));
    let index = month_index(date).checked_add(months)?;
    let year = i32::try_from(index.div_euclid(12)).ok()?;
    let first = CivilDate { year, month: (index.rem_euclid(12) + 1) as u8, day: 1 };
    let day = date.day.min(first.days_in_month());
    let days = CivilDate { day, ..first }.to_days();
    // Before 1970, a midnight may be out of range even though the timestamp itself is not.
    let ticks = i128::from(days) * i128::from(per_day) + i128::from(value.rem_euclid(per_day));
    i64::try_from(ticks).ok()
}

/// Applies [`move_months`] `number` times. Each step starts from the result of the previous step. A
/// day that a short month lacks is therefore lost permanently: 31 January, 28 February, 28 March.
#[must_use]
pub fn step_months(value: i64, months: i64, number: i64, per_day: i64) -> Option<i64> {
    let date = |ticks: i64| CivilDate::from_days(ticks.div_euclid(per_day));
    let mut at = value;
    let mut has_february = false;
    for step in 0..number {
        let CivilDate { month, day, .. } = date(at);
        has_february |= month == 2;
        // After 12 steps, every month of the cycle has been visited.
        if day <= 28 || (step >= 12 && !has_february) {
            return move_months(at, months.checked_mul(number - step)?, per_day);
        }
        at = move_months(at, months, per_day)?;
    }
    Some(at)
}

/// Like [`move_months`], but for microseconds. A result out of range saturates.
#[must_use]
pub fn add_months(ts_micros: i64, months: i64) -> i64 {
    let limit = if months < 0 { i64::MIN } else { i64::MAX };
    move_months(ts_micros, months, MICROS_PER_DAY).unwrap_or(limit)
}

/// Returns the last line of a monthly grid that is not after `value`. The grid's lines are `origin`
/// shifted by multiples of `months`, which must be positive. Returns `None` if the result is out of
/// range.
#[must_use]
pub fn floor_to_months(value: i64, months: i64, origin: i64, per_day: i64) -> Option<i64> {
    let index = |ticks: i64| month_index(CivilDate::from_days(ticks.div_euclid(per_day)));
    let steps = (index(value) - index(origin)).div_euclid(months);
    let line = |steps: i64| move_months(origin, steps.checked_mul(months)?, per_day);
    match line(steps) {
        Some(found) if found <= value => Some(found),
        // The line is later than `value` in the same month.
        _ => line(steps.checked_sub(1)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip_through_day_numbers() {
        for days in (-800_000..800_000).step_by(97) {
            assert_eq!(CivilDate::from_days(days).to_days(), days);
        }
        assert_eq!(CivilDate::from_days(0), CivilDate { year: 1970, month: 1, day: 1 });
    }

    #[test]
    fn iso_weeks_belong_to_the_year_of_their_thursday() {
        let week = |year, month, day| CivilDate { year, month, day }.iso_week();
        assert_eq!(week(2024, 1, 1), (2024, 1));
        assert_eq!(week(2021, 1, 3), (2020, 53));
        assert_eq!(week(2019, 12, 30), (2020, 1));
    }

    #[test]
    fn step_months_matches_a_naive_loop() {
        for (year, month, day) in
            [(2024, 1, 31), (2024, 2, 29), (2023, 12, 30), (1999, 8, 31), (2000, 4, 28)]
        {
            let start = CivilDate { year, month, day }.to_micros() + 5;
            for months in [1, 2, 3, 4, 6, 7, 12, 13, 48, -1, -5, -12, -48] {
                let mut at = start;
                for number in 0..200 {
                    let found = step_months(start, months, number, MICROS_PER_DAY);
                    assert_eq!(found, Some(at), "{year}-{month}-{day} {number} * {months}");
                    at = add_months(at, months);
                }
            }
        }
    }

    #[test]
    fn adding_months_clamps_to_the_last_day_of_the_month() {
        let end_of_january = CivilDate { year: 2024, month: 1, day: 31 }.to_micros();
        let end_of_february = CivilDate { year: 2024, month: 2, day: 29 }.to_micros();
        assert_eq!(add_months(end_of_january, 1), end_of_february);
    }
}
