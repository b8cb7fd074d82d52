//! Parses the timestamps of one column: with a pattern, as a count of time units since 1970, or in
//! ISO format. A fast path for ISO format caches the date.

use tidemark_types::EngineResult;
use tidemark_types::calendar::CivilDate;
use tidemark_types::timestamp::{self, TimestampUnit};
use tidemark_types::timestamp_pattern::TimestampPattern;

const SECONDS_PER_DAY: i64 = 86_400;
const DATE_BYTES: usize = 10;
/// `2024-01-02T03:04:05`
const DATE_TIME_BYTES: usize = 19;

/// Timestamp format.
#[derive(Debug)]
enum Form {
    Iso,
    Pattern(TimestampPattern),
    /// A count of time units since 1970; each unit is this many nanoseconds.
    Epoch(i128),
}

/// Keywords accepted as patterns for counts since 1970, with the length of the counted unit in
/// nanoseconds.
const EPOCHS: [(&str, i128); 4] =
    [("epoch_s", 1_000_000_000), ("epoch_ms", 1_000_000), ("epoch_us", 1_000), ("epoch_ns", 1)];

/// Parses the timestamps of one column.
#[derive(Debug)]
pub(crate) struct TimestampReader {
    unit: TimestampUnit,
    form: Form,
    date: [u8; DATE_BYTES],
    midnight_seconds: i64,
}

impl TimestampReader {
    pub(crate) fn new(unit: TimestampUnit, pattern: Option<&str>) -> EngineResult<Self> {
        let epoch = |pattern: &str| EPOCHS.iter().find(|(name, _)| *name == pattern);
        let form = match pattern {
            None => Form::Iso,
            Some(pattern) => match epoch(pattern) {
                Some((_, nanos)) => Form::Epoch(*nanos),
                None => Form::Pattern(TimestampPattern::compile(pattern)?),
            },
        };
        Ok(Self { unit, form, date: *b"1970-01-01", midnight_seconds: 0 })
    }

    /// Parses a timestamp and converts it to the column's unit.
    #[inline]
    pub(crate) fn read(&mut self, text: &[u8]) -> Option<i64> {
        if matches!(self.form, Form::Iso)
            && let Some(timestamp) = self.read_full_iso(text)
        {
            return Some(timestamp);
        }
        let text = std::str::from_utf8(text).ok()?;
        match &self.form {
            Form::Pattern(pattern) => pattern.parse(text, self.unit),
            Form::Epoch(nanos) => read_epoch(text, *nanos, self.unit),
            Form::Iso => timestamp::parse(text, self.unit),
        }
    }

    /// Parses `2024-01-02T03:04:05[.f{1,9}][Z]`. Uses the general parser for all other formats.
    #[inline]
    fn read_full_iso(&mut self, text: &[u8]) -> Option<i64> {
        let (head, tail) = text.split_first_chunk::<DATE_TIME_BYTES>()?;
        if head[..DATE_BYTES] != self.date {
            self.cache_date(head)?;
        }
        if !matches!(head[10], b'T' | b' ') || head[13] != b':' || head[16] != b':' {
            return None;
        }
        let hour = two_digits(head[11], head[12])?;
        let minute = two_digits(head[14], head[15])?;
        let second = two_digits(head[17], head[18])?;
        if hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let nanos = read_fraction(tail.strip_suffix(b"Z").unwrap_or(tail))?;
        let of_day = i64::from(hour * 3_600 + minute * 60 + second);
        (self.midnight_seconds + of_day)
            .checked_mul(self.unit.per_second())?
            .checked_add(i64::from(nanos) / self.unit.nanos())
    }

    #[cold]
    fn cache_date(&mut self, head: &[u8; DATE_TIME_BYTES]) -> Option<()> {
        if head[4] != b'-' || head[7] != b'-' {
            return None;
        }
        let year = two_digits(head[0], head[1])? * 100 + two_digits(head[2], head[3])?;
        let month = two_digits(head[5], head[6])? as u8;
        let day = two_digits(head[8], head[9])? as u8;
        if !(1..=12).contains(&month) {
            return None;
        }
        let date = CivilDate { year: year as i32, month, day };
        if day < 1 || day > date.days_in_month() {
            return None;
        }
        self.midnight_seconds = date.to_days() * SECONDS_PER_DAY;
        self.date.copy_from_slice(&head[..DATE_BYTES]);
        Some(())
    }
}

/// Parses a count of time units since 1970, with or without a fraction. Rounds the result down to
/// the column's unit.
fn read_epoch(text: &str, nanos_each: i128, unit: TimestampUnit) -> Option<i64> {
    const MAX_DIGITS: usize = 19;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| {
        (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(integer) || !is_number(fraction) {
        return None;
    }
    let scale = 10_i128.pow(fraction.len() as u32);
    let part = fraction.parse::<i128>().ok()? * nanos_each / scale;
    let nanos = integer.parse::<i128>().ok()? * nanos_each + part;
    let nanos = if negative { -nanos } else { nanos };
    nanos.div_euclid(i128::from(unit.nanos())).try_into().ok()
}

#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// Parses `.123456` as nanoseconds; an empty string is 0.
#[inline]
fn read_fraction(text: &[u8]) -> Option<u32> {
    const SCALE: [u32; 10] =
        [0, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let Some((point, digits)) = text.split_first() else { return Some(0) };
    if *point != b'.' || digits.is_empty() || digits.len() > 9 {
        return None;
    }
    let mut value = 0_u32;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u32::from(digit);
    }
    Some(value * SCALE[digits.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timestamp_fast_path_matches_the_general_parser() {
        for unit in [TimestampUnit::Millis, TimestampUnit::Micros, TimestampUnit::Nanos] {
            let mut reader = TimestampReader::new(unit, None).unwrap();
            for text in [
                "2024-01-02T03:04:05.678901Z",
                "2024-01-02T03:04:05.678901234Z",
                "2024-01-02 23:59:59",
                "2024-02-29T00:00:00.1Z",
                "1969-12-31T23:59:59.999999Z",
                "2024-01-02",
                "2024-01-02T03:04:05.123+01:00",
                "2023-02-29T00:00:00Z",
                "2024-13-01T00:00:00Z",
                "2024-01-02T24:00:00Z",
                "2024-01-02T03:04:05.Z",
                "2024-01-02T03:04:05.1234567890Z",
                "9999-12-31T23:59:59.999999Z",
                "x",
                "",
            ] {
                assert_eq!(reader.read(text.as_bytes()), timestamp::parse(text, unit), "{text}");
            }
        }
    }

    #[test]
    fn unix_timestamps_are_parsed_in_four_units() {
        let read = |pattern, unit, text: &str| {
            TimestampReader::new(unit, Some(pattern)).unwrap().read(text.as_bytes())
        };
        let micros = TimestampUnit::Micros;
        for (pattern, text) in [
            ("epoch_s", "1767225600"),
            ("epoch_s", "1767225600.000000"),
            ("epoch_ms", "1767225600000"),
            ("epoch_us", "1767225600000000"),
            ("epoch_ns", "1767225600000000999"),
        ] {
            assert_eq!(read(pattern, micros, text), Some(1_767_225_600_000_000), "{text}");
        }
        assert_eq!(read("epoch_s", micros, "0.000001"), Some(1));
        assert_eq!(read("epoch_s", micros, "-1"), Some(-1_000_000));
        assert_eq!(read("epoch_ns", micros, "-1"), Some(-1));
        assert_eq!(read("epoch_ns", TimestampUnit::Nanos, "1767225600000000001").unwrap() % 10, 1);
        for text in ["", "-", "1.", ".5", "1e9", "+1", "2026-01-01", "9999999999999999999"] {
            assert_eq!(read("epoch_s", micros, text), None, "{text}");
        }
    }

    #[test]
    fn a_custom_pattern_replaces_the_iso_format() {
        let pattern = Some("dd/MM/yyyy HH:mm:ss");
        let mut reader = TimestampReader::new(TimestampUnit::Micros, pattern).unwrap();
        assert_eq!(reader.read(b"05/01/2024 10:11:12"), Some(1_704_449_472_000_000));
        assert_eq!(reader.read(b"2024-01-05T10:11:12.000000Z"), None);
    }
}
