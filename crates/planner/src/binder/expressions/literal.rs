//! Converts literals to typed values.

use arrow::datatypes::i256;
use datafusion::common::ScalarValue;
use tidemark_ast::{Node, Span};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::binder::{Typed, error};

/// A literal node's value; `None` for other nodes.
pub(crate) fn literal(node: &Node, position: Span) -> EngineResult<Option<Typed>> {
    Ok(Some(match node {
        Node::Null => Typed::null(),
        Node::Boolean { value } => Typed::truth(*value),
        Node::Integer { text } => integer(text, position)?,
        Node::Float { text } => floating(text, position)?,
        Node::Decimal { text } => decimal(text, position)?,
        Node::String { value } => string(value),
        Node::Long256 { text } => long256(text, position)?,
        Node::Geohash { text } => geohash(text, position)?,
        _ => return Ok(None),
    }))
}

/// An integer literal has the narrowest type that can hold it: INT, LONG or DOUBLE.
pub(crate) fn integer(text: &str, position: Span) -> EngineResult<Typed> {
    let digits = text.replace('_', "");
    let (digits, long) = match digits.strip_suffix(['L', 'l']) {
        Some(digits) => (digits, true),
        None => (digits.as_str(), false),
    };
    match digits.parse::<i64>() {
        Ok(value) => Ok(match i32::try_from(value) {
            Ok(small) if !long && small != i32::MIN => {
                Typed::literal(ScalarValue::Int32(Some(small)), SqlType::Int)
            }
            _ => Typed::literal(
                ScalarValue::Int64((value != i64::MIN).then_some(value)),
                SqlType::Long,
            ),
        }),
        Err(_) if !long => floating(digits, position),
        Err(_) => Err(invalid(text, position)),
    }
}

/// A floating-point literal is DOUBLE unless it ends in `f`.
pub(crate) fn floating(text: &str, position: Span) -> EngineResult<Typed> {
    let digits = text.replace('_', "");
    if let Some(digits) = digits.strip_suffix(['f', 'F']) {
        let value: f32 = digits.parse().map_err(|_| invalid(text, position))?;
        return if value.is_finite() {
            Ok(Typed::literal(ScalarValue::Float32(Some(value)), SqlType::Float))
        } else {
            Err(out_of_range(text, SqlType::Float, position))
        };
    }
    let digits = digits.strip_suffix(['d', 'D']).unwrap_or(&digits);
    let value: f64 = digits.parse().map_err(|_| invalid(text, position))?;
    if value.is_finite() {
        Ok(Typed::literal(ScalarValue::Float64(Some(value)), SqlType::Double))
    } else {
        Err(out_of_range(text, SqlType::Double, position))
    }
}

fn out_of_range(text: &str, of: SqlType, position: Span) -> EngineError {
    let message = format!("number is out of range: {text} [type={}]", of.name());
    error::at(ErrorCode::InvalidValue, message, position)
}

/// Maximum number of digits in a DECIMAL.
const MAX_DECIMAL_DIGITS: usize = 76;

/// Parses `1.50m`. The digits as written determine precision and scale.
pub(crate) fn decimal(text: &str, position: Span) -> EngineResult<Typed> {
    let digits = text.trim_end_matches(['m', 'M']).replace('_', "");
    let (integer, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let unscaled = format!("{integer}{fraction}");
    let significant = integer.trim_start_matches('0').len().max(1) + fraction.len();
    let (precision, scale) = (significant as u8, fraction.len() as u8);
    if significant > MAX_DECIMAL_DIGITS {
        let message =
            format!("decimal '{text}' exceeds maximum allowed precision of {MAX_DECIMAL_DIGITS}");
        return Err(error::at(ErrorCode::InvalidValue, message, position));
    }
    let scale_signed = scale as i8;
    if significant > 38 {
        let value = i256::from_string(&unscaled).ok_or_else(|| invalid(text, position))?;
        let scalar = ScalarValue::Decimal256(Some(value), precision, scale_signed);
        return Ok(Typed::literal(scalar, SqlType::Decimal(precision, scale)));
    }
    let value: i128 = unscaled.parse().map_err(|_| invalid(text, position))?;
    let scalar = match precision {
        0..=9 => ScalarValue::Decimal32(Some(value as i32), precision, scale_signed),
        10..=18 => ScalarValue::Decimal64(Some(value as i64), precision, scale_signed),
        _ => ScalarValue::Decimal128(Some(value), precision, scale_signed),
    };
    Ok(Typed::literal(scalar, SqlType::Decimal(precision, scale)))
}

/// A one-character string is a CHAR; any other string is a STRING.
pub(crate) fn string(value: &str) -> Typed {
    let mut units = value.encode_utf16();
    match (units.next(), units.next()) {
        (Some(unit), None) if unit != 0 => {
            Typed::literal(ScalarValue::UInt16(Some(unit)), SqlType::Char)
        }
        _ => text(value),
    }
}

/// A LONG literal.
pub(crate) fn long(value: i64) -> Typed {
    Typed::literal(ScalarValue::Int64(Some(value)), SqlType::Long)
}

/// A STRING literal of any length.
pub(crate) fn text(value: &str) -> Typed {
    Typed::literal(ScalarValue::Utf8View(Some(value.to_owned())), SqlType::String)
}

/// Parses `0x1F`: hexadecimal digits, most significant first.
fn long256(text: &str, position: Span) -> EngineResult<Typed> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let digits = digits.filter(|digits| !digits.is_empty() && digits.len() <= 64);
    let digits = digits.ok_or_else(|| invalid(text, position))?;
    let padded = format!("{digits:0>64}");
    let mut bytes = Vec::with_capacity(32);
    for pair in 0..32 {
        let byte = padded.get(pair * 2..pair * 2 + 2);
        let byte = byte.and_then(|byte| u8::from_str_radix(byte, 16).ok());
        bytes.push(byte.ok_or_else(|| invalid(text, position))?);
    }
    Ok(Typed::literal(ScalarValue::FixedSizeBinary(32, Some(bytes)), SqlType::Long256))
}

/// Parses `#u33d` (5 bits per character), `#u33d/18` and `##0110`.
fn geohash(text: &str, position: Span) -> EngineResult<Typed> {
    const ALPHABET: &str = "0123456789bcdefghjkmnpqrstuvwxyz";
    let mut value: i64 = 0;
    let mut bits = 0_u32;
    if let Some(binary) = text.strip_prefix("##") {
        for digit in binary.chars() {
            let bit = digit.to_digit(2).ok_or_else(|| invalid(text, position))?;
            value = (value << 1) | i64::from(bit);
            bits += 1;
        }
    } else {
        let body = text.trim_start_matches('#');
        let (characters, size) = match body.split_once('/') {
            Some((characters, size)) => (characters, Some(size)),
            None => (body, None),
        };
        if characters.len() > 12 {
            return Err(invalid(text, position));
        }
        for character in characters.chars() {
            let lower = character.to_ascii_lowercase();
            let digit = ALPHABET.find(lower).ok_or_else(|| invalid(text, position))?;
            value = (value << 5) | digit as i64;
            bits += 5;
        }
        if let Some(size) = size {
            let precision: u32 = size.parse().map_err(|_| invalid(text, position))?;
            if precision == 0 || precision > bits {
                return Err(invalid(text, position));
            }
            value >>= bits - precision;
            bits = precision;
        }
    }
    if bits == 0 || bits > 60 {
        return Err(invalid(text, position));
    }
    let sql_type = SqlType::Geohash(bits as u8);
    let scalar = match bits {
        0..=7 => ScalarValue::Int8(Some(value as i8)),
        8..=15 => ScalarValue::Int16(Some(value as i16)),
        16..=31 => ScalarValue::Int32(Some(value as i32)),
        _ => ScalarValue::Int64(Some(value)),
    };
    Ok(Typed::literal(scalar, sql_type))
}

fn invalid(text: &str, position: Span) -> EngineError {
    error::at(ErrorCode::InvalidValue, format!("invalid constant: {text}"), position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_literals_get_the_narrowest_type() {
        let of = |text: &str| integer(text, Span::default()).map(|typed| typed.sql_type);
        assert_eq!(of("17"), Ok(SqlType::Int));
        assert_eq!(of("1_000_000"), Ok(SqlType::Int));
        assert_eq!(of("2147483648"), Ok(SqlType::Long));
        assert_eq!(of("5L"), Ok(SqlType::Long));
        assert_eq!(of("99999999999999999999"), Ok(SqlType::Double));
    }

    #[test]
    fn a_single_character_string_literal_is_a_char() {
        assert_eq!(string("a").sql_type, SqlType::Char);
        assert_eq!(string("").sql_type, SqlType::String);
        assert_eq!(string("ab").sql_type, SqlType::String);
    }
}
