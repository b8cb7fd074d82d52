//! Timestamp strings. Parses ISO prefixes, and formats ISO strings with the unit's number of
//! fractional digits.

use crate::calendar::{CivilDate, add_months};
use crate::offset::read_offset;
use crate::zone::Zone;

/// Resolution of a time type: DATE, TIMESTAMP, `TIMESTAMP_NS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimestampUnit {
    /// DATE.
    Millis,
    /// TIMESTAMP.
    Micros,
    /// `TIMESTAMP_NS`.
    Nanos,
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl TimestampUnit {
    /// Returns the number of ticks per second.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => NANOS_PER_SECOND,
        }
    }

    /// Returns the number of ticks per day.
    #[must_use]
    pub const fn per_day(self) -> i64 {
        self.per_second() * SECONDS_PER_DAY
    }

    /// Returns the number of nanoseconds per tick.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        NANOS_PER_SECOND / self.per_second()
    }

    /// Returns the number of fractional digits.
    #[must_use]
    pub const fn digits(self) -> usize {
        match self {
            Self::Millis => 3,
            Self::Micros => 6,
            Self::Nanos => 9,
        }
    }

    /// Converts `value` to `target` units, truncating like an integer division; `None` if the
    /// result is out of range.
    #[must_use]
    pub fn convert(self, value: i64, target: Self) -> Option<i64> {
        let (from, to) = (self.per_second(), target.per_second());
        if to >= from { value.checked_mul(to / from) } else { Some(value / (from / to)) }
    }
}

/// The smallest field in a timestamp string. The string denotes an interval of the field's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// `2024`
    Year,
    /// `2024-01`
    Month,
    /// A day or a smaller field, in nanoseconds: a day, an hour, … or 10^-n seconds.
    Nanos(i64),
}

/// The parsed fields of a timestamp string, independent of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedTimestamp {
    /// Seconds since 1970 UTC, after the offset was applied.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanos: i64,
    /// The smallest field present.
    pub granularity: Granularity,
    /// Whether the string contains `Z` or an offset.
    pub zoned: bool,
}

impl ParsedTimestamp {
    /// Returns the start, truncated to `unit`; `None` if it is out of range.
    #[must_use]
    pub fn start(&self, unit: TimestampUnit) -> Option<i64> {
        self.seconds.checked_mul(unit.per_second())?.checked_add(self.nanos / unit.nanos())
    }

    /// Returns the end of the smallest field, at least one tick after the start.
    #[must_use]
    pub fn end(&self, unit: TimestampUnit) -> Option<i64> {
        let start = self.start(unit)?;
        let months = match self.granularity {
            Granularity::Year => 12,
            Granularity::Month => 1,
            Granularity::Nanos(nanos) => {
                return start.checked_add((nanos / unit.nanos()).max(1));
            }
        };
        // A year or month starts at midnight, because a string with an offset must contain a day.
        let micros = self.seconds.checked_mul(1_000_000)?;
        let end_seconds = add_months(micros, months).div_euclid(1_000_000);
        end_seconds.checked_mul(unit.per_second())
    }
}

/// Parses `yyyy[-MM[-dd[(T| )HH[:mm[:ss[.f{1,9}]]][Z|±HH[[:]mm]]][ ±HH[[:]mm]][ zone]]]`, where
/// zone is `UTC`, `GMT`, `Z` or a region name. No other characters may precede or follow.
#[must_use]
pub fn parse_fields(text: &str) -> Option<ParsedTimestamp> {
    let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
    let year = cursor.number(4)? as i32;
    let mut date = CivilDate { year, month: 1, day: 1 };
    let mut granularity = Granularity::Year;
    if cursor.eat(b'-') {
        date.month = cursor.number(2).filter(|month| (1..=12).contains(month))? as u8;
        granularity = Granularity::Month;
        if cursor.eat(b'-') {
            let last = i64::from(date.days_in_month());
            date.day = cursor.number(2).filter(|day| (1..=last).contains(day))? as u8;
            granularity = Granularity::Nanos(SECONDS_PER_DAY * NANOS_PER_SECOND);
        }
    }
    let midnight = date.to_days() * SECONDS_PER_DAY;
    let mut parsed = ParsedTimestamp { seconds: midnight, nanos: 0, granularity, zoned: false };
    let has_day = matches!(granularity, Granularity::Nanos(_));
    if has_day {
        let is_timed = cursor.eat(b'T') || cursor.space_before(|byte| byte.is_ascii_digit());
        if is_timed {
            let time = cursor.time()?;
            parsed.granularity = Granularity::Nanos(time.granularity_nanos);
            parsed.nanos = time.nanos;
            parsed.seconds += time.seconds;
        }
        // Drivers may write a space between time and offset, which PostgreSQL accepts. JDBC drivers
        // write a date in the same way, with the offset of its midnight.
        let is_spaced = cursor.space_before(|byte| matches!(byte, b'+' | b'-'));
        if (is_timed || is_spaced)
            && let Some(offset) = read_offset(cursor.bytes, &mut cursor.at)?
        {
            parsed.seconds -= offset;
            parsed.zoned = true;
        }
    }
    if has_day
        && !parsed.zoned
        && let Some(zone) = cursor.zone()
    {
        parsed.seconds = zone.to_utc(parsed.seconds, 1);
        parsed.zoned = true;
    }
    cursor.done().then_some(parsed)
}

/// Parses a timestamp string and returns its start in `unit`; `None` if it is not a timestamp.
#[must_use]
pub fn parse(text: &str, unit: TimestampUnit) -> Option<i64> {
    parse_fields(text)?.start(unit)
}

/// Parses a time of day without a date, `HH[:mm[:ss[.f]]]`, as (nanoseconds since midnight,
/// granularity in nanoseconds).
#[must_use]
pub fn parse_time_of_day(text: &str) -> Option<(i64, i64)> {
    let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
    let time = cursor.time()?;
    cursor.done().then_some((time.seconds * NANOS_PER_SECOND + time.nanos, time.granularity_nanos))
}

struct TimeOfDay {
    seconds: i64,
    nanos: i64,
    granularity_nanos: i64,
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn done(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    /// Parses exactly `width` digits.
    fn number(&mut self, width: usize) -> Option<i64> {
        let digits = self.bytes.get(self.at..self.at + width)?;
        let mut value = 0;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
        }
        self.at += width;
        Some(value)
    }

    fn time(&mut self) -> Option<TimeOfDay> {
        let mut seconds = self.number(2).filter(|&hour| hour < 24)? * 3_600;
        let mut nanos = 0;
        let mut granularity_nanos = 3_600 * NANOS_PER_SECOND;
        if self.eat(b':') {
            seconds += self.number(2).filter(|&minute| minute < 60)? * 60;
            granularity_nanos = 60 * NANOS_PER_SECOND;
            if self.eat(b':') {
                seconds += self.number(2).filter(|&second| second < 60)?;
                granularity_nanos = NANOS_PER_SECOND;
                if self.eat(b'.') {
                    (nanos, granularity_nanos) = self.fraction()?;
                }
            }
        }
        Some(TimeOfDay { seconds, nanos, granularity_nanos })
    }

    /// Parses one to nine digits, as (nanoseconds, value of the last digit).
    fn fraction(&mut self) -> Option<(i64, i64)> {
        let tail = self.bytes.get(self.at..)?;
        let width = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !(1..=9).contains(&width) {
            return None;
        }
        let step = 10_i64.pow(9 - width as u32);
        Some((self.number(width)? * step, step))
    }

    /// Skips a space that is followed by a matching byte.
    fn space_before(&mut self, is_next: impl Fn(u8) -> bool) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let found = matches!(rest, [b' ', next, ..] if is_next(*next));
        self.at += usize::from(found);
        found
    }

    /// Parses a space and a zone name up to the end.
    fn zone(&mut self) -> Option<Zone> {
        let [b' ', b'A'..=b'Z' | b'a'..=b'z', ..] = self.bytes.get(self.at..)? else { return None };
        let zone = Zone::of_time(std::str::from_utf8(&self.bytes[self.at + 1..]).ok()?)?;
        self.at = self.bytes.len();
        Some(zone)
    }
}

/// Appends `2024-01-31T12:00:00.000000Z`, with the unit's number of fractional digits.
pub fn write_iso(out: &mut Vec<u8>, value: i64, unit: TimestampUnit) {
    write_date_time(out, value, unit, b'T');
    out.push(b'Z');
}

/// Like [`write_iso`], but without a zone and with `separator` between date and time.
pub fn write_date_time(out: &mut Vec<u8>, value: i64, unit: TimestampUnit, separator: u8) {
    let date = CivilDate::from_days(value.div_euclid(unit.per_day()));
    let of_day = value.rem_euclid(unit.per_day());
    let (seconds, fraction) = (of_day / unit.per_second(), of_day % unit.per_second());
    write_year(out, date.year);
    // With a fixed template, the common case needs only a few stores and one copy.
    let mut text = *b"-00-00T00:00:00.000000000";
    let two = |text: &mut [u8], at: usize, number: i64| {
        text[at] = b'0' + (number / 10) as u8;
        text[at + 1] = b'0' + (number % 10) as u8;
    };
    two(&mut text, 1, i64::from(date.month));
    two(&mut text, 4, i64::from(date.day));
    text[6] = separator;
    two(&mut text, 7, seconds / 3_600);
    two(&mut text, 10, seconds / 60 % 60);
    two(&mut text, 13, seconds % 60);
    let mut rest = fraction;
    for slot in text[16..16 + unit.digits()].iter_mut().rev() {
        *slot = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&text[..16 + unit.digits()]);
}

/// Appends a year with at least four digits, with `-` before year 0.
pub fn write_year(out: &mut Vec<u8>, year: i32) {
    if (0..=9_999).contains(&year) {
        let digits = [year / 1_000, year / 100 % 10, year / 10 % 10, year % 10];
        out.extend(digits.map(|digit| b'0' + digit as u8));
    } else {
        out.extend_from_slice(format!("{year:05}").as_bytes());
    }
}

/// Returns the ISO string of a timestamp.
#[must_use]
pub fn iso_text(value: i64, unit: TimestampUnit) -> String {
    let mut out = Vec::with_capacity(32);
    write_iso(&mut out, value, unit);
    // The bytes are ASCII, so nothing is replaced.
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::TimestampUnit::{Micros, Millis, Nanos};
    use super::*;

    fn iso(text: &str) -> Option<String> {
        parse(text, Micros).map(|value| iso_text(value, Micros))
    }

    #[test]
    fn partial_timestamps_are_parsed() {
        for (text, expected) in [
            ("2024", "2024-01-01T00:00:00.000000Z"),
            ("2024-05", "2024-05-01T00:00:00.000000Z"),
            ("2024-05-17T13", "2024-05-17T13:00:00.000000Z"),
            ("2024-05-17 13:45:56", "2024-05-17T13:45:56.000000Z"),
            ("2024-05-17T13:45:56.1", "2024-05-17T13:45:56.100000Z"),
            ("2024-05-17T13:45:56.123456789Z", "2024-05-17T13:45:56.123456Z"),
            ("2024-05-17T13:45:56+02:00", "2024-05-17T11:45:56.000000Z"),
            ("2024-05-17T13:45:56-0530", "2024-05-17T19:15:56.000000Z"),
            ("2024-05-17T13:45:56+02", "2024-05-17T11:45:56.000000Z"),
            ("2024-05-17 13:45:56.5 +02:00", "2024-05-17T11:45:56.500000Z"),
            ("2024-05-17 13:45:56 -02", "2024-05-17T15:45:56.000000Z"),
            ("0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z"),
            ("2024-05-17 13:45:56 UTC", "2024-05-17T13:45:56.000000Z"),
            ("2024-05-17 13:45:56.5 utc", "2024-05-17T13:45:56.500000Z"),
            ("2024-05-17T13:45:56 Z", "2024-05-17T13:45:56.000000Z"),
            ("2024-05-17 13:45 GMT", "2024-05-17T13:45:00.000000Z"),
            ("2024-05-17 +00", "2024-05-17T00:00:00.000000Z"),
            ("2024-05-17 -05:30", "2024-05-17T05:30:00.000000Z"),
            ("2024-05-17 UTC", "2024-05-17T00:00:00.000000Z"),
            ("2024-05-17 13:45:56 Europe/Berlin", "2024-05-17T11:45:56.000000Z"),
            ("2024-01-17 america/new_york", "2024-01-17T05:00:00.000000Z"),
        ] {
            assert_eq!(iso(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn malformed_timestamps_are_rejected() {
        for text in [
            "",
            "x",
            "24",
            "2024-1-1",
            "2024-13",
            "2024-02-30",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T",
            "2024-01-01T00:00:00.",
            "2024-01-01Tx",
            "2024-01-01T00:00:00  +02:00",
            "2024-01-01T00:00:00 ",
            "2024-01-01T00:00:00Z UTC",
            "2024-01-01T00:00:00  UTC",
            "2024-01-01T00:00:00 UTC ",
            "2024-01-01 00:00:00 EST",
            "2024-01-01 00:00:00 UTC+1",
            "2024-01-01 00:00:00 Nowhere/City",
            "2024-01 UTC",
            "2024-01 +00",
            "2024-01-01+00",
            "2024-01-01 +",
            "2024-01-01 +00 UTC",
            "2024-01-01T UTC",
            "2024-01-01T00:00:00.1234567890",
            " 2024",
            "2024-01T10",
            "2024-01-01T10+2",
        ] {
            assert_eq!(parse(text, Micros), None, "{text}");
        }
    }

    #[test]
    fn a_partial_timestamp_spans_the_unit_of_its_last_field() {
        let length = |text: &str, unit| {
            let parsed = parse_fields(text).unwrap();
            parsed.end(unit).unwrap() - parsed.start(unit).unwrap()
        };
        assert_eq!(length("2024", Millis), 366 * 86_400_000);
        assert_eq!(length("2024-02", Micros), 29 * 86_400_000_000);
        assert_eq!(length("2024-02-01T10:30", Micros), 60_000_000);
        assert_eq!(length("2024-02-01T10:30:00.12", Micros), 10_000);
        assert_eq!(length("2024-02-01T10:30:00.123456789", Micros), 1);
        assert_eq!(length("2024-02-01T10:30:00.123456", Nanos), 1_000);
    }

    #[test]
    fn out_of_range_nanoseconds_are_rejected() {
        assert_eq!(parse("2400-01-01", Nanos), None);
        assert!(parse("2200-01-01", Nanos).is_some());
    }

    #[test]
    fn timestamps_round_trip_through_strings() {
        let mut value = -60_000_000_000_000_000_i64;
        while value < 200_000_000_000_000_000 {
            assert_eq!(parse(&iso_text(value, Micros), Micros), Some(value));
            value += 987_654_321_987_654;
        }
        assert_eq!(iso_text(-1, Millis), "1969-12-31T23:59:59.999Z");
        assert_eq!(iso_text(1, Nanos), "1970-01-01T00:00:00.000000001Z");
    }
}
