//! Checks whether cells fit their column.

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::limits::check_cells;
use crate::options::StorageOptions;
use crate::table::schema::ColumnSchema;

/// Refuses an array whose type differs from the column's, or that contains a missing or overlong
/// cell.
pub(crate) fn check_type(
    column: &ColumnSchema,
    array: &ArrayRef,
    options: &StorageOptions,
) -> EngineResult<()> {
    let expected = column.sql_type.arrow_type();
    let fits = match column.sql_type {
        SqlType::Symbol => is_text(array.data_type()),
        _ => *array.data_type() == expected,
    };
    if column.not_null && array.logical_null_count() > 0 {
        let message = format!("column '{}' is NOT NULL: expected a value", column.name);
        return Err(EngineError::new(ErrorCode::NullValue, message));
    }
    if fits {
        return check_cells(column, array, options);
    }
    let message =
        format!("column '{}' requires {expected}, found {}", column.name, array.data_type());
    Err(EngineError::new(ErrorCode::TypeMismatch, message))
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(key, value) => **key == DataType::Int32 && is_text(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        _ => false,
    }
}
