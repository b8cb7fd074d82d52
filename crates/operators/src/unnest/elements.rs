//! Expands arrays and JSON documents into elements.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, StringViewArray, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::common::{Result, internal_err};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tidemark_types::double_array::{DoubleArrayBuilder, DoubleArrays};
use tidemark_types::timestamp::{TimestampUnit, write_iso};

use super::node::{JsonField, JsonKind, UnnestItem};
use crate::error::engine_error;

/// A range of a row's elements, numbered starting at 0.
pub(crate) struct ElementRange {
    pub(crate) row: usize,
    pub(crate) elements: Range<usize>,
}

/// One argument's elements for the rows in a batch.
pub(crate) enum Elements {
    Arrays { array: ArrayRef, dimensions: u8 },
    Documents(Documents),
    Counts(Int64Array),
    Values(ArrayRef),
}

impl Elements {
    pub(crate) fn new(array: ArrayRef, item: &UnnestItem) -> Result<Self> {
        Ok(match item {
            UnnestItem::Array(dimensions) => Self::Arrays { array, dimensions: *dimensions },
            UnnestItem::Json(fields) => {
                let Some(texts) = array.as_string_view_opt() else {
                    return internal_err!("expected JSON as VARCHAR");
                };
                let lengths = vec![0; texts.len()];
                let (texts, fields) = (texts.clone(), fields.clone());
                Self::Documents(Documents { texts, fields, lengths, offset: 0 })
            }
            UnnestItem::Values(values) => Self::Values(Arc::clone(&values.0)),
            UnnestItem::Count => match array.as_primitive_opt() {
                Some(counts) => Self::Counts(counts.clone()),
                None => return internal_err!("expected the number of elements as LONG"),
            },
        })
    }

    /// Returns the number of elements in a row and the approximate size of an element in bytes.
    pub(crate) fn size(&mut self, row: usize) -> Result<(usize, usize)> {
        match self {
            Self::Documents(documents) => Ok(documents.size(row)),
            Self::Counts(counts) => Ok((count(counts, row), 0)),
            Self::Values(values) => {
                let length = values.len();
                Ok((length, values.get_array_memory_size() / length.max(1)))
            }
            Self::Arrays { array, .. } => {
                let array = doubles(array)?.get(row);
                let length = array.and_then(|array| array.shape.first().copied());
                let length = length.map_or(0, |length| length.max(0) as usize);
                let bytes = array.map_or(0, |array| size_of_val(array.values));
                Ok((length, bytes / length.max(1)))
            }
        }
    }

    /// Returns the columns of these elements. A row's ranges must be requested in order, and only
    /// after the row's size has been requested.
    pub(crate) fn columns(&mut self, ranges: &[ElementRange]) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Documents(documents) => Ok(documents.columns(ranges)),
            Self::Counts(counts) => Ok(element_numbers(counts, ranges)),
            Self::Values(values) => Ok(vec![some_of(values, ranges)?]),
            Self::Arrays { array, dimensions: 1 } => numbers(array, ranges),
            Self::Arrays { array, dimensions } => inner_arrays(array, *dimensions, ranges),
        }
    }
}

/// JSON arrays that are read element by element.
pub(crate) struct Documents {
    texts: StringViewArray,
    fields: Vec<JsonField>,
    /// Number of elements in each row whose size has been requested.
    lengths: Vec<usize>,
    /// Offset of the next element in the current row.
    offset: usize,
}

impl Documents {
    fn size(&mut self, row: usize) -> (usize, usize) {
        let text = if self.texts.is_null(row) { "" } else { self.texts.value(row) };
        let length = element_count(text);
        self.lengths[row] = length;
        (length, self.fields.len() * text.len() / length.max(1))
    }

    fn columns(&mut self, ranges: &[ElementRange]) -> Vec<ArrayRef> {
        let mut columns: Vec<_> = self.fields.iter().map(|_| StringViewBuilder::new()).collect();
        for range in ranges {
            if range.elements.start == 0 {
                self.offset = 0;
            }
            for index in range.elements.clone() {
                let is_element = index < self.lengths[range.row];
                let text = is_element.then(|| self.texts.value(range.row));
                let element = text.and_then(|text| next_element(text, &mut self.offset));
                for (field, column) in self.fields.iter().zip(&mut columns) {
                    let value = element.as_ref().map(|element| match element {
                        Value::Object(object) => object.get(&field.name).unwrap_or(&Value::Null),
                        other => other,
                    });
                    column.append_option(value.and_then(|value| shown(value, field.kind)));
                }
            }
        }
        columns.into_iter().map(|mut column| Arc::new(column.finish()) as ArrayRef).collect()
    }
}

/// An element that is parsed and then discarded.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Value::deserialize(source).map(|_| Self)
    }
}

/// Returns the number of elements in a JSON array; 0 for any other string.
fn element_count(text: &str) -> usize {
    serde_json::from_str::<Vec<Checked>>(text).map_or(0, |elements| elements.len())
}

/// Returns the first element after `offset` in a valid JSON array, and advances `offset` past it.
fn next_element(text: &str, offset: &mut usize) -> Option<Value> {
    let rest = text.get(*offset..)?.trim_start_matches([' ', '\t', '\n', '\r']);
    let rest = rest.strip_prefix(['[', ','])?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter();
    let element = values.next()?.ok()?;
    *offset = text.len() - rest.len() + values.byte_offset();
    Some(element)
}

/// Returns a value as a string, if it is of the requested kind.
fn shown(value: &Value, kind: JsonKind) -> Option<String> {
    match (kind, value) {
        (_, Value::Null) => None,
        (JsonKind::Boolean, Value::Bool(_)) | (JsonKind::Number, Value::Number(_)) => {
            Some(value.to_string())
        }
        (JsonKind::Time | JsonKind::Text, Value::String(text)) => Some(text.clone()),
        (JsonKind::Time, Value::Number(number)) => {
            let mut out = Vec::new();
            write_iso(&mut out, number.as_i64()?, TimestampUnit::Micros);
            String::from_utf8(out).ok()
        }
        (JsonKind::Text, _) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns the number of elements in a row.
fn count(counts: &Int64Array, row: usize) -> usize {
    if counts.is_null(row) {
        return 0;
    }
    usize::try_from(counts.value(row)).unwrap_or_default()
}

fn element_numbers(counts: &Int64Array, ranges: &[ElementRange]) -> Vec<ArrayRef> {
    let of = |range: &ElementRange| {
        let count = count(counts, range.row);
        range.elements.clone().map(move |position| (position < count).then_some(position as i64))
    };
    vec![Arc::new(ranges.iter().flat_map(of).collect::<Int64Array>())]
}

/// Returns the values in the ranges, as a slice if they are consecutive. After the last value, the
/// result is padded with nulls.
fn some_of(values: &ArrayRef, ranges: &[ElementRange]) -> Result<ArrayRef> {
    if let [ElementRange { elements, .. }] = ranges
        && elements.end <= values.len()
    {
        return Ok(values.slice(elements.start, elements.len()));
    }
    let positions = ranges.iter().flat_map(|range| range.elements.clone());
    let positions = positions.map(|position| (position < values.len()).then_some(position as u64));
    Ok(take(values, &positions.collect::<UInt64Array>(), None)?)
}

fn doubles(array: &ArrayRef) -> Result<DoubleArrays<'_>> {
    let Some(arrays) = DoubleArrays::new(array) else {
        return internal_err!("UNNEST requires DOUBLE[]");
    };
    Ok(arrays)
}

fn numbers(array: &ArrayRef, ranges: &[ElementRange]) -> Result<Vec<ArrayRef>> {
    let arrays = doubles(array)?;
    let mut numbers = Float64Builder::new();
    for ElementRange { row, elements } in ranges {
        let values = arrays.get(*row).map_or(&[][..], |array| array.values);
        for index in elements.clone() {
            numbers.append_option(values.get(index).copied().filter(|value| !value.is_nan()));
        }
    }
    Ok(vec![Arc::new(numbers.finish())])
}

/// Returns the inner arrays of a multidimensional array.
fn inner_arrays(
    array: &ArrayRef,
    dimensions: u8,
    ranges: &[ElementRange],
) -> Result<Vec<ArrayRef>> {
    let arrays = doubles(array)?;
    let mut inner = DoubleArrayBuilder::new(dimensions - 1);
    for ElementRange { row, elements } in ranges {
        let whole = arrays.get(*row);
        for index in elements.clone() {
            let element = whole.as_ref().and_then(|array| {
                let (first, shape) = array.shape.split_first()?;
                let length: usize = shape.iter().map(|&length| length.max(0) as usize).product();
                let inside = index < (*first).max(0) as usize;
                let values = array.values.get(index * length..(index + 1) * length)?;
                inside.then_some((shape, values))
            });
            match element {
                Some((shape, values)) => {
                    inner.push(shape, values.iter().copied()).map_err(engine_error)?;
                }
                None => inner.push_null(),
            }
        }
    }
    Ok(vec![inner.finish().map_err(engine_error)?])
}
