//! Messages from a pgwire client that repeatedly binds a statement to new values, executes it and
//! sends Sync. Other messages are not parsed here.

/// Reply to a Bind.
pub const BIND_COMPLETE: &[u8] = b"2\0\0\0\x04";
/// Reply to a Sync outside a transaction block.
pub const READY_FOR_QUERY: &[u8] = b"Z\0\0\0\x05I";

/// A Describe message for the unnamed portal.
const DESCRIBE: &[u8] = b"D\0\0\0\x06P\0";
/// An Execute message for the unnamed portal, without a row limit.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0\0\0\0\0";
const SYNC: &[u8] = b"S\0\0\0\x04";
/// Size of a message's type and length, in bytes.
const HEADER_BYTES: usize = 5;
/// Maximum size of a Bind in bytes. Longer messages do not match, and are rejected even if they are
/// incomplete.
const MAX_BIND_BYTES: usize = 128 * 1024;

/// A Bind without its values, which go between `head` and `tail`.
#[derive(Debug, Clone)]
pub struct BindPattern {
    /// Message body up to the number of values: names and value formats.
    pub head: Vec<u8>,
    /// Message body after the values: result formats.
    pub tail: Vec<u8>,
    /// Whether each value is text.
    pub is_text: Vec<bool>,
}

/// Next message in a buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum PgMessage<'b> {
    /// A Bind that matches this pattern, with its Execute.
    Run {
        /// The pattern's index.
        pattern: usize,
        /// Values in Bind format, with their count.
        values: &'b [u8],
        /// Whether a Describe is between the Bind and the Execute.
        is_described: bool,
        /// Length of the messages in bytes.
        len: usize,
    },
    /// A Sync.
    Sync {
        /// Length of the message in bytes.
        len: usize,
    },
    /// An incomplete message that may still match.
    Incomplete,
    /// A message that does not match, or a Bind that must be refused.
    Other,
}

/// Reads the message at the start of `bytes`.
pub fn next_message<'b>(bytes: &'b [u8], patterns: &[BindPattern]) -> PgMessage<'b> {
    match bytes.first() {
        None => PgMessage::Incomplete,
        Some(b'S') => match after(bytes, SYNC) {
            Found::Complete(_) => PgMessage::Sync { len: SYNC.len() },
            Found::Incomplete => PgMessage::Incomplete,
            Found::Other => PgMessage::Other,
        },
        Some(b'B') => run(bytes, patterns),
        Some(_) => PgMessage::Other,
    }
}

/// Result of comparing with expected bytes.
enum Found<'b> {
    /// The bytes match, and these bytes follow them.
    Complete(&'b [u8]),
    /// The bytes match so far, but are incomplete.
    Incomplete,
    Other,
}

fn after<'b>(bytes: &'b [u8], required: &[u8]) -> Found<'b> {
    if let Some(rest) = bytes.strip_prefix(required) {
        return Found::Complete(rest);
    }
    if required.starts_with(bytes) { Found::Incomplete } else { Found::Other }
}

fn run<'b>(bytes: &'b [u8], patterns: &[BindPattern]) -> PgMessage<'b> {
    let Some(length) = bytes.get(1..HEADER_BYTES).and_then(|length| length.first_chunk()) else {
        return PgMessage::Incomplete;
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length + 1 < HEADER_BYTES || length > MAX_BIND_BYTES {
        return PgMessage::Other;
    }
    let Some(body) = bytes.get(HEADER_BYTES..length + 1) else { return PgMessage::Incomplete };
    let of_body = |pattern: &BindPattern| {
        let values = body.strip_prefix(pattern.head.as_slice())?;
        let values = values.strip_suffix(pattern.tail.as_slice())?;
        are_values(values, &pattern.is_text).then_some(values)
    };
    let found = patterns.iter().enumerate().find_map(|(at, one)| Some((at, of_body(one)?)));
    let Some((pattern, values)) = found else { return PgMessage::Other };
    let rest = &bytes[length + 1..];
    let (is_described, rest) = match after(rest, DESCRIBE) {
        Found::Complete(rest) => (true, rest),
        Found::Incomplete => return PgMessage::Incomplete,
        Found::Other => (false, rest),
    };
    match after(rest, EXECUTE) {
        Found::Complete(rest) => {
            PgMessage::Run { pattern, values, is_described, len: bytes.len() - rest.len() }
        }
        Found::Incomplete => PgMessage::Incomplete,
        Found::Other => PgMessage::Other,
    }
}

/// Whether the bytes are exactly one value per entry of `is_text`, and all text values are UTF-8
/// without NUL bytes.
fn are_values(bytes: &[u8], is_text: &[bool]) -> bool {
    let Some((count, mut rest)) = bytes.split_first_chunk() else { return false };
    if usize::from(u16::from_be_bytes(*count)) != is_text.len() {
        return false;
    }
    for is_text in is_text {
        let Some((length, values)) = rest.split_first_chunk() else { return false };
        let length = i32::from_be_bytes(*length);
        let length = if length == -1 { Ok(0) } else { usize::try_from(length) };
        let value = length.ok().and_then(|length| values.split_at_checked(length));
        let Some((value, after)) = value else { return false };
        if *is_text && (value.contains(&0) || std::str::from_utf8(value).is_err()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

/// Writes the `CommandComplete` message of a SELECT.
pub fn command_complete(rows: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(rows).as_bytes();
    let command = b"SELECT ";
    let length = 4 + command.len() + digits.len() + 1;
    out.push(b'C');
    out.extend_from_slice(&(length as u32).to_be_bytes());
    out.extend_from_slice(command);
    out.extend_from_slice(digits);
    out.push(0);
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn pattern(statement: &str, is_text: &[bool]) -> BindPattern {
        let mut head = vec![0];
        head.extend_from_slice(statement.as_bytes());
        head.extend_from_slice(&[0, 0, 0]);
        BindPattern { head, tail: vec![0, 1, 0, 1], is_text: is_text.to_vec() }
    }

    fn values(all: &[Option<&[u8]>]) -> Vec<u8> {
        let mut bytes = (all.len() as u16).to_be_bytes().to_vec();
        for value in all {
            let length = value.map_or(-1, |value| value.len() as i32);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(value.unwrap_or_default());
        }
        bytes
    }

    fn bind(pattern: &BindPattern, values: &[u8]) -> Vec<u8> {
        let body = [&pattern.head, values, &pattern.tail].concat();
        let mut message = vec![b'B'];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(&body);
        message
    }

    #[test]
    fn a_bind_and_execute_sequence_is_parsed_only_once_it_is_complete() {
        let patterns = [pattern("a", &[true]), pattern("b", &[true, false])];
        let values = values(&[Some("né".as_bytes()), None]);
        for (described, describe) in [(false, &b""[..]), (true, DESCRIBE)] {
            let run = [&bind(&patterns[1], &values), describe, EXECUTE].concat();
            let all = [run.as_slice(), SYNC].concat();
            let expected = PgMessage::Run {
                pattern: 1,
                values: &values,
                is_described: described,
                len: run.len(),
            };
            assert_eq!(next_message(&all, &patterns), expected);
            assert_eq!(next_message(&all[run.len()..], &patterns), PgMessage::Sync { len: 5 });
            for end in 0..run.len() {
                let part = next_message(&run[..end], &patterns);
                assert_eq!(part, PgMessage::Incomplete, "{end} of {}", run.len());
            }
        }
    }

    #[test]
    fn messages_that_must_be_refused_are_not_parsed() {
        let one = pattern("a", &[true]);
        let patterns = std::slice::from_ref(&one);
        let good = values(&[Some(b"x")]);
        let is_other = |bind: Vec<u8>, rest: &[u8]| {
            let message = [bind.as_slice(), rest].concat();
            assert_eq!(next_message(&message, patterns), PgMessage::Other, "{message:?}");
        };
        is_other(bind(&one, &values(&[Some(b"\xff")])), EXECUTE);
        is_other(bind(&one, &values(&[Some(b"a\0")])), EXECUTE);
        is_other(bind(&one, &values(&[])), EXECUTE);
        is_other(bind(&one, &values(&[Some(b"x"), Some(b"y")])), EXECUTE);
        is_other(bind(&one, &good[..good.len() - 1]), EXECUTE);
        is_other(bind(&pattern("c", &[true]), &good), EXECUTE);
        is_other(bind(&one, &good), SYNC);
        is_other(bind(&one, &good), b"E\0\0\0\x09\0\0\0\0\x01");
        for other in [
            &b"B\0\0\0\0"[..],
            b"B\0\x02\0\x01",
            b"B\xff\xff\xff\xff",
            b"S\0\0\0\x05\0",
            b"Q\0\0\0\x05\0",
            b"X\0\0\0\x04",
        ] {
            is_other(vec![], other);
        }
    }

    #[test]
    fn arbitrary_bytes_do_not_cause_a_panic() {
        let patterns = [pattern("a", &[true]), pattern("b", &[true, false])];
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let good = [bind(&patterns[0], &values(&[Some(b"abc")])), EXECUTE.to_vec()].concat();
        for _ in 0..20_000 {
            let mut bytes = good.clone();
            for _ in 0..rng.random_range(1..6) {
                let at = rng.random_range(0..bytes.len());
                bytes[at] = rng.random();
            }
            bytes.truncate(rng.random_range(0..=bytes.len()));
            if let PgMessage::Run { values, len, .. } = next_message(&bytes, &patterns) {
                assert!(len <= bytes.len());
                assert!(are_values(values, &patterns[0].is_text));
            }
        }
    }

    #[test]
    fn command_completion_contains_the_row_count() {
        let mut out = Vec::new();
        command_complete(120, &mut out);
        assert_eq!(out, b"C\0\0\0\x0fSELECT 120\0");
    }
}
