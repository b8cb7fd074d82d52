//! Maps the columns of Parquet files and Arrow streams to SQL types and cells.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::{can_cast_types, cast};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field as ArrowField, FieldRef, Float32Type, Float64Type,
    Int32Type, Int64Type, Schema, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType,
};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::schema::types::TypePtr;
use tidemark_types::double_array::{from_nested, from_raw, nested_type};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use super::{intervals, nested};

/// Footer key with a JSON list of column names and SQL types; `tidemark-wire` writes it.
const TYPES_KEY: &str = "tidemark";
/// DOUBLE represents every integer up to this magnitude exactly.
const EXACT: i64 = 1 << 53;
/// Maximum number of array dimensions.
const MAX_DIMENSIONS: u8 = 32;

/// Returns the names and SQL types of a file's columns. Columns written by this database have their
/// original type; other columns get the nearest SQL type.
pub(super) fn columns_of(metadata: &ArrowReaderMetadata) -> Vec<Field> {
    let stored = stored_types(metadata);
    let roots = metadata.parquet_schema().root_schema().get_fields();
    let fields = metadata.schema().fields().iter().zip(roots);
    let column = |(at, (field, root)): (usize, (&FieldRef, &TypePtr))| {
        sql_field(field, stored.get(at), is_enumeration(root))
    };
    fields.enumerate().map(column).collect()
}

/// Returns metadata that makes the reader return strings and binary values as views, so cells can
/// share a dictionary entry of any length. Intervals are read as bytes.
pub(super) fn in_views(metadata: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let schema = metadata.schema();
    let view = |field: &FieldRef| match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
        }
        DataType::Binary | DataType::LargeBinary => {
            Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView))
        }
        DataType::Interval(_) => Arc::new(field.as_ref().clone().with_data_type(intervals::STORED)),
        _ => Arc::clone(field),
    };
    let fields: Vec<FieldRef> = schema.fields().iter().map(view).collect();
    let hinted = Schema::new_with_metadata(fields, schema.metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(hinted));
    let footer = intervals::without_meaning(metadata.metadata());
    let hinted = ArrowReaderMetadata::try_new(footer, options);
    hinted.unwrap_or(metadata)
}

/// Whether a file declares a binary column as an enumeration, whose values are strings.
fn is_enumeration(column: &TypePtr) -> bool {
    let about = column.get_basic_info();
    about.converted_type() == ConvertedType::ENUM
        || matches!(about.logical_type_ref(), Some(LogicalType::Enum))
}

/// Returns the column types in the footer; empty for files written by other programs.
fn stored_types(metadata: &ArrowReaderMetadata) -> Vec<StoredColumn> {
    let footer = metadata.metadata().file_metadata();
    let about = footer
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == TYPES_KEY))
        .and_then(|pair| pair.value.as_deref())
        .and_then(|text| serde_json::from_str::<StoredTypes>(text).ok());
    about.map(|about| about.columns).unwrap_or_default()
}

#[derive(serde::Deserialize)]
struct StoredTypes {
    columns: Vec<StoredColumn>,
}

#[derive(serde::Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
}

fn sql_field(field: &ArrowField, stored: Option<&StoredColumn>, is_enumeration: bool) -> Field {
    let name = field.name().clone();
    if is_enumeration {
        return Field::new(name, SqlType::Varchar);
    }
    let same = stored.filter(|stored| stored.name == *field.name());
    Field::new(name, sql_type_of(field.data_type(), same.map(|stored| stored.type_name.as_str())))
}

/// Returns the SQL type that this database recorded for a column, if the column can be read as
/// that type; otherwise the nearest SQL type.
pub(crate) fn sql_type_of(data_type: &DataType, recorded: Option<&str>) -> SqlType {
    let known = recorded.and_then(SqlType::parse_text);
    let known = known.filter(|sql_type| is_readable_as(data_type, *sql_type));
    known.unwrap_or_else(|| nearest_type(data_type))
}

/// Whether a file's column can be read as the SQL type named in the footer.
fn is_readable_as(data_type: &DataType, sql_type: SqlType) -> bool {
    let is_text = is_text(data_type);
    match sql_type {
        SqlType::Char
        | SqlType::Ipv4
        | SqlType::Geohash(_)
        | SqlType::Interval
        | SqlType::Null
        | SqlType::String
        | SqlType::Varchar => is_text,
        SqlType::Symbol => is_text || matches!(data_type, DataType::Dictionary(..)),
        SqlType::DoubleArray(dimensions) => {
            matches!(data_type, DataType::Binary)
                || nested_dimensions(data_type) == Some(dimensions)
        }
        _ => can_cast_types(data_type, &sql_type.arrow_type()),
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Returns the nearest SQL type for a column written by another program; VARCHAR if no SQL type is
/// similar.
fn nearest_type(data_type: &DataType) -> SqlType {
    match data_type {
        DataType::Boolean => SqlType::Boolean,
        // INT can be null, unlike BYTE and SHORT.
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::Int32 | DataType::UInt16 => {
            SqlType::Int
        }
        DataType::UInt32 | DataType::Int64 | DataType::Duration(_) => SqlType::Long,
        DataType::UInt64 => SqlType::Decimal(20, 0),
        DataType::Float16 | DataType::Float32 => SqlType::Float,
        DataType::Float64 => SqlType::Double,
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => {
            SqlType::Date
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => SqlType::TimestampNs,
        DataType::Timestamp(_, _) => SqlType::Timestamp,
        DataType::FixedSizeBinary(16) => SqlType::Uuid,
        DataType::FixedSizeBinary(32) => SqlType::Long256,
        DataType::FixedSizeBinary(_)
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView => SqlType::Binary,
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Null
        | DataType::Time32(_)
        | DataType::Time64(_) => SqlType::Varchar,
        DataType::Dictionary(_, values) if is_text(values) => SqlType::Symbol,
        DataType::Dictionary(_, values) => nearest_type(values),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            decimal_type(*precision, *scale).unwrap_or(SqlType::Varchar)
        }
        other => nested_dimensions(other).map_or(SqlType::Varchar, SqlType::DoubleArray),
    }
}

/// Returns the DECIMAL type. A negative scale is converted to additional digits before the decimal
/// point.
fn decimal_type(precision: u8, scale: i8) -> Option<SqlType> {
    if let Ok(scale) = u8::try_from(scale) {
        Some(SqlType::Decimal(precision.max(scale), scale))
    } else {
        let precision = precision.checked_add(scale.unsigned_abs())?;
        (precision <= 76).then_some(SqlType::Decimal(precision, 0))
    }
}

/// Returns the number of dimensions of nested lists; `None` if their values are not numbers that
/// can be converted to DOUBLE.
fn nested_dimensions(data_type: &DataType) -> Option<u8> {
    let mut dimensions = 0_u8;
    let mut level = data_type;
    while let DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) =
        level
    {
        dimensions = dimensions.checked_add(1)?;
        level = item.data_type();
    }
    let is_number = level.is_floating() || level.is_integer() && *level != DataType::UInt64;
    (is_number && (1..=MAX_DIMENSIONS).contains(&dimensions)).then_some(dimensions)
}

/// Returns a type that can represent the values of both types. Used for columns with the same name
/// in several files.
pub(super) fn common_type(a: SqlType, b: SqlType) -> Option<SqlType> {
    let order: [&[SqlType]; 3] = [
        &[SqlType::Byte, SqlType::Short, SqlType::Int, SqlType::Long],
        &[SqlType::Float, SqlType::Double],
        &[SqlType::Date, SqlType::Timestamp, SqlType::TimestampNs],
    ];
    if a == b {
        return Some(a);
    }
    if is_text_type(a) && is_text_type(b) {
        return Some(SqlType::Varchar);
    }
    let family = order.iter().find(|family| family.contains(&a) && family.contains(&b))?;
    family.iter().copied().rfind(|one| *one == a || *one == b)
}

fn is_text_type(sql_type: SqlType) -> bool {
    matches!(sql_type, SqlType::Symbol | SqlType::String | SqlType::Varchar)
}

/// Converts a column to the type that [`columns_of`] or [`sql_type_of`] chose.
pub(crate) fn convert(array: &ArrayRef, to: SqlType) -> EngineResult<ArrayRef> {
    let array = &unpacked(array, to)?;
    let is_text = is_text(array.data_type());
    let converted = match (array.data_type(), to) {
        // A geohash whose size is not a multiple of 5 bits is stored as binary digits.
        (_, SqlType::Geohash(bits)) if is_text && bits % 5 != 0 => {
            let texts = cast(array, &DataType::Utf8View).map_err(unreadable)?;
            let bits = |text: Option<&str>| i64::from_str_radix(text?, 2).ok();
            let values: Int64Array = texts.as_string_view().iter().map(bits).collect();
            cast(&values, &to.arrow_type()).map_err(unreadable)?
        }
        // These types are stored as SQL strings.
        (_, SqlType::Char | SqlType::Ipv4 | SqlType::Geohash(_)) if is_text => {
            let texts = cast(array, &DataType::Utf8View).map_err(unreadable)?;
            tidemark_functions::from_texts(&texts, to).map_err(|error| unreadable(&error))?
        }
        (DataType::Binary, SqlType::DoubleArray(dimensions)) => from_raw(array, dimensions)?,
        (DataType::BinaryView, SqlType::DoubleArray(dimensions)) => {
            from_raw(&cast(array, &DataType::Binary).map_err(unreadable)?, dimensions)?
        }
        (_, SqlType::DoubleArray(dimensions)) => {
            let doubles = nested_type(dimensions);
            refuse_inexact(array)?;
            from_nested(&cast(array, &doubles).map_err(unreadable)?)?
        }
        (DataType::Timestamp(unit, Some(_)), _) => {
            let naive = cast(array, &DataType::Timestamp(*unit, None)).map_err(unreadable)?;
            cast(&naive, &to.arrow_type()).map_err(unreadable)?
        }
        (&intervals::STORED, SqlType::Varchar) => intervals::texts(array)?,
        (nested, SqlType::Varchar) if nested.is_nested() => nested::json_texts(array)?,
        (found, _) if *found == to.arrow_type() => Arc::clone(array),
        _ => cast(array, &to.arrow_type()).map_err(unreadable)?,
    };
    Ok(canonical(converted, to))
}

/// Expands a dictionary. Except for SYMBOL, a dictionary is only a storage format.
fn unpacked(array: &ArrayRef, to: SqlType) -> EngineResult<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(_, values) if to != SqlType::Symbol => {
            cast(array, values).map_err(unreadable)
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn unreadable(error: impl std::fmt::Display) -> EngineError {
    EngineError::new(ErrorCode::InvalidValue, error.to_string())
}

/// Rejects lists containing integers that DOUBLE cannot represent exactly.
fn refuse_inexact(array: &ArrayRef) -> EngineResult<()> {
    let mut level = Arc::clone(array);
    loop {
        let inner = match level.data_type() {
            DataType::List(_) => Arc::clone(level.as_list::<i32>().values()),
            DataType::LargeList(_) => Arc::clone(level.as_list::<i64>().values()),
            DataType::FixedSizeList(..) => Arc::clone(level.as_fixed_size_list().values()),
            _ => break,
        };
        level = inner;
    }
    let Some(longs) = level.as_primitive_opt::<Int64Type>() else { return Ok(()) };
    match longs.iter().flatten().find(|value| value.unsigned_abs() > EXACT.unsigned_abs()) {
        None => Ok(()),
        Some(value) => {
            let message = format!("list element {value} is not exactly representable as DOUBLE");
            Err(EngineError::new(ErrorCode::InvalidValue, message))
        }
    }
}

/// Applies the dialect's null rules. Sentinel values become null. In columns that cannot be null,
/// null becomes false or 0.
fn canonical(array: ArrayRef, sql_type: SqlType) -> ArrayRef {
    match sql_type {
        SqlType::Boolean if array.null_count() > 0 => {
            let values = array.as_boolean();
            let valid = values.nulls().map(NullBuffer::inner);
            let set =
                valid.map_or_else(|| values.values().clone(), |valid| values.values() & valid);
            Arc::new(BooleanArray::new(set, None))
        }
        SqlType::Byte | SqlType::Short if array.null_count() > 0 => {
            let wide = cast(&array, &DataType::Int32).ok();
            let filled = wide.map(|wide| {
                let values = wide.as_primitive::<Int32Type>().iter();
                values.map(|value| Some(value.unwrap_or(0))).collect::<PrimitiveArray<Int32Type>>()
            });
            filled.and_then(|filled| cast(&filled, array.data_type()).ok()).unwrap_or(array)
        }
        SqlType::Int => without::<Int32Type>(array, |value| value == i32::MIN),
        SqlType::Long => without::<Int64Type>(array, |value| value == i64::MIN),
        SqlType::Float => without::<Float32Type>(array, |value| !value.is_finite()),
        SqlType::Double => without::<Float64Type>(array, |value| !value.is_finite()),
        SqlType::Date => without::<TimestampMillisecondType>(array, |value| value == i64::MIN),
        SqlType::Timestamp => without::<TimestampMicrosecondType>(array, |value| value == i64::MIN),
        SqlType::TimestampNs => {
            without::<TimestampNanosecondType>(array, |value| value == i64::MIN)
        }
        _ => array,
    }
}

/// Replaces sentinel values with null.
fn without<T: ArrowPrimitiveType>(array: ArrayRef, is_null: fn(T::Native) -> bool) -> ArrayRef {
    let Some(values) = array.as_primitive_opt::<T>() else { return array };
    if !values.values().iter().any(|value| is_null(*value)) {
        return array;
    }
    let cells = values.values();
    let valid = BooleanBuffer::collect_bool(cells.len(), |row| !is_null(cells[row]));
    let nulls = NullBuffer::union(Some(&NullBuffer::new(valid)), values.nulls());
    Arc::new(PrimitiveArray::<T>::new(cells.clone(), nulls))
}

/// Converts a column to its common type across all files.
pub(super) fn widened(array: &ArrayRef, to: SqlType) -> EngineResult<ArrayRef> {
    let target = to.arrow_type();
    if *array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    cast(array, &target).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use arrow::array::Float64Array;

    use super::*;

    #[test]
    fn nan_infinity_and_minimum_integers_are_read_as_null() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![
            Some(1.0),
            Some(f64::NAN),
            None,
            Some(f64::INFINITY),
        ]));
        let read = convert(&doubles, SqlType::Double).unwrap();
        assert_eq!(read.null_count(), 3);
        let longs: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN, 0]));
        assert_eq!(convert(&longs, SqlType::Long).unwrap().null_count(), 1);
        let flags: ArrayRef = Arc::new(BooleanArray::from(vec![None, Some(true), Some(false)]));
        let read = convert(&flags, SqlType::Boolean).unwrap();
        assert_eq!(read.as_boolean(), &vec![false, true, false].into());
    }

    #[test]
    fn the_common_type_can_represent_values_of_both_types() {
        use SqlType as T;
        assert_eq!(common_type(T::Long, T::Int), Some(T::Long));
        assert_eq!(common_type(T::Timestamp, T::Date), Some(T::Timestamp));
        assert_eq!(common_type(T::Symbol, T::Varchar), Some(T::Varchar));
        assert_eq!(common_type(T::Float, T::Double), Some(T::Double));
        assert_eq!(common_type(T::Long, T::Double), None);
        assert_eq!(common_type(T::Uuid, T::Uuid), Some(T::Uuid));
    }
}
