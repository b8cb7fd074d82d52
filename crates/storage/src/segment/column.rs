//! Cells of one column in one run or segment.

use std::ops::Deref;
use std::sync::Arc;

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampMicrosecondType, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int16Array, Int32Array, make_array, new_null_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, TimeUnit};
use tidemark_types::{EngineError, EngineResult, SqlType};
use tidemark_vfs::CheckedKeys;

use crate::segment::cell_layout::Layout;
use crate::segment::key_rows::KeyRows;
use crate::table::merge::SourceRange;

/// Cells of one column. Symbols are checked keys of the table's dictionary; other types are the
/// Arrow array that queries see.
#[derive(Debug, Clone)]
pub(crate) enum ColumnData {
    Plain(ArrayRef),
    Keys(SymbolKeys),
}

/// Symbol keys, and the cached positions of their last rows. Only whole columns are searched often
/// enough to justify caching positions.
#[derive(Debug, Clone)]
pub(crate) struct SymbolKeys {
    checked: CheckedKeys,
    pub(crate) rows: Option<Arc<KeyRows>>,
}

impl Deref for SymbolKeys {
    type Target = CheckedKeys;

    fn deref(&self) -> &CheckedKeys {
        &self.checked
    }
}

impl ColumnData {
    /// Wraps an array in its stored form, which is `Int32` keys for symbols.
    pub(crate) fn new(sql_type: SqlType, array: ArrayRef) -> EngineResult<Self> {
        if sql_type != SqlType::Symbol {
            return Ok(Self::Plain(array));
        }
        let keys = array
            .as_primitive_opt::<Int32Type>()
            .ok_or_else(|| EngineError::internal("symbol keys are not 32-bit integers"))?;
        Self::keys(keys.clone())
    }

    pub(crate) fn keys(keys: Int32Array) -> EngineResult<Self> {
        let checked = CheckedKeys::new(keys);
        let checked = checked.map_err(|error| EngineError::internal(error.to_string()))?;
        Ok(Self::Keys(SymbolKeys { checked, rows: Some(Arc::default()) }))
    }

    /// Creates a column of nulls; for types without null, of false or 0.
    pub(crate) fn nulls(sql_type: SqlType, rows: usize) -> EngineResult<Self> {
        Ok(match sql_type {
            SqlType::Boolean => {
                Self::Plain(Arc::new(BooleanArray::new(BooleanBuffer::new_unset(rows), None)))
            }
            SqlType::Byte => Self::Plain(Arc::new(Int8Array::from(vec![0; rows]))),
            SqlType::Short => Self::Plain(Arc::new(Int16Array::from(vec![0; rows]))),
            SqlType::Symbol => return Self::keys(Int32Array::new_null(rows)),
            other => Self::Plain(new_null_array(&other.arrow_type(), rows)),
        })
    }

    pub(crate) fn array(&self) -> &dyn Array {
        match self {
            Self::Plain(array) => array.as_ref(),
            Self::Keys(keys) => keys.keys(),
        }
    }

    pub(crate) fn to_array(&self) -> ArrayRef {
        match self {
            Self::Plain(array) => Arc::clone(array),
            Self::Keys(keys) => Arc::new(keys.keys().clone()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.array().len()
    }

    pub(crate) fn slice(&self, offset: usize, len: usize) -> Self {
        match self {
            _ if offset == 0 && len == self.len() => self.clone(),
            Self::Plain(array) => Self::Plain(array.slice(offset, len)),
            Self::Keys(keys) => {
                Self::Keys(SymbolKeys { checked: keys.slice(offset, len), rows: None })
            }
        }
    }

    /// Approximate size of this column in memory, in bytes. A slice counts only its own rows.
    pub(crate) fn byte_size(&self) -> usize {
        match self.array().data_type() {
            DataType::Utf8View => {
                let array = self.array().as_string_view();
                let long = |view: &u128| (*view as u32 as usize).saturating_sub(12);
                array.len() * 16 + array.views().iter().map(long).sum::<usize>()
            }
            _ => self.array().to_data().get_slice_memory_size().unwrap_or_default(),
        }
    }

    /// Copies the rows of `ranges`, in that order.
    pub(crate) fn gather(
        sql_type: SqlType,
        sources: &[Self],
        ranges: &[SourceRange],
    ) -> EngineResult<Self> {
        let datas: Vec<_> = sources.iter().map(|source| source.array().to_data()).collect();
        let array = match (Layout::of(sql_type)?, datas.first()) {
            (Layout::Fixed(width), Some(first)) => {
                let data_type = first.data_type().clone();
                make_array(gather_fixed(data_type, width, &datas, ranges)?)
            }
            _ => gather_any(&datas, ranges)?,
        };
        match array.as_string_view_opt() {
            // Merging retains the string buffers of every source, so unused buffers are dropped
            // here.
            Some(texts) if texts.data_buffers().len() > 4 => Ok(Self::Plain(array).compacted()),
            _ => Self::new(sql_type, array),
        }
    }

    /// Returns the same cells without unused string data.
    pub(crate) fn compacted(self) -> Self {
        match self.array().as_string_view_opt() {
            Some(texts) => Self::Plain(Arc::new(texts.gc())),
            None => self,
        }
    }
}

/// Gathers cells of any layout, at a fixed cost per range.
fn gather_any(sources: &[ArrayData], ranges: &[SourceRange]) -> EngineResult<ArrayRef> {
    let rows = ranges.iter().map(|range| range.len).sum();
    let mut target = MutableArrayData::new(sources.iter().collect(), false, rows);
    for range in ranges {
        target
            .try_extend(range.source, range.start, range.start + range.len)
            .map_err(|error| EngineError::internal(error.to_string()))?;
    }
    Ok(make_array(target.freeze()))
}

/// Gathers cells of `width` bytes each.
fn gather_fixed(
    data_type: DataType,
    width: usize,
    sources: &[ArrayData],
    ranges: &[SourceRange],
) -> EngineResult<ArrayData> {
    let bodies = sources.iter().map(|source| {
        let body = source.buffers().first()?.as_slice();
        body.get(source.offset() * width..)
    });
    let bodies: Option<Vec<&[u8]>> = bodies.collect();
    let bodies = bodies.ok_or_else(|| EngineError::internal("a column has no values"))?;
    let values = match width {
        1 => gather_cells::<1>(&bodies, ranges),
        2 => gather_cells::<2>(&bodies, ranges),
        4 => gather_cells::<4>(&bodies, ranges),
        8 => gather_cells::<8>(&bodies, ranges),
        16 => gather_cells::<16>(&bodies, ranges),
        32 => gather_cells::<32>(&bodies, ranges),
        _ => return Err(EngineError::internal(format!("unsupported cell width: {width} bytes"))),
    };
    let rows = values.len() / width;
    let data = ArrayData::builder(data_type).len(rows).add_buffer(Buffer::from_vec(values));
    let data = data.nulls(gather_nulls(sources, ranges, rows)).align_buffers(true);
    data.build().map_err(|error| EngineError::internal(error.to_string()))
}

fn gather_cells<const WIDTH: usize>(bodies: &[&[u8]], ranges: &[SourceRange]) -> Vec<u8> {
    let bodies: Vec<_> = bodies.iter().map(|body| body.as_chunks::<WIDTH>().0).collect();
    tidemark_kernels::gather(&bodies, ranges).into_flattened()
}

fn gather_nulls(sources: &[ArrayData], ranges: &[SourceRange], rows: usize) -> Option<NullBuffer> {
    let nulls = sources.iter().map(|source| source.nulls().filter(|n| n.null_count() > 0));
    let nulls: Vec<_> = nulls.collect();
    if nulls.iter().all(Option::is_none) {
        return None;
    }
    let mut valid = BooleanBufferBuilder::new(rows);
    for range in ranges {
        match nulls[range.source] {
            Some(nulls) => {
                let start = nulls.offset() + range.start;
                valid.append_packed_range(start..start + range.len, nulls.validity());
            }
            None => valid.append_n(range.len, true),
        }
    }
    Some(NullBuffer::new(valid.finish()))
}

/// Returns a timestamp column's integers.
pub(crate) fn timestamps(array: &dyn Array) -> EngineResult<ScalarBuffer<i64>> {
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Ok(array.as_primitive::<TimestampMicrosecondType>().values().clone())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            Ok(array.as_primitive::<TimestampNanosecondType>().values().clone())
        }
        other => Err(EngineError::internal(format!("{other} is not a timestamp type"))),
    }
}

/// For types without null, returns the array with nulls replaced by false or 0.
pub(crate) fn without_nulls(sql_type: SqlType, array: &ArrayRef) -> ArrayRef {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Arc::clone(array);
    };
    match sql_type {
        SqlType::Boolean => {
            let values = array.as_boolean().values() & nulls.inner();
            Arc::new(BooleanArray::new(values, None))
        }
        SqlType::Byte => {
            let values = array.as_primitive::<arrow_array::types::Int8Type>().values();
            Arc::new(Int8Array::new(zeroed(values, nulls), None))
        }
        SqlType::Short => {
            let values = array.as_primitive::<arrow_array::types::Int16Type>().values();
            Arc::new(Int16Array::new(zeroed(values, nulls), None))
        }
        _ => Arc::clone(array),
    }
}

fn zeroed<T: Default + Copy + arrow_buffer::ArrowNativeType>(
    values: &[T],
    nulls: &NullBuffer,
) -> ScalarBuffer<T> {
    values
        .iter()
        .zip(nulls.iter())
        .map(|(&value, valid)| if valid { value } else { T::default() })
        .collect()
}
