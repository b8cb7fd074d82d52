//! Size limits for new changes. Stored data remains readable if the limits are lowered.

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use tidemark_types::double_array::DoubleArrays;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::options::StorageOptions;
use crate::table::schema::ColumnSchema;

/// Refuses a table definition with too many columns.
pub(crate) fn check_columns(
    columns: usize,
    table: &str,
    options: &StorageOptions,
) -> EngineResult<()> {
    refuse(columns > options.max_columns, || {
        let max = options.max_columns;
        format!("table '{table}' has {columns} columns: at most {max} columns are allowed")
    })
}

/// Refuses a column that contains an overlong cell or an array with too many elements.
pub(crate) fn check_cells(
    column: &ColumnSchema,
    cells: &ArrayRef,
    options: &StorageOptions,
) -> EngineResult<()> {
    let name = &column.name;
    if let SqlType::DoubleArray(_) = column.sql_type {
        let (max_len, max) = (max_array_len(cells)?, options.max_array_elements);
        return refuse(max_len > max, || {
            format!(
                "column '{name}': array has {max_len} elements: at most {max} elements are \
                 allowed"
            )
        });
    }
    let (max_len, max) = (max_cell_bytes(cells), options.max_cell_bytes);
    refuse(max_len > max, || {
        format!("column '{name}': value is {max_len} bytes long: at most {max} bytes are allowed")
    })
}

/// Returns a resource-limit error if `is_over`.
pub(crate) fn refuse(is_over: bool, message: impl FnOnce() -> String) -> EngineResult<()> {
    if is_over { Err(EngineError::new(ErrorCode::ResourceLimit, message())) } else { Ok(()) }
}

/// Number of elements in the longest array.
fn max_array_len(cells: &ArrayRef) -> EngineResult<usize> {
    let arrays = DoubleArrays::new(cells.as_ref())
        .ok_or_else(|| EngineError::internal("expected a column of arrays"))?;
    let lengths = (0..arrays.len()).filter_map(|row| Some(arrays.get(row)?.values.len()));
    Ok(lengths.max().unwrap_or(0))
}

/// Returns the length in bytes of the longest string or BINARY value; 0 for other types.
fn max_cell_bytes(cells: &ArrayRef) -> usize {
    let between = |offsets: &[i64]| offsets.windows(2).map(|pair| pair[1] - pair[0]).max();
    match cells.data_type() {
        // The low 32 bits of a view are its length.
        DataType::Utf8View => {
            let views = cells.as_string_view().views();
            views.iter().map(|view| *view as u32 as usize).max().unwrap_or(0)
        }
        DataType::LargeBinary => {
            between(cells.as_binary::<i64>().value_offsets()).unwrap_or(0) as usize
        }
        DataType::LargeUtf8 => {
            between(cells.as_string::<i64>().value_offsets()).unwrap_or(0) as usize
        }
        DataType::Utf8 => {
            let offsets = cells.as_string::<i32>().value_offsets();
            offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0) as usize
        }
        DataType::Dictionary(..) => cells
            .as_dictionary_opt::<Int32Type>()
            .map_or(0, |dictionary| max_cell_bytes(dictionary.values())),
        _ => 0,
    }
}
