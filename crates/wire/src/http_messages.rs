//! Requests of a client of HTTP that repeats itself: they are alike but for the text of their
//! query. Other requests are not read here.

use std::time::{SystemTime, UNIX_EPOCH};

use tidemark_types::calendar::{CivilDate, MICROS_PER_DAY, MICROS_PER_SECOND};

/// A request but for the text of its query, which lies between the two.
#[derive(Debug, Clone)]
pub struct RequestPattern {
    /// The request line up to the text.
    pub before: Vec<u8>,
    /// The rest of the request line and the headers.
    pub after: Vec<u8>,
    /// Bytes of a request, at most: longer ones are something else.
    pub longest: usize,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum HttpMessage {
    /// A request of the pattern.
    Query {
        /// The text of its query.
        text: String,
        /// Bytes of the request.
        len: usize,
    },
    /// It is not there whole, and may become one.
    Incomplete,
    /// Something else, or a text that has to be refused.
    Other,
}

/// Reads what is at the beginning of `bytes`.
pub fn next_request(bytes: &[u8], pattern: &RequestPattern) -> HttpMessage {
    let RequestPattern { before, after, longest } = pattern;
    let Some(rest) = bytes.strip_prefix(before.as_slice()) else {
        let may_become = before.starts_with(bytes);
        return if may_become { HttpMessage::Incomplete } else { HttpMessage::Other };
    };
    let within = rest.iter().position(|byte| !is_of_text(*byte));
    let (encoded, behind) = rest.split_at(within.unwrap_or(rest.len()));
    let len = before.len() + encoded.len() + after.len();
    if len > *longest {
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

/// Whether a byte may be in the value of a parameter, as it is written.
fn is_of_text(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$'()*,;:@/?=+%".contains(&byte)
}

/// A plus is a space. None for what is no UTF-8, or has a zero byte.
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

/// Writes an instant as the header `Date` has it.
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
            longest: 200,
        }
    }

    fn request(encoded: &str) -> Vec<u8> {
        let RequestPattern { before, after, .. } = pattern();
        [before.as_slice(), encoded.as_bytes(), &after].concat()
    }

    #[test]
    fn requests_are_found_whole_or_not_at_all() {
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
    fn what_has_to_be_refused_is_something_else() {
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
    fn bytes_of_any_kind_are_read_without_a_panic() {
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
    fn dates_are_those_of_http() {
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
