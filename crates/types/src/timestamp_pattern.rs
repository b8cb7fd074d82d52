//! Timestamp patterns such as `yyyy-MM-dd HH:mm:ss.SSSUUU`, compiled once.
//!
//! They are used for parsing (CSV columns, `to_timestamp`) and formatting (`to_str`). The letters
//! have the same meaning as in `QuestDB`. All other characters, and text between quotes, match
//! themselves.

use crate::calendar::CivilDate;
use crate::error::{EngineError, EngineResult, ErrorCode};
use crate::pattern_element::{Field, PatternElement, Width};
use crate::postgres_pattern;
use crate::timestamp::TimestampUnit;
use crate::zone::Zone;

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimestampPattern {
    elements: Vec<PatternElement>,
    /// Whether a string may go on after the last element.
    may_continue: bool,
}

use Width::{Exactly, Greedy};

const MILLI: i64 = 1_000_000;
const MICRO: i64 = 1_000;

/// Maximum length of a pattern in bytes. No date format needs more, and a compiled pattern needs 32
/// bytes for each byte.
pub const MAX_PATTERN_BYTES: usize = 1_000;

/// Maximum length of a zone name or offset in bytes.
const MAX_ZONE_LENGTH: usize = 64;

/// Longer tokens precede shorter ones, so the first match is the longest.
const TOKENS: &[(&str, Field)] = &[
    ("yyyy", Field::Year(Exactly(4))),
    ("yyy", Field::Year(Exactly(3))),
    ("yy", Field::Year(Exactly(2))),
    ("y", Field::Year(Greedy)),
    ("YYYY", Field::IsoYear),
    ("MMMM", Field::MonthLong),
    ("MMM", Field::MonthShort),
    ("MM", Field::Month(Exactly(2))),
    ("M", Field::Month(Greedy)),
    ("ww", Field::Week(Exactly(2))),
    ("w", Field::Week(Greedy)),
    ("dd", Field::Day(Exactly(2))),
    ("d", Field::Day(Greedy)),
    ("D", Field::DayOfYear),
    ("F", Field::WeekOfMonth),
    ("EE", Field::DayLong),
    ("E", Field::DayShort),
    ("u", Field::DayNumber),
    ("a", Field::AmPm),
    ("G", Field::Era),
    ("HH", Field::Hour24(Exactly(2))),
    ("H", Field::Hour24(Greedy)),
    ("kk", Field::Hour24From1(Exactly(2))),
    ("k", Field::Hour24From1(Greedy)),
    ("KK", Field::Hour12(Exactly(2))),
    ("K", Field::Hour12(Greedy)),
    ("hh", Field::Hour12From1(Exactly(2))),
    ("h", Field::Hour12From1(Greedy)),
    ("mm", Field::Minute(Exactly(2))),
    ("m", Field::Minute(Greedy)),
    ("ss", Field::Second(Exactly(2))),
    ("s", Field::Second(Greedy)),
    ("SSS", Field::Thousandth { scale: MILLI, fixed: true }),
    ("S", Field::Thousandth { scale: MILLI, fixed: false }),
    ("UUU", Field::Thousandth { scale: MICRO, fixed: true }),
    ("U+", Field::Fraction { digits: 6 }),
    ("U", Field::Thousandth { scale: MICRO, fixed: false }),
    ("NNN", Field::Thousandth { scale: 1, fixed: true }),
    ("N+", Field::Fraction { digits: 9 }),
    ("N", Field::Thousandth { scale: 1, fixed: false }),
    ("zzz", Field::ZoneName),
    ("zz", Field::ZoneName),
    ("z", Field::ZoneName),
    ("Z", Field::Offset),
    ("xxx", Field::Offset),
    ("xx", Field::Offset),
    ("x", Field::Offset),
];

/// English month names, January first.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// English weekday names, Monday first.
pub const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

impl TimestampPattern {
    /// Compiles a pattern of up to [`MAX_PATTERN_BYTES`]. Letters without a meaning match
    /// themselves. A longer pattern is an [`ErrorCode::InvalidValue`].
    pub fn compile(pattern: &str) -> EngineResult<Self> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                format!(
                    "the timestamp pattern is {} bytes long: at most {MAX_PATTERN_BYTES} bytes are \
                     allowed",
                    pattern.len()
                ),
            ));
        }
        let mut elements = Vec::new();
        let mut literal = String::new();
        let mut rest = pattern;
        let mut quoted = false;
        while let Some(first) = rest.chars().next() {
            let token = TOKENS.iter().find(|(text, _)| !quoted && rest.starts_with(text));
            if let Some((text, field)) = token {
                if !literal.is_empty() {
                    elements.push(PatternElement::Literal(std::mem::take(&mut literal)));
                }
                elements.push(PatternElement::Field(*field));
                rest = &rest[text.len()..];
                continue;
            }
            if first == '\'' {
                quoted = !quoted;
                if !literal.is_empty() {
                    elements.push(PatternElement::Literal(std::mem::take(&mut literal)));
                }
                elements.push(PatternElement::Quote);
            } else {
                literal.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
        if !literal.is_empty() {
            elements.push(PatternElement::Literal(literal));
        }
        Ok(Self { elements, may_continue: false })
    }

    /// Compiles a pattern for parsing. In addition to the patterns of [`Self::compile`], it accepts
    /// `PostgreSQL`'s, which are recognised by elements such as `HH24`, `MI` and `DD`. As in
    /// `PostgreSQL`, separators then match any separators, and a string may continue after the last
    /// element. An element that cannot be parsed is an [`ErrorCode::InvalidValue`].
    pub fn compile_parser(pattern: &str) -> EngineResult<Self> {
        if pattern.len() > MAX_PATTERN_BYTES || !postgres_pattern::is_postgres(pattern) {
            return Self::compile(pattern);
        }
        Ok(Self { elements: postgres_pattern::compile(pattern)?, may_continue: true })
    }

    /// Parses a complete string; `None` when it does not match or is not a valid timestamp.
    #[must_use]
    pub fn parse(&self, text: &str, unit: TimestampUnit) -> Option<i64> {
        let mut fields = Fields::default();
        let mut rest = if self.may_continue { text.trim_start() } else { text };
        for (index, element) in self.elements.iter().enumerate() {
            rest = match element {
                PatternElement::Literal(literal) => rest.strip_prefix(literal.as_str())?,
                PatternElement::Quote => rest,
                PatternElement::Separators => {
                    let next = self.elements.get(index + 1);
                    // The sign of an offset is no separator.
                    let signed = next == Some(&PatternElement::Field(Field::Offset));
                    rest.trim_start_matches(|c: char| {
                        !(c.is_alphanumeric() || signed && matches!(c, '+' | '-'))
                    })
                }
                PatternElement::Field(field) => fields.read(*field, rest)?,
            };
        }
        if self.may_continue || rest.is_empty() { fields.to_timestamp(unit) } else { None }
    }

    /// Appends the formatted timestamp.
    pub fn format(&self, out: &mut Vec<u8>, value: i64, unit: TimestampUnit) {
        let moment = TimestampFields::new(value, unit);
        for element in &self.elements {
            match element {
                PatternElement::Literal(literal) => out.extend_from_slice(literal.as_bytes()),
                PatternElement::Quote => out.push(b'\''),
                PatternElement::Separators => out.push(b' '),
                PatternElement::Field(field) => moment.write(*field, out),
            }
        }
    }
}

/// Fields parsed so far.
#[derive(Default)]
struct Fields {
    year: Option<i32>,
    iso_year: Option<i32>,
    before_christ: bool,
    month: Option<i64>,
    week: Option<i64>,
    day_of_year: Option<i64>,
    day: Option<i64>,
    weekday: Option<i64>,
    afternoon: Option<bool>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: i64,
    zone: Option<Zone>,
}

impl Fields {
    /// Parses one field at the start of `text` and returns the remainder.
    fn read<'a>(&mut self, field: Field, text: &'a str) -> Option<&'a str> {
        match field {
            Field::Era => {
                let (index, rest) = name(text, &["AD", "BC"], 2)?;
                self.before_christ = index == 1;
                Some(rest)
            }
            Field::Year(width) => {
                let (year, digits, rest) = number(text, width, 9)?;
                let short = digits == 2;
                self.year = Some(if short { 2_000 + year } else { year } as i32);
                Some(rest)
            }
            Field::ShortYear => {
                let (year, _, rest) = number(text, Exactly(2), 2)?;
                self.year = Some(if year < 70 { 2_000 + year } else { 1_900 + year } as i32);
                Some(rest)
            }
            Field::IsoYear => {
                let (year, _, rest) = number(text, Exactly(4), 4)?;
                self.iso_year = Some(year as i32);
                Some(rest)
            }
            Field::MonthShort | Field::MonthLong => {
                let (index, rest) = name(text, &MONTHS, 12).or_else(|| name(text, &MONTHS, 3))?;
                self.month = Some(index as i64 + 1);
                Some(rest)
            }
            Field::DayShort | Field::DayLong => {
                let (index, rest) = name(text, &DAYS, 9).or_else(|| name(text, &DAYS, 3))?;
                self.weekday = Some(index as i64 + 1);
                Some(rest)
            }
            Field::AmPm => {
                let (index, rest) = name(text, &["AM", "PM"], 2)?;
                self.afternoon = Some(index == 1);
                Some(rest)
            }
            Field::Fraction { digits } => {
                let (value, found, rest) = number(text, Greedy, digits)?;
                self.nanos += value * 10_i64.pow(9 - found as u32);
                Some(rest)
            }
            Field::Thousandth { scale, fixed } => {
                let (value, found, rest) =
                    number(text, if fixed { Exactly(3) } else { Greedy }, 3)?;
                self.nanos += value * 10_i64.pow(3 - found as u32) * scale;
                Some(rest)
            }
            Field::ZoneName | Field::Offset => {
                let (zone, rest) = zone(text)?;
                self.zone = Some(zone);
                Some(rest)
            }
            _ => self.read_number(field, text),
        }
    }

    fn read_number<'a>(&mut self, field: Field, text: &'a str) -> Option<&'a str> {
        let (width, max, range) = match field {
            Field::Month(width) => (width, 2, 1..=12),
            Field::Week(width) => (width, 2, 1..=53),
            Field::DayOfYear => (Greedy, 3, 1..=366),
            Field::Day(width) => (width, 2, 1..=31),
            Field::WeekOfMonth => (Greedy, 1, 1..=5),
            Field::DayNumber => (Greedy, 1, 1..=7),
            Field::Hour24(width) => (width, 2, 0..=23),
            Field::Hour24From1(width) => (width, 2, 1..=24),
            Field::Hour12(width) => (width, 2, 0..=11),
            Field::Hour12From1(width) => (width, 2, 1..=12),
            Field::Minute(width) | Field::Second(width) => (width, 2, 0..=59),
            _ => return None,
        };
        let (value, _, rest) = number(text, width, max)?;
        if !range.contains(&value) {
            return None;
        }
        match field {
            Field::Month(_) => self.month = Some(value),
            Field::Week(_) => self.week = Some(value),
            Field::DayOfYear => self.day_of_year = Some(value),
            Field::Day(_) => self.day = Some(value),
            Field::DayNumber => self.weekday = Some(value),
            Field::Hour24(_) | Field::Hour12(_) => self.hour = value,
            Field::Hour24From1(_) => self.hour = value % 24,
            Field::Hour12From1(_) => {
                // Without am/pm, the hour is before noon.
                self.hour = value % 12;
            }
            Field::Minute(_) => self.minute = value,
            Field::Second(_) => self.second = value,
            // The week of the month is determined by the day.
            _ => {}
        }
        Some(rest)
    }

    fn to_timestamp(&self, unit: TimestampUnit) -> Option<i64> {
        let hour = match self.afternoon {
            Some(true) if self.hour < 12 => self.hour + 12,
            _ => self.hour,
        };
        let of_day = hour * 3_600 + self.minute * 60 + self.second;
        let local = self.days()? * 86_400 + of_day;
        let seconds = local - self.zone.map_or(0, |zone| zone.offset_at_local(local));
        seconds.checked_mul(unit.per_second())?.checked_add(self.nanos / unit.nanos())
    }

    fn days(&self) -> Option<i64> {
        let year = self.year.map_or(1970, |year| if self.before_christ { 1 - year } else { year });
        if let Some(week) = self.week {
            let iso_year = self.iso_year.unwrap_or(year);
            let fourth = CivilDate { year: iso_year, month: 1, day: 4 };
            let monday = fourth.to_days() + 1 - i64::from(fourth.iso_weekday());
            let days = monday + (week - 1) * 7 + self.weekday.map_or(0, |weekday| weekday - 1);
            let exists = CivilDate::from_days(monday + (week - 1) * 7).iso_week().0 == iso_year;
            return exists.then_some(days);
        }
        let year = self.iso_year.filter(|_| self.year.is_none()).unwrap_or(year);
        if let (Some(day), None) = (self.day_of_year, self.month) {
            let days = CivilDate { year, month: 1, day: 1 }.to_days() + day - 1;
            return (CivilDate::from_days(days).year == year).then_some(days);
        }
        let month = self.month.unwrap_or(1) as u8;
        let date = CivilDate { year, month, day: self.day.unwrap_or(1) as u8 };
        (date.day <= date.days_in_month()).then(|| date.to_days())
    }
}

/// Parses digits and returns the value, the number of digits, and the remainder.
fn number(text: &str, width: Width, max: usize) -> Option<(i64, usize, &str)> {
    let required = match width {
        Exactly(count) => count,
        Greedy => max,
    };
    // Examines no more digits than the field needs, so parsing adjacent fields takes linear time.
    let present = text.bytes().take(required).take_while(u8::is_ascii_digit).count();
    let used = match width {
        Exactly(count) if present >= count => count,
        Greedy if present > 0 => present,
        _ => return None,
    };
    let value = text[..used].bytes().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some((value, used, &text[used..]))
}

/// Parses one of `names`, each truncated to `length` letters, ignoring case.
fn name<'a>(text: &'a str, names: &[&str], length: usize) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = name.get(..length).unwrap_or(name);
        let head = text.get(..name.len())?;
        head.eq_ignore_ascii_case(name).then(|| (index, &text[name.len()..]))
    })
}

/// Parses the longest zone at the start of `text`.
fn zone(text: &str) -> Option<(Zone, &str)> {
    let in_zone = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '+' | '-' | ':');
    let max = text.chars().take(MAX_ZONE_LENGTH).take_while(in_zone).count();
    (1..=max)
        .rev()
        .find_map(|length| Zone::parse(&text[..length]).map(|zone| (zone, &text[length..])))
}

/// The fields of a timestamp, for formatting.
struct TimestampFields {
    date: CivilDate,
    seconds: i64,
    nanos: i64,
    /// Maximum number of fractional digits.
    digits: usize,
}

impl TimestampFields {
    fn new(value: i64, unit: TimestampUnit) -> Self {
        let of_day = value.rem_euclid(unit.per_day());
        Self {
            date: CivilDate::from_days(value.div_euclid(unit.per_day())),
            seconds: of_day / unit.per_second(),
            nanos: of_day % unit.per_second() * unit.nanos(),
            digits: unit.digits().max(6),
        }
    }

    fn write(&self, field: Field, out: &mut Vec<u8>) {
        let date = self.date;
        let hour = self.seconds / 3_600;
        let year = if date.year < 1 { 1 - date.year } else { date.year };
        let weekday = usize::from(date.iso_weekday()) - 1;
        let month = usize::from(date.month) - 1;
        match field {
            Field::Era => out.extend_from_slice(if date.year < 1 { b"BC" } else { b"AD" }),
            Field::Year(Exactly(2)) | Field::ShortYear => {
                digits(out, i64::from(year % 100), Exactly(2));
            }
            Field::Year(Exactly(3)) => digits(out, i64::from(year % 1_000), Exactly(3)),
            Field::Year(width) => digits(out, i64::from(year), width),
            Field::IsoYear => digits(out, i64::from(date.iso_week().0), Exactly(4)),
            Field::Month(width) => digits(out, i64::from(date.month), width),
            Field::MonthShort => out.extend_from_slice(&MONTHS[month].as_bytes()[..3]),
            Field::MonthLong => out.extend_from_slice(MONTHS[month].as_bytes()),
            // As in QuestDB, these weeks are counted from the start of the year, and the first 6
            // days are week 1.
            Field::Week(Greedy) => digits(out, i64::from(date.day_of_year() / 7 + 1), Greedy),
            Field::Week(width) => digits(out, i64::from(date.iso_week().1), width),
            Field::DayOfYear => digits(out, i64::from(date.day_of_year()), Greedy),
            Field::Day(width) => digits(out, i64::from(date.day), width),
            Field::WeekOfMonth => digits(out, i64::from((date.day - 1) / 7 + 1), Greedy),
            Field::DayShort => out.extend_from_slice(&DAYS[weekday].as_bytes()[..3]),
            Field::DayLong => out.extend_from_slice(DAYS[weekday].as_bytes()),
            Field::DayNumber => digits(out, weekday as i64 + 1, Greedy),
            Field::AmPm => out.extend_from_slice(if hour < 12 { b"AM" } else { b"PM" }),
            Field::Hour24(width) => digits(out, hour, width),
            Field::Hour24From1(width) => digits(out, (hour + 23) % 24 + 1, width),
            Field::Hour12(width) => digits(out, hour % 12, width),
            Field::Hour12From1(width) => digits(out, (hour + 11) % 12 + 1, width),
            Field::Minute(width) => digits(out, self.seconds / 60 % 60, width),
            Field::Second(width) => digits(out, self.seconds % 60, width),
            Field::Thousandth { scale, fixed } => {
                let width = if fixed { Exactly(3) } else { Greedy };
                digits(out, self.nanos / scale % 1_000, width);
            }
            Field::Fraction { digits: count } => {
                let count = count.min(self.digits);
                let step = 10_i64.pow(9 - count as u32);
                digits(out, self.nanos / step, Exactly(count));
            }
            // All values are in UTC.
            Field::ZoneName | Field::Offset => out.push(b'Z'),
        }
    }
}

fn digits(out: &mut Vec<u8>, value: i64, width: Width) {
    let text = value.to_string();
    if let Exactly(width) = width {
        out.extend(std::iter::repeat_n(b'0', width.saturating_sub(text.len())));
    }
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::{iso_text, parse};

    fn read(text: &str, pattern: &str) -> Option<String> {
        TimestampPattern::compile(pattern)
            .unwrap()
            .parse(text, TimestampUnit::Micros)
            .map(|value| iso_text(value, TimestampUnit::Micros))
    }

    fn write(iso: &str, pattern: &str) -> String {
        let mut out = Vec::new();
        let value = parse(iso, TimestampUnit::Micros).unwrap();
        TimestampPattern::compile(pattern).unwrap().format(&mut out, value, TimestampUnit::Micros);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn pattern_length_is_limited() {
        let many = MAX_PATTERN_BYTES;
        let refused = TimestampPattern::compile(&"y".repeat(many + 1)).unwrap_err();
        assert_eq!(
            refused.message,
            "the timestamp pattern is 1001 bytes long: at most 1000 bytes are allowed"
        );
        let digits = TimestampPattern::compile(&"y".repeat(many)).unwrap();
        let new_year_9999 = 253_370_764_800_000_000;
        let value = digits.parse(&"9".repeat(many), TimestampUnit::Micros);
        assert_eq!(value, Some(new_year_9999), "the last year field takes precedence");
    }

    #[test]
    fn timestamps_are_parsed_by_pattern() {
        for (text, pattern, expected) in [
            ("2024-05-17 13:45:56.123", "yyyy-MM-dd HH:mm:ss.SSS", "2024-05-17T13:45:56.123000Z"),
            (
                "2024-05-17 13:45:56.123456",
                "yyyy-MM-dd HH:mm:ss.SSSUUU",
                "2024-05-17T13:45:56.123456Z",
            ),
            ("2024-05-17 13:45:56.5", "yyyy-MM-dd HH:mm:ss.S", "2024-05-17T13:45:56.500000Z"),
            ("2024-05-17T01:00:00.12", "yyyy-MM-ddTHH:mm:ss.U+", "2024-05-17T01:00:00.120000Z"),
            ("May 17 24", "MMM dd yy", "2024-05-17T00:00:00.000000Z"),
            ("17 May 2024", "dd MMM yyyy", "2024-05-17T00:00:00.000000Z"),
            ("2024-05-17 13:45 +02:00", "yyyy-MM-dd HH:mm Z", "2024-05-17T11:45:00.000000Z"),
            ("2024-05-17 13:45 CET", "yyyy-MM-dd HH:mm z", "2024-05-17T11:45:00.000000Z"),
            ("17/5/2024 1:05 PM", "d/M/y h:m a", "2024-05-17T13:05:00.000000Z"),
            ("12 AM", "h a", "1970-01-01T00:00:00.000000Z"),
            ("12 PM", "h a", "1970-01-01T12:00:00.000000Z"),
            ("2024-W20", "YYYY-'W'ww", "2024-05-13T00:00:00.000000Z"),
        ] {
            assert_eq!(read(text, pattern).as_deref(), Some(expected), "{text} {pattern}");
        }
    }

    #[test]
    fn strings_that_do_not_match_the_pattern_are_rejected() {
        for (text, pattern) in [
            ("Friday 17 May 2024", "EEEE dd MMMM yyyy"),
            ("2024-02-30", "yyyy-MM-dd"),
            ("2024-13-01", "yyyy-MM-dd"),
            ("2024-01-01x", "yyyy-MM-dd"),
            ("2024-01", "yyyy-MM-dd"),
            ("bad", "yyyy"),
        ] {
            assert_eq!(read(text, pattern), None, "{text} {pattern}");
        }
    }

    /// Expected values are `PostgreSQL`'s output.
    #[test]
    fn patterns_of_postgresql_are_parsed() {
        for (text, pattern, expected) in [
            (
                "2026-01-01 00:00:00.000000",
                "YYYY-MM-DD HH24:MI:SS.US",
                "2026-01-01T00:00:00.000000Z",
            ),
            ("2026-01-02", "YYYY-MM-DD", "2026-01-02T00:00:00.000000Z"),
            ("2026-1-2 3:4", "yyyy-mm-dd hh24:mi", "2026-01-02T03:04:00.000000Z"),
            ("20260102030405", "YYYYMMDDHH24MISS", "2026-01-02T03:04:05.000000Z"),
            ("05 Dec 2000", "DD Mon YYYY", "2000-12-05T00:00:00.000000Z"),
            ("05 December 2000", "DD Month YYYY", "2000-12-05T00:00:00.000000Z"),
            ("2000/JUN", "YYYY-MON", "2000-06-01T00:00:00.000000Z"),
            ("01:30 PM", "HH12:MI AM", "1970-01-01T13:30:00.000000Z"),
            ("12.3", "MI.MS", "1970-01-01T00:12:00.300000Z"),
            ("2026-01-02 10:11:12", "YYYY-MM-DD", "2026-01-02T00:00:00.000000Z"),
            ("2026-01-02T10:11", "YYYY-MM-DDTHH24:MI", "2026-01-02T10:11:00.000000Z"),
            ("2026-01-02T10:11", "YYYY-MM-DD\"T\"HH24:MI", "2026-01-02T10:11:00.000000Z"),
            ("99-03-04", "YY-MM-DD", "1999-03-04T00:00:00.000000Z"),
            ("2026 033", "YYYY DDD", "2026-02-02T00:00:00.000000Z"),
            ("2026-01-02 10:00 +02", "YYYY-MM-DD HH24:MI TZH", "2026-01-02T08:00:00.000000Z"),
        ] {
            let pattern = TimestampPattern::compile_parser(pattern).unwrap();
            let value = pattern.parse(text, TimestampUnit::Micros);
            let shown = value.map(|value| iso_text(value, TimestampUnit::Micros));
            assert_eq!(shown.as_deref(), Some(expected), "{text}");
        }
        for (pattern, element) in [("YYYY-MM-DD Q", "Q"), ("DD J", "J"), ("DD x MM", "x")] {
            let refused = TimestampPattern::compile_parser(pattern).unwrap_err();
            let expected = format!("pattern element '{element}' cannot be used to parse a date");
            assert_eq!(refused.message, expected);
        }
        for pattern in ["yyyy-MM-dd", "yyyy-MM-ddTHH:mm:ss.SSSUUUZ", "dd MMM yyyy 'MI'", "YYYY-MM"]
        {
            let same = TimestampPattern::compile(pattern);
            assert_eq!(TimestampPattern::compile_parser(pattern), same, "{pattern}");
        }
    }

    #[test]
    fn timestamps_are_formatted_by_pattern() {
        for (iso, pattern, expected) in [
            (
                "2024-05-07T03:04:05.678912Z",
                "yyyy-MM-dd HH:mm:ss.SSSUUU",
                "2024-05-07 03:04:05.678912",
            ),
            ("2024-05-07T13:04:05Z", "dd/MM/yy hh:mm a", "07/05/24 01:04 PM"),
            ("2024-05-07T13:04:05Z", "E EE EEEE", "Tue Tuesday TuesdayTuesday"),
            ("2024-05-07T00:04:05Z", "k K h MMM MMMM", "24 0 12 May May"),
            ("2024-03-31T13:04:05Z", "w ww D u YYYY yyy", "14 13 91 7 2024 024"),
            ("2021-01-03T00:00:00Z", "w ww D u YYYY yyy", "1 53 3 7 2020 021"),
            ("2019-12-31T12:00:00Z", "w ww D u YYYY yyy", "53 01 365 2 2020 019"),
            ("2020-01-06T00:00:00Z", "w ww", "1 02"),
            ("2020-01-07T00:00:00Z", "w ww", "2 02"),
        ] {
            assert_eq!(write(iso, pattern), expected, "{pattern}");
        }
    }
}
