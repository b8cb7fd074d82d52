//! Interprets a line's values by their syntactic form.

use std::borrow::Cow;

use arrow_buffer::i256;
use tidemark_border::LinePrecision;

use super::lexer::{BINARY_DOUBLE, Form, Raw, Token};
use crate::cast::{Timestamp, Value};
use crate::value_text;

/// Returns the length of a unit, in nanoseconds.
fn nanos_of(unit: LinePrecision) -> i64 {
    match unit {
        LinePrecision::Nanos => 1,
        LinePrecision::Micros => 1_000,
        LinePrecision::Millis => 1_000_000,
        LinePrecision::Seconds => 1_000_000_000,
        LinePrecision::Minutes => 60_000_000_000,
        LinePrecision::Hours => 3_600_000_000_000,
    }
}

impl<'b> Value<'b> {
    /// Reads a value; `None` if the text is not a valid value.
    #[inline]
    pub(super) fn read(raw: Raw, bytes: &'b [u8]) -> Option<Self> {
        let Raw { form, token } = raw;
        Some(match form {
            Form::Symbol => Self::Symbol(unescaped(token, bytes, SYMBOL_ESCAPES)),
            Form::Text => Self::Text(unescaped(token, bytes, TEXT_ESCAPES)),
            Form::Plain => return plain(token.of(bytes)),
            Form::Double => {
                let value = token.of(bytes).first_chunk()?;
                Self::Double(f64::from_le_bytes(*value), None)
            }
            Form::Array(dimensions) => Self::Array(dimensions, token.of(bytes)),
            Form::NullArray => Self::NullArray,
            Form::Decimal(scale) => match token.of(bytes) {
                [] => Self::Null,
                unscaled => Self::Unscaled(big_endian(unscaled), scale),
            },
        })
    }
}

/// Reads a value that has neither quotes nor a type byte.
fn plain(text: &[u8]) -> Option<Value<'_>> {
    let (last, digits) = text.split_last()?;
    let is_number = matches!(digits.first(), Some(b'0'..=b'9' | b'-' | b'+' | b'.'));
    match last {
        b'i' if text.starts_with(b"0x") => Some(Value::Long256(digits)),
        b'i' => integer(digits).map(Value::Integer),
        b't' if is_number => {
            integer(digits).map(|value| Value::Timestamp(Timestamp::Micros(value)))
        }
        b'n' if is_number => integer(digits).map(|value| Value::Timestamp(Timestamp::Nanos(value))),
        b'd' if digits.eq_ignore_ascii_case(b"nan") => Some(Value::Null),
        b'd' if is_number => Some(Value::Decimal(digits)),
        b'0'..=b'9' | b'.' => double(text),
        _ => word(text),
    }
}

fn double(text: &[u8]) -> Option<Value<'_>> {
    let value = fast_float2::parse::<f64, _>(text).ok()?;
    value.is_finite().then_some(Value::Double(value, Some(text)))
}

/// Parses booleans and non-finite doubles.
#[cold]
fn word(text: &[u8]) -> Option<Value<'_>> {
    let same = |word: &&[u8]| text.eq_ignore_ascii_case(word);
    let unsigned = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    if [&b"t"[..], b"true"].iter().any(same) {
        Some(Value::Boolean(true))
    } else if [&b"f"[..], b"false"].iter().any(same) {
        Some(Value::Boolean(false))
    } else if [&b"nan"[..], b"inf", b"infinity"].iter().any(|w| unsigned.eq_ignore_ascii_case(w)) {
        Some(Value::Double(f64::NAN, None))
    } else {
        None
    }
}

/// Parses digits with an optional minus sign.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    if text.first() == Some(&b'+') { None } else { value_text::integer(text) }
}

/// Powers of ten that a double represents exactly.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// Maximum number of digits for which a double represents every integer exactly.
const EXACT_DIGITS: usize = 15;

/// Parses digits at `at`, with an optional minus sign and decimal point. Returns the value and its
/// end. Returns `None` if there are too many digits, or none before the decimal point. The digits
/// and the power of ten are both exact, so their quotient is the nearest double.
#[inline]
pub(super) fn short_double(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let (is_negative, begin) = sign(bytes, at);
    let (integer, point) = digits(bytes, begin, 0);
    if point == begin {
        return None;
    }
    let (unscaled, end, places) = match bytes.get(point) {
        Some(b'.') => {
            let (unscaled, end) = digits(bytes, point + 1, integer);
            (unscaled, end, end - point - 1)
        }
        _ => (integer, point, 0),
    };
    if end - begin > EXACT_DIGITS {
        return None;
    }
    let value = unscaled as f64 / POWERS[places];
    Some((if is_negative { -value } else { value }, end))
}

/// Returns the binary double after the equals sign at `at`, and its end, if the double is finite.
#[inline]
pub(super) fn binary_double(bytes: &[u8], at: usize) -> Option<(f64, usize)> {
    let form: &[u8; 10] = bytes.get(at..)?.first_chunk()?;
    let [b'=', BINARY_DOUBLE, ..] = form else { return None };
    let value = f64::from_le_bytes(*form.last_chunk()?);
    value.is_finite().then_some((value, at + form.len()))
}

/// Like [`short_double`], but for an integer.
#[inline]
pub(super) fn short_integer(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let (is_negative, begin) = sign(bytes, at);
    let (value, end) = digits(bytes, begin, 0);
    if !(1..=EXACT_DIGITS).contains(&(end - begin)) {
        return None;
    }
    let value = value as i64;
    Some((if is_negative { -value } else { value }, end))
}

#[inline]
fn sign(bytes: &[u8], at: usize) -> (bool, usize) {
    let is_negative = bytes.get(at) == Some(&b'-');
    (is_negative, at + usize::from(is_negative))
}

/// Appends the digits at `at` to the number `before`. Returns the new number and the end of the
/// digits. Wraps around on 64-bit overflow.
#[inline]
fn digits(bytes: &[u8], at: usize, before: u64) -> (u64, usize) {
    let (mut value, mut at) = (before, at);
    while let Some(byte) = bytes.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    (value, at)
}

/// Parses the timestamp at the end of a line.
#[inline]
pub(super) fn trailing(text: &[u8], precision: LinePrecision) -> Option<Timestamp> {
    match text.split_last()? {
        (b't', digits) => integer(digits).map(Timestamp::Micros),
        (b'n', digits) => integer(digits).map(Timestamp::Nanos),
        _ => {
            let value = integer(text)?;
            match precision {
                LinePrecision::Nanos => Some(Timestamp::Nanos(value)),
                other => value.checked_mul(nanos_of(other) / 1_000).map(Timestamp::Micros),
            }
        }
    }
}

fn big_endian(bytes: &[u8]) -> i256 {
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xff } else { 0 };
    let mut all = [sign; 32];
    let begin = all.len() - bytes.len();
    all[begin..].copy_from_slice(bytes);
    i256::from_be_bytes(all)
}

/// Characters that a backslash escapes in names and symbols. Before any other character, a
/// backslash stands for itself.
pub(super) const SYMBOL_ESCAPES: &[u8] = b" ,=\\\n\r";
const TEXT_ESCAPES: &[u8] = b"\"\\\n\r";

#[inline]
pub(super) fn unescaped<'b>(token: Token, bytes: &'b [u8], escapes: &[u8]) -> Cow<'b, [u8]> {
    let bytes = token.of(bytes);
    if token.is_escaped() {
        Cow::Owned(without_escapes(bytes, escapes))
    } else {
        Cow::Borrowed(bytes)
    }
}

#[cold]
fn without_escapes(bytes: &[u8], escapes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = match (first, tail) {
            (b'\\', [next, after @ ..]) if escapes.contains(next) => {
                text.push(*next);
                after
            }
            _ => {
                text.push(*first);
                tail
            }
        };
    }
    text
}
