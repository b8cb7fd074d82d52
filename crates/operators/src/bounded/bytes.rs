//! Byte sizes of a batch's cells. Views of the same string share its bytes, so the cells of a batch
//! may be a thousand times as large as its buffers. An operator that copies cells needs memory for
//! all of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowDictionaryKeyType, Int32Type};
use arrow_array::{
    Array, ArrayRef, GenericListArray, GenericStringArray, OffsetSizeTrait, RecordBatch,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Fields};
use datafusion::common::Result;

/// Size of a view in bytes, excluding its string.
const VIEW_BYTES: usize = 16;

/// Returns the total size in bytes of all variable-length cells: strings, binary values and lists.
/// All other cells take only a few bytes each.
#[must_use]
pub fn cell_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| array_bytes(column.as_ref())).sum()
}

/// Returns the approximate size of a batch in memory, in bytes. In sliced buffers, such as those of
/// a scan, only the batch's own rows count. Strings shared by views count at most once.
pub(crate) fn memory_bytes(batch: &RecordBatch) -> usize {
    let width: usize = batch.columns().iter().map(|column| row_width(column.as_ref())).sum();
    let own = width.saturating_mul(batch.num_rows()).saturating_add(cell_bytes(batch));
    own.min(batch.get_array_memory_size())
}

/// Returns how many leading rows have at most `max` bytes of variable-length cells in total. This
/// is at least one row, unless the batch is empty.
#[must_use]
pub fn rows_of_bytes(batch: &RecordBatch, max: usize) -> usize {
    let rows = batch.num_rows();
    if rows <= 1 || cell_bytes(batch) <= max {
        return rows;
    }
    // Invariant of the binary search: the first `exceeds` rows have too many bytes.
    let (mut fits, mut exceeds) = (1, rows);
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        if cell_bytes(&batch.slice(0, middle)) <= max { fits = middle } else { exceeds = middle }
    }
    fits
}

/// Whether any of these columns contains lists.
pub(crate) fn has_lists(fields: &Fields) -> bool {
    fields.iter().any(|field| match field.data_type() {
        DataType::List(_) | DataType::LargeList(_) => true,
        DataType::Struct(fields) => has_lists(fields),
        _ => false,
    })
}

/// Returns the same rows, without list elements that belong to other rows. Arrow allocates memory
/// based on the average list length, which it computes as the array's element count divided by its
/// row count.
pub(crate) fn without_unused_elements(batch: &RecordBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(own_elements).collect::<Result<_, ArrowError>>()?;
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

fn own_elements(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::LargeList(_) => own_list(array, array.as_list::<i64>()),
        DataType::List(_) => own_list(array, array.as_list::<i32>()),
        DataType::Struct(fields) if has_lists(fields) => {
            let rows = array.as_struct();
            let columns =
                rows.columns().iter().map(own_elements).collect::<Result<_, ArrowError>>()?;
            let (fields, nulls) = (fields.clone(), rows.nulls().cloned());
            Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, rows.len())?))
        }
        _ => Ok(Arc::clone(array)),
    }
}

fn own_list<O: OffsetSizeTrait>(
    array: &ArrayRef,
    list: &GenericListArray<O>,
) -> Result<ArrayRef, ArrowError> {
    let (offsets, values) = (list.value_offsets(), list.values());
    let count = span(offsets);
    let (DataType::List(field) | DataType::LargeList(field)) = list.data_type() else {
        return Ok(Arc::clone(array));
    };
    let (Some(&first), false) = (offsets.first(), count == values.len()) else {
        return Ok(Arc::clone(array));
    };
    let own = OffsetBuffer::new(offsets.iter().map(|&offset| offset - first).collect());
    let values = values.slice(first.as_usize(), count);
    let nulls = list.nulls().cloned();
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(field), own, values, nulls)?))
}

fn array_bytes(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Utf8View => {
            let views = array.as_string_view();
            view_bytes(views.views(), views.data_buffers().is_empty())
        }
        DataType::BinaryView => {
            let views = array.as_binary_view();
            view_bytes(views.views(), views.data_buffers().is_empty())
        }
        DataType::Utf8 => text_bytes(array.as_string::<i32>()),
        DataType::LargeUtf8 => text_bytes(array.as_string::<i64>()),
        DataType::LargeBinary => {
            let offsets = array.as_binary::<i64>().value_offsets();
            span(offsets)
        }
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()),
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets();
            span(offsets) * width(list.values().as_ref())
        }
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            span(list.value_offsets()) * width(list.values().as_ref())
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| array_bytes(column.as_ref())).sum()
        }
        DataType::Dictionary(key, _) if **key == DataType::Int32 => dictionary::<Int32Type>(array),
        _ => 0,
    }
}

/// The lowest 32 bits of a view contain its length.
fn view_bytes(views: &[u128], is_short: bool) -> usize {
    if is_short {
        return 0;
    }
    views.iter().map(|view| (*view as u32) as usize).sum::<usize>() + VIEW_BYTES * views.len()
}

fn text_bytes<O: OffsetSizeTrait>(texts: &GenericStringArray<O>) -> usize {
    span(texts.value_offsets())
}

fn span<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => (*last - *first).as_usize(),
        _ => 0,
    }
}

/// Returns the approximate size of a row in bytes, excluding the bytes counted by [`cell_bytes`].
fn row_width(array: &dyn Array) -> usize {
    match array.as_struct_opt() {
        Some(fields) => fields.columns().iter().map(|column| row_width(column.as_ref())).sum(),
        None => width(array),
    }
}

/// Returns the approximate size of a list element in bytes.
fn width(values: &dyn Array) -> usize {
    values.data_type().primitive_width().unwrap_or(VIEW_BYTES)
}

/// Symbols are usually short. They are counted individually only if some are long.
fn dictionary<K: ArrowDictionaryKeyType>(array: &dyn Array) -> usize {
    const SHORT_BYTES: usize = 64;
    let keys = array.as_dictionary::<K>();
    let Some(texts) = keys.values().as_string_opt::<i32>() else { return 0 };
    if text_bytes(texts) <= SHORT_BYTES * texts.len().max(16) {
        return 0;
    }
    let length = |key: usize| texts.value_length(key) as usize;
    keys.keys_iter().flatten().filter(|key| *key < texts.len()).map(length).sum()
}

#[cfg(test)]
mod tests {
    use arrow::compute::take;
    use arrow_array::types::Int64Type;
    use arrow_array::{Int64Array, LargeListArray, StringViewArray, UInt64Array};

    use super::*;

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("c", column)]).unwrap()
    }

    #[test]
    fn row_count_per_batch_is_limited_by_bytes() {
        let texts = StringViewArray::from_iter_values((0..100).map(|_| "x".repeat(84)));
        let batch = batch(Arc::new(texts));
        assert_eq!(cell_bytes(&batch), 10_000);
        assert_eq!(rows_of_bytes(&batch, 10_000), 100);
        assert_eq!(rows_of_bytes(&batch, 1_050), 10);
        assert_eq!(rows_of_bytes(&batch, 1), 1);
        assert_eq!(rows_of_bytes(&batch.slice(0, 0), 1), 0);
    }

    /// A scan returns slices of whole columns.
    #[test]
    fn byte_sizes_of_slices_add_up_to_the_size_of_the_whole_batch() {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100_000));
        let texts = StringViewArray::from_iter_values((0..100_000).map(|row| format!("{row:>40}")));
        let all = RecordBatch::try_from_iter([("n", numbers), ("t", Arc::new(texts) as ArrayRef)]);
        let all = all.unwrap();
        let whole = memory_bytes(&all);
        let slices = (0..100).map(|index| memory_bytes(&all.slice(index * 1_000, 1_000)));
        let slices: usize = slices.sum();
        assert!(whole >= 100_000 * (8 + 16 + 40), "{whole}");
        assert!(slices.abs_diff(whole) < whole / 4, "{slices} and {whole}");
        // A single string shared by all rows.
        let shared = take(
            &StringViewArray::from(vec!["x".repeat(1 << 20)]),
            &UInt64Array::from(vec![0; 10_000]),
            None,
        );
        let shared = memory_bytes(&batch(shared.unwrap()));
        assert!(shared < 2 << 20, "{shared}");
    }

    #[test]
    fn sliced_lists_contain_only_their_own_elements() {
        let lists = (0..100).map(|row| Some(vec![Some(row); 1_000]));
        let lists = LargeListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let batch = batch(Arc::new(lists)).slice(40, 2);
        let own = without_unused_elements(&batch).unwrap();
        assert_eq!(own, batch);
        assert_eq!(own.column(0).as_list::<i64>().values().len(), 2_000);
        let taken = take(own.column(0), &UInt64Array::from(vec![1, 1]), None).unwrap();
        assert!(taken.get_array_memory_size() < 64_000, "{}", taken.get_array_memory_size());
        assert!(has_lists(batch.schema().fields()));
    }

    #[test]
    fn number_columns_add_no_variable_length_bytes() {
        let batch = batch(Arc::new(Int64Array::from_iter_values(0..100)));
        assert_eq!((cell_bytes(&batch), rows_of_bytes(&batch, 1)), (0, 100));
    }
}
