//! Writes numbers and timestamps as text directly into the output buffer.
//!
//! The output equals `tidemark_types::number_text` and `::timestamp`. The functions run millions of
//! times per second, so each has a fast path for the most common data.

use tidemark_types::calendar::CivilDate;
use tidemark_types::number_text;

const TWO_DIGITS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";

/// Writes the two decimal digits of `value` (0 to 99) at `at`.
#[inline]
fn put_two(buffer: &mut [u8], at: usize, value: u32) {
    let index = value as usize % 100 * 2;
    buffer[at..at + 2].copy_from_slice(&TWO_DIGITS[index..index + 2]);
}

#[inline]
pub(crate) fn push_integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a finite double in Java's notation: plain from 1e-3 to below 1e7, otherwise `1.5E10`.
#[inline]
pub(crate) fn push_double(out: &mut Vec<u8>, value: f64) {
    if !push_short_decimal(out, value) {
        number_text::write_f64(out, value);
    }
}

/// Writes a finite float in Java's notation.
#[inline]
pub(crate) fn push_float(out: &mut Vec<u8>, value: f32) {
    number_text::write_f32(out, value);
}

/// Writes values with up to eight decimal places without searching for the shortest representation.
/// If `n / 1e8 == value` and `n` is below 1e15, then `n` has at most 15 digits. A decimal with at
/// most 15 digits is the only shortest text of its double.
#[inline]
fn push_short_decimal(out: &mut Vec<u8>, value: f64) -> bool {
    let magnitude = value.abs();
    if !(1e-3..1e7).contains(&magnitude) {
        return false;
    }
    let scaled = (magnitude * 1e8).round();
    if scaled / 1e8 != magnitude {
        return false;
    }
    let scaled = scaled as u64;
    let (integer, fraction) = ((scaled / 100_000_000) as u32, (scaled % 100_000_000) as u32);
    if value < 0.0 {
        out.push(b'-');
    }
    push_integer(out, integer);
    let mut text = *b".00000000";
    if fraction == 0 {
        out.extend_from_slice(&text[..2]);
        return true;
    }
    put_two(&mut text, 1, fraction / 1_000_000);
    put_two(&mut text, 3, fraction / 10_000 % 100);
    put_two(&mut text, 5, fraction / 100 % 100);
    put_two(&mut text, 7, fraction % 100);
    let zeros = text.iter().rev().take_while(|digit| **digit == b'0').count();
    out.extend_from_slice(&text[..text.len() - zeros]);
    true
}

/// Timestamp format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampStyle {
    /// `2024-01-02T03:04:05.678901Z`
    Iso,
    /// `2024-01-02 03:04:05.678901`; six digits even for nanoseconds, because drivers fail if there
    /// are more.
    Postgres,
    /// `2024-01-02 03:04:05.678901234`
    PostgresNanos,
}

/// Writes timestamps, and caches the text of the last day, because adjacent rows mostly share it.
#[derive(Debug, Clone)]
pub(crate) struct TimestampWriter {
    style: TimestampStyle,
    day: i64,
    prefix: Vec<u8>,
}

const SECONDS_PER_DAY: i64 = 86_400;

impl TimestampWriter {
    pub(crate) fn new(style: TimestampStyle) -> Self {
        let mut writer = Self { style, day: 0, prefix: Vec::with_capacity(16) };
        writer.cache_day(0);
        writer
    }

    /// Writes milliseconds since 1970 with three digits.
    #[inline]
    pub(crate) fn push_millis(&mut self, out: &mut Vec<u8>, millis: i64) {
        let fraction = millis.rem_euclid(1_000) as u32;
        let mut text = *b".000";
        put_two(&mut text, 1, fraction / 10);
        text[3] = b'0' + (fraction % 10) as u8;
        self.push(out, millis.div_euclid(1_000), &text);
    }

    /// Writes microseconds since 1970 with six digits.
    #[inline]
    pub(crate) fn push_micros(&mut self, out: &mut Vec<u8>, micros: i64) {
        let fraction = micros.rem_euclid(1_000_000) as u32;
        let mut text = *b".000000";
        put_two(&mut text, 1, fraction / 10_000);
        put_two(&mut text, 3, fraction / 100 % 100);
        put_two(&mut text, 5, fraction % 100);
        self.push(out, micros.div_euclid(1_000_000), &text);
    }

    /// Writes nanoseconds since 1970 with nine digits, or six in Postgres style.
    #[inline]
    pub(crate) fn push_nanos(&mut self, out: &mut Vec<u8>, nanos: i64) {
        if self.style == TimestampStyle::Postgres {
            return self.push_micros(out, nanos.div_euclid(1_000));
        }
        let fraction = nanos.rem_euclid(1_000_000_000) as u32;
        let mut text = *b".000000000";
        put_two(&mut text, 1, fraction / 10_000_000);
        put_two(&mut text, 3, fraction / 100_000 % 100);
        put_two(&mut text, 5, fraction / 1_000 % 100);
        put_two(&mut text, 7, fraction / 10 % 100);
        text[9] = b'0' + (fraction % 10) as u8;
        self.push(out, nanos.div_euclid(1_000_000_000), &text);
    }

    #[inline]
    fn push(&mut self, out: &mut Vec<u8>, seconds: i64, fraction: &[u8]) {
        let day = seconds.div_euclid(SECONDS_PER_DAY);
        if day != self.day {
            self.cache_day(day);
        }
        out.extend_from_slice(&self.prefix);
        let second = seconds.rem_euclid(SECONDS_PER_DAY) as u32;
        let mut text = *b"00:00:00";
        put_two(&mut text, 0, second / 3_600);
        put_two(&mut text, 3, second / 60 % 60);
        put_two(&mut text, 6, second % 60);
        out.extend_from_slice(&text);
        out.extend_from_slice(fraction);
        if self.style == TimestampStyle::Iso {
            out.push(b'Z');
        }
    }

    #[cold]
    fn cache_day(&mut self, day: i64) {
        let date = CivilDate::from_days(day);
        self.day = day;
        self.prefix.clear();
        if date.year < 0 {
            self.prefix.push(b'-');
        }
        let year = date.year.unsigned_abs();
        if year < 10_000 {
            let mut text = *b"0000";
            put_two(&mut text, 0, year / 100);
            put_two(&mut text, 2, year % 100);
            self.prefix.extend_from_slice(&text);
        } else {
            push_integer(&mut self.prefix, year);
        }
        let mut text = *b"-00-00T";
        put_two(&mut text, 1, u32::from(date.month));
        put_two(&mut text, 4, u32::from(date.day));
        if self.style != TimestampStyle::Iso {
            text[6] = b' ';
        }
        self.prefix.extend_from_slice(&text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        push_double(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_formatted_in_java_notation() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (100.0, "100.0"),
            (0.001, "0.001"),
            (0.000_999, "9.99E-4"),
            (1e-5, "1.0E-5"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (1e10, "1.0E10"),
            (12_345_678.9, "1.23456789E7"),
            (-1.5e300, "-1.5E300"),
            (1e300, "1.0E300"),
            (5e-324, "5.0E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-42_123.45, "-42123.45"),
            (1e20, "1.0E20"),
        ] {
            assert_eq!(double(value), text);
        }
        let mut out = Vec::new();
        push_float(&mut out, 1.1);
        out.push(b' ');
        push_float(&mut out, 1.5e10);
        assert_eq!(out, b"1.1 1.50000005E10");
    }

    #[test]
    fn formatted_doubles_are_short_and_parse_to_the_same_value() {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
        for round in 0..200_000_u32 {
            let value: f64 = match round % 3 {
                0 => f64::from_bits(random.random()),
                1 => random.random_range(-1_000_000_i64..1_000_000) as f64 / 100.0,
                _ => random.random::<f64>() * 1e6,
            };
            if value.is_finite() {
                let text = double(value);
                assert_eq!(text.parse::<f64>().unwrap().to_bits(), value.to_bits(), "{text}");
                let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
                if !text.contains('E') {
                    assert_eq!(digits(&text), digits(ryu::Buffer::new().format(value)));
                }
            }
        }
    }

    #[test]
    fn timestamps_of_each_unit_are_formatted() {
        let mut iso = TimestampWriter::new(TimestampStyle::Iso);
        let mut out = Vec::new();
        iso.push_micros(&mut out, 1_704_164_645_678_901);
        iso.push_millis(&mut out, -1);
        iso.push_nanos(&mut out, 1_704_164_645_678_901_234);
        iso.push_micros(&mut out, 253_402_300_800_000_000);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2024-01-02T03:04:05.678901Z1969-12-31T23:59:59.999Z\
             2024-01-02T03:04:05.678901234Z10000-01-01T00:00:00.000000Z"
        );
        let mut pg = TimestampWriter::new(TimestampStyle::Postgres);
        let mut out = Vec::new();
        pg.push_millis(&mut out, 1_704_164_645_678);
        pg.push_nanos(&mut out, 1_704_164_645_678_901_999);
        let mut nanos = TimestampWriter::new(TimestampStyle::PostgresNanos);
        nanos.push_nanos(&mut out, 1_704_164_645_678_901_234);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "2024-01-02 03:04:05.6782024-01-02 03:04:05.6789012024-01-02 03:04:05.678901234"
        );
    }
}
