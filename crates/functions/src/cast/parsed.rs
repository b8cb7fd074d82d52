//! Parses string columns.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, Int64Array, LargeBinaryArray, PrimitiveArray,
    StringViewArray,
};
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt16Type,
    UInt32Type,
};
use datafusion::common::Result;
use tidemark_types::period::Period;
use tidemark_types::timestamp::{self, TimestampUnit};
use tidemark_types::{SqlType, double_array};

use super::mode::{CastMode, is_time};
use crate::array::arrays::{build_arrays, failed};
use crate::column::{
    Canonical, SentinelType, Texts, build, build_flags, internal, invalid, try_build,
};
use crate::datetime::periods::refusal;
use crate::resolve::inconvertible_value;
use crate::text::parse;

/// Converts a string view column to another type. A value that cannot be converted becomes null.
pub fn from_texts(texts: &ArrayRef, to: SqlType) -> Result<ArrayRef> {
    let texts = texts.as_string_view_opt().ok_or_else(|| internal("not a string"))?;
    from_text(texts, to, CastMode::Explicit)
}

/// Parses arrays written as `{1,NULL}` or `[1,null]`. A malformed array becomes null, or an error
/// in strict mode.
fn arrays_from_text(texts: &StringViewArray, dimensions: u8, mode: CastMode) -> Result<ArrayRef> {
    build_arrays(texts.len(), dimensions, |row, out| {
        let text = texts.is_valid(row).then(|| texts.value(row));
        match text.map(|text| (text, double_array::parse_text(dimensions, text))) {
            Some((_, Some((shape, values)))) => out.push(&shape, values).map_err(failed)?,
            Some((text, None)) if mode.strict() => {
                let to = SqlType::DoubleArray(dimensions);
                return Err(invalid(inconvertible_value(text, SqlType::String, to)));
            }
            _ => out.push_null(),
        }
        Ok(())
    })
}

/// Parses periods. A malformed period becomes null, or an error in strict mode.
fn periods_from_text(texts: &StringViewArray, mode: CastMode) -> Result<ArrayRef> {
    let cell = |text: Option<&str>| {
        let Some(text) = text else { return Ok(None) };
        match Period::parse(text).and_then(Period::native) {
            None if mode.strict() => Err(invalid(refusal(text))),
            native => Ok(native),
        }
    };
    let cells = texts.iter().map(cell);
    let cells = cells.collect::<Result<PrimitiveArray<IntervalMonthDayNanoType>>>()?;
    Ok(Arc::new(cells))
}

pub(super) fn from_text(texts: &StringViewArray, to: SqlType, mode: CastMode) -> Result<ArrayRef> {
    let rows = texts.len();
    let text = |row: usize| texts.is_valid(row).then(|| texts.value(row));
    macro_rules! parsed {
        ($lane:ty, $parse:expr) => {
            parse_column::<$lane>(texts, to, mode, $parse)
        };
    }
    match to {
        SqlType::Boolean => {
            if mode == CastMode::Insert
                && let Some(bad) = texts.iter().flatten().find(|text| !parse::is_boolean(text))
            {
                return Err(invalid(inconvertible_value(bad, SqlType::String, to)));
            }
            Ok(build_flags(rows, |row| text(row).is_some_and(parse::boolean)))
        }
        SqlType::Byte => {
            parsed!(Int8Type, |text| parse::int(text).and_then(|value| i8::try_from(value).ok()))
        }
        SqlType::Short => {
            parsed!(Int16Type, |text| parse::int(text).and_then(|value| i16::try_from(value).ok()))
        }
        SqlType::Char => Ok(build::<UInt16Type>(rows, |row| {
            text(row).and_then(|text| text.encode_utf16().next())
        })),
        SqlType::Int => parsed!(Int32Type, parse::int),
        SqlType::Long => parsed!(Int64Type, parse::integer),
        SqlType::Float => parsed!(Float32Type, parse::float),
        SqlType::Double => parsed!(Float64Type, parse::double),
        SqlType::Date => {
            parsed!(TimestampMillisecondType, |text| time(text, TimestampUnit::Millis))
        }
        SqlType::Timestamp => {
            parsed!(TimestampMicrosecondType, |text| time(text, TimestampUnit::Micros))
        }
        SqlType::TimestampNs => {
            parsed!(TimestampNanosecondType, |text| time(text, TimestampUnit::Nanos))
        }
        SqlType::DoubleArray(dimensions) => arrays_from_text(texts, dimensions, mode),
        SqlType::Binary => bytes(texts),
        SqlType::Period => periods_from_text(texts, mode),
        SqlType::Ipv4 => parsed!(UInt32Type, parse::ipv4),
        SqlType::Uuid => fixed(texts, to, mode, parse::uuid),
        SqlType::Long256 => fixed(texts, to, mode, parse::long256),
        SqlType::Geohash(bits) => {
            let strict = mode == CastMode::Insert;
            let values: Int64Array = texts
                .iter()
                .map(|text| match text.filter(|text| !text.is_empty()) {
                    None => Ok(None),
                    Some(text) => match parse::geohash(text, bits) {
                        None if strict => {
                            Err(invalid(inconvertible_value(text, SqlType::String, to)))
                        }
                        value => Ok(value),
                    },
                })
                .collect::<Result<_>>()?;
            Ok(arrow::compute::cast(&values, &to.arrow_type())?)
        }
        _ => Err(internal(format!("cannot cast to {}", to.name()))),
    }
}

/// Parses strings as bytes; an invalid hexadecimal or escape sequence is an error.
fn bytes(texts: &StringViewArray) -> Result<ArrayRef> {
    let values = texts.iter().map(|text| match text.map(|text| (text, parse::bytes(text))) {
        Some((text, None)) => {
            Err(invalid(inconvertible_value(text, SqlType::String, SqlType::Binary)))
        }
        found => Ok(found.and_then(|(_, bytes)| bytes)),
    });
    Ok(Arc::new(values.collect::<Result<LargeBinaryArray>>()?))
}

/// Parses a string column. In strict mode, a malformed string is an error. IPv4 addresses are
/// compared only for equality, so a malformed string is simply unequal.
fn parse_column<T: SentinelType>(
    texts: &StringViewArray,
    to: SqlType,
    mode: CastMode,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let strict = mode == CastMode::Insert || (mode.strict() && to != SqlType::Ipv4);
    let rows = texts.len();
    let texts = Texts::new(texts.clone(), false);
    try_build::<T>(rows, |row| {
        let Some(text) = texts.get(row) else { return Ok(None) };
        match parse(text).filter(|value| !value.is_null_value()) {
            None if strict && !means_null(text, to) => {
                // The error message reports the type of a one-character string as CHAR.
                let is_unit = mode == CastMode::Insert && text.encode_utf16().count() == 1;
                let from = if is_unit { SqlType::Char } else { SqlType::String };
                Err(invalid(inconvertible_value(text, from, to)))
            }
            value => Ok(value),
        }
    })
}

/// Whether an unparseable string represents the type's null rather than being malformed.
fn means_null(text: &str, to: SqlType) -> bool {
    let number = to.is_integer() || to.is_floating();
    text.is_empty() && is_time(to)
        || to == SqlType::Ipv4 && text == "0.0.0.0"
        || number && text == "null"
        || to.is_floating() && (text == "NaN" || text.ends_with("Infinity"))
}

/// Parses a time. `epoch` is `PostgreSQL`'s name of 1970-01-01.
fn time(text: &str, unit: TimestampUnit) -> Option<i64> {
    timestamp::parse(text, unit).or_else(|| text.eq_ignore_ascii_case("epoch").then_some(0))
}

fn fixed<const N: usize>(
    texts: &StringViewArray,
    to: SqlType,
    mode: CastMode,
    parse: impl Fn(&str) -> Option<[u8; N]>,
) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        let value = text.and_then(&parse);
        if let (Some(text), None, CastMode::Insert) = (text, value, mode) {
            return Err(invalid(inconvertible_value(text, SqlType::String, to)));
        }
        values.push(value);
    }
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), N as i32)?;
    Ok(Arc::new(array))
}
