//! Bucket arithmetic: finds a timestamp's bucket and that bucket's end.

use tidemark_types::calendar::{
    CivilDate, FIRST_MONDAY_MICROS, MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE,
    MICROS_PER_SECOND, MICROS_PER_WEEK, floor_to, floor_to_months, move_months,
};
use tidemark_types::zone::Zone;

use crate::bucket::{Alignment, BucketSpec, StepUnit};

/// The bucket of a timestamp, and the end of the contiguous range around the timestamp that belongs
/// to the bucket. When daylight saving time ends, a bucket may consist of several ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// The bucket's timestamp.
    pub(crate) label: i64,
    /// First timestamp after the range.
    pub(crate) end: i64,
}

/// A step, in the timestamp column's unit.
#[derive(Debug, Clone, Copy)]
enum Step {
    Fixed(i64),
    Months(i64),
}

impl BucketSpec {
    /// Extends the range from `first` to `last`, both inclusive, to whole buckets. Returns the
    /// start of the extended range and the first timestamp after it, in the timestamp column's
    /// unit. A row is inside the extended range if and only if its bucket starts inside it.
    /// Calendar grids only.
    #[must_use]
    pub fn around(&self, first: i64, last: i64) -> (i64, i64) {
        let mut grid = Grid::new(self, 0);
        let day = MICROS_PER_DAY.saturating_mul(grid.scale);
        let (mut first, mut last) = (first, last.max(first));
        if grid.zone.is_some() {
            // When clocks are set back, buckets of the earlier hour lie between buckets of the
            // later hour.
            let (_, changed) = grid.regime(first.saturating_sub(day));
            if changed <= first {
                first = first.saturating_sub(day);
            }
            let mut changes = first;
            while let (_, until) = grid.regime(changes)
                && until <= last.saturating_add(day)
            {
                last = last.max(until.saturating_add(day));
                first = first.min(until.saturating_sub(day));
                changes = until;
            }
        }
        let start = grid.run(first).label.min(first);
        let mut run = grid.run(last);
        while run.end < i64::MAX && grid.run(run.end).label == run.label {
            run = grid.run(run.end);
        }
        (start, run.end)
    }
}

/// A query's bucket grid, in the timestamp column's unit.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    step: Step,
    origin: i64,
    /// Column units per microsecond.
    scale: i64,
    zone: Option<Zone>,
    /// Start and UTC offset of each period near the timestamps requested so far.
    regimes: Vec<(i64, i64)>,
    /// Time range covered by `regimes`.
    covered: (i64, i64),
}

impl Grid {
    /// Creates the grid for `spec`. `first` is the first row's timestamp, which is the origin of
    /// some grids.
    pub(crate) fn new(spec: &BucketSpec, first: i64) -> Self {
        let scale = if spec.nanoseconds { 1_000 } else { 1 };
        let count = i64::from(spec.count.max(1));
        let fixed = |micros: i64| Step::Fixed(micros.saturating_mul(scale).saturating_mul(count));
        let step = match spec.unit {
            // Microsecond columns cannot have finer buckets.
            StepUnit::Nanosecond if spec.nanoseconds => Step::Fixed(count),
            StepUnit::Nanosecond => Step::Fixed(count.div_euclid(1_000).max(1)),
            StepUnit::Microsecond => fixed(1),
            StepUnit::Millisecond => fixed(1_000),
            StepUnit::Second => fixed(MICROS_PER_SECOND),
            StepUnit::Minute => fixed(MICROS_PER_MINUTE),
            StepUnit::Hour => fixed(MICROS_PER_HOUR),
            StepUnit::Day => fixed(MICROS_PER_DAY),
            StepUnit::Week => fixed(MICROS_PER_WEEK),
            StepUnit::Month => Step::Months(count),
            StepUnit::Year => Step::Months(12 * count),
        };
        let epoch = if spec.unit == StepUnit::Week { FIRST_MONDAY_MICROS * scale } else { 0 };
        let (zone, origin) = match spec.alignment {
            Alignment::FirstObservation => (None, spec.from.unwrap_or(first)),
            Alignment::Calendar { zone, offset_micros } => {
                let shift = offset_micros.saturating_mul(scale);
                (zone, spec.from.unwrap_or(epoch).saturating_add(shift))
            }
        };
        let mut grid = Self { step, origin, scale, zone, regimes: vec![], covered: (0, 0) };
        // FROM is in UTC, but the grid counts in local time.
        if let (Some(from), Some(_)) = (spec.from, zone) {
            grid.origin = grid.origin.saturating_add(grid.regime(from).0);
        }
        grid
    }

    /// Returns a timestamp's bucket.
    pub(crate) fn run(&mut self, ts: i64) -> Run {
        if self.zone.is_none() {
            let label = self.floor(ts);
            return Run { label, end: self.next(label) };
        }
        let (offset, until) = self.regime(ts);
        let local = self.floor(ts.saturating_add(offset));
        let end = self.next(local).saturating_sub(offset).min(until);
        Run { label: self.utc_of(local, ts), end: end.max(ts.saturating_add(1)) }
    }

    /// Returns the label of the next bucket.
    pub(crate) fn following(&mut self, label: i64) -> i64 {
        let mut run = self.run(label);
        while run.label <= label && run.end < i64::MAX {
            run = self.run(run.end);
        }
        run.label
    }

    /// Returns the last grid line at or before `local`, in local time.
    fn floor(&self, local: i64) -> i64 {
        match self.step {
            Step::Fixed(step) => floor_to(local, step, self.origin),
            Step::Months(months) => {
                floor_to_months(local, months, self.origin, self.per_day()).unwrap_or(i64::MIN)
            }
        }
    }

    /// Returns the grid line that follows the line `local`.
    fn next(&self, local: i64) -> i64 {
        match self.step {
            Step::Fixed(step) => local.saturating_add(step),
            Step::Months(months) => {
                let elapsed = month_index(local.div_euclid(self.scale))
                    - month_index(self.origin.div_euclid(self.scale));
                self.months_after_origin(elapsed + months)
            }
        }
    }

    fn months_after_origin(&self, months: i64) -> i64 {
        move_months(self.origin, months, self.per_day()).unwrap_or(i64::MAX)
    }

    fn per_day(&self) -> i64 {
        MICROS_PER_DAY * self.scale
    }

    /// Returns the first timestamp near `ts` at which local clocks show `local`. A local time that
    /// does not exist (at the start of daylight saving time) maps to the time of the change.
    fn utc_of(&mut self, local: i64, ts: i64) -> i64 {
        // Uses the offset from before any change within the bucket, which selects the earlier of
        // two possible timestamps.
        let guess = local.saturating_sub(self.regime(ts).0);
        let day = MICROS_PER_DAY.saturating_mul(self.scale);
        let early = self.regime(guess.saturating_sub(day));
        let candidate = local.saturating_sub(early.0);
        if candidate < early.1 {
            return candidate;
        }
        let later = self.regime(early.1);
        local.saturating_sub(later.0).max(early.1)
    }

    /// Returns the offset of local time from UTC at a timestamp, and the end of the period in which
    /// it applies.
    fn regime(&mut self, ts: i64) -> (i64, i64) {
        let zone = match self.zone {
            None => return (0, i64::MAX),
            Some(fixed @ Zone::Fixed(_)) => return (self.offset_at(fixed, ts), i64::MAX),
            Some(named) => named,
        };
        if ts < self.covered.0 || ts >= self.covered.1 || self.regimes.is_empty() {
            self.cover(zone, ts);
        }
        let index = self.regimes.partition_point(|&(start, _)| start <= ts).max(1);
        let until = self.regimes.get(index).map_or(self.covered.1, |&(start, _)| start);
        (self.regimes[index - 1].1, until)
    }

    /// Finds the changes to the zone's UTC offset in the four years around `ts`.
    fn cover(&mut self, zone: Zone, ts: i64) {
        let day = MICROS_PER_DAY.saturating_mul(self.scale);
        let start = floor_to(ts, day, 0).saturating_sub(day.saturating_mul(365));
        let end = start.saturating_add(day.saturating_mul(4 * 365));
        self.regimes = vec![(start, self.offset_at(zone, start))];
        let mut low = start;
        while low < end {
            // No zone changes its offset and then reverts the change within a week.
            let high = low.saturating_add(day.saturating_mul(7)).min(end);
            let (before, after) = (self.offset_at(zone, low), self.offset_at(zone, high));
            if before != after {
                self.regimes.push((self.change(zone, low, high), after));
            }
            if high == i64::MAX {
                break;
            }
            low = high;
        }
        self.covered = (start, end);
    }

    fn change(&self, zone: Zone, mut low: i64, mut high: i64) -> i64 {
        let before = self.offset_at(zone, low);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.offset_at(zone, middle) == before {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    fn offset_at(&self, zone: Zone, ts: i64) -> i64 {
        let seconds = ts.div_euclid(MICROS_PER_SECOND.saturating_mul(self.scale));
        zone.offset_at(seconds) * MICROS_PER_SECOND * self.scale
    }
}

fn month_index(ts_micros: i64) -> i64 {
    let date = CivilDate::from_micros(ts_micros);
    i64::from(date.year) * 12 + i64::from(date.month) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(year: i32, month: u8, day: u8, hour: i64, minute: i64) -> i64 {
        let midnight = CivilDate { year, month, day }.to_micros();
        midnight + hour * MICROS_PER_HOUR + minute * MICROS_PER_MINUTE
    }

    fn berlin(count: u32, unit: StepUnit) -> Grid {
        let zone = Some(Zone::Named(chrono_tz::Europe::Berlin));
        let alignment = Alignment::Calendar { zone, offset_micros: 0 };
        Grid::new(&BucketSpec { alignment, ..BucketSpec::new(count, unit) }, 0)
    }

    #[test]
    fn calendar_grids_start_at_their_origin() {
        let mut grid = Grid::new(&BucketSpec::new(5, StepUnit::Month), 0);
        assert_eq!(grid.run(at(2024, 1, 15, 0, 0)).label, at(2023, 10, 1, 0, 0));
        assert_eq!(grid.run(at(2024, 1, 15, 0, 0)).end, at(2024, 3, 1, 0, 0));
        let mut grid = Grid::new(&BucketSpec::new(5, StepUnit::Year), 0);
        assert_eq!(grid.run(at(2024, 1, 15, 0, 0)).label, at(2020, 1, 1, 0, 0));
        let mut grid = Grid::new(&BucketSpec::new(1, StepUnit::Week), 0);
        assert_eq!(grid.run(at(2024, 1, 10, 5, 0)).label, at(2024, 1, 8, 0, 0));
    }

    /// Whole buckets contain exactly their rows, even when clocks change.
    #[test]
    fn buckets_contain_exactly_their_rows_across_clock_changes() {
        let units = [(7, StepUnit::Minute), (30, StepUnit::Minute), (1, StepUnit::Hour)];
        let longer = [(5, StepUnit::Hour), (1, StepUnit::Day), (1, StepUnit::Month)];
        for change in [at(2024, 3, 31, 1, 0), at(2024, 10, 27, 1, 0)] {
            for (count, unit) in units.into_iter().chain(longer) {
                let zone = Some(Zone::Named(chrono_tz::Europe::Berlin));
                let alignment = Alignment::Calendar { zone, offset_micros: 0 };
                let spec = BucketSpec { alignment, ..BucketSpec::new(count, unit) };
                let mut grid = Grid::new(&spec, 0);
                for step in -40..40 {
                    let first = change + step * 11 * MICROS_PER_MINUTE;
                    let last = first + (step + 40) * 3 * MICROS_PER_MINUTE;
                    let (start, end) = spec.around(first, last);
                    assert!(start <= first && last < end, "{spec} {step}");
                    for row in -800..800 {
                        let ts = change + row * 5 * MICROS_PER_MINUTE;
                        let label = grid.run(ts).label;
                        let is_label_inside = (start..end).contains(&label);
                        assert_eq!(is_label_inside, (start..end).contains(&ts), "{spec} {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn first_observation_buckets_keep_the_day_and_time_of_the_first_row() {
        let alignment = Alignment::FirstObservation;
        let spec = BucketSpec { alignment, ..BucketSpec::new(1, StepUnit::Month) };
        let first = at(2024, 1, 31, 7, 30);
        let mut grid = Grid::new(&spec, first);
        assert_eq!(grid.run(first), Run { label: first, end: at(2024, 2, 29, 7, 30) });
        assert_eq!(grid.following(first), at(2024, 2, 29, 7, 30));
        assert_eq!(grid.run(at(2024, 3, 31, 7, 30)).label, at(2024, 3, 31, 7, 30));
    }

    #[test]
    fn autumn_clock_change_merges_the_repeated_hour() {
        // 2024-10-27 03:00 CEST becomes 02:00 CET at 01:00 UTC.
        let mut grid = berlin(1, StepUnit::Hour);
        assert_eq!(grid.run(at(2024, 10, 27, 0, 10)).label, at(2024, 10, 27, 0, 0));
        assert_eq!(grid.run(at(2024, 10, 27, 1, 10)).label, at(2024, 10, 27, 0, 0));
        assert_eq!(grid.run(at(2024, 10, 27, 2, 10)).label, at(2024, 10, 27, 2, 0));
        assert_eq!(grid.following(at(2024, 10, 27, 0, 0)), at(2024, 10, 27, 2, 0));
        let mut grid = berlin(30, StepUnit::Minute);
        assert_eq!(grid.run(at(2024, 10, 27, 1, 40)).label, at(2024, 10, 27, 0, 30));
    }

    #[test]
    fn spring_clock_change_skips_the_missing_hour() {
        // 2024-03-31 02:00 CET becomes 03:00 CEST at 01:00 UTC.
        let mut grid = berlin(1, StepUnit::Hour);
        assert_eq!(grid.run(at(2024, 3, 31, 0, 59)).end, at(2024, 3, 31, 1, 0));
        assert_eq!(grid.run(at(2024, 3, 31, 1, 0)).label, at(2024, 3, 31, 1, 0));
        let mut grid = berlin(1, StepUnit::Day);
        assert_eq!(grid.run(at(2024, 3, 31, 12, 0)).label, at(2024, 3, 30, 23, 0));
        assert_eq!(grid.run(at(2024, 3, 31, 12, 0)).end, at(2024, 3, 31, 22, 0));
    }
}
