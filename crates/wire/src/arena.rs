//! A record batch as one buffer that `arrow-js-ffi` reads without copying: the C data interface
//! with 32-bit pointers, in WebAssembly's layout, relative to the start of the arena.
//!
//! | offset | bytes | meaning |
//! |---|---|---|
//! | 0 | 4 | zero: a null pointer to metadata reads as "no entries" |
//! | 4 | 4 | offset of the `ArrowArray` of the batch (a struct) |
//! | 8 | 4 | offset of its `ArrowSchema` |
//! | 12 | 4 | number of rows |
//! | 16 | 4 | size of the arena in bytes, a multiple of 64; another arena may follow |
//! | 64 | | buffers, each 64-byte aligned; then the structs |
//!
//! All numbers are little-endian. The release callbacks are null, because the buffer owns the
//! memory. Types that the reader does not support are converted: string views, large strings and
//! large binary to 32-bit offsets, decimals to strings, and arrays to nested lists. Dictionaries
//! are reduced to the values that the batch uses.

use arrow::compute::cast;
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StructArray, UInt32Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType, double_array};

use crate::text_column::text_column;

const ALIGNMENT: usize = 64;
const HEADER_BYTES: usize = 64;
/// `ARROW_FLAG_NULLABLE`.
const NULLABLE: i64 = 2;
/// Key of the field metadata that names the SQL type.
const TYPE_KEY: &str = "tidemark.type";

/// Writes one record batch as one arena.
pub fn write_arena(batch: &RecordBatch) -> EngineResult<Vec<u8>> {
    let mut out = Vec::new();
    append_arena(&[], batch, &mut out)?;
    Ok(out)
}

/// Appends an arena to `out`, at the next multiple of 64. `fields` names the SQL types, and may be
/// empty.
pub(crate) fn append_arena(
    fields: &[Field],
    batch: &RecordBatch,
    out: &mut Vec<u8>,
) -> EngineResult<()> {
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    let mut arena = Arena { base: out.len(), out };
    arena.put_zeros(HEADER_BYTES);
    let columns = batch.columns().iter().enumerate();
    let columns = columns.map(|(index, column)| match fields.get(index) {
        Some(field) => readable_as(field, column),
        None => readable(column),
    });
    let columns = columns.collect::<EngineResult<Vec<_>>>()?;
    let arrays = columns
        .iter()
        .map(|column| arena.put_array(column.as_ref()))
        .collect::<EngineResult<Vec<_>>>()?;
    let array = arena.put_array_struct(batch.num_rows(), None, &[], &arrays, 0)?;
    let schema = batch.schema();
    let types = schema
        .fields()
        .iter()
        .zip(&columns)
        .enumerate()
        .map(|(index, (field, column))| {
            let sql_type = fields.get(index).map(|field| field.sql_type.name());
            let nullable = field.is_nullable() || column.null_count() > 0;
            arena.put_schema(field.name(), column.data_type(), nullable, sql_type.as_deref())
        })
        .collect::<EngineResult<Vec<_>>>()?;
    let root = arena.put_schema_struct("+s", "", false, None, &types, 0)?;
    arena.align();
    let size = arena.here()?;
    let rows = u32::try_from(batch.num_rows()).map_err(|_| too_large())?;
    for (at, value) in [(4, array), (8, root), (12, rows), (16, size)] {
        let start = arena.base + at;
        arena.out[start..start + 4].copy_from_slice(&value.to_le_bytes());
    }
    Ok(())
}

fn too_large() -> EngineError {
    EngineError::new(ErrorCode::ResourceLimit, "a batch of the result is larger than 4 GiB")
}

fn unreadable(data_type: &DataType) -> EngineError {
    EngineError::new(
        ErrorCode::NotSupported,
        format!("{data_type} is not supported in an Arrow arena"),
    )
}

/// Converts a column of an SQL type. As in Parquet files, types without an Arrow counterpart are
/// represented by their strings.
fn readable_as(field: &Field, column: &ArrayRef) -> EngineResult<ArrayRef> {
    match field.sql_type {
        SqlType::Char
        | SqlType::Ipv4
        | SqlType::Geohash(_)
        | SqlType::Interval
        | SqlType::Period
            if *column.data_type() != DataType::Null =>
        {
            text_column(field, column)
        }
        _ => readable(column),
    }
}

/// Converts a column to types that the reader supports.
fn readable(column: &ArrayRef) -> EngineResult<ArrayRef> {
    if double_array::DoubleArrays::new(column).is_some() {
        return double_array::to_nested(column);
    }
    let target = match column.data_type() {
        DataType::Utf8View
        | DataType::LargeUtf8
        | DataType::Null
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(..) => return compact_dictionary(column),
        DataType::Struct(_) => return readable_struct(column),
        _ => return Ok(ArrayRef::clone(column)),
    };
    cast(column, &target).map_err(|error| {
        EngineError::internal(format!("cannot convert a column for an Arrow arena: {error}"))
    })
}

fn readable_struct(column: &ArrayRef) -> EngineResult<ArrayRef> {
    let structs = column.as_struct();
    let children = structs.columns().iter().map(readable).collect::<EngineResult<Vec<_>>>()?;
    let fields: Vec<_> = structs
        .fields()
        .iter()
        .zip(&children)
        .map(|(field, child)| field.as_ref().clone().with_data_type(child.data_type().clone()))
        .collect();
    Ok(std::sync::Arc::new(StructArray::new(fields.into(), children, structs.nulls().cloned())))
}

/// Returns the same symbols with a dictionary that contains only the symbols in use, in order of
/// appearance.
fn compact_dictionary(column: &ArrayRef) -> EngineResult<ArrayRef> {
    let dictionary =
        column.as_dictionary_opt::<Int32Type>().ok_or_else(|| unreadable(column.data_type()))?;
    let mut used: Vec<u32> = Vec::new();
    let mut moved = vec![-1_i32; dictionary.values().len()];
    let keys: Int32Array = dictionary
        .keys()
        .iter()
        .map(|key| {
            let key = key? as usize;
            if moved[key] < 0 {
                moved[key] = used.len() as i32;
                used.push(key as u32);
            }
            Some(moved[key])
        })
        .collect();
    let failed = |error| {
        EngineError::internal(format!("cannot convert symbols for an Arrow arena: {error}"))
    };
    let values = arrow::compute::take(dictionary.values(), &UInt32Array::from(used), None)
        .and_then(|values| cast(&values, &DataType::Utf8))
        .map_err(failed)?;
    let compact = DictionaryArray::<Int32Type>::try_new(keys, values).map_err(failed)?;
    Ok(std::sync::Arc::new(compact))
}

/// Returns the format string of the C data interface.
fn format_of(data_type: &DataType) -> EngineResult<String> {
    Ok(match data_type {
        DataType::Boolean => "b".into(),
        DataType::Int8 => "c".into(),
        DataType::UInt8 => "C".into(),
        DataType::Int16 => "s".into(),
        DataType::UInt16 => "S".into(),
        DataType::Int32 => "i".into(),
        DataType::UInt32 => "I".into(),
        DataType::Int64 => "l".into(),
        DataType::UInt64 => "L".into(),
        DataType::Float32 => "f".into(),
        DataType::Float64 => "g".into(),
        DataType::Utf8 => "u".into(),
        DataType::Binary => "z".into(),
        DataType::FixedSizeBinary(size) => format!("w:{size}"),
        DataType::Timestamp(unit, zone) => {
            let unit = match unit {
                TimeUnit::Second => 's',
                TimeUnit::Millisecond => 'm',
                TimeUnit::Microsecond => 'u',
                TimeUnit::Nanosecond => 'n',
            };
            format!("ts{unit}:{}", zone.as_deref().unwrap_or_default())
        }
        DataType::List(_) => "+l".into(),
        DataType::Struct(_) => "+s".into(),
        DataType::Dictionary(keys, _) => format_of(keys)?,
        other => return Err(unreadable(other)),
    })
}

/// The buffer under construction.
struct Arena<'a> {
    out: &'a mut Vec<u8>,
    base: usize,
}

impl Arena<'_> {
    fn here(&self) -> EngineResult<u32> {
        u32::try_from(self.out.len() - self.base).map_err(|_| too_large())
    }

    fn align(&mut self) {
        let length = (self.out.len() - self.base).next_multiple_of(ALIGNMENT);
        self.out.resize(self.base + length, 0);
    }

    fn put_zeros(&mut self, count: usize) {
        self.out.resize(self.out.len() + count, 0);
    }

    /// Copies a buffer to the next aligned offset; returns that offset.
    fn put_buffer(&mut self, bytes: &[u8]) -> EngineResult<u32> {
        self.align();
        let at = self.here()?;
        self.out.extend_from_slice(bytes);
        Ok(at)
    }

    fn put_text(&mut self, text: &str) -> EngineResult<u32> {
        let at = self.here()?;
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(0);
        Ok(at)
    }

    fn put_nulls(&mut self, nulls: Option<&NullBuffer>) -> EngineResult<u32> {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            Some(nulls) => self.put_buffer(nulls.inner().sliced().as_slice()),
            None => Ok(0),
        }
    }

    /// Writes 32-bit offsets relative to the first; returns their position, and the first and last
    /// value.
    fn put_offsets(&mut self, offsets: &[i32]) -> EngineResult<(u32, usize, usize)> {
        let first = offsets.first().copied().unwrap_or(0);
        let last = offsets.last().copied().unwrap_or(0);
        let from_zero: Vec<u8> =
            offsets.iter().flat_map(|offset| (offset - first).to_le_bytes()).collect();
        Ok((self.put_buffer(&from_zero)?, first as usize, last as usize))
    }

    /// Writes an array's buffers and its `ArrowArray`; returns the offset of the struct.
    fn put_array(&mut self, array: &dyn Array) -> EngineResult<u32> {
        let validity = self.put_nulls(array.nulls())?;
        let rows = array.len();
        match array.data_type() {
            DataType::Boolean => {
                let bits = array.as_boolean().values().sliced();
                let values = self.put_buffer(bits.as_slice())?;
                // The reader requires one byte per value, although only one bit of it is used.
                self.put_zeros(rows.saturating_sub(bits.len()));
                self.put_array_struct(rows, array.nulls(), &[validity, values], &[], 0)
            }
            DataType::Utf8 => {
                let text = array.as_string::<i32>();
                let (offsets, first, last) = self.put_offsets(text.value_offsets())?;
                let bytes = self.put_buffer(&text.value_data()[first..last])?;
                self.put_array_struct(rows, array.nulls(), &[validity, offsets, bytes], &[], 0)
            }
            DataType::Binary => {
                let binary = array.as_binary::<i32>();
                let (offsets, first, last) = self.put_offsets(binary.value_offsets())?;
                let bytes = self.put_buffer(&binary.value_data()[first..last])?;
                self.put_array_struct(rows, array.nulls(), &[validity, offsets, bytes], &[], 0)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let (offsets, first, last) = self.put_offsets(list.value_offsets())?;
                let child = self.put_array(list.values().slice(first, last - first).as_ref())?;
                self.put_array_struct(rows, array.nulls(), &[validity, offsets], &[child], 0)
            }
            DataType::Struct(_) => {
                let children = array
                    .as_struct()
                    .columns()
                    .iter()
                    .map(|child| self.put_array(child.as_ref()))
                    .collect::<EngineResult<Vec<_>>>()?;
                self.put_array_struct(rows, array.nulls(), &[validity], &children, 0)
            }
            DataType::Dictionary(..) => {
                let dictionary = array
                    .as_dictionary_opt::<Int32Type>()
                    .ok_or_else(|| unreadable(array.data_type()))?;
                let keys = self.put_buffer(dictionary.keys().values().inner().as_slice())?;
                let values = self.put_array(dictionary.values().as_ref())?;
                self.put_array_struct(rows, array.nulls(), &[validity, keys], &[], values)
            }
            _ => {
                let values = fixed_width_bytes(array)?;
                let values = self.put_buffer(&values)?;
                self.put_array_struct(rows, array.nulls(), &[validity, values], &[], 0)
            }
        }
    }

    /// `struct ArrowArray` with 32-bit pointers.
    fn put_array_struct(
        &mut self,
        rows: usize,
        nulls: Option<&NullBuffer>,
        buffers: &[u32],
        children: &[u32],
        dictionary: u32,
    ) -> EngineResult<u32> {
        // A struct without validity still has one buffer.
        let buffers = if buffers.is_empty() { &[0] } else { buffers };
        let buffer_pointers = self.put_pointers(buffers)?;
        let child_pointers = self.put_pointers(children)?;
        self.align();
        let at = self.here()?;
        let null_count = nulls.map_or(0, NullBuffer::null_count);
        for value in [rows, null_count, 0, buffers.len(), children.len()] {
            self.out.extend_from_slice(&(value as i64).to_le_bytes());
        }
        for pointer in [buffer_pointers, child_pointers, dictionary, 0, 0] {
            self.out.extend_from_slice(&pointer.to_le_bytes());
        }
        Ok(at)
    }

    fn put_pointers(&mut self, pointers: &[u32]) -> EngineResult<u32> {
        let bytes: Vec<u8> = pointers.iter().flat_map(|pointer| pointer.to_le_bytes()).collect();
        self.put_buffer(&bytes)
    }

    /// Writes a column's `ArrowSchema`; returns its offset.
    fn put_schema(
        &mut self,
        name: &str,
        data_type: &DataType,
        nullable: bool,
        sql_type: Option<&str>,
    ) -> EngineResult<u32> {
        let (children, dictionary) = match data_type {
            DataType::List(item) => {
                (vec![self.put_schema(item.name(), item.data_type(), true, None)?], 0)
            }
            DataType::Struct(fields) => {
                let children = fields
                    .iter()
                    .map(|field| self.put_schema(field.name(), field.data_type(), true, None))
                    .collect::<EngineResult<Vec<_>>>()?;
                (children, 0)
            }
            DataType::Dictionary(_, values) => (vec![], self.put_schema("", values, true, None)?),
            _ => (vec![], 0),
        };
        let format = format_of(data_type)?;
        self.put_schema_struct(&format, name, nullable, sql_type, &children, dictionary)
    }

    /// `struct ArrowSchema` with 32-bit pointers.
    fn put_schema_struct(
        &mut self,
        format: &str,
        name: &str,
        nullable: bool,
        sql_type: Option<&str>,
        children: &[u32],
        dictionary: u32,
    ) -> EngineResult<u32> {
        let format = self.put_text(format)?;
        let name = self.put_text(name)?;
        let metadata = sql_type.map_or(Ok(0), |sql_type| self.put_metadata(sql_type))?;
        let child_pointers = self.put_pointers(children)?;
        self.align();
        let at = self.here()?;
        for pointer in [format, name, metadata, 0] {
            self.out.extend_from_slice(&pointer.to_le_bytes());
        }
        let flags = if nullable { NULLABLE } else { 0 };
        for value in [flags, children.len() as i64] {
            self.out.extend_from_slice(&value.to_le_bytes());
        }
        for pointer in [child_pointers, dictionary, 0, 0] {
            self.out.extend_from_slice(&pointer.to_le_bytes());
        }
        Ok(at)
    }

    /// Writes one metadata entry: the SQL type.
    fn put_metadata(&mut self, sql_type: &str) -> EngineResult<u32> {
        let at = self.here()?;
        self.out.extend_from_slice(&1_i32.to_le_bytes());
        for text in [TYPE_KEY, sql_type] {
            self.out.extend_from_slice(&(text.len() as i32).to_le_bytes());
            self.out.extend_from_slice(text.as_bytes());
        }
        Ok(at)
    }
}

/// Returns the values of a fixed-width column, starting at its first row.
fn fixed_width_bytes(array: &dyn Array) -> EngineResult<Vec<u8>> {
    let width = match array.data_type() {
        DataType::FixedSizeBinary(size) => *size as usize,
        other => other.primitive_width().ok_or_else(|| unreadable(other))?,
    };
    let data = array.to_data();
    let buffer = data.buffers().first().ok_or_else(|| unreadable(array.data_type()))?;
    let start = data.offset() * width;
    Ok(buffer.as_slice()[start..start + array.len() * width].to_vec())
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;

    use super::*;

    #[test]
    fn compacting_a_dictionary_drops_unused_symbols() {
        let values = StringArray::from(vec!["a", "b", "c", "d"]);
        let keys = Int32Array::from(vec![Some(3), None, Some(1), Some(3)]);
        let column: ArrayRef = std::sync::Arc::new(
            DictionaryArray::<Int32Type>::try_new(keys, std::sync::Arc::new(values)).unwrap(),
        );
        let compact = compact_dictionary(&column).unwrap();
        let compact = compact.as_dictionary::<Int32Type>();
        let texts: Vec<_> = compact.values().as_string::<i32>().iter().flatten().collect();
        assert_eq!(texts, ["d", "b"]);
        let keys: Vec<_> = compact.keys().iter().collect();
        assert_eq!(keys, [Some(0), None, Some(1), Some(0)]);
    }
}
