//! Converts values to strings, and strings to symbols and back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int64Array,
    PrimitiveArray, StringDictionaryBuilder, StringViewArray, StringViewBuilder,
};
use arrow::compute::take;
use arrow::datatypes::{
    Float32Type, Float64Type, Int32Type, Int64Type, IntervalMonthDayNanoType, UInt16Type,
    UInt32Type,
};
use datafusion::common::Result;
use tidemark_types::double_array::{DoubleArrays, JSON_ARRAY};
use tidemark_types::period::Period;
use tidemark_types::timestamp::{self, TimestampUnit};
use tidemark_types::{SqlType, number_text};

use super::mode::{CastMode, is_plain_text, unit_of};
use super::number::{integers, primitive};
use crate::column::internal;
use crate::text::parse;

/// Returns the strings of a SYMBOL column as views into its dictionary.
pub(crate) fn symbol_texts(array: &ArrayRef) -> Result<ArrayRef> {
    let symbols = array
        .as_any()
        .downcast_ref::<DictionaryArray<Int32Type>>()
        .ok_or_else(|| internal("not a symbol"))?;
    let values = symbols.values().as_string_opt::<i32>().ok_or_else(|| internal("not a symbol"))?;
    Ok(take(&StringViewArray::from(values), symbols.keys(), None)?)
}

/// Builds a SYMBOL column with its own dictionary.
pub(crate) fn symbols(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = texts.as_string_view_opt().ok_or_else(|| internal("not a string"))?;
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    for text in texts {
        builder.append_option(text);
    }
    Ok(Arc::new(builder.finish()))
}

/// Converts any column to strings.
pub(crate) fn text(array: &ArrayRef, from: SqlType, mode: CastMode) -> Result<ArrayRef> {
    if is_plain_text(from) {
        return Ok(Arc::clone(array));
    }
    let null = match (mode, from) {
        (CastMode::Constant, SqlType::Int | SqlType::Long) => Some("null"),
        (CastMode::Constant, SqlType::Float | SqlType::Double) => Some("NaN"),
        _ => None,
    };
    let writer = TextWriter::new(array, from)?;
    let mut builder = StringViewBuilder::with_capacity(array.len());
    let mut bytes = Vec::with_capacity(64);
    for row in 0..array.len() {
        bytes.clear();
        if array.is_null(row) {
            builder.append_option(null);
        } else {
            writer.write(row, &mut bytes);
            builder.append_value(std::str::from_utf8(&bytes).unwrap_or_default());
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// Writes a column's values as strings. The type is matched once per column.
enum TextWriter<'a> {
    Flags(&'a BooleanArray),
    Integers(Int64Array),
    Floats(&'a PrimitiveArray<Float32Type>),
    Doubles(&'a PrimitiveArray<Float64Type>),
    Times(Int64Array, TimestampUnit),
    Units(&'a PrimitiveArray<UInt16Type>),
    Addresses(&'a PrimitiveArray<UInt32Type>),
    Uuids(&'a FixedSizeBinaryArray),
    Long256(&'a FixedSizeBinaryArray),
    Geohashes(Int64Array, u8),
    Arrays(DoubleArrays<'a>),
    Periods(&'a PrimitiveArray<IntervalMonthDayNanoType>),
    Other(StringViewArray),
}

impl<'a> TextWriter<'a> {
    fn new(array: &'a ArrayRef, from: SqlType) -> Result<Self> {
        let fixed =
            || array.as_fixed_size_binary_opt().ok_or_else(|| internal("not a fixed-size value"));
        Ok(match from {
            SqlType::Boolean => {
                Self::Flags(array.as_boolean_opt().ok_or_else(|| internal("not a boolean"))?)
            }
            SqlType::Byte | SqlType::Short | SqlType::Int | SqlType::Long => {
                Self::Integers(integers(array, from, SqlType::Long)?)
            }
            SqlType::Float => Self::Floats(primitive(array)?),
            SqlType::Double => Self::Doubles(primitive(array)?),
            SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs => Self::Times(
                integers(array, from, SqlType::Long)?,
                unit_of(from).unwrap_or(TimestampUnit::Micros),
            ),
            SqlType::Char => Self::Units(primitive(array)?),
            SqlType::Ipv4 => Self::Addresses(primitive(array)?),
            SqlType::Uuid => Self::Uuids(fixed()?),
            SqlType::Long256 => Self::Long256(fixed()?),
            SqlType::DoubleArray(_) => {
                Self::Arrays(DoubleArrays::new(array).ok_or_else(|| internal("not an array"))?)
            }
            SqlType::Period => Self::Periods(primitive(array)?),
            SqlType::Geohash(bits) => {
                let wide = arrow::compute::cast(array, &arrow::datatypes::DataType::Int64)?;
                Self::Geohashes(primitive::<Int64Type>(&wide)?.clone(), bits)
            }
            _ => {
                let texts = arrow::compute::cast(array, &arrow::datatypes::DataType::Utf8View)?;
                Self::Other(texts.as_string_view().clone())
            }
        })
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            Self::Periods(lengths) => {
                out.extend_from_slice(Period::from(lengths.value(row)).text().as_bytes());
            }
            Self::Flags(flags) => {
                out.extend_from_slice(if flags.value(row) { b"true" } else { b"false" });
            }
            Self::Integers(values) => number_text::write_i64(out, values.value(row)),
            Self::Floats(values) => number_text::write_f32(out, values.value(row)),
            Self::Doubles(values) => number_text::write_f64(out, values.value(row)),
            Self::Times(values, unit) => timestamp::write_iso(out, values.value(row), *unit),
            Self::Units(values) => {
                let shown = char::from_u32(u32::from(values.value(row))).unwrap_or('\u{fffd}');
                out.extend_from_slice(shown.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Self::Addresses(values) => {
                let address = std::net::Ipv4Addr::from(values.value(row));
                out.extend_from_slice(address.to_string().as_bytes());
            }
            Self::Uuids(values) => {
                let id = uuid::Uuid::from_slice(values.value(row)).unwrap_or_default();
                let text =
                    id.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).to_owned();
                out.extend_from_slice(text.as_bytes());
            }
            Self::Long256(values) => {
                out.extend_from_slice(b"0x");
                let mut digits = String::new();
                crate::text::hash::hexadecimal(values.value(row), &mut digits);
                let digits = digits.trim_start_matches('0');
                let odd = digits.len() % 2 == 1 || digits.is_empty();
                out.extend_from_slice(if odd { b"0" } else { b"" });
                out.extend_from_slice(digits.as_bytes());
            }
            Self::Geohashes(values, bits) => {
                out.extend_from_slice(parse::geohash_text(values.value(row), *bits).as_bytes());
            }
            Self::Arrays(arrays) => {
                if let Some(array) = arrays.get(row) {
                    array.write_text(out, &JSON_ARRAY, number_text::write_f64);
                }
            }
            Self::Other(texts) => out.extend_from_slice(texts.value(row).as_bytes()),
        }
    }
}
