//! Decodes one-dimensional binary arrays directly into columns, without creating a value or string
//! per item.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use tidemark_types::{EngineResult, ParameterItems};

use super::oid;
use super::reader::{DAY_MICROS, Reader, since_1970, sized};
use super::text::text_of;

/// Reads `count` items of the type with this OID. Returns `None` without reading anything if items
/// of this type must be converted to strings.
pub(super) fn read(
    reader: &mut Reader<'_>,
    count: usize,
    oid: u32,
) -> EngineResult<Option<ParameterItems>> {
    let items = match oid {
        oid::BOOL => booleans(reader, count)?,
        oid::INT2 => {
            numbers::<Int16Type, 2>(reader, count, |bytes| Ok(Some(i16::from_be_bytes(bytes))))?
        }
        oid::INT4 => numbers::<Int32Type, 4>(reader, count, |bytes| {
            Ok(Some(i32::from_be_bytes(bytes)).filter(|value| *value != i32::MIN))
        })?,
        oid::INT8 => numbers::<Int64Type, 8>(reader, count, |bytes| {
            Ok(Some(i64::from_be_bytes(bytes)).filter(|value| *value != i64::MIN))
        })?,
        oid::OID => numbers::<Int64Type, 4>(reader, count, |bytes| {
            Ok(Some(i64::from(u32::from_be_bytes(bytes))))
        })?,
        oid::FLOAT4 => numbers::<Float32Type, 4>(reader, count, |bytes| {
            Ok(Some(f32::from_be_bytes(bytes)).filter(|value| value.is_finite()))
        })?,
        oid::FLOAT8 => numbers::<Float64Type, 8>(reader, count, |bytes| {
            Ok(Some(f64::from_be_bytes(bytes)).filter(|value| value.is_finite()))
        })?,
        oid::DATE => numbers::<TimestampMicrosecondType, 4>(reader, count, |bytes| {
            let days = i64::from(i32::from_be_bytes(bytes));
            since_1970(days.checked_mul(DAY_MICROS)).map(Some)
        })?,
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            numbers::<TimestampMicrosecondType, 8>(reader, count, |bytes| {
                since_1970(Some(i64::from_be_bytes(bytes))).map(Some)
            })?
        }
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR => texts(reader, count)?,
        _ => return Ok(None),
    };
    Ok(ParameterItems::new(items))
}

/// Returns the next item's bytes; `None` for null.
fn next<'b>(reader: &mut Reader<'b>) -> EngineResult<Option<&'b [u8]>> {
    match usize::try_from(reader.i32()?) {
        Ok(length) => reader.bytes(length).map(Some),
        Err(_) => Ok(None),
    }
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    reader: &mut Reader<'_>,
    count: usize,
    value: impl Fn([u8; N]) -> EngineResult<Option<T::Native>>,
) -> EngineResult<ArrayRef> {
    let mut numbers = PrimitiveArray::<T>::builder(count);
    for _ in 0..count {
        let item = match next(reader)? {
            Some(bytes) => value(sized(bytes)?)?,
            None => None,
        };
        numbers.append_option(item);
    }
    Ok(Arc::new(numbers.finish()))
}

fn booleans(reader: &mut Reader<'_>, count: usize) -> EngineResult<ArrayRef> {
    let item = |_| match next(reader)? {
        Some(bytes) => Ok(Some(sized::<1>(bytes)? != [0])),
        None => Ok(None),
    };
    let items = (0..count).map(item).collect::<EngineResult<BooleanArray>>()?;
    Ok(Arc::new(items))
}

fn texts(reader: &mut Reader<'_>, count: usize) -> EngineResult<ArrayRef> {
    let mut texts = StringViewBuilder::with_capacity(count);
    for _ in 0..count {
        texts.append_option(next(reader)?.map(text_of).transpose()?);
    }
    Ok(Arc::new(texts.finish()))
}
