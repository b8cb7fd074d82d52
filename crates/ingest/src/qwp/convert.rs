//! Converts a message's columns to arrays of the table's types: directly if the types match,
//! otherwise value by value. Values that represent null in the protocol become null.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringViewBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt16Type,
    UInt32Type,
};
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array, LargeBinaryArray,
    PrimitiveArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use tidemark_types::double_array::DoubleArrayBuilder;
use tidemark_types::{EngineError, Field, SqlType};

use super::block::{Kind, Values, WireColumn};
use super::dictionary::{Compact, Dictionary};
use crate::cast::{self, Problem, Timestamp, Value};
use crate::column::ColumnBuilder;

type Converted = Result<ArrayRef, Problem>;

/// Returns the type for a new column created for `column`; `None` if the values do not determine a
/// type.
pub(super) fn new_type(column: &WireColumn<'_>) -> Result<Option<SqlType>, Problem> {
    Ok(Some(match (column.kind, &column.values) {
        (Kind::Boolean, _) => SqlType::Boolean,
        (Kind::Byte, _) => SqlType::Byte,
        (Kind::Short, _) => SqlType::Short,
        (Kind::Int, _) => SqlType::Int,
        (Kind::Long, _) => SqlType::Long,
        (Kind::Float, _) => SqlType::Float,
        (Kind::Double, _) => SqlType::Double,
        (Kind::Symbol, _) => SqlType::Symbol,
        (Kind::Timestamp, _) => SqlType::Timestamp,
        (Kind::TimestampNanos, _) => SqlType::TimestampNs,
        (Kind::Date, _) => SqlType::Date,
        (Kind::Uuid, _) => SqlType::Uuid,
        (Kind::Long256, _) => SqlType::Long256,
        (Kind::Geohash, Values::Geohashes(bits, _)) => SqlType::Geohash(*bits),
        (Kind::Varchar, _) => SqlType::Varchar,
        (Kind::Char, _) => SqlType::Char,
        (Kind::Binary, _) => SqlType::Binary,
        (Kind::Ipv4, _) => SqlType::Ipv4,
        (Kind::DoubleArray, Values::Arrays(arrays)) => match arrays.first() {
            Some((shape, _)) => SqlType::DoubleArray((shape.len() / size_of::<i32>()) as u8),
            None => return Ok(None),
        },
        // The DECIMAL type that the line protocol creates, provided that its scale is sufficient.
        (Kind::Decimal(_), Values::Decimals(0..=3, _)) => SqlType::Decimal(18, 3),
        (Kind::Decimal(digits), Values::Decimals(scale, _)) => SqlType::Decimal(digits, *scale),
        _ => return Err(Problem::Kind),
    }))
}

/// Converts the column to the target type.
pub(super) fn array(
    column: &WireColumn<'_>,
    target: SqlType,
    dictionary: &mut Dictionary,
) -> Converted {
    let is_smallest = |value: i64| value == i64::MIN;
    match (column.kind, target, &column.values) {
        (Kind::Boolean, SqlType::Boolean, Values::Bits(bits)) => Ok(booleans(column, bits)),
        (Kind::Byte, SqlType::Byte, Values::Fixed(bytes)) => {
            Ok(plain::<Int8Type, 1>(column, bytes, i8::from_le_bytes))
        }
        (Kind::Short, SqlType::Short, Values::Fixed(bytes)) => {
            Ok(plain::<Int16Type, 2>(column, bytes, i16::from_le_bytes))
        }
        (Kind::Char, SqlType::Char, Values::Fixed(bytes)) => {
            Ok(fixed::<UInt16Type, 2>(column, bytes, u16::from_le_bytes, |value| value == 0))
        }
        (Kind::Int, SqlType::Int, Values::Fixed(bytes)) => {
            Ok(fixed::<Int32Type, 4>(column, bytes, i32::from_le_bytes, |value| value == i32::MIN))
        }
        (Kind::Ipv4, SqlType::Ipv4, Values::Fixed(bytes)) => {
            Ok(fixed::<UInt32Type, 4>(column, bytes, u32::from_le_bytes, |value| value == 0))
        }
        (Kind::Float, SqlType::Float, Values::Fixed(bytes)) => {
            Ok(fixed::<Float32Type, 4>(column, bytes, f32::from_le_bytes, |v| !v.is_finite()))
        }
        (Kind::Double, SqlType::Double, Values::Fixed(bytes)) => {
            Ok(fixed::<Float64Type, 8>(column, bytes, f64::from_le_bytes, |v| !v.is_finite()))
        }
        (Kind::Long, SqlType::Long, Values::Fixed(bytes)) => {
            Ok(fixed::<Int64Type, 8>(column, bytes, i64::from_le_bytes, is_smallest))
        }
        (Kind::Date, SqlType::Date, _) => Ok(timestamps::<TimestampMillisecondType>(column)),
        (Kind::Timestamp, SqlType::Timestamp, _) => {
            Ok(timestamps::<TimestampMicrosecondType>(column))
        }
        (Kind::TimestampNanos, SqlType::TimestampNs, _) => {
            Ok(timestamps::<TimestampNanosecondType>(column))
        }
        (Kind::Uuid, SqlType::Uuid, Values::Fixed(bytes)) => big_endian::<16>(column, bytes),
        (Kind::Long256, SqlType::Long256, Values::Fixed(bytes)) => big_endian::<32>(column, bytes),
        (Kind::Symbol, SqlType::Symbol, Values::Symbols(entries)) => {
            let compact = dictionary.compact(entries);
            symbols(column, &compact, dictionary)
        }
        (Kind::Symbol, SqlType::Symbol, Values::OwnSymbols(own, keys)) => {
            let keys = keys.iter().map(|key| *key as i32).collect();
            let entries = (0..own.len() as u32).collect();
            symbols(column, &Compact { keys, entries }, own)
        }
        (Kind::Varchar, SqlType::Varchar | SqlType::String, Values::Texts(ends, content)) => {
            texts(column, ends, content)
        }
        (Kind::Binary, SqlType::Binary, Values::Texts(ends, content)) => {
            binaries(column, ends, content)
        }
        (Kind::Geohash, SqlType::Geohash(own), Values::Geohashes(bits, bytes)) => {
            geohashes(column, own, *bits, bytes)
        }
        (Kind::DoubleArray, SqlType::DoubleArray(dimensions), Values::Arrays(arrays)) => {
            double_arrays(column, dimensions, arrays)
        }
        _ => through_values(column, target, dictionary),
    }
}

/// Distributes the values among their rows and computes the validity. `packed` yields the values of
/// the rows that the null bitmap does not mark.
fn cells<T: Copy + Default>(
    column: &WireColumn<'_>,
    mut packed: impl Iterator<Item = T>,
    is_null: impl Fn(T) -> bool,
) -> (Vec<T>, Option<NullBuffer>) {
    if column.nulls.is_none() {
        let values: Vec<T> = packed.collect();
        if !values.iter().any(|value| is_null(*value)) {
            return (values, None);
        }
        let valid = BooleanBuffer::collect_bool(values.len(), |at| !is_null(values[at]));
        return (values, Some(NullBuffer::new(valid)));
    }
    let mut values = Vec::with_capacity(column.rows);
    let mut valid = BooleanBufferBuilder::new(column.rows);
    for row in 0..column.rows {
        let value = if column.is_null(row) { None } else { packed.next() };
        let value = value.filter(|value| !is_null(*value));
        valid.append(value.is_some());
        values.push(value.unwrap_or_default());
    }
    let nulls = NullBuffer::new(valid.finish());
    (values, (nulls.null_count() > 0).then_some(nulls))
}

fn fixed<A: ArrowPrimitiveType, const WIDTH: usize>(
    column: &WireColumn<'_>,
    bytes: &[u8],
    read: impl Fn([u8; WIDTH]) -> A::Native,
    is_null: impl Fn(A::Native) -> bool,
) -> ArrayRef {
    let packed = bytes.as_chunks().0.iter().map(|bytes| read(*bytes));
    let (values, nulls) = cells(column, packed, is_null);
    Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), nulls))
}

/// Converts values of a type without null. Null rows get 0.
fn plain<A: ArrowPrimitiveType, const WIDTH: usize>(
    column: &WireColumn<'_>,
    bytes: &[u8],
    read: impl Fn([u8; WIDTH]) -> A::Native,
) -> ArrayRef {
    let packed = bytes.as_chunks().0.iter().map(|bytes| read(*bytes));
    let (values, _) = cells(column, packed, |_| false);
    Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), None))
}

fn booleans(column: &WireColumn<'_>, bits: &[u8]) -> ArrayRef {
    let bit = |at: usize| bits[at / 8] >> (at % 8) & 1 == 1;
    let values = if column.nulls.is_none() {
        BooleanBuffer::collect_bool(column.rows, bit)
    } else {
        let mut next = 0;
        BooleanBuffer::collect_bool(column.rows, |row| {
            let is_there = !column.is_null(row);
            next += usize::from(is_there);
            is_there && bit(next - 1)
        })
    };
    Arc::new(BooleanArray::new(values, None))
}

fn timestamps<A: ArrowPrimitiveType<Native = i64>>(column: &WireColumn<'_>) -> ArrayRef {
    let is_null = |value: i64| value == i64::MIN;
    match &column.values {
        Values::Timestamps(values) => {
            let (values, nulls) = cells(column, values.iter().copied(), is_null);
            Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), nulls))
        }
        Values::Fixed(bytes) => fixed::<A, 8>(column, bytes, i64::from_le_bytes, is_null),
        _ => absent::<A>(column.rows),
    }
}

fn absent<A: ArrowPrimitiveType>(rows: usize) -> ArrayRef {
    Arc::new(PrimitiveArray::<A>::new_null(rows))
}

/// Converts little-endian values to big-endian bytes. A value is null if each of its words is the
/// minimum.
fn big_endian<const SIZE: usize>(column: &WireColumn<'_>, bytes: &[u8]) -> Converted
where
    [u8; SIZE]: Default,
{
    let is_null = |value: [u8; SIZE]| {
        value.as_chunks().0.iter().all(|word| i64::from_be_bytes(*word) == i64::MIN)
    };
    let packed = bytes.as_chunks::<SIZE>().0.iter().map(|bytes| {
        let mut bytes = *bytes;
        bytes.reverse();
        bytes
    });
    let (values, nulls) = cells(column, packed, is_null);
    let content = Buffer::from(values.as_flattened());
    array_of(FixedSizeBinaryArray::try_new(SIZE as i32, content, nulls))
}

fn symbols(column: &WireColumn<'_>, compact: &Compact, dictionary: &Dictionary) -> Converted {
    let texts = compact.entries.iter().map(|entry| dictionary.get(*entry));
    let values = StringArray::from_iter_values(texts);
    let (keys, nulls) = cells(column, compact.keys.iter().copied(), |_| false);
    let keys = Int32Array::new(ScalarBuffer::from(keys), nulls);
    array_of(DictionaryArray::try_new(keys, Arc::new(values)))
}

/// Iterates over the strings between consecutive end offsets.
fn strings<'a>(ends: &'a [u8], content: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut start = 0;
    ends.as_chunks().0.iter().map(move |end| {
        let end = u32::from_le_bytes(*end) as usize;
        let string = &content[start..end];
        start = end;
        string
    })
}

fn texts(column: &WireColumn<'_>, ends: &[u8], content: &[u8]) -> Converted {
    let mut builder = StringViewBuilder::with_capacity(column.rows);
    let mut values = strings(ends, content);
    for row in 0..column.rows {
        if column.is_null(row) {
            builder.append_null();
        } else if let Some(string) = values.next() {
            builder.append_value(std::str::from_utf8(string).map_err(|_| Problem::Utf8)?);
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn binaries(column: &WireColumn<'_>, ends: &[u8], content: &[u8]) -> Converted {
    let lengths = strings(ends, content).map(<[u8]>::len);
    let (lengths, nulls) = cells(column, lengths, |_| false);
    let offsets = OffsetBuffer::<i64>::from_lengths(lengths);
    array_of(LargeBinaryArray::try_new(offsets, Buffer::from(content), nulls))
}

/// Converts geohashes. A geohash that is more precise than the column is truncated to the column's
/// precision.
fn geohashes(column: &WireColumn<'_>, own: u8, bits: u8, bytes: &[u8]) -> Converted {
    if bits < own {
        return Err(Problem::Value);
    }
    let width = usize::from(bits.div_ceil(8));
    let all_ones = u64::MAX >> (64 - 8 * width);
    let packed = bytes.chunks_exact(width).map(|bytes| {
        let mut whole = [0; 8];
        whole[..width].copy_from_slice(bytes);
        u64::from_le_bytes(whole)
    });
    let (values, nulls) = cells(column, packed, |value| value == all_ones);
    let is_valid = |at: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(at));
    let max = u64::MAX >> (64 - bits);
    let mut builder = ColumnBuilder::new(&Field::new(column.name, SqlType::Geohash(own)), None)?;
    for (at, value) in values.iter().enumerate() {
        match &mut builder {
            ColumnBuilder::Geohash { values: cells, .. } if is_valid(at) => {
                if *value > max {
                    return Err(Problem::Value);
                }
                cells.push(Some((*value >> (bits - own)) as i64));
            }
            other => other.append_null(),
        }
    }
    Ok(builder.finish()?)
}

fn double_arrays(column: &WireColumn<'_>, dimensions: u8, arrays: &[(&[u8], &[u8])]) -> Converted {
    let mut builder = DoubleArrayBuilder::new(dimensions);
    let mut arrays = arrays.iter();
    let mut shape = Vec::new();
    for row in 0..column.rows {
        if column.is_null(row) {
            builder.push_null();
        } else if let Some((lengths, elements)) = arrays.next() {
            if lengths.len() != usize::from(dimensions) * size_of::<i32>() {
                return Err(Problem::Value);
            }
            shape.clear();
            shape.extend(lengths.as_chunks().0.iter().map(|length| i32::from_le_bytes(*length)));
            let elements = elements.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
            builder.push(&shape, elements)?;
        }
    }
    Ok(builder.finish()?)
}

/// Converts each value separately, following the rules of the line protocol.
fn through_values(column: &WireColumn<'_>, target: SqlType, dictionary: &Dictionary) -> Converted {
    let field = Field::new(column.name, target);
    let mut builder = ColumnBuilder::new(&field, None).map_err(|_| Problem::Kind)?;
    let mut next = 0;
    for row in 0..column.rows {
        if column.is_null(row) {
            builder.append_null();
            continue;
        }
        let value = value(column, next, target, dictionary)?;
        next += 1;
        cast::put(&mut builder, &value)?;
    }
    Ok(builder.finish()?)
}

/// Returns the non-null value at an index.
fn value<'a>(
    column: &'a WireColumn<'_>,
    at: usize,
    target: SqlType,
    dictionary: &'a Dictionary,
) -> Result<Value<'a>, Problem> {
    Ok(match (column.kind, &column.values) {
        (Kind::Boolean, Values::Bits(bits)) => Value::Boolean(bits[at / 8] >> (at % 8) & 1 == 1),
        (Kind::Byte, Values::Fixed(bytes)) => Value::Integer(i64::from(bytes[at] as i8)),
        (Kind::Short, Values::Fixed(bytes)) => {
            Value::Integer(i64::from(i16::from_le_bytes(one(bytes, at)?)))
        }
        (Kind::Int, Values::Fixed(bytes)) => match i32::from_le_bytes(one(bytes, at)?) {
            i32::MIN => Value::Null,
            value => Value::Integer(i64::from(value)),
        },
        (Kind::Long, Values::Fixed(bytes)) => Value::Integer(i64::from_le_bytes(one(bytes, at)?)),
        (Kind::Float, Values::Fixed(bytes)) => {
            Value::Double(f64::from(f32::from_le_bytes(one(bytes, at)?)), None)
        }
        (Kind::Double, Values::Fixed(bytes)) => {
            Value::Double(f64::from_le_bytes(one(bytes, at)?), None)
        }
        (Kind::Char, Values::Fixed(bytes)) => match u16::from_le_bytes(one(bytes, at)?) {
            0 => Value::Null,
            unit => {
                let character = char::from_u32(u32::from(unit)).ok_or(Problem::Value)?;
                Value::Text(Cow::Owned(character.to_string().into_bytes()))
            }
        },
        (Kind::Date | Kind::Timestamp | Kind::TimestampNanos, Values::Fixed(bytes)) => {
            timestamp(column.kind, i64::from_le_bytes(one(bytes, at)?), target)?
        }
        (Kind::Timestamp | Kind::TimestampNanos, Values::Timestamps(values)) => {
            timestamp(column.kind, values[at], target)?
        }
        (Kind::Symbol, Values::Symbols(entries)) => {
            Value::Symbol(Cow::Borrowed(dictionary.get(entries[at]).as_bytes()))
        }
        (Kind::Symbol, Values::OwnSymbols(own, keys)) => {
            Value::Symbol(Cow::Borrowed(own.get(keys[at]).as_bytes()))
        }
        (Kind::Varchar, Values::Texts(ends, content)) => {
            Value::Text(Cow::Borrowed(text_at(ends, content, at)))
        }
        (Kind::Decimal(digits), Values::Decimals(scale, bytes)) => {
            decimal(bytes, at, digits, *scale)?
        }
        _ => return Err(Problem::Kind),
    })
}

fn text_at<'a>(ends: &[u8], content: &'a [u8], at: usize) -> &'a [u8] {
    let ends = ends.as_chunks().0;
    let start = if at == 0 { 0 } else { u32::from_le_bytes(ends[at - 1]) };
    &content[start as usize..u32::from_le_bytes(ends[at]) as usize]
}

fn one<const WIDTH: usize>(bytes: &[u8], at: usize) -> Result<[u8; WIDTH], Problem> {
    bytes.as_chunks().0.get(at).copied().ok_or(Problem::Value)
}

fn timestamp(kind: Kind, value: i64, target: SqlType) -> Result<Value<'static>, Problem> {
    Ok(match kind {
        _ if value == i64::MIN => Value::Null,
        Kind::TimestampNanos => Value::Timestamp(Timestamp::Nanos(value)),
        Kind::Timestamp => Value::Timestamp(Timestamp::Micros(value)),
        // If the target column is numeric, the value is stored in its original unit.
        _ if target == SqlType::Long => Value::Integer(value),
        _ => Value::Timestamp(Timestamp::Micros(value.checked_mul(1_000).ok_or(Problem::Value)?)),
    })
}

fn decimal(bytes: &[u8], at: usize, digits: u8, scale: u8) -> Result<Value<'static>, Problem> {
    let value = match digits {
        18 => match i64::from_le_bytes(one(bytes, at)?) {
            i64::MIN => return Ok(Value::Null),
            value => i256::from_i128(i128::from(value)),
        },
        38 => i256::from_i128(i128::from_le_bytes(one(bytes, at)?)),
        _ => i256::from_le_bytes(one(bytes, at)?),
    };
    Ok(Value::Unscaled(value, scale))
}

fn array_of<T: arrow_array::Array + 'static>(
    array: Result<T, arrow_schema::ArrowError>,
) -> Converted {
    let array = array.map_err(|error| EngineError::internal(error.to_string()))?;
    Ok(Arc::new(array))
}
