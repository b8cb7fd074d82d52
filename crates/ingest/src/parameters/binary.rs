//! Decodes binary values of the wire protocol, with one decoder per type. Values whose type has no
//! equivalent in the engine are converted to their text format. These types are numerics,
//! addresses, times of day, intervals and multidimensional arrays.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use chrono::DateTime;
use tidemark_types::{EngineError, EngineResult, ErrorCode, ParameterValue, push_item};
use uuid::Uuid;

use super::reader::{DAY_MICROS, Reader, malformed, since_1970, sized};
use super::text::text_of;
use super::{items, oid};

/// Maximum number of array dimensions, as in `PostgreSQL`.
const MAX_DIMENSIONS: usize = 6;
/// Length in bytes of an array element's length prefix.
const LENGTH_BYTES: usize = 4;

/// The engine type for values of a wire type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryKind {
    Text,
    Boolean,
    Short,
    Int,
    Long,
    Float,
    Double,
    Timestamp,
    Uuid,
    Binary,
}

impl BinaryKind {
    /// Returns the engine type for the wire type with this OID.
    pub(crate) fn of(oid: u32) -> Self {
        match oid {
            oid::BOOL => Self::Boolean,
            oid::INT2 => Self::Short,
            oid::INT4 => Self::Int,
            oid::INT8 | oid::OID => Self::Long,
            oid::FLOAT4 => Self::Float,
            oid::FLOAT8 => Self::Double,
            oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => Self::Timestamp,
            oid::UUID => Self::Uuid,
            oid::BYTEA => Self::Binary,
            _ => Self::Text,
        }
    }
}

/// Decodes `bytes` as a value of type `oid`.
pub(super) fn decoded(bytes: &[u8], oid: u32) -> EngineResult<ParameterValue<'_>> {
    use ParameterValue as Value;
    Ok(match oid {
        oid::BOOL => Value::Boolean(sized::<1>(bytes)? != [0]),
        oid::INT2 => Value::Short(i16::from_be_bytes(sized(bytes)?)),
        oid::INT4 => match i32::from_be_bytes(sized(bytes)?) {
            i32::MIN => Value::Null,
            value => Value::Int(value),
        },
        oid::OID => Value::Long(i64::from(u32::from_be_bytes(sized(bytes)?))),
        oid::INT8 => match i64::from_be_bytes(sized(bytes)?) {
            i64::MIN => Value::Null,
            value => Value::Long(value),
        },
        oid::FLOAT4 => match f32::from_be_bytes(sized(bytes)?) {
            value if value.is_finite() => Value::Float(value),
            _ => Value::Null,
        },
        oid::FLOAT8 => match f64::from_be_bytes(sized(bytes)?) {
            value if value.is_finite() => Value::Double(value),
            _ => Value::Null,
        },
        oid::DATE => {
            let days = i64::from(i32::from_be_bytes(sized(bytes)?));
            Value::Timestamp(since_1970(days.checked_mul(DAY_MICROS))?)
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            Value::Timestamp(since_1970(Some(i64::from_be_bytes(sized(bytes)?)))?)
        }
        oid::UUID => Value::Uuid(sized(bytes)?),
        oid::BYTEA => Value::Binary(Cow::Borrowed(bytes)),
        oid::JSONB => match bytes {
            [1, text @ ..] => Value::text(text_of(text)?),
            _ => return Err(malformed()),
        },
        oid::UNKNOWN
        | oid::UNKNOWN_LITERAL
        | oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::NAME
        | oid::CHAR
        | oid::JSON
        | oid::XML => Value::text(text_of(bytes)?),
        array if oid::ARRAYS.contains(&array) => self::array(bytes)?,
        other => Value::text(text_form(bytes, other)?),
    })
}

/// Returns the text format of a value whose type has no equivalent in the engine.
fn text_form(bytes: &[u8], oid: u32) -> EngineResult<String> {
    match oid {
        oid::NUMERIC => numeric(bytes),
        oid::INET | oid::CIDR => address(bytes),
        oid::TIME => Ok(time_of_day(i64::from_be_bytes(sized(bytes)?))),
        oid::INTERVAL => interval(bytes),
        other => {
            let message =
                format!("binary format is not supported for parameters with type OID {other}");
            Err(EngineError::new(ErrorCode::NotSupported, message)
                .with_hint("send the value as text"))
        }
    }
}

/// Formats base-10,000 digits as a decimal string.
fn numeric(bytes: &[u8]) -> EngineResult<String> {
    let mut reader = Reader::new(bytes);
    let (count, weight) = (reader.i16()?, reader.i16()?);
    let (sign, scale) = (u16::from_be_bytes(reader.array()?), reader.i16()?);
    let count = usize::try_from(count).map_err(|_| malformed())?;
    let scale = usize::try_from(scale).map_err(|_| malformed())?;
    if reader.left().len() != count * 2 {
        return Err(malformed());
    }
    let groups = (0..count).map(|_| reader.i16()).collect::<EngineResult<Vec<_>>>()?;
    if groups.iter().any(|group| !(0..10_000).contains(group)) {
        return Err(malformed());
    }
    let minus = match sign {
        0 => "",
        0x4000 => "-",
        0xc000 => return Ok("NaN".to_owned()),
        0xd000 => return Ok("Infinity".to_owned()),
        0xf000 => return Ok("-Infinity".to_owned()),
        _ => return Err(malformed()),
    };
    let group = |position: i32| {
        let index = usize::try_from(i32::from(weight) - position).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut digits = String::new();
    for position in (0..=i32::from(weight)).rev() {
        let _ = write!(digits, "{:04}", group(position));
    }
    let integer = match digits.trim_start_matches('0') {
        "" => "0",
        integer => integer,
    };
    let mut text = format!("{minus}{integer}");
    if scale > 0 {
        let mut fraction = String::new();
        for position in (1..).take(scale.div_ceil(4)) {
            let _ = write!(fraction, "{:04}", group(-position));
        }
        fraction.truncate(scale);
        text.push('.');
        text.push_str(&fraction);
    }
    Ok(text)
}

/// Formats an address. Its prefix length is included unless it covers the entire address.
fn address(bytes: &[u8]) -> EngineResult<String> {
    /// Values of `PGSQL_AF_INET` and `PGSQL_AF_INET6`.
    const FAMILIES: [u8; 2] = [2, 3];
    let [family, prefix, _is_cidr, length, address @ ..] = bytes else { return Err(malformed()) };
    if !FAMILIES.contains(family) || usize::from(*length) != address.len() {
        return Err(malformed());
    }
    let (text, full) = if let Ok(v4) = <[u8; 4]>::try_from(address) {
        (Ipv4Addr::from(v4).to_string(), 32)
    } else {
        (Ipv6Addr::from(sized::<16>(address)?).to_string(), 128)
    };
    Ok(if *prefix == full { text } else { format!("{text}/{prefix}") })
}

/// Formats a time of day as `HH:MM:SS.ffffff`.
fn time_of_day(micros: i64) -> String {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (hours, minutes) = (seconds.div_euclid(3600), seconds.rem_euclid(3600) / 60);
    let seconds = seconds.rem_euclid(60);
    let digits = if fraction == 0 { String::new() } else { format!(".{fraction:06}") };
    format!("{hours:02}:{minutes:02}:{seconds:02}{digits}")
}

/// Formats months, days and a time in `PostgreSQL`'s interval syntax.
fn interval(bytes: &[u8]) -> EngineResult<String> {
    let mut reader = Reader::new(bytes);
    let micros = i64::from_be_bytes(reader.array()?);
    let (days, months) = (reader.i32()?, reader.i32()?);
    if !reader.left().is_empty() {
        return Err(malformed());
    }
    let mut parts = Vec::new();
    for (count, unit) in [(months, "mons"), (days, "days")] {
        if count != 0 {
            parts.push(format!("{count} {unit}"));
        }
    }
    if micros != 0 || parts.is_empty() {
        let minus = if micros < 0 { "-" } else { "" };
        let size = i64::try_from(micros.unsigned_abs()).map_err(|_| malformed())?;
        parts.push(format!("{minus}{}", time_of_day(size)));
    }
    Ok(parts.join(" "))
}

/// Decodes a one-dimensional array into items. Any other array is converted to a string such as
/// `{1.0,NULL,{…}}`.
fn array(bytes: &[u8]) -> EngineResult<ParameterValue<'static>> {
    let mut reader = Reader::new(bytes);
    let dimensions = usize::try_from(reader.i32()?).map_err(|_| malformed())?;
    let _has_nulls = reader.i32()?;
    let element = u32::from_be_bytes(reader.array()?);
    if dimensions > MAX_DIMENSIONS || oid::ARRAYS.contains(&element) {
        return Err(malformed());
    }
    let mut lengths = Vec::with_capacity(dimensions);
    for _ in 0..dimensions {
        lengths.push(usize::try_from(reader.i32()?).map_err(|_| malformed())?);
        let _lower_bound = reader.i32()?;
    }
    // The allocation cannot exceed the input, because each element has at least a length prefix.
    let count = lengths.iter().try_fold(1_usize, |all, length| all.checked_mul(*length));
    let count = count.filter(|count| *count <= reader.left().len() / LENGTH_BYTES);
    let count = if dimensions == 0 { 0 } else { count.ok_or_else(malformed)? };
    let items = match (count, lengths.as_slice()) {
        (1.., [_]) => items::read(&mut reader, count, element)?,
        _ => None,
    };
    let value = match items {
        Some(items) => ParameterValue::Items(items),
        None if count == 0 => ParameterValue::text("{}"),
        None => {
            let mut text = String::with_capacity(bytes.len());
            push_level(&mut text, &mut reader, &lengths, element)?;
            ParameterValue::text(text)
        }
    };
    if !reader.left().is_empty() {
        return Err(malformed());
    }
    Ok(value)
}

fn push_level(
    text: &mut String,
    reader: &mut Reader<'_>,
    lengths: &[usize],
    element: u32,
) -> EngineResult<()> {
    let Some((length, inner)) = lengths.split_first() else {
        return push_element(text, reader, element);
    };
    text.push('{');
    for index in 0..*length {
        if index > 0 {
            text.push(',');
        }
        push_level(text, reader, inner, element)?;
    }
    text.push('}');
    Ok(())
}

fn push_element(text: &mut String, reader: &mut Reader<'_>, element: u32) -> EngineResult<()> {
    let Ok(length) = usize::try_from(reader.i32()?) else {
        text.push_str("NULL");
        return Ok(());
    };
    let value = decoded(reader.bytes(length)?, element)?;
    if value == ParameterValue::Null {
        text.push_str("NULL");
        return Ok(());
    }
    push_item(text, &shown(&value));
    Ok(())
}

/// Formats a value inside an array.
fn shown<'v>(value: &'v ParameterValue<'_>) -> Cow<'v, str> {
    match value {
        ParameterValue::Null => Cow::Borrowed("NULL"),
        ParameterValue::Text(text) => Cow::Borrowed(text),
        ParameterValue::Boolean(value) => value.to_string().into(),
        ParameterValue::Short(value) => value.to_string().into(),
        ParameterValue::Int(value) => value.to_string().into(),
        ParameterValue::Long(value) => value.to_string().into(),
        ParameterValue::Float(value) => format!("{value:?}").into(),
        ParameterValue::Double(value) => format!("{value:?}").into(),
        ParameterValue::Timestamp(micros) => DateTime::from_timestamp_micros(*micros)
            .map_or_else(String::new, |time| time.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string())
            .into(),
        ParameterValue::Uuid(bytes) => Uuid::from_bytes(*bytes).to_string().into(),
        ParameterValue::Binary(bytes) => {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("\\x{}", hex.collect::<String>()).into()
        }
        ParameterValue::Items(items) => items.text().into(),
    }
}
