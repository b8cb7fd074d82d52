//! Collects one column's parsed values into an Arrow array.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, StringViewBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt16Type, UInt32Type,
};
use arrow_array::{ArrayRef, BooleanArray, FixedSizeBinaryArray, PrimitiveArray, new_null_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer, i256};
use tidemark_types::double_array::{self, DoubleArrayBuilder};
use tidemark_types::timestamp::TimestampUnit;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use crate::symbol::SymbolTexts;
use crate::timestamps::TimestampReader;
use crate::value_text::{self, Read};

/// Values with a validity bitmap, which is allocated when the first null occurs.
#[derive(Debug)]
pub(crate) struct Nullable<T> {
    values: Vec<T>,
    validity: Option<BooleanBufferBuilder>,
}

impl<T: Copy + Default> Nullable<T> {
    pub(crate) fn new() -> Self {
        Self { values: Vec::new(), validity: None }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Option<T>) {
        match value {
            Some(value) => {
                self.values.push(value);
                if let Some(validity) = &mut self.validity {
                    validity.append(true);
                }
            }
            None => self.push_null(),
        }
    }

    fn push_nulls(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let before = self.values.len();
        let validity = self.validity.get_or_insert_with(|| {
            let mut validity = BooleanBufferBuilder::new(before + 1);
            validity.append_n(before, true);
            validity
        });
        validity.append_n(count, false);
        self.values.resize(before + count, T::default());
    }

    fn push_null(&mut self) {
        self.push_nulls(1);
    }

    /// Appends a parsed value; returns `false` if the string was not a valid value.
    #[inline]
    fn push_read(&mut self, value: Read<T>) -> bool {
        match value {
            Some(value) => {
                self.push(value);
                true
            }
            None => false,
        }
    }

    fn ends_with_null(&self) -> bool {
        let validity = self.validity.as_ref();
        validity.is_some_and(|validity| !validity.get_bit(validity.len() - 1))
    }

    fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows);
        if let Some(validity) = &mut self.validity {
            validity.truncate(rows);
        }
    }

    pub(crate) fn take(&mut self) -> (Vec<T>, Option<NullBuffer>) {
        let rows = self.values.len();
        let values = std::mem::replace(&mut self.values, Vec::with_capacity(rows));
        let nulls = self.validity.take().map(|mut validity| NullBuffer::new(validity.finish()));
        (values, nulls)
    }

    fn primitive<A: ArrowPrimitiveType<Native = T>>(&mut self) -> ArrayRef
    where
        T: ArrowNativeType,
    {
        let (values, nulls) = self.take();
        Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), nulls))
    }
}

/// Builder for one column.
#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    Boolean(Vec<bool>),
    Byte(Vec<i8>),
    Short(Vec<i16>),
    Char(Nullable<u16>),
    Int(Nullable<i32>),
    Long(Nullable<i64>),
    Float(Nullable<f32>),
    Double(Nullable<f64>),
    Timestamp { unit: TimestampUnit, reader: TimestampReader, values: Nullable<i64> },
    Symbol { texts: SymbolTexts, keys: Nullable<i32> },
    Text(StringViewBuilder),
    Uuid(Nullable<[u8; 16]>),
    Long256(Nullable<[u8; 32]>),
    Ipv4(Nullable<u32>),
    Geohash { bits: u8, values: Nullable<i64> },
    Decimal { precision: u8, scale: u8, values: Nullable<i256> },
    Array { dimensions: u8, cells: DoubleArrayBuilder },
}

impl ColumnBuilder {
    /// Creates a builder for the values of `field`, which it parses with `pattern`.
    pub(crate) fn new(field: &Field, pattern: Option<&str>) -> EngineResult<Self> {
        let sql_type = field.sql_type;
        let timestamp = |unit| {
            let reader = TimestampReader::new(unit, pattern)?;
            EngineResult::Ok(Self::Timestamp { unit, reader, values: Nullable::new() })
        };
        Ok(match sql_type {
            SqlType::Boolean => Self::Boolean(Vec::new()),
            SqlType::Byte => Self::Byte(Vec::new()),
            SqlType::Short => Self::Short(Vec::new()),
            SqlType::Char => Self::Char(Nullable::new()),
            SqlType::Int => Self::Int(Nullable::new()),
            SqlType::Long => Self::Long(Nullable::new()),
            SqlType::Float => Self::Float(Nullable::new()),
            SqlType::Double => Self::Double(Nullable::new()),
            SqlType::Date => timestamp(TimestampUnit::Millis)?,
            SqlType::Timestamp => timestamp(TimestampUnit::Micros)?,
            SqlType::TimestampNs => timestamp(TimestampUnit::Nanos)?,
            SqlType::Symbol => {
                Self::Symbol { texts: SymbolTexts::default(), keys: Nullable::new() }
            }
            SqlType::String | SqlType::Varchar => Self::Text(StringViewBuilder::new()),
            SqlType::Uuid => Self::Uuid(Nullable::new()),
            SqlType::Long256 => Self::Long256(Nullable::new()),
            SqlType::Ipv4 => Self::Ipv4(Nullable::new()),
            SqlType::Geohash(bits) => Self::Geohash { bits, values: Nullable::new() },
            SqlType::Decimal(precision, scale) => {
                Self::Decimal { precision, scale, values: Nullable::new() }
            }
            SqlType::DoubleArray(dimensions) => {
                Self::Array { dimensions, cells: DoubleArrayBuilder::new(dimensions) }
            }
            SqlType::Binary | SqlType::Interval | SqlType::Period | SqlType::Null => {
                let (column, name) = (&field.name, sql_type.name());
                let message = format!("column '{column}': no adapter for type [name={name}]");
                return Err(EngineError::new(ErrorCode::NotSupported, message)
                    .with_hint("omit the column from the file, or use INSERT"));
            }
        })
    }

    /// Whether every UTF-8 string is a value of this type. Such columns are filled last in each
    /// row, so a row dropped before that point leaves no values in these columns.
    pub(crate) fn accepts_any_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Symbol { .. })
    }

    /// Parses and appends a non-empty string. If the string is not a value of the type, returns
    /// `false` without appending anything.
    #[inline]
    pub(crate) fn append(&mut self, text: &[u8]) -> EngineResult<bool> {
        Ok(match self {
            Self::Timestamp { reader, values, .. } => values.push_read(reader.read(text).map(Some)),
            Self::Double(values) => values.push_read(value_text::double(text)),
            Self::Symbol { texts, keys } => {
                let Ok(text) = std::str::from_utf8(text) else { return Ok(false) };
                keys.push(Some(texts.intern(text)?));
                true
            }
            Self::Text(values) => {
                let Ok(text) = std::str::from_utf8(text) else { return Ok(false) };
                values.append_value(text);
                true
            }
            Self::Int(values) => values.push_read(value_text::int(text)),
            Self::Long(values) => values.push_read(value_text::long(text)),
            Self::Float(values) => values.push_read(value_text::float(text)),
            Self::Array { dimensions, cells } => push_array(cells, *dimensions, text)?,
            other => other.append_rare(text),
        })
    }

    fn append_rare(&mut self, text: &[u8]) -> bool {
        match self {
            Self::Boolean(values) => {
                values.push(value_text::boolean(text));
                true
            }
            Self::Byte(values) => push_some(values, value_text::byte(text)),
            Self::Short(values) => push_some(values, value_text::short(text)),
            Self::Char(values) => values.push_read(value_text::char(text).map(Some)),
            Self::Uuid(values) => values.push_read(value_text::uuid(text).map(Some)),
            Self::Long256(values) => values.push_read(value_text::long256(text).map(Some)),
            Self::Ipv4(values) => values.push_read(value_text::ipv4(text)),
            Self::Geohash { bits, values } => {
                values.push_read(value_text::geohash(text, *bits).map(Some))
            }
            Self::Decimal { precision, scale, values } => {
                values.push_read(value_text::decimal(text, *precision, *scale).map(Some))
            }
            _ => false,
        }
    }

    /// Appends null. For types without null, appends false or 0.
    pub(crate) fn append_null(&mut self) {
        self.append_nulls(1);
    }

    /// Appends `count` nulls.
    pub(crate) fn append_nulls(&mut self, count: usize) {
        match self {
            Self::Boolean(values) => values.resize(values.len() + count, false),
            Self::Byte(values) => values.resize(values.len() + count, 0),
            Self::Short(values) => values.resize(values.len() + count, 0),
            Self::Char(values) => values.push_nulls(count),
            Self::Int(values) | Self::Symbol { keys: values, .. } => values.push_nulls(count),
            Self::Long(values) | Self::Timestamp { values, .. } | Self::Geohash { values, .. } => {
                values.push_nulls(count);
            }
            Self::Float(values) => values.push_nulls(count),
            Self::Double(values) => values.push_nulls(count),
            Self::Text(values) => (0..count).for_each(|_| values.append_null()),
            Self::Uuid(values) => values.push_nulls(count),
            Self::Long256(values) => values.push_nulls(count),
            Self::Ipv4(values) => values.push_nulls(count),
            Self::Decimal { values, .. } => values.push_nulls(count),
            Self::Array { cells, .. } => (0..count).for_each(|_| cells.push_null()),
        }
    }

    /// Whether the last value is null.
    pub(crate) fn ends_with_null(&self) -> bool {
        match self {
            Self::Char(values) => values.ends_with_null(),
            Self::Int(values) => values.ends_with_null(),
            Self::Long(values) | Self::Timestamp { values, .. } | Self::Geohash { values, .. } => {
                values.ends_with_null()
            }
            Self::Float(values) => values.ends_with_null(),
            Self::Double(values) => values.ends_with_null(),
            Self::Uuid(values) => values.ends_with_null(),
            Self::Long256(values) => values.ends_with_null(),
            Self::Ipv4(values) => values.ends_with_null(),
            Self::Decimal { values, .. } => values.ends_with_null(),
            // Types without null, and types in which only an empty string is null.
            Self::Boolean(_)
            | Self::Byte(_)
            | Self::Short(_)
            | Self::Text(_)
            | Self::Array { .. }
            | Self::Symbol { .. } => false,
        }
    }

    /// Truncates the column to `rows` rows. Never needed for columns that accept every string.
    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Boolean(values) => values.truncate(rows),
            Self::Byte(values) => values.truncate(rows),
            Self::Short(values) => values.truncate(rows),
            Self::Char(values) => values.truncate(rows),
            Self::Int(values) => values.truncate(rows),
            Self::Long(values) | Self::Timestamp { values, .. } | Self::Geohash { values, .. } => {
                values.truncate(rows);
            }
            Self::Float(values) => values.truncate(rows),
            Self::Double(values) => values.truncate(rows),
            Self::Uuid(values) => values.truncate(rows),
            Self::Long256(values) => values.truncate(rows),
            Self::Ipv4(values) => values.truncate(rows),
            Self::Decimal { values, .. } => values.truncate(rows),
            Self::Array { cells, .. } => cells.truncate(rows),
            Self::Text(_) | Self::Symbol { .. } => {}
        }
    }

    /// Returns the collected values as an array, and resets the builder except for its symbols.
    pub(crate) fn finish(&mut self) -> EngineResult<ArrayRef> {
        Ok(match self {
            Self::Boolean(values) => {
                let bits = BooleanBuffer::from(std::mem::take(values));
                Arc::new(BooleanArray::new(bits, None))
            }
            Self::Byte(values) => plain::<Int8Type>(values),
            Self::Short(values) => plain::<Int16Type>(values),
            Self::Char(values) => values.primitive::<UInt16Type>(),
            Self::Int(values) => values.primitive::<Int32Type>(),
            Self::Long(values) => values.primitive::<Int64Type>(),
            Self::Float(values) => values.primitive::<Float32Type>(),
            Self::Double(values) => values.primitive::<Float64Type>(),
            Self::Timestamp { unit, values, .. } => match unit {
                TimestampUnit::Millis => values.primitive::<TimestampMillisecondType>(),
                TimestampUnit::Micros => values.primitive::<TimestampMicrosecondType>(),
                TimestampUnit::Nanos => values.primitive::<TimestampNanosecondType>(),
            },
            Self::Symbol { texts, keys } => {
                let (keys, nulls) = keys.take();
                texts.column(keys, nulls)?
            }
            Self::Text(values) => Arc::new(values.finish()),
            Self::Uuid(values) => sized_binary(values)?,
            Self::Long256(values) => sized_binary(values)?,
            Self::Ipv4(values) => values.primitive::<UInt32Type>(),
            Self::Geohash { bits, values } => geohash_array(*bits, values),
            Self::Decimal { precision, scale, values } => {
                decimal_array(*precision, *scale, values)?
            }
            Self::Array { dimensions, cells } => {
                std::mem::replace(cells, DoubleArrayBuilder::new(*dimensions)).finish()?
            }
        })
    }
}

/// Returns a column for which there is no input. It contains only nulls, or the default value for
/// types without null.
#[must_use]
pub fn absent_column(sql_type: SqlType, rows: usize) -> ArrayRef {
    match sql_type {
        SqlType::Boolean => Arc::new(BooleanArray::new(BooleanBuffer::new_unset(rows), None)),
        SqlType::Byte => plain::<Int8Type>(&mut vec![0; rows]),
        SqlType::Short => plain::<Int16Type>(&mut vec![0; rows]),
        _ => new_null_array(&sql_type.arrow_type(), rows),
    }
}

fn push_array(cells: &mut DoubleArrayBuilder, dimensions: u8, text: &[u8]) -> EngineResult<bool> {
    let text = std::str::from_utf8(text).ok();
    let array = text.and_then(|text| double_array::parse_text(dimensions, text));
    array.map_or(Ok(false), |(shape, values)| cells.push(&shape, values).map(|()| true))
}

fn push_some<T>(values: &mut Vec<T>, value: Option<T>) -> bool {
    let is_value = value.is_some();
    values.extend(value);
    is_value
}

fn plain<A: ArrowPrimitiveType>(values: &mut Vec<A::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(std::mem::take(values)), None))
}

fn sized_binary<const SIZE: usize>(values: &mut Nullable<[u8; SIZE]>) -> EngineResult<ArrayRef>
where
    [u8; SIZE]: Default,
{
    let (values, nulls) = values.take();
    let bytes = Buffer::from(values.as_flattened());
    let array = FixedSizeBinaryArray::try_new(SIZE as i32, bytes, nulls)
        .map_err(|error| unexpected(&error))?;
    Ok(Arc::new(array))
}

/// The array widths match `SqlType::arrow_type`.
fn geohash_array(bits: u8, values: &mut Nullable<i64>) -> ArrayRef {
    let (values, nulls) = values.take();
    let rows = values.into_iter();
    match bits {
        0..=7 => narrow::<Int8Type>(rows.map(|value| value as i8), nulls),
        8..=15 => narrow::<Int16Type>(rows.map(|value| value as i16), nulls),
        16..=31 => narrow::<Int32Type>(rows.map(|value| value as i32), nulls),
        _ => narrow::<Int64Type>(rows, nulls),
    }
}

fn narrow<A: ArrowPrimitiveType>(
    values: impl Iterator<Item = A::Native>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    Arc::new(PrimitiveArray::<A>::new(values.collect(), nulls))
}

/// The array widths match `SqlType::arrow_type`; the values do not exceed the precision.
fn decimal_array(precision: u8, scale: u8, values: &mut Nullable<i256>) -> EngineResult<ArrayRef> {
    let (values, nulls) = values.take();
    let rows = values.into_iter();
    let scale = scale as i8;
    Ok(match precision {
        0..=9 => Arc::new(
            PrimitiveArray::<Decimal32Type>::new(
                rows.map(|value| value.as_i128() as i32).collect(),
                nulls,
            )
            .with_precision_and_scale(precision, scale)
            .map_err(|error| unexpected(&error))?,
        ),
        10..=18 => Arc::new(
            PrimitiveArray::<Decimal64Type>::new(
                rows.map(|value| value.as_i128() as i64).collect(),
                nulls,
            )
            .with_precision_and_scale(precision, scale)
            .map_err(|error| unexpected(&error))?,
        ),
        19..=38 => Arc::new(
            PrimitiveArray::<Decimal128Type>::new(rows.map(i256::as_i128).collect(), nulls)
                .with_precision_and_scale(precision, scale)
                .map_err(|error| unexpected(&error))?,
        ),
        _ => Arc::new(
            PrimitiveArray::<Decimal256Type>::new(rows.collect(), nulls)
                .with_precision_and_scale(precision, scale)
                .map_err(|error| unexpected(&error))?,
        ),
    })
}

fn unexpected(error: &arrow_schema::ArrowError) -> EngineError {
    EngineError::internal(format!("cannot assemble a column from imported values: {error}"))
}
