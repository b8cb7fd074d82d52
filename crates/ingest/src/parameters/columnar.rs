//! Values of the columnar protocol (QWP). Each value is the content of a one-row column after its
//! null flag, in little-endian byte order. Values whose type has no equivalent in the engine are
//! converted to strings.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::Ipv4Addr;

use chrono::DateTime;
use tidemark_types::double_array::{self, DoubleArray, PG_ARRAY};
use tidemark_types::{EngineError, EngineResult, ErrorCode, ParameterValue};

use super::text::text_of;

const GEOHASH_BASE32: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";
const MILLIS: i64 = 1_000;
/// Length in bytes of two offsets: the start and the end of the only value.
const OFFSETS: usize = 8;
const MAX_DIMENSIONS: usize = 32;
const MAX_GEOHASH_BITS: u8 = 60;

/// Decodes `bytes` as a value of the type with this code.
pub(super) fn decoded(bytes: &[u8], code: u32) -> EngineResult<ParameterValue<'_>> {
    use ParameterValue as Value;
    Ok(match code {
        0x01 => Value::Boolean(sized::<1>(bytes)?[0] & 1 == 1),
        0x02 => Value::Short(i16::from(i8::from_le_bytes(sized(bytes)?))),
        0x03 => Value::Short(i16::from_le_bytes(sized(bytes)?)),
        0x04 => match i32::from_le_bytes(sized(bytes)?) {
            i32::MIN => Value::Null,
            value => Value::Int(value),
        },
        0x05 => long(bytes)?.map_or(Value::Null, Value::Long),
        0x06 => match f32::from_le_bytes(sized(bytes)?) {
            value if value.is_finite() => Value::Float(value),
            _ => Value::Null,
        },
        0x07 => match f64::from_le_bytes(sized(bytes)?) {
            value if value.is_finite() => Value::Double(value),
            _ => Value::Null,
        },
        0x09 | 0x0f => Value::text(text_of(content(bytes)?)?),
        0x0a => long(bytes)?.map_or(Value::Null, Value::Timestamp),
        0x0b => match long(bytes)? {
            None => Value::Null,
            Some(millis) => {
                let micros = millis.checked_mul(MILLIS);
                Value::Timestamp(micros.ok_or_else(|| malformed("DATE out of range"))?)
            }
        },
        0x0c => {
            let mut value: [u8; 16] = sized(bytes)?;
            value.reverse();
            Value::Uuid(value)
        }
        0x0d => Value::text(long256(sized(bytes)?)),
        0x0e => geohash(bytes)?,
        0x10 => long(bytes)?.map_or(Value::Null, |nanos| {
            let timestamp = DateTime::from_timestamp_nanos(nanos);
            Value::text(timestamp.format("%Y-%m-%dT%H:%M:%S%.9fZ").to_string())
        }),
        0x11 => Value::text(array(bytes)?),
        0x13..=0x15 => decimal(bytes, code)?,
        0x16 => character(u16::from_le_bytes(sized(bytes)?)),
        0x17 => Value::Binary(Cow::Borrowed(content(bytes)?)),
        0x18 => match u32::from_le_bytes(sized(bytes)?) {
            0 => Value::Null,
            address => Value::text(Ipv4Addr::from(address).to_string()),
        },
        other => return Err(malformed(&format!("unknown type 0x{other:02x}"))),
    })
}

fn malformed(why: &str) -> EngineError {
    EngineError::new(ErrorCode::InvalidBinary, format!("malformed bind parameter: {why}"))
}

fn sized<const N: usize>(bytes: &[u8]) -> EngineResult<[u8; N]> {
    bytes.try_into().map_err(|_| malformed(&format!("found {} bytes, expected {N}", bytes.len())))
}

/// Returns null for the minimum, which represents null.
fn long(bytes: &[u8]) -> EngineResult<Option<i64>> {
    let value = i64::from_le_bytes(sized(bytes)?);
    Ok((value != i64::MIN).then_some(value))
}

/// Returns the content between the two offsets at the start of `bytes`.
fn content(bytes: &[u8]) -> EngineResult<&[u8]> {
    let (offsets, content) =
        bytes.split_first_chunk::<OFFSETS>().ok_or_else(|| malformed("offsets are missing"))?;
    let length = u32::try_from(content.len()).map_err(|_| malformed("too long"))?;
    let expected = u64::from(length) << 32;
    if u64::from_le_bytes(*offsets) != expected {
        return Err(malformed("offsets do not match the length"));
    }
    Ok(content)
}

fn long256(mut bytes: [u8; 32]) -> String {
    bytes.reverse();
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Formats a geohash: in base 32 if its bits form whole characters, otherwise in binary digits.
fn geohash(bytes: &[u8]) -> EngineResult<ParameterValue<'static>> {
    let (&bits, bytes) = bytes.split_first().ok_or_else(|| malformed("precision is missing"))?;
    let width = usize::from(bits.div_ceil(8));
    if !(1..=MAX_GEOHASH_BITS).contains(&bits) || bytes.len() != width {
        return Err(malformed("geohash precision does not match the number of bytes"));
    }
    if bytes.iter().all(|byte| *byte == u8::MAX) {
        return Ok(ParameterValue::Null);
    }
    let mut value = [0; 8];
    value[..width].copy_from_slice(bytes);
    let value = u64::from_le_bytes(value) & ((1 << bits) - 1);
    let (step, count) = if bits.is_multiple_of(5) { (5, bits / 5) } else { (1, bits) };
    let digits = (0..count).rev().map(|position| {
        let digit = value >> (u32::from(position) * step) & ((1 << step) - 1);
        char::from(GEOHASH_BASE32[digit as usize])
    });
    Ok(ParameterValue::text(digits.collect::<String>()))
}

/// Decodes a scale followed by a two's complement integer.
fn decimal(bytes: &[u8], code: u32) -> EngineResult<ParameterValue<'static>> {
    let width = match code {
        0x13 => 8,
        0x14 => 16,
        _ => 32,
    };
    let (&scale, bytes) = bytes.split_first().ok_or_else(|| malformed("scale is missing"))?;
    if bytes.len() != width {
        return Err(malformed("decimal width does not match its type"));
    }
    if code == 0x13 && long(bytes)?.is_none() {
        return Ok(ParameterValue::Null);
    }
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut number: Vec<u8> = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in &mut number {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let divide = |rest: u32, byte: &mut u8| {
            let whole = rest << 8 | u32::from(*byte);
            *byte = (whole / 10) as u8;
            whole % 10
        };
        digits.push(b'0' + number.iter_mut().rev().fold(0, divide) as u8);
    }
    digits.resize(digits.len().max(usize::from(scale) + 1), b'0');
    let mut text: String = digits.iter().rev().map(|digit| char::from(*digit)).collect();
    if scale > 0 {
        text.insert(text.len() - usize::from(scale), '.');
    }
    if is_negative {
        text.insert(0, '-');
    }
    Ok(ParameterValue::text(text))
}

/// Decodes a CHAR. Half of a surrogate pair becomes null.
fn character(unit: u16) -> ParameterValue<'static> {
    match char::from_u32(u32::from(unit)) {
        None | Some('\0') => ParameterValue::Null,
        Some(character) => ParameterValue::text(character.to_string()),
    }
}

/// Formats an array as `{1.0,NULL,{…}}`. The bytes contain the number of dimensions, the dimension
/// lengths and the elements.
fn array(bytes: &[u8]) -> EngineResult<String> {
    let (&dimensions, bytes) =
        bytes.split_first().ok_or_else(|| malformed("number of dimensions is missing"))?;
    let dimensions = usize::from(dimensions);
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        return Err(malformed(&format!("invalid array with {dimensions} dimensions")));
    }
    let (lengths, elements) = bytes
        .split_at_checked(dimensions * size_of::<i32>())
        .ok_or_else(|| malformed("array lengths are truncated"))?;
    let shape: Vec<i32> =
        lengths.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
    // Negative lengths are cast to huge numbers and therefore rejected.
    if !double_array::is_allowed(shape.iter().map(|length| u64::from(*length as u32))) {
        return Err(malformed("array has too many elements, or too many empty nested arrays"));
    }
    let count = shape
        .iter()
        .try_fold(1_usize, |all, length| all.checked_mul(usize::try_from(*length).ok()?));
    let (values, rest) = elements.as_chunks();
    if count != Some(values.len()) || !rest.is_empty() {
        return Err(malformed("number of array elements does not match the dimensions"));
    }
    let number = |bytes: &[u8; 8]| match f64::from_le_bytes(*bytes) {
        value if value.is_finite() => value,
        _ => f64::NAN,
    };
    let values: Vec<f64> = values.iter().map(number).collect();
    let mut text = Vec::with_capacity(bytes.len());
    DoubleArray { shape: &shape, values: &values }.write_text(
        &mut text,
        &PG_ARRAY,
        |out, value| {
            out.extend_from_slice(format!("{value:?}").as_bytes());
        },
    );
    String::from_utf8(text).map_err(|_| malformed("not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(code: u32, bytes: &[u8]) -> ParameterValue<'_> {
        decoded(bytes, code).unwrap()
    }

    fn text(text: &str) -> ParameterValue<'_> {
        ParameterValue::text(text)
    }

    #[test]
    fn values_of_each_type_are_decoded() {
        use ParameterValue as Value;
        assert_eq!(one(0x01, &[1]), Value::Boolean(true));
        assert_eq!(one(0x02, &[0xff]), Value::Short(-1));
        assert_eq!(one(0x03, &300_i16.to_le_bytes()), Value::Short(300));
        assert_eq!(one(0x04, &7_i32.to_le_bytes()), Value::Int(7));
        assert_eq!(one(0x05, &42_i64.to_le_bytes()), Value::Long(42));
        assert_eq!(one(0x06, &1.5_f32.to_le_bytes()), Value::Float(1.5));
        assert_eq!(one(0x07, &2.5_f64.to_le_bytes()), Value::Double(2.5));
        assert_eq!(one(0x0a, &9_i64.to_le_bytes()), Value::Timestamp(9));
        assert_eq!(one(0x0b, &9_i64.to_le_bytes()), Value::Timestamp(9_000));
        let mut uuid: Vec<u8> = (0..16).collect();
        let turned = decoded(&uuid, 0x0c).unwrap().into_owned();
        uuid.reverse();
        assert_eq!(turned, Value::Uuid(uuid.try_into().unwrap()));
        let wide = [&[0x34, 0x12][..], &[0; 30]].concat();
        assert_eq!(one(0x0d, &wide), text(&format!("0x{}1234", "0".repeat(60))));
        assert_eq!(one(0x0e, &[5, 0b0001_1010]), text("u"));
        assert_eq!(one(0x0e, &[3, 0b101]), text("101"));
        assert_eq!(one(0x0f, b"\0\0\0\0\x02\0\0\0\xc3\xa9"), text("é"));
        let nanos = 1_500_000_001_i64.to_le_bytes();
        assert_eq!(one(0x10, &nanos), text("1970-01-01T00:00:01.500000001Z"));
        assert_eq!(one(0x16, &[0xac, 0x20]), text("€"));
        assert_eq!(one(0x17, b"\0\0\0\0\x01\0\0\0\xff"), Value::Binary(Cow::Borrowed(&[0xff])));
        assert_eq!(one(0x18, &[4, 3, 2, 1]), text("1.2.3.4"));
    }

    #[test]
    fn decimals_and_arrays_become_strings() {
        let narrow = |scale: u8, value: i64| [&[scale][..], &value.to_le_bytes()].concat();
        assert_eq!(one(0x13, &narrow(2, -12_345)), text("-123.45"));
        assert_eq!(one(0x13, &narrow(3, 5)), text("0.005"));
        assert_eq!(one(0x13, &narrow(0, 0)), text("0"));
        let wide = [&[1][..], &i128::MIN.to_le_bytes()].concat();
        assert_eq!(one(0x14, &wide), text("-17014118346046923173168730371588410572.8"));
        let shape = [&[2][..], &2_i32.to_le_bytes(), &1_i32.to_le_bytes()].concat();
        let elements = [1.5_f64.to_le_bytes(), f64::NAN.to_le_bytes()].concat();
        assert_eq!(one(0x11, &[shape, elements].concat()), text("{{1.5},{NULL}}"));
        assert_eq!(one(0x11, &[1, 0, 0, 0, 0]), text("{}"));
    }

    #[test]
    fn sentinel_values_are_null() {
        for (code, bytes) in [
            (0x04, i32::MIN.to_le_bytes().to_vec()),
            (0x05, i64::MIN.to_le_bytes().to_vec()),
            (0x06, f32::NAN.to_le_bytes().to_vec()),
            (0x07, f64::INFINITY.to_le_bytes().to_vec()),
            (0x0a, i64::MIN.to_le_bytes().to_vec()),
            (0x0e, vec![5, 0xff]),
            (0x13, [&[2][..], &i64::MIN.to_le_bytes()].concat()),
            (0x16, vec![0, 0]),
            (0x18, vec![0; 4]),
        ] {
            assert_eq!(one(code, &bytes), ParameterValue::Null, "type {code}");
        }
    }

    #[test]
    fn oversized_and_malformed_values_are_rejected() {
        let huge = [&[2][..], &i32::MAX.to_le_bytes(), &i32::MAX.to_le_bytes()].concat();
        let many = [&[2][..], &i32::MAX.to_le_bytes(), &[0; 4]].concat();
        for (code, bytes) in [
            (0x05, &[0; 7][..]),
            (0x0f, b"\0\0\0\0\x03\0\0\0a"),
            (0x0f, b"\x01\0\0\0\x01\0\0\0a"),
            (0x0f, b"\0\0"),
            (0x0f, b"\0\0\0\0\x01\0\0\0\xff"),
            (0x0e, &[61, 0, 0, 0, 0, 0, 0, 0, 0]),
            (0x0e, &[]),
            (0x11, &huge),
            (0x11, &[0]),
            (0x11, &many),
            (0x12, &[0]),
            (0x13, &[1]),
            (0x08, &[0]),
        ] {
            assert!(decoded(bytes, code).is_err(), "type {code}");
        }
    }
}
