//! Columns without a SQL type, which are converted to JSON: structs, maps, and lists of values
//! other than numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, FieldRef};
use arrow::json::EncoderOptions;
use arrow::json::writer::make_encoder;
use tidemark_types::{EngineError, EngineResult, ErrorCode, account};

/// Maximum nesting depth of structs, maps and lists.
const MAX_LEVELS: usize = 64;
/// Approximate maximum size in bytes of a number, time or null in JSON, including its comma.
const SCALAR_BYTES: usize = 32;

/// Converts each cell to JSON; null stays null.
pub(super) fn json_texts(array: &ArrayRef) -> EngineResult<ArrayRef> {
    let written = with_text_keys(array.data_type(), MAX_LEVELS)?;
    let array = if written == *array.data_type() {
        Arc::clone(array)
    } else {
        cast(array, &written).map_err(unreadable)?
    };
    account::check_allocation(json_bytes(&array))?;
    let field: FieldRef = Arc::new(ArrowField::new("", written, true));
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(&field, &array, &options).map_err(unreadable)?;
    let mut texts = StringViewBuilder::with_capacity(array.len());
    let mut text = Vec::new();
    for row in 0..array.len() {
        if encoder.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        encoder.encode(row, &mut text);
        texts.append_value(std::str::from_utf8(&text).map_err(unreadable)?);
    }
    Ok(Arc::new(texts.finish()))
}

/// Returns the error for intervals. The Arrow reader returns them incompletely: only the months, or
/// only the days and the time.
pub(super) fn no_interval() -> EngineError {
    let message = "intervals are not supported, because their months would be lost";
    EngineError::new(ErrorCode::NotSupported, message)
}

/// Returns the type with strings as map keys, because JSON requires strings. Fails if the type has
/// too many levels or contains an interval.
fn with_text_keys(data_type: &DataType, levels: usize) -> EngineResult<DataType> {
    let levels = levels.checked_sub(1).ok_or_else(|| {
        let message = format!("it is nested more than {MAX_LEVELS} levels deep");
        EngineError::new(ErrorCode::NotSupported, message)
    })?;
    let inner = |field: &FieldRef| -> EngineResult<FieldRef> {
        let inside = with_text_keys(field.data_type(), levels)?;
        Ok(Arc::new(field.as_ref().clone().with_data_type(inside)))
    };
    Ok(match data_type {
        DataType::Interval(_) => return Err(no_interval()),
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(inner).collect::<EngineResult<Vec<_>>>()?.into())
        }
        DataType::List(item) => DataType::List(inner(item)?),
        DataType::LargeList(item) => DataType::LargeList(inner(item)?),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(inner(item)?, *size),
        DataType::Map(entries, sorted) => {
            let DataType::Struct(children) = entries.data_type() else {
                return Ok(data_type.clone());
            };
            let [key, value] = children.as_ref() else { return Ok(data_type.clone()) };
            inner(key)?;
            let key = Arc::new(key.as_ref().clone().with_data_type(DataType::Utf8));
            let children = DataType::Struct(vec![key, inner(value)?].into());
            DataType::Map(Arc::new(entries.as_ref().clone().with_data_type(children)), *sorted)
        }
        other => other.clone(),
    })
}

/// Estimates the cells' total size as JSON, in bytes.
fn json_bytes(array: &dyn Array) -> usize {
    let rows = array.len();
    match array.data_type() {
        DataType::Struct(fields) => {
            let children = array.as_struct().columns().iter().zip(fields);
            children.map(|(child, field)| json_bytes(child) + rows * (field.name().len() + 4)).sum()
        }
        DataType::List(_) => rows * 4 + json_bytes(array.as_list::<i32>().values()),
        DataType::LargeList(_) => rows * 4 + json_bytes(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => rows * 4 + json_bytes(array.as_fixed_size_list().values()),
        DataType::Map(..) => rows * 4 + json_bytes(array.as_map().entries()),
        // Each cell may refer to a long dictionary string.
        DataType::Dictionary(..) => match cast(&array.slice(0, rows), &DataType::Utf8View) {
            Ok(texts) => rows * 4 + 2 * texts.as_string_view().lengths().sum::<u32>() as usize,
            Err(_) => rows * SCALAR_BYTES,
        },
        // Escapes may double the length of a string, and each byte of binary data becomes two
        // digits.
        _ => rows * SCALAR_BYTES + 2 * array.get_buffer_memory_size(),
    }
}

fn unreadable(error: impl std::fmt::Display) -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, error.to_string())
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::IntervalUnit;

    use super::*;

    #[test]
    fn intervals_are_rejected_at_any_nesting_level() {
        let interval = || DataType::Interval(IntervalUnit::DayTime);
        let field = |name: &str, data_type| Arc::new(ArrowField::new(name, data_type, true));
        let list = DataType::List(field("item", interval()));
        let entry = |key, value| {
            let children = DataType::Struct(vec![field("key", key), field("value", value)].into());
            DataType::Map(field("entries", children), false)
        };
        for nested in [
            DataType::Struct(vec![field("a", DataType::Int32), field("b", list.clone())].into()),
            entry(interval(), DataType::Int32),
            entry(DataType::Utf8, list.clone()),
            list,
        ] {
            let error = with_text_keys(&nested, MAX_LEVELS).unwrap_err();
            assert_eq!(error.message, no_interval().message, "{nested}");
        }
        let known = entry(DataType::Int32, DataType::Boolean);
        let expected = entry(DataType::Utf8, DataType::Boolean);
        assert_eq!(with_text_keys(&known, MAX_LEVELS).unwrap(), expected);
    }
}
