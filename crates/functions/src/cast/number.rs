//! Conversions between integers, floating-point numbers and times. The source is widened to 64-bit
//! lanes, then narrowed to the target.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, PrimitiveArray};
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type,
};
use datafusion::common::Result;
use tidemark_types::SqlType;
use tidemark_types::timestamp::{TimestampUnit, iso_text};

use super::mode::{CastMode, unit_of};
use crate::column::{SentinelType, build, build_flags, canonical, internal, invalid};
use crate::resolve::inconvertible_value;

/// Reads the column as 64-bit integers in its own unit.
pub(super) fn integers(array: &ArrayRef, from: SqlType, to: SqlType) -> Result<Int64Array> {
    macro_rules! widen {
        ($type:ty) => {
            primitive::<$type>(array)?.unary(|value| i64::from(value))
        };
    }
    Ok(match from {
        SqlType::Boolean => {
            let flags = array.as_boolean_opt().ok_or_else(|| internal("not a boolean"))?;
            flags.iter().map(|flag| Some(i64::from(flag == Some(true)))).collect()
        }
        SqlType::Byte => widen!(Int8Type),
        SqlType::Short => widen!(Int16Type),
        SqlType::Int => widen!(Int32Type),
        SqlType::Long => primitive::<Int64Type>(array)?.clone(),
        SqlType::Ipv4 => widen!(UInt32Type),
        SqlType::Date => widen!(TimestampMillisecondType),
        SqlType::Timestamp => widen!(TimestampMicrosecondType),
        SqlType::TimestampNs => widen!(TimestampNanosecondType),
        SqlType::Char if to == SqlType::Char => widen!(UInt16Type),
        SqlType::Char => {
            let units = primitive::<UInt16Type>(array)?;
            let reading = |unit: u16| {
                char_value(unit, to).ok_or_else(|| {
                    let shown = char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}');
                    invalid(inconvertible_value(&shown.to_string(), from, to))
                })
            };
            let values: Vec<Option<i64>> =
                units.iter().map(|unit| unit.map(reading).transpose()).collect::<Result<_>>()?;
            values.into()
        }
        _ => return Err(internal(format!("cannot read {} as an integer", from.name()))),
    })
}

/// Returns the numeric value of a digit character, or the boolean value of T and F.
pub(super) fn char_value(unit: u16, to: SqlType) -> Option<i64> {
    match (to, char::from_u32(u32::from(unit))?) {
        (SqlType::Boolean, 'T' | 't') => Some(1),
        (SqlType::Boolean, 'F' | 'f') => Some(0),
        (SqlType::Boolean, _) => None,
        (_, digit) => digit.to_digit(10).map(i64::from),
    }
}

pub(super) fn doubles(array: &ArrayRef, from: SqlType) -> Result<Float64Array> {
    Ok(match from {
        SqlType::Float => primitive::<Float32Type>(array)?.unary(f64::from),
        _ => primitive::<Float64Type>(array)?.clone(),
    })
}

pub(super) fn primitive<T: arrow::datatypes::ArrowPrimitiveType>(
    array: &ArrayRef,
) -> Result<&PrimitiveArray<T>> {
    array.as_primitive_opt::<T>().ok_or_else(|| internal("unexpected operand type in a cast"))
}

pub(super) fn from_integer(
    source: &Int64Array,
    from: SqlType,
    to: SqlType,
    mode: CastMode,
) -> Result<ArrayRef> {
    if let (Some(source_unit), Some(target_unit)) = (unit_of(from), unit_of(to)) {
        return rescale(source, (from, source_unit), (to, target_unit));
    }
    if mode == CastMode::Insert {
        let range = match to {
            SqlType::Byte => i64::from(i8::MIN)..=i64::from(i8::MAX),
            SqlType::Short => i64::from(i16::MIN)..=i64::from(i16::MAX),
            SqlType::Int => i64::from(i32::MIN) + 1..=i64::from(i32::MAX),
            _ => i64::MIN..=i64::MAX,
        };
        if let Some(outside) = source.iter().flatten().find(|value| !range.contains(value)) {
            return Err(invalid(inconvertible_value(&outside.to_string(), from, to)));
        }
    }
    Ok(match to {
        SqlType::Boolean => {
            build_flags(source.len(), |row| source.is_valid(row) && source.value(row) != 0)
        }
        SqlType::Byte => narrow::<Int8Type>(source, |value| value as i8),
        SqlType::Short => narrow::<Int16Type>(source, |value| value as i16),
        SqlType::Int => narrow::<Int32Type>(source, |value| value as i32),
        SqlType::Long => narrow::<Int64Type>(source, |value| value),
        SqlType::Float => narrow::<Float32Type>(source, |value| value as f32),
        SqlType::Double => narrow::<Float64Type>(source, |value| value as f64),
        SqlType::Date => narrow::<TimestampMillisecondType>(source, |value| value),
        SqlType::Timestamp => narrow::<TimestampMicrosecondType>(source, |value| value),
        SqlType::TimestampNs => narrow::<TimestampNanosecondType>(source, |value| value),
        SqlType::Ipv4 => narrow::<UInt32Type>(source, |value| value as u32),
        SqlType::Char if from == SqlType::Boolean => {
            narrow::<UInt16Type>(source, |value| u16::from(if value == 0 { b'F' } else { b'T' }))
        }
        // A number below 10 becomes a digit; any other number becomes the character with that code.
        SqlType::Char => narrow::<UInt16Type>(source, |value| match value {
            0..=9 => 48 + value as u16,
            value => value as u16,
        }),
        _ => return Err(internal(format!("cannot cast to {}", to.name()))),
    })
}

fn narrow<T: SentinelType>(source: &Int64Array, value: impl Fn(i64) -> T::Native) -> ArrayRef {
    if source.null_count() > 0 && !T::NULLABLE {
        return build::<T>(source.len(), |row| {
            source.is_valid(row).then(|| value(source.value(row)))
        });
    }
    let values = source.values().iter().map(|&wide| value(wide)).collect();
    Arc::new(canonical::<T>(values, source.nulls().cloned()))
}

/// Converts times to another unit; times outside the target's range are errors.
fn rescale(
    source: &Int64Array,
    (from_type, from): (SqlType, TimestampUnit),
    (to_type, to): (SqlType, TimestampUnit),
) -> Result<ArrayRef> {
    let is_beyond = |at: &i64| from.convert(*at, to).is_none();
    if from.per_second() < to.per_second()
        && let Some(beyond) = source.iter().flatten().find(is_beyond)
    {
        let value = inconvertible_value(&beyond.to_string(), from_type, to_type);
        let shown = iso_text(beyond, from);
        let (min, greatest) = (iso_text(i64::MIN + 1, to), iso_text(i64::MAX, to));
        return Err(invalid(format!("{value}: {shown} is out of range {min} to {greatest}")));
    }
    let at =
        |row: usize| source.is_valid(row).then(|| from.convert(source.value(row), to)).flatten();
    let rows = source.len();
    Ok(match to {
        TimestampUnit::Millis => build::<TimestampMillisecondType>(rows, at),
        TimestampUnit::Micros => build::<TimestampMicrosecondType>(rows, at),
        TimestampUnit::Nanos => build::<TimestampNanosecondType>(rows, at),
    })
}

pub(super) fn from_double(source: &Float64Array, to: SqlType) -> Result<ArrayRef> {
    let rows = source.len();
    let at = |row: usize| source.is_valid(row).then(|| source.value(row));
    // Truncates toward zero. Out-of-range values become null.
    let long = |row: usize| {
        at(row).filter(|value| value.abs() < 9.223_372_036_854_775e18).map(|value| value as i64)
    };
    let int = |row: usize| long(row).and_then(|value| i32::try_from(value).ok());
    Ok(match to {
        SqlType::Boolean => build_flags(rows, |row| at(row).is_some_and(|value| value != 0.0)),
        SqlType::Byte => build::<Int8Type>(rows, |row| i8::try_from(int(row)?).ok()),
        SqlType::Short => build::<Int16Type>(rows, |row| i16::try_from(int(row)?).ok()),
        SqlType::Int => build::<Int32Type>(rows, int),
        SqlType::Long => build::<Int64Type>(rows, long),
        SqlType::Float => build::<Float32Type>(rows, |row| at(row).map(|value| value as f32)),
        SqlType::Double => build::<Float64Type>(rows, at),
        SqlType::Date => build::<TimestampMillisecondType>(rows, long),
        SqlType::Timestamp => build::<TimestampMicrosecondType>(rows, long),
        SqlType::TimestampNs => build::<TimestampNanosecondType>(rows, long),
        SqlType::Char => build::<UInt16Type>(rows, |row| int(row).map(|value| value as u16)),
        _ => return Err(internal(format!("cannot cast to {}", to.name()))),
    })
}

pub(super) fn narrower_geohash(array: &ArrayRef, from: SqlType, bits: u8) -> Result<ArrayRef> {
    let SqlType::Geohash(have) = from else {
        return Err(internal(format!("{} is not a geohash type", from.name())));
    };
    let wide = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64)?;
    let cut: Int64Array = primitive::<Int64Type>(&wide)?.unary(|value| value >> (have - bits));
    Ok(arrow::compute::cast(&cut, &SqlType::Geohash(bits).arrow_type())?)
}
