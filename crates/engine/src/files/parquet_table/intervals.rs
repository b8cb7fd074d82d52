//! Columns of Parquet's INTERVAL type: months, days and milliseconds, 32 bits each. The Arrow
//! reader does not return all three, so intervals are read as raw bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::DataType;
use parquet::basic::{ConvertedType, Repetition, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use tidemark_types::period::Period;
use tidemark_types::{EngineError, EngineResult, account};

/// Arrow type that stores an interval.
pub(super) const STORED: DataType = DataType::FixedSizeBinary(12);
/// Approximate maximum length of an interval's string, in bytes.
const TEXT_BYTES: usize = 64;

/// Returns the footer with interval columns declared as plain bytes. A footer without interval
/// columns is returned unchanged.
pub(super) fn without_meaning(footer: &Arc<ParquetMetaData>) -> Arc<ParquetMetaData> {
    let roots = footer.file_metadata().schema_descr().root_schema().get_fields();
    if !roots.iter().any(is_interval) {
        return Arc::clone(footer);
    }
    plain(footer).map_or_else(|_| Arc::clone(footer), Arc::new)
}

fn is_interval(column: &TypePtr) -> bool {
    column.is_primitive() && column.get_basic_info().converted_type() == ConvertedType::INTERVAL
}

fn plain(footer: &ParquetMetaData) -> Result<ParquetMetaData> {
    let about = footer.file_metadata();
    let root = about.schema_descr().root_schema();
    let column = |column: &TypePtr| -> Result<TypePtr> {
        if !is_interval(column) {
            return Ok(Arc::clone(column));
        }
        let info = column.get_basic_info();
        let kind = PhysicalType::FIXED_LEN_BYTE_ARRAY;
        let bytes = Type::primitive_type_builder(info.name(), kind).with_length(12);
        let repetition =
            if info.has_repetition() { info.repetition() } else { Repetition::OPTIONAL };
        Ok(Arc::new(bytes.with_repetition(repetition).build()?))
    };
    let columns = root.get_fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let root = Type::group_type_builder(root.name()).with_fields(columns).build()?;
    let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
    let about = FileMetaData::new(
        about.version(),
        about.num_rows(),
        about.created_by().map(str::to_owned),
        about.key_value_metadata().cloned(),
        schema,
        about.column_orders().cloned(),
    );
    Ok(ParquetMetaData::new(about, footer.row_groups().to_vec()))
}

/// Converts stored intervals to strings: `1 year 2 mons 3 days 04:05:06.007`.
pub(super) fn texts(array: &ArrayRef) -> EngineResult<ArrayRef> {
    let cells = array.as_fixed_size_binary_opt().ok_or_else(|| {
        EngineError::internal(format!("expected intervals, found {}", array.data_type()))
    })?;
    account::check_allocation(cells.len() * TEXT_BYTES)?;
    let mut texts = StringViewBuilder::with_capacity(cells.len());
    for cell in cells {
        let Some((parts, [])) = cell.map(|bytes| bytes.as_chunks::<4>()) else {
            texts.append_null();
            continue;
        };
        let [months, days, millis] =
            [0, 1, 2].map(|at| parts.get(at).map_or(0, |bytes| i32::from_le_bytes(*bytes)));
        let period = Period { months, days, micros: i64::from(millis) * 1_000 };
        texts.append_value(period.text());
    }
    Ok(Arc::new(texts.finish()))
}
