//! Gathers matched right rows into columns.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, DictionaryArray, PrimitiveArray};
use arrow_array::{downcast_primitive, new_null_array};
use arrow_buffer::NullBuffer;
use datafusion::arrow::compute::interleave;
use datafusion::common::Result;
use tidemark_kernels::{NO_MATCH, unpack};

/// Gathers one column's values at the matched rows; null for rows without a match.
pub(crate) fn gather(
    chunks: &[ArrayRef],
    matches: &[u64],
    required: &ArrayRef,
) -> Result<ArrayRef> {
    macro_rules! primitive {
        ($arrow:ty) => {
            return Ok(Arc::new(gather_primitive::<$arrow>(chunks, matches, required)))
        };
    }
    if chunks.is_empty() {
        return Ok(new_null_array(required.data_type(), matches.len()));
    }
    if let Some(texts) = shared_dictionary(chunks) {
        let keys: Vec<ArrayRef> = chunks
            .iter()
            .filter_map(|chunk| chunk.as_dictionary_opt::<Int32Type>())
            .map(|chunk| Arc::new(chunk.keys().clone()) as ArrayRef)
            .collect();
        let none: ArrayRef = Arc::new(PrimitiveArray::<Int32Type>::new_null(0));
        let keys = gather_primitive::<Int32Type>(&keys, matches, &none);
        return Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(keys, texts)?));
    }
    downcast_primitive! {
        required.data_type() => (primitive),
        _ => gather_any(chunks, matches, required),
    }
}

fn shared_dictionary(chunks: &[ArrayRef]) -> Option<ArrayRef> {
    let first = chunks.first()?.as_dictionary_opt::<Int32Type>()?.values();
    let same = chunks.iter().all(|chunk| {
        chunk
            .as_dictionary_opt::<Int32Type>()
            .is_some_and(|chunk| Arc::ptr_eq(chunk.values(), first))
    });
    same.then(|| Arc::clone(first))
}

fn gather_primitive<P: ArrowPrimitiveType>(
    chunks: &[ArrayRef],
    matches: &[u64],
    required: &ArrayRef,
) -> PrimitiveArray<P> {
    let arrays: Vec<&PrimitiveArray<P>> =
        chunks.iter().filter_map(|chunk| chunk.as_primitive_opt::<P>()).collect();
    let slices: Vec<&[P::Native]> = arrays.iter().map(|array| array.values().as_ref()).collect();
    let values = matches.iter().map(|&found| {
        let (chunk, row) = unpack(found);
        // `NO_MATCH` contains a chunk index that does not exist, so it yields the default.
        slices.get(chunk).and_then(|slice| slice.get(row)).copied().unwrap_or_default()
    });
    let values: Vec<P::Native> = values.collect();
    let nullable = arrays.iter().any(|array| array.null_count() > 0);
    let nulls = if nullable {
        let valid = matches.iter().map(|&found| {
            let (chunk, row) = unpack(found);
            arrays.get(chunk).is_some_and(|array| array.is_valid(row))
        });
        Some(valid.collect::<NullBuffer>())
    } else if matches.contains(&NO_MATCH) {
        Some(matches.iter().map(|&found| found != NO_MATCH).collect())
    } else {
        None
    };
    let array = PrimitiveArray::<P>::new(values.into(), nulls);
    if required.data_type() == array.data_type() {
        return array;
    }
    array.with_data_type(required.data_type().clone())
}

fn gather_any(chunks: &[ArrayRef], matches: &[u64], required: &ArrayRef) -> Result<ArrayRef> {
    let nothing = new_null_array(required.data_type(), 1);
    let mut arrays: Vec<&dyn Array> = chunks.iter().map(AsRef::as_ref).collect();
    arrays.push(&nothing);
    let indices: Vec<(usize, usize)> = matches
        .iter()
        .map(|&found| if found == NO_MATCH { (chunks.len(), 0) } else { unpack(found) })
        .collect();
    Ok(interleave(&arrays, &indices)?)
}
