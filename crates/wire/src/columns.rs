//! Typed views of a batch's columns: each array is downcast once, then cells are read by row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalMonthDayNanoType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, UInt16Type,
    UInt32Type,
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, LargeBinaryArray,
    LargeStringArray, PrimitiveArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_buffer::{IntervalMonthDayNano, NullBuffer};
use arrow_schema::DataType;
use tidemark_types::double_array::DoubleArrays;
use tidemark_types::{EngineError, EngineResult, Field, SqlType};

/// Fixed-width values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed<'a, T> {
    pub(crate) values: &'a [T],
    pub(crate) nulls: Option<&'a NullBuffer>,
}

impl<T: Copy> Fixed<'_, T> {
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<T> {
        match self.nulls {
            Some(nulls) if nulls.is_null(row) => None,
            _ => Some(self.values[row]),
        }
    }
}

/// Strings in any of Arrow's layouts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Text<'a> {
    View(&'a StringViewArray),
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
}

impl<'a> Text<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Utf8View => Some(Self::View(array.as_string_view())),
            DataType::Utf8 => Some(Self::Small(array.as_string())),
            DataType::LargeUtf8 => Some(Self::Large(array.as_string())),
            _ => None,
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::View(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::View(array) => array.len(),
            Self::Small(array) => array.len(),
            Self::Large(array) => array.len(),
        }
    }
}

/// Bytes in either of Arrow's layouts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bytes<'a> {
    Small(&'a BinaryArray),
    Large(&'a LargeBinaryArray),
}

impl<'a> Bytes<'a> {
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Small(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Large(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}

/// Decimals of any width.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Decimals<'a> {
    D32(&'a PrimitiveArray<Decimal32Type>),
    D64(&'a PrimitiveArray<Decimal64Type>),
    D128(&'a PrimitiveArray<Decimal128Type>),
    D256(&'a PrimitiveArray<Decimal256Type>),
}

impl<'a> Decimals<'a> {
    fn new(array: &'a dyn Array) -> Option<Self> {
        match array.data_type() {
            DataType::Decimal32(..) => Some(Self::D32(array.as_primitive())),
            DataType::Decimal64(..) => Some(Self::D64(array.as_primitive())),
            DataType::Decimal128(..) => Some(Self::D128(array.as_primitive())),
            DataType::Decimal256(..) => Some(Self::D256(array.as_primitive())),
            _ => None,
        }
    }

    /// Returns the value as a string, with all digits of its scale.
    pub(crate) fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::D32(array) => array.is_valid(row).then(|| array.value_as_string(row)),
            Self::D64(array) => array.is_valid(row).then(|| array.value_as_string(row)),
            Self::D128(array) => array.is_valid(row).then(|| array.value_as_string(row)),
            Self::D256(array) => array.is_valid(row).then(|| array.value_as_string(row)),
        }
    }
}

/// One column of a batch, by cell type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'a> {
    Boolean(&'a BooleanArray),
    Byte(Fixed<'a, i8>),
    Short(Fixed<'a, i16>),
    Char(Fixed<'a, u16>),
    Int(Fixed<'a, i32>),
    Long(Fixed<'a, i64>),
    Float(Fixed<'a, f32>),
    Double(Fixed<'a, f64>),
    Millis(Fixed<'a, i64>),
    Micros(Fixed<'a, i64>),
    Nanos(Fixed<'a, i64>),
    Text(Text<'a>),
    Symbol {
        keys: Fixed<'a, i32>,
        values: Text<'a>,
        shared: &'a ArrayRef,
    },
    Uuid(&'a FixedSizeBinaryArray),
    Long256(&'a FixedSizeBinaryArray),
    Ipv4(Fixed<'a, u32>),
    Geohash {
        bits: u8,
        array: &'a dyn Array,
    },
    Binary(Bytes<'a>),
    Decimal(Decimals<'a>),
    Doubles(DoubleArrays<'a>),
    Interval {
        nulls: Option<&'a NullBuffer>,
        lo: Fixed<'a, i64>,
        hi: Fixed<'a, i64>,
    },
    Period(Fixed<'a, IntervalMonthDayNano>),
    /// The untyped NULL.
    Null,
}

/// Returns the columns of `batch`, each checked against its SQL type.
pub(crate) fn columns_of<'a>(
    fields: &[Field],
    batch: &'a RecordBatch,
) -> EngineResult<Vec<Column<'a>>> {
    if fields.len() != batch.num_columns() {
        return Err(EngineError::internal(format!(
            "a batch has {} columns, expected {}",
            batch.num_columns(),
            fields.len()
        )));
    }
    fields
        .iter()
        .zip(batch.columns())
        .map(|(field, array)| {
            Column::new(field.sql_type, array.as_ref()).ok_or_else(|| {
                EngineError::internal(format!(
                    "column \"{}\" has type {} but its array has type {}",
                    field.name,
                    field.sql_type.name(),
                    array.data_type()
                ))
            })
        })
        .collect()
}

fn fixed<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<Fixed<'_, T::Native>> {
    let array = array.as_primitive_opt::<T>()?;
    Some(Fixed { values: array.values(), nulls: array.nulls() })
}

/// Timestamps may have a time zone in their Arrow type; the values are UTC in any case.
impl<'a> Column<'a> {
    pub(crate) fn new(sql_type: SqlType, array: &'a dyn Array) -> Option<Self> {
        if array.data_type() == &DataType::Null {
            return Some(Self::Null);
        }
        match sql_type {
            SqlType::Boolean => array.as_boolean_opt().map(Self::Boolean),
            SqlType::Byte => fixed::<Int8Type>(array).map(Self::Byte),
            SqlType::Short => fixed::<Int16Type>(array).map(Self::Short),
            SqlType::Char => fixed::<UInt16Type>(array).map(Self::Char),
            SqlType::Int => fixed::<Int32Type>(array).map(Self::Int),
            SqlType::Long => fixed::<Int64Type>(array).map(Self::Long),
            SqlType::Float => fixed::<Float32Type>(array).map(Self::Float),
            SqlType::Double => fixed::<Float64Type>(array).map(Self::Double),
            SqlType::Date => fixed::<TimestampMillisecondType>(array).map(Self::Millis),
            SqlType::Timestamp => fixed::<TimestampMicrosecondType>(array).map(Self::Micros),
            SqlType::TimestampNs => fixed::<TimestampNanosecondType>(array).map(Self::Nanos),
            SqlType::Symbol | SqlType::String | SqlType::Varchar | SqlType::Null => {
                Self::text(array)
            }
            SqlType::Uuid => sized_binary(array, 16).map(Self::Uuid),
            SqlType::Long256 => sized_binary(array, 32).map(Self::Long256),
            SqlType::Ipv4 => fixed::<UInt32Type>(array).map(Self::Ipv4),
            SqlType::Geohash(bits) => {
                array.data_type().is_integer().then_some(Self::Geohash { bits, array })
            }
            SqlType::Binary => match array.data_type() {
                DataType::Binary => Some(Self::Binary(Bytes::Small(array.as_binary()))),
                DataType::LargeBinary => Some(Self::Binary(Bytes::Large(array.as_binary()))),
                _ => None,
            },
            SqlType::Decimal(..) => Decimals::new(array).map(Self::Decimal),
            SqlType::DoubleArray(_) => DoubleArrays::new(array).map(Self::Doubles),
            SqlType::Interval => Self::interval(array),
            SqlType::Period => fixed::<IntervalMonthDayNanoType>(array).map(Self::Period),
        }
    }

    fn text(array: &'a dyn Array) -> Option<Self> {
        if let Some(text) = Text::new(array) {
            return Some(Self::Text(text));
        }
        let dictionary = array.as_dictionary_opt::<Int32Type>()?;
        let keys = dictionary.keys();
        Some(Self::Symbol {
            keys: Fixed { values: keys.values(), nulls: keys.nulls() },
            values: Text::new(dictionary.values().as_ref())?,
            shared: dictionary.values(),
        })
    }

    fn interval(array: &'a dyn Array) -> Option<Self> {
        let pair = array.as_struct_opt()?;
        let [lo, hi] = pair.columns() else { return None };
        Some(Self::Interval {
            nulls: pair.nulls(),
            lo: fixed::<TimestampMicrosecondType>(lo.as_ref())?,
            hi: fixed::<TimestampMicrosecondType>(hi.as_ref())?,
        })
    }
}

fn sized_binary(array: &dyn Array, size: i32) -> Option<&FixedSizeBinaryArray> {
    array.as_fixed_size_binary_opt().filter(|array| array.value_length() == size)
}

/// Returns the bits of a geohash cell; `None` if null.
pub(crate) fn geohash_bits(array: &dyn Array, row: usize) -> Option<u64> {
    if array.is_null(row) {
        return None;
    }
    let value = match array.data_type() {
        DataType::Int8 => i64::from(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => i64::from(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => i64::from(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row),
        _ => return None,
    };
    Some(value as u64)
}
