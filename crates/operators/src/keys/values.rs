//! The forms in which key types are compared.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::{DataType, TimeUnit};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, internal_datafusion_err};
use tidemark_types::key::key_values;

/// The form in which a key type is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Integer,
    Bytes,
}

impl Form {
    pub(super) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Dictionary(key, values) if **key == DataType::Int32 => match **values {
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Self::Text,
                _ => Self::Bytes,
            },
            DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => Self::Text,
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32
            | DataType::Date32
            | DataType::Date64
            | DataType::Timestamp(_, None) => Self::Integer,
            _ => Self::Bytes,
        }
    }
}

/// Whether values of the two types can be compared directly.
pub(crate) fn is_comparable(one: &DataType, other: &DataType) -> bool {
    let (form, same) = (Form::of(one), Form::of(other));
    form == same && (one == other || form == Form::Text)
}

/// Whether [`integers`] supports a type.
pub(super) fn is_integer(data_type: &DataType) -> bool {
    Form::of(data_type) == Form::Integer
}

/// Returns the type used to compare values of a type. Strings of any kind become views.
pub(crate) fn compared_as(data_type: &DataType) -> DataType {
    if Form::of(data_type) == Form::Text { DataType::Utf8View } else { data_type.clone() }
}

/// Converts values to the type used for comparison, and normalizes numbers.
pub(crate) fn comparable(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(key_values(&cast(values, &compared_as(values.data_type()))?))
}

/// Converts numbers or times to integers.
pub(super) fn integers(values: &ArrayRef) -> Result<Int64Array> {
    let values = match values.data_type() {
        // Converts times and dates through the integer type that stores them.
        DataType::Date32 => cast(&cast(values, &DataType::Int32)?, &DataType::Int64)?,
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        )
        | DataType::Date64
        | DataType::Int64 => {
            let data = values.to_data().into_builder().data_type(DataType::Int64).build()?;
            return Ok(data.into());
        }
        _ => cast(values, &DataType::Int64)?,
    };
    let integers = values.as_primitive_opt::<Int64Type>();
    integers.cloned().ok_or_else(|| internal_datafusion_err!("expected integer keys"))
}

/// Converts integers back to their original type.
pub(super) fn of_type(values: &Int64Array, data_type: &DataType) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Date32 => cast(&cast(values, &DataType::Int32)?, data_type)?,
        DataType::Timestamp(..) | DataType::Date64 => {
            let data = values.to_data().into_builder().data_type(data_type.clone()).build()?;
            arrow_array::make_array(data)
        }
        _ => cast(&(Arc::new(values.clone()) as ArrayRef), data_type)?,
    })
}
