//! Interval strings, as in `ts IN '2024-01-[01..05]T09:30;1h'`.
//!
//! ```text
//! text     = dates [@zone] [#filter] [;duration [;period ;count]]
//! dates    = element | '[' element {, element} ']' [T time]
//! element  = date | date..date | $variable [± n unit]     with [lists] and [a..b] in any field
//! ```
//!
//! Brackets are expanded into plain strings. Each string becomes half-open intervals in the local
//! time of its zone. The intervals are filtered by day, repeated, converted to UTC, sorted and
//! merged.

use crate::timestamp::TimestampUnit;
use crate::zone::Zone;

mod dates;
mod span;
mod split;
mod suffix;
#[cfg(test)]
mod tests;

use dates::Clock;
pub use span::IntervalError;
use span::{Budget, Kind, Result, Span, fail, out_of_range, shown};
use split::{elements, split_mark};
use suffix::{DayFilter, Readings, Suffix};

/// Parses an interval string into sorted, disjoint, half-open intervals in `unit`.
pub fn parse_interval(text: &str, unit: TimestampUnit, now_micros: i64) -> Result<Vec<(i64, i64)>> {
    let budget = Budget::new(text)?;
    let now = TimestampUnit::Micros.convert(now_micros, unit).unwrap_or(i64::MAX);
    let mut reading = Reading { text, clock: Clock { unit, now }, budget, found: Vec::new() };
    let (dates, marks) = Marks::split(text, text)?;
    for element in elements(dates, &mut reading.budget)? {
        reading.element(&element, &marks)?;
    }
    let mut found = reading.found;
    found.retain(|(lo, hi)| lo < hi);
    found.sort_unstable();
    Ok(merge(&found))
}

/// The suffixes after the dates: zone, filter, duration and repetition.
struct Marks {
    zone: Option<Zone>,
    filter: Option<DayFilter>,
    suffix: Option<Suffix>,
}

impl Marks {
    /// Splits a string into dates and suffixes. `whole` is the string to quote in errors.
    fn split<'a>(text: &'a str, whole: &str) -> Result<(&'a str, Self)> {
        let (dates, suffix) = split_mark(text, ';');
        let (dates, filter) = split_mark(dates, '#');
        let (dates, zone) = split_mark(dates, '@');
        let marks = Self {
            zone: zone.map(parse_zone).transpose()?,
            filter: filter.map(DayFilter::parse).transpose()?,
            suffix: suffix.map(|suffix| Suffix::parse(suffix, whole)).transpose()?,
        };
        Ok((dates, marks))
    }
}

/// A string and the intervals parsed from it so far.
struct Reading<'a> {
    text: &'a str,
    clock: Clock,
    budget: Budget,
    found: Vec<(i64, i64)>,
}

impl Reading<'_> {
    /// Adds the intervals of one element. The element's own suffixes take precedence over those of
    /// the list.
    fn element(&mut self, element: &str, all: &Marks) -> Result<()> {
        let (date, own) = Marks::split(element, self.text)?;
        let suffix = own.suffix.as_ref().or(all.suffix.as_ref());
        let (zone, filter) = (own.zone.or(all.zone), own.filter.or(all.filter));
        for span in self.clock.spans(date.trim())? {
            let suffix = suffix.filter(|_| !span.bounded);
            let of = Rules { zone: zone.filter(|_| !span.zoned), filter, suffix };
            match filter {
                Some(filter) if span.kind == Kind::Days && !suffix.is_some_and(Suffix::repeats) => {
                    for day in span.days(self.clock.unit) {
                        if filter.includes(day.lo, self.clock.unit) {
                            self.span(day, of)?;
                        }
                    }
                }
                _ => self.span(span, of)?,
            }
        }
        Ok(())
    }

    /// Adds a span and its repetitions to the intervals.
    fn span(&mut self, span: Span, of: Rules<'_>) -> Result<()> {
        let unit = self.clock.unit;
        let to_utc =
            |local: i64| of.zone.map_or(local, |zone| zone.to_utc(local, unit.per_second()));
        let Some(suffix) = of.suffix else {
            // The last local time belongs to the interval, even across a clock change.
            let end = to_utc(span.hi - 1).checked_add(1);
            return self.interval(span.lo, (to_utc(span.lo), end), of);
        };
        for readings in suffix.readings((span.lo, span.hi), unit) {
            let Some(Readings { lo, days }) = readings else { return out_of_range(self.text) };
            let start = to_utc(lo);
            let end = suffix.end(start, to_utc(days), unit);
            if suffix.shortens() && end.is_some_and(|end| end <= start) {
                // The span is empty.
                return fail("Expected number before unit '-'");
            }
            self.interval(lo, (start, end), of)?;
        }
        Ok(())
    }

    /// Adds an interval that starts at a local time, if the filter selects its day.
    fn interval(&mut self, lo: i64, utc: (i64, Option<i64>), of: Rules<'_>) -> Result<()> {
        self.budget.take_interval()?;
        let (start, Some(end)) = utc else { return out_of_range(self.text) };
        if of.filter.is_none_or(|filter| filter.includes(lo, self.clock.unit)) {
            self.found.push((start, end));
        }
        Ok(())
    }
}

/// Rules that apply to an element's spans.
#[derive(Clone, Copy)]
struct Rules<'a> {
    zone: Option<Zone>,
    filter: Option<DayFilter>,
    suffix: Option<&'a Suffix>,
}

fn merge(sorted: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut merged: Vec<(i64, i64)> = Vec::with_capacity(sorted.len());
    for &(lo, hi) in sorted {
        match merged.last_mut() {
            Some(last) if lo <= last.1 => last.1 = last.1.max(hi),
            _ => merged.push((lo, hi)),
        }
    }
    merged
}

fn parse_zone(name: &str) -> Result<Zone> {
    match Zone::parse(name) {
        Some(zone) => Ok(zone),
        None => fail(format!("invalid timezone: {}", shown(name))),
    }
}
