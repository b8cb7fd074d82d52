//! Requests from one HTTP client that differ only in their SQL text. Other requests are not parsed
//! here.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY, MICROS_PER_SECOND};

/// A request without its SQL text, which goes between `before` and `after`.
#[derive(Debug, Clone)]
pub struct RequestPattern {
    /// The request line up to the SQL text.
    pub before: Vec<u8>,
    /// The remainder of the request line, and the headers.
    pub after: Vec<u8>,
    /// Maximum size of a request in bytes; longer requests do not match.
    pub max_bytes: usize,
}

/// Next message in a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpMessage {
    /// A request that matches the pattern.
    Query {
        /// The request's SQL text.
        text: String,
        /// Length of the request in bytes.
        len: usize,
    },
    /// An incomplete request that may still match.
    Incomplete,
    /// A request that does not match, or whose SQL text must be refused.
    Other,
}

/// Reads the message at the start of `bytes`.
pub fn next_request(bytes: &[u8], pattern: &RequestPattern) -> HttpMessage {
    let RequestPattern { before, after, max_bytes: max } = pattern;
    let Some(rest) = bytes.strip_prefix(before.as_slice()) else {
        let may_become = before.starts_with(bytes);
        return if may_become { HttpMessage::Incomplete } else { HttpMessage::Other };
    };
    let within = rest.iter().position(|byte| !is_of_text(*byte));
    let (encoded, behind) = rest.split_at(within.unwrap_or(rest.len()));
    let len = before.len() + encoded.len() + after.len();
    if len > *max {
        return HttpMessage::Other;
    }
    if !behind.starts_with(after) {
        let may_become = after.starts_with(behind);
        return if may_become { HttpMessage::Incomplete } else { HttpMessage::Other };
    }
    match decoded(encoded) {
        Some(text) => HttpMessage::Query { text, len },
        None => HttpMessage::Other,
    }
}

/// Whether a byte may occur in an encoded parameter value.
fn is_of_text(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$'()*,;:@/?=+%".contains(&byte)
}

/// Decodes a parameter value, in which a plus sign represents a space. Returns `None` for invalid
/// UTF-8 or a NUL byte.
fn decoded(encoded: &[u8]) -> Option<String> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let [first, following @ ..] = rest {
        rest = following;
        let byte = match first {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (*rest.first()?, *rest.get(1)?);
                rest = &rest[2..];
                (digit(high)? << 4) | digit(low)?
            }
            other => *other,
        };
        if byte == 0 {
            return None;
        }
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

fn digit(of: u8) -> Option<u8> {
    char::from(of).to_digit(16).map(|value| value as u8)
}

/// Writes a time in `Date` header format.
pub fn http_date(now: SystemTime, out: &mut Vec<u8>) {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) as i64;
    let of_day = seconds.rem_euclid(MICROS_PER_DAY / MICROS_PER_SECOND);
    let date = CivilDate::from_days(seconds.div_euclid(MICROS_PER_DAY / MICROS_PER_SECOND));
    let named = |names: &[&'static str], at: u8| names.get(usize::from(at) - 1).copied();
    let weekday = named(&DAYS, date.iso_weekday()).unwrap_or_default();
    let month = named(&MONTHS, date.month).unwrap_or_default();
    let text = format!(
        "{weekday}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
        date.day,
        date.year,
        of_day / 3_600,
        of_day / 60 % 60,
        of_day % 60
    );
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn pattern() -> RequestPattern {
        RequestPattern {
            before: b"GET /exec?query=".to_vec(),
            after: b"&limit=5 HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
            max_bytes: 200,
        }
    }

    fn request(encoded: &str) -> Vec<u8> {
        let RequestPattern { before, after, .. } = pattern();
        [before.as_slice(), encoded.as_bytes(), &after].concat()
    }

    #[test]
    fn a_request_is_parsed_only_once_it_is_complete() {
        let bytes = request("SELECT+'n%C3%B6%2b'%20x");
        let two = [bytes.as_slice(), &bytes].concat();
        let text = "SELECT 'nö+' x".to_owned();
        let expected = HttpMessage::Query { text, len: bytes.len() };
        assert_eq!(next_request(&two, &pattern()), expected);
        for end in 0..bytes.len() {
            let part = next_request(&bytes[..end], &pattern());
            assert_eq!(part, HttpMessage::Incomplete, "{end} of {}", bytes.len());
        }
    }

    #[test]
    fn requests_that_deviate_from_the_pattern_are_not_parsed() {
        let is_other = |bytes: &[u8]| {
            assert_eq!(next_request(bytes, &pattern()), HttpMessage::Other, "{bytes:?}");
        };
        for encoded in ["%", "%4", "%zz", "%+1", "%ff", "%00", "%ED%A0%80", "a\"b", "a#b", "a b"] {
            is_other(&request(encoded));
        }
        is_other(&request("a&query=b"));
        is_other(&request(&"a".repeat(200)));
        is_other(&[pattern().before, vec![b'a'; 190]].concat());
        is_other(b"HEAD /exec?query=1");
        is_other(b"GET /exec?query=1 HTTP/1.0\r\n\r\n");
        is_other(b"GET /exec?query=1&limit=5 HTTP/1.1\r\nHost: g\r\n\r\n");
        is_other(b"GET /exec?query=1&limit=5 HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
    }

    #[test]
    fn arbitrary_bytes_do_not_cause_a_panic() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let good = request("SELECT+%27x%27");
        for _ in 0..50_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.random_range(1..4) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            bytes.truncate(rng.random_range(0..=bytes.len()));
            if let HttpMessage::Query { len, .. } = next_request(&bytes, &pattern()) {
                assert_eq!(len, bytes.len());
            }
        }
    }

    #[test]
    fn dates_follow_the_http_format() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_102_444_800, "Fri, 01 Jan 2100 00:00:00 GMT"),
        ] {
            let mut out = Vec::new();
            http_date(UNIX_EPOCH + Duration::from_secs(seconds), &mut out);
            assert_eq!(String::from_utf8(out).as_deref(), Ok(expected));
        }
    }
}
