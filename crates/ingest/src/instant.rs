//! Timestamps of one column: a pattern, or ISO text with a short path that remembers the day.

use tidemark_types::EngineResult;
use tidemark_types::calendar::CivilDate;
use tidemark_types::timestamp::{self, TimestampUnit};
use tidemark_types::timestamp_pattern::TimestampPattern;

const SECONDS_PER_DAY: i64 = 86_400;
const DATE_BYTES: usize = 10;
/// `2024-01-02T03:04:05`
const DATE_TIME_BYTES: usize = 19;

/// Reads the instants of one column.
#[derive(Debug)]
pub(crate) struct InstantReader {
    unit: TimestampUnit,
    pattern: Option<TimestampPattern>,
    date: [u8; DATE_BYTES],
    midnight_seconds: i64,
}

impl InstantReader {
    pub(crate) fn new(unit: TimestampUnit, pattern: Option<&str>) -> EngineResult<Self> {
        let pattern = pattern.map(TimestampPattern::compile).transpose()?;
        Ok(Self { unit, pattern, date: *b"1970-01-01", midnight_seconds: 0 })
    }

    /// The instant in the column's unit.
    #[inline]
    pub(crate) fn read(&mut self, text: &[u8]) -> Option<i64> {
        if self.pattern.is_none()
            && let Some(instant) = self.read_full_iso(text)
        {
            return Some(instant);
        }
        let text = std::str::from_utf8(text).ok()?;
        match &self.pattern {
            Some(pattern) => pattern.parse(text, self.unit),
            None => timestamp::parse(text, self.unit),
        }
    }

    /// `2024-01-02T03:04:05[.f{1,9}][Z]`; everything else is left to the general reader.
    #[inline]
    fn read_full_iso(&mut self, text: &[u8]) -> Option<i64> {
        let (head, tail) = text.split_first_chunk::<DATE_TIME_BYTES>()?;
        if head[..DATE_BYTES] != self.date {
            self.keep_date(head)?;
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
    fn keep_date(&mut self, head: &[u8; DATE_TIME_BYTES]) -> Option<()> {
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

#[inline]
fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

/// Nanoseconds of `.123456`; an empty text is 0.
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
    fn the_short_path_agrees_with_the_general_reader() {
        for unit in [TimestampUnit::Millis, TimestampUnit::Micros, TimestampUnit::Nanos] {
            let mut reader = InstantReader::new(unit, None).unwrap();
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
    fn patterns_replace_iso() {
        let pattern = Some("dd/MM/yyyy HH:mm:ss");
        let mut reader = InstantReader::new(TimestampUnit::Micros, pattern).unwrap();
        assert_eq!(reader.read(b"05/01/2024 10:11:12"), Some(1_704_449_472_000_000));
        assert_eq!(reader.read(b"2024-01-05T10:11:12.000000Z"), None);
    }
}
