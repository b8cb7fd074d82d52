//! Values from protocols that send a type with each value: which column type a value creates, and
//! how it is assigned to an existing column. Assignment is lossless except for floating-point
//! digits and timestamp precision finer than the column's unit.

use std::borrow::Cow;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_buffer::i256;
use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::{EngineError, EngineResult, SqlType};

use crate::column::ColumnBuilder;
use crate::value_text;

/// A timestamp in its own unit, microseconds or nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timestamp {
    Micros(i64),
    Nanos(i64),
}

impl Timestamp {
    /// Returns the server time.
    pub(crate) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::Nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    /// Converts to another unit, rounding down; `None` if the result overflows 64 bits.
    pub(crate) fn in_units_of(self, nanos: i64) -> Option<i64> {
        let (value, own) = match self {
            Self::Micros(value) => (value, 1_000),
            Self::Nanos(value) => (value, 1),
        };
        if own >= nanos {
            value.checked_mul(own / nanos)
        } else {
            Some(value.div_euclid(nanos / own))
        }
    }
}

/// A value from a protocol that sends a type with each value.
#[derive(Debug)]
pub(crate) enum Value<'b> {
    Symbol(Cow<'b, [u8]>),
    Text(Cow<'b, [u8]>),
    Integer(i64),
    /// A double, with the original string if it was sent as a string.
    Double(f64, Option<&'b [u8]>),
    Long256(&'b [u8]),
    /// Digits without the type suffix.
    Decimal(&'b [u8]),
    Unscaled(i256, u8),
    Boolean(bool),
    Timestamp(Timestamp),
    Array(u8, &'b [u8]),
    /// A null, which any nullable type accepts.
    Null,
    NullArray,
}

impl Value<'_> {
    /// Returns the type of a column created for this value; `None` if the value has no type.
    pub(crate) fn new_type(&self) -> Option<SqlType> {
        Some(match self {
            Self::Symbol(_) => SqlType::Symbol,
            Self::Text(_) => SqlType::Varchar,
            Self::Integer(_) => SqlType::Long,
            Self::Double(..) => SqlType::Double,
            Self::Long256(_) => SqlType::Long256,
            Self::Decimal(_) | Self::Unscaled(..) => SqlType::Decimal(18, 3),
            Self::Boolean(_) => SqlType::Boolean,
            Self::Timestamp(Timestamp::Micros(_)) => SqlType::Timestamp,
            Self::Timestamp(Timestamp::Nanos(_)) => SqlType::TimestampNs,
            Self::Array(dimensions, _) => SqlType::DoubleArray(*dimensions),
            Self::Null | Self::NullArray => return None,
        })
    }
}

/// Why a value cannot be assigned to a column.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The column's type does not accept values of this kind.
    Kind,
    /// The value is out of range or malformed for the type.
    Value,
    Utf8,
    Failed(EngineError),
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

type Put = Result<(), Problem>;

/// Appends a value. On failure, the column may contain an extra cell.
#[inline]
pub(crate) fn put(column: &mut ColumnBuilder, value: &Value<'_>) -> Put {
    match (&mut *column, value) {
        (ColumnBuilder::Double(cells), Value::Double(value, _)) => {
            cells.push(value.is_finite().then_some(*value));
            Ok(())
        }
        (ColumnBuilder::Symbol { texts, keys }, Value::Symbol(text) | Value::Text(text)) => {
            let text = std::str::from_utf8(text).map_err(|_| Problem::Utf8)?;
            keys.push(Some(texts.intern(text)?));
            Ok(())
        }
        (ColumnBuilder::Long(cells), Value::Integer(value)) => {
            cells.push(not_null(*value));
            Ok(())
        }
        (ColumnBuilder::Text(cells), Value::Text(text) | Value::Symbol(text)) => {
            cells.append_value(std::str::from_utf8(text).map_err(|_| Problem::Utf8)?);
            Ok(())
        }
        (_, Value::Null) => {
            column.append_null();
            Ok(())
        }
        (ColumnBuilder::Symbol { texts, keys }, other) => {
            let text = symbol_text(other)?;
            keys.push(text.map(|text| texts.intern(&text)).transpose()?);
            Ok(())
        }
        (_, Value::Integer(value)) => integer(column, *value),
        (_, Value::Double(value, text)) => double(column, *value, *text),
        (_, Value::Timestamp(value)) => timestamp(column, *value),
        (_, Value::Text(text)) => self::text(column, text),
        (_, Value::Boolean(value)) => boolean(column, *value),
        (_, Value::Decimal(text)) => decimal_text(column, text),
        (_, Value::Unscaled(value, scale)) => unscaled(column, *value, *scale),
        (_, Value::Array(dimensions, bytes)) => array(column, *dimensions, bytes),
        (ColumnBuilder::Array { cells, .. }, Value::NullArray) => {
            cells.push_null();
            Ok(())
        }
        (ColumnBuilder::Long256(cells), Value::Long256(text)) => {
            cells.push(Some(value_text::long256(text).ok_or(Problem::Value)?));
            Ok(())
        }
        (_, Value::Symbol(_) | Value::NullArray | Value::Long256(_)) => Err(Problem::Kind),
    }
}

/// Formats a value other than a string as a symbol. Numbers lose their type suffix; booleans are
/// written as clients write them.
#[cold]
fn symbol_text(value: &Value<'_>) -> Result<Option<String>, Problem> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| Problem::Utf8);
    Ok(match value {
        Value::Integer(value) => not_null(*value).map(|value| value.to_string()),
        Value::Timestamp(Timestamp::Micros(value) | Timestamp::Nanos(value)) => {
            not_null(*value).map(|value| value.to_string())
        }
        Value::Boolean(value) => Some(if *value { "t" } else { "f" }.to_owned()),
        Value::Double(value, _) if !value.is_finite() => None,
        Value::Double(_, Some(written)) => Some(text(written)?),
        Value::Double(value, None) => Some(value.to_string()),
        Value::Long256(written) | Value::Decimal(written) => Some(text(written)?),
        _ => return Err(Problem::Kind),
    })
}

/// Returns null for the smallest 64-bit integer, which represents null.
fn not_null(value: i64) -> Option<i64> {
    (value != i64::MIN).then_some(value)
}

/// Converts to INT; null remains null. The minimum INT value is rejected, because it would be read
/// as null.
fn int(value: i64) -> Result<Option<i32>, Problem> {
    let Some(value) = not_null(value) else { return Ok(None) };
    let narrow = i32::try_from(value).ok().filter(|narrow| *narrow != i32::MIN);
    narrow.map(Some).ok_or(Problem::Value)
}

fn integer(column: &mut ColumnBuilder, value: i64) -> Put {
    match column {
        ColumnBuilder::Byte(cells) => {
            cells.push(not_null(value).unwrap_or(0).try_into().map_err(|_| Problem::Value)?);
        }
        ColumnBuilder::Short(cells) => {
            cells.push(not_null(value).unwrap_or(0).try_into().map_err(|_| Problem::Value)?);
        }
        ColumnBuilder::Int(cells) => cells.push(int(value)?),
        ColumnBuilder::Float(cells) => cells.push(not_null(value).map(|value| value as f32)),
        ColumnBuilder::Double(cells) => cells.push(not_null(value).map(|value| value as f64)),
        ColumnBuilder::Timestamp { values, .. } => values.push(not_null(value)),
        ColumnBuilder::Decimal { .. } if value == i64::MIN => column.append_null(),
        ColumnBuilder::Decimal { .. } => {
            return unscaled(column, i256::from_i128(i128::from(value)), 0);
        }
        _ => return Err(Problem::Kind),
    }
    Ok(())
}

fn double(column: &mut ColumnBuilder, value: f64, text: Option<&[u8]>) -> Put {
    match column {
        ColumnBuilder::Float(cells) if !value.is_finite() => cells.push(None),
        ColumnBuilder::Float(cells) => {
            let narrow = value as f32;
            if !narrow.is_finite() {
                return Err(Problem::Value);
            }
            cells.push(Some(narrow));
        }
        ColumnBuilder::Decimal { .. } if !value.is_finite() => column.append_null(),
        ColumnBuilder::Decimal { .. } => match text {
            Some(text) => return decimal_text(column, text),
            None => return decimal_text(column, format!("{value}").as_bytes()),
        },
        _ => return Err(Problem::Kind),
    }
    Ok(())
}

fn boolean(column: &mut ColumnBuilder, value: bool) -> Put {
    match column {
        ColumnBuilder::Boolean(cells) => cells.push(value),
        ColumnBuilder::Byte(cells) => cells.push(i8::from(value)),
        ColumnBuilder::Short(cells) => cells.push(i16::from(value)),
        ColumnBuilder::Int(cells) => cells.push(Some(i32::from(value))),
        ColumnBuilder::Long(cells) => cells.push(Some(i64::from(value))),
        ColumnBuilder::Float(cells) => cells.push(Some(f32::from(u8::from(value)))),
        ColumnBuilder::Double(cells) => cells.push(Some(f64::from(u8::from(value)))),
        _ => return Err(Problem::Kind),
    }
    Ok(())
}

/// Returns the length in nanoseconds of a column's time unit.
pub(crate) fn unit_nanos(unit: TimestampUnit) -> i64 {
    match unit {
        TimestampUnit::Millis => 1_000_000,
        TimestampUnit::Micros => 1_000,
        TimestampUnit::Nanos => 1,
    }
}

pub(crate) fn timestamp(column: &mut ColumnBuilder, value: Timestamp) -> Put {
    let (Timestamp::Micros(raw) | Timestamp::Nanos(raw)) = value;
    let own = match column {
        ColumnBuilder::Long(cells) => {
            cells.push(not_null(raw));
            return Ok(());
        }
        ColumnBuilder::Timestamp { unit, .. } => unit_nanos(*unit),
        _ => return Err(Problem::Kind),
    };
    let ColumnBuilder::Timestamp { values, .. } = column else { return Err(Problem::Kind) };
    match not_null(raw) {
        None => values.push(None),
        Some(_) => values.push(Some(value.in_units_of(own).ok_or(Problem::Value)?)),
    }
    Ok(())
}

/// An empty string becomes null in columns whose type is not a string type.
fn text(column: &mut ColumnBuilder, text: &[u8]) -> Put {
    match column {
        ColumnBuilder::Char(_)
        | ColumnBuilder::Uuid(_)
        | ColumnBuilder::Ipv4(_)
        | ColumnBuilder::Geohash { .. }
        | ColumnBuilder::Decimal { .. }
        | ColumnBuilder::Long256(_)
        | ColumnBuilder::Timestamp { .. } => {}
        _ => return Err(Problem::Kind),
    }
    if text.is_empty() {
        column.append_null();
        return Ok(());
    }
    let fits = match column {
        ColumnBuilder::Char(_) => {
            let text = std::str::from_utf8(text).map_err(|_| Problem::Utf8)?;
            text.encode_utf16().count() == 1
        }
        ColumnBuilder::Geohash { .. } => value_text::is_geohash(text),
        _ => true,
    };
    if fits && column.append(text)? { Ok(()) } else { Err(Problem::Value) }
}

fn decimal_text(column: &mut ColumnBuilder, text: &[u8]) -> Put {
    match column {
        ColumnBuilder::Decimal { precision, scale, values } => {
            let value = value_text::decimal(text, *precision, *scale).ok_or(Problem::Value)?;
            values.push(Some(value));
            Ok(())
        }
        ColumnBuilder::Float(_) | ColumnBuilder::Double(_) => {
            let value: f64 = fast_float2::parse(text).map_err(|_| Problem::Value)?;
            floating(column, value)
        }
        _ => Err(Problem::Kind),
    }
}

fn floating(column: &mut ColumnBuilder, value: f64) -> Put {
    match column {
        ColumnBuilder::Double(cells) if value.is_finite() => {
            cells.push(Some(value));
            Ok(())
        }
        ColumnBuilder::Float(_) if value.is_finite() => double(column, value, None),
        _ => Err(Problem::Value),
    }
}

/// Appends a decimal, given as its unscaled value and scale.
fn unscaled(column: &mut ColumnBuilder, value: i256, scale: u8) -> Put {
    match column {
        ColumnBuilder::Decimal { precision, scale: to, values } => {
            let value = rescaled(value, scale, *to).ok_or(Problem::Value)?;
            let max = i256::from_i128(10).checked_pow(u32::from(*precision));
            if max.is_some_and(|max| value >= max || value <= max.wrapping_neg()) {
                return Err(Problem::Value);
            }
            values.push(Some(value));
            Ok(())
        }
        ColumnBuilder::Float(_) | ColumnBuilder::Double(_) => {
            // The value is parsed from its decimal notation, which yields the nearest
            // floating-point number.
            let text = format!("{value}e-{scale}");
            let value: f64 = fast_float2::parse(&text).map_err(|_| Problem::Value)?;
            floating(column, value)
        }
        _ => Err(Problem::Kind),
    }
}

/// Changes the scale of a decimal; `None` if significant digits would be lost.
fn rescaled(value: i256, from: u8, to: u8) -> Option<i256> {
    let factor = i256::from_i128(10).checked_pow(u32::from(from.abs_diff(to)))?;
    if to >= from {
        return value.checked_mul(factor);
    }
    let rest = value.checked_rem(factor)?;
    (rest == i256::ZERO).then(|| value.checked_div(factor)).flatten()
}

fn array(column: &mut ColumnBuilder, dimensions: u8, bytes: &[u8]) -> Put {
    let ColumnBuilder::Array { dimensions: own, cells } = column else {
        return Err(Problem::Kind);
    };
    if *own != dimensions {
        return Err(Problem::Value);
    }
    let (shape, elements) = bytes.split_at(usize::from(dimensions) * size_of::<u32>());
    let length = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes) as i32;
    let mut lengths = [0; 32];
    let shape = shape.as_chunks().0.iter().map(length);
    lengths.iter_mut().zip(shape).for_each(|(to, length)| *to = length);
    let elements = elements.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
    let pushed: EngineResult<()> = cells.push(&lengths[..usize::from(dimensions)], elements);
    Ok(pushed?)
}
