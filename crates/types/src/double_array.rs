//! Cells of type DOUBLE[]: their layout in Arrow arrays, and their string form.
//!
//! A column is a struct with two children: `shape` contains the length of each dimension, and
//! `values` the elements in row-major order. Nested lists could not distinguish a 0 × 3 array from
//! a 0 × 0 array, and would need one indirection per dimension to access an element.
//!
//! A null element is NaN; no other non-finite value occurs. The children of a null array have
//! undefined contents.

use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, Int32Array, LargeListArray, ListArray,
    StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};

use crate::sql_type::array_children;
use crate::{EngineError, EngineResult, ErrorCode, SqlType, account, bounded};

/// Maximum number of elements in an array.
pub const MAX_ARRAY_ELEMENTS: usize = 10_000_000;

/// Maximum number of elements in an array that becomes a constant in a plan; larger than any
/// literal. Larger arrays are computed at execution.
///
/// Each optimizer rule copies, compares and formats constants and cannot be stopped while it does
/// so: planning an array of 5 million elements took 40 s.
const MAX_CONSTANT_ELEMENTS: usize = 16 * 1024;

/// Row access to a column's cells.
#[derive(Debug, Clone, Copy)]
pub struct DoubleArrays<'a> {
    nulls: Option<&'a NullBuffer>,
    dimensions: usize,
    shapes: &'a [i32],
    offsets: &'a [i64],
    values: &'a [f64],
}

impl<'a> DoubleArrays<'a> {
    /// Reads a column; `None` if it does not have an array's layout.
    #[must_use]
    pub fn new(array: &'a dyn Array) -> Option<Self> {
        let pair = array.as_struct_opt()?;
        let [shape, values] = pair.columns() else { return None };
        let shape = shape.as_fixed_size_list_opt()?;
        let values = values.as_list_opt::<i64>()?;
        Some(Self {
            nulls: pair.nulls(),
            dimensions: shape.value_length() as usize,
            shapes: shape.values().as_primitive_opt::<Int32Type>()?.values(),
            offsets: values.value_offsets(),
            values: values.values().as_primitive_opt::<Float64Type>()?.values(),
        })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether the column has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of dimensions of every array.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the array in a row; `None` when it is null.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<DoubleArray<'a>> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let shape = &self.shapes[row * self.dimensions..(row + 1) * self.dimensions];
        let values = &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize];
        Some(DoubleArray { shape, values })
    }

    /// Whether every shape matches its number of elements. Users of [`DoubleArray`] rely on this.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        (0..self.len()).all(|row| {
            self.get(row).is_none_or(|array| {
                let mut lengths = array.shape.iter().map(|&length| usize::try_from(length).ok());
                lengths.try_fold(1_usize, |all, length| all.checked_mul(length?))
                    == Some(array.values.len())
            })
        })
    }
}

/// One array.
#[derive(Debug, Clone, Copy)]
pub struct DoubleArray<'a> {
    /// Each dimension's length, outermost first.
    pub shape: &'a [i32],
    /// The elements in row-major order; NaN is null.
    pub values: &'a [f64],
}

/// Brackets and null word in the string form of arrays.
#[derive(Debug, Clone, Copy)]
pub struct ArrayStyle {
    open: u8,
    close: u8,
    null: &'static [u8],
}

/// `[1.0,null,3.5]`: JSON, CSV, and casts to strings.
pub const JSON_ARRAY: ArrayStyle = ArrayStyle { open: b'[', close: b']', null: b"null" };
/// `{1.0,NULL,3.5}`: `PostgreSQL`.
pub const PG_ARRAY: ArrayStyle = ArrayStyle { open: b'{', close: b'}', null: b"NULL" };

impl DoubleArray<'_> {
    /// Writes the string form, nested by dimension, with each element formatted by `number`. An
    /// array with an empty outermost dimension becomes a single pair of brackets.
    pub fn write_text(&self, out: &mut Vec<u8>, style: &ArrayStyle, number: fn(&mut Vec<u8>, f64)) {
        out.push(style.open);
        let length = self.shape.first().map_or(0, |&length| length as usize);
        let inner = self.shape.get(1..).unwrap_or_default();
        let step = self.values.len().checked_div(length).unwrap_or(0);
        for index in 0..length {
            if index > 0 {
                out.push(b',');
            }
            let values = &self.values[index * step..(index + 1) * step];
            match values {
                [value] if inner.is_empty() && value.is_nan() => out.extend_from_slice(style.null),
                [value] if inner.is_empty() => number(out, *value),
                _ => DoubleArray { shape: inner, values }.write_text(out, style, number),
            }
        }
        out.push(style.close);
    }

    /// Whether shapes and elements are equal; null elements are equal to each other.
    #[must_use]
    pub fn same(&self, other: &DoubleArray<'_>) -> bool {
        self.shape == other.shape
            && self
                .values
                .iter()
                .zip(other.values)
                .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
    }
}

/// Builder for a column's cells.
#[derive(Debug)]
pub struct DoubleArrayBuilder {
    dimensions: u8,
    shapes: Vec<i32>,
    offsets: Vec<i64>,
    values: Vec<f64>,
    valid: Vec<bool>,
}

impl DoubleArrayBuilder {
    /// Creates a builder for arrays with `dimensions` dimensions.
    #[must_use]
    pub fn new(dimensions: u8) -> Self {
        Self {
            dimensions,
            shapes: Vec::new(),
            offsets: vec![0],
            values: Vec::new(),
            valid: Vec::new(),
        }
    }

    /// Appends an array; non-finite elements become null. Fails if the shape does not match the
    /// number of elements, or if there are too many elements.
    pub fn push(
        &mut self,
        shape: &[i32],
        values: impl IntoIterator<Item = f64>,
    ) -> EngineResult<()> {
        let before = self.values.len();
        let lengths = shape.iter().map(|&length| usize::try_from(length).unwrap_or(usize::MAX));
        let expected = lengths.fold(1_usize, usize::saturating_mul);
        check_elements(expected)?;
        if self.values.capacity() - before < expected {
            let required = (before + expected).max(2 * before);
            account::check_allocation(required * size_of::<f64>())?;
            self.values.reserve_exact(required - before);
        }
        self.values.extend(
            values
                .into_iter()
                .take(expected.saturating_add(1))
                .map(|value| if value.is_finite() { value } else { f64::NAN }),
        );
        let count = self.values.len() - before;
        if count != expected || shape.len() != usize::from(self.dimensions) {
            return Err(EngineError::internal(format!(
                "{count} elements do not match shape {shape:?}"
            )));
        }
        check_elements(count)?;
        self.shapes.extend_from_slice(shape);
        self.offsets.push(self.values.len() as i64);
        self.valid.push(true);
        Ok(())
    }

    /// Appends a null array.
    pub fn push_null(&mut self) {
        self.shapes.extend(std::iter::repeat_n(0, usize::from(self.dimensions)));
        self.offsets.push(self.values.len() as i64);
        self.valid.push(false);
    }

    /// Removes the cells at row `rows` and beyond.
    pub fn truncate(&mut self, rows: usize) {
        if rows < self.valid.len() {
            self.valid.truncate(rows);
            self.shapes.truncate(rows * usize::from(self.dimensions));
            self.offsets.truncate(rows + 1);
            self.values.truncate(self.offsets.last().map_or(0, |&end| end as usize));
        }
    }

    /// Returns the column.
    pub fn finish(self) -> EngineResult<ArrayRef> {
        let nulls = self.valid.contains(&false).then(|| NullBuffer::from(self.valid));
        let (shapes, offsets) = (self.shapes.into(), self.offsets.into());
        assemble(self.dimensions, shapes, offsets, self.values.into(), nulls)
    }
}

/// Maximum number of sub-arrays in an array without elements. The string form has brackets for each
/// sub-array. Without this limit, a few bytes of lengths could therefore produce an arbitrarily
/// long string.
const MAX_EMPTY_ARRAYS: u64 = 1024;

/// Whether external input may contain an array with these dimension lengths.
pub fn is_allowed(lengths: impl IntoIterator<Item = u64>) -> bool {
    let (mut product, mut is_empty) = (1_u64, false);
    for length in lengths {
        product = product.saturating_mul(length.max(1));
        is_empty |= length == 0;
    }
    product <= if is_empty { MAX_EMPTY_ARRAYS } else { MAX_ARRAY_ELEMENTS as u64 }
}

/// Fails with `array element count exceeds max` if an array would have too many elements. During
/// planning, also fails if a constant would be too large. In that case, the call remains in the
/// plan.
pub fn check_elements(count: usize) -> EngineResult<()> {
    if count > MAX_CONSTANT_ELEMENTS && bounded::is_folding() {
        let message = "the array is too large for a constant";
        return Err(EngineError::new(ErrorCode::ResourceLimit, message));
    }
    if count <= MAX_ARRAY_ELEMENTS {
        return Ok(());
    }
    let message =
        format!("array has {count} elements: at most {MAX_ARRAY_ELEMENTS} elements are allowed");
    Err(EngineError::new(ErrorCode::ResourceLimit, message))
}

/// Builds a column from `dimensions` lengths per row, offsets (one more than rows) and elements.
/// Fails when they are inconsistent.
pub fn assemble(
    dimensions: u8,
    shapes: ScalarBuffer<i32>,
    offsets: ScalarBuffer<i64>,
    values: ScalarBuffer<f64>,
    nulls: Option<NullBuffer>,
) -> EngineResult<ArrayRef> {
    let rows = offsets.len().saturating_sub(1);
    let bad = |what: &dyn std::fmt::Display| {
        EngineError::new(ErrorCode::Damaged, format!("malformed arrays: {what}"))
    };
    let ascending = offsets.windows(2).all(|pair| pair[0] <= pair[1]);
    if offsets.first().is_none_or(|&first| first < 0) || !ascending {
        return Err(bad(&"the offsets are not ascending"));
    }
    let item = |data_type| Arc::new(Field::new_list_field(data_type, true));
    let lengths = Arc::new(Int32Array::new(shapes, None));
    let shape =
        FixedSizeListArray::try_new(item(DataType::Int32), i32::from(dimensions), lengths, None);
    let elements = Arc::new(Float64Array::new(values, None));
    let offsets = OffsetBuffer::new(offsets);
    let values = LargeListArray::try_new(item(DataType::Float64), offsets, elements, None);
    let (shape, values) = (shape.map_err(|e| bad(&e))?, values.map_err(|e| bad(&e))?);
    if shape.len() != rows {
        return Err(bad(&format!("{} shapes for {rows} rows", shape.len())));
    }
    let pair: Vec<ArrayRef> = vec![Arc::new(shape), Arc::new(values)];
    let array =
        StructArray::try_new(array_children(dimensions), pair, nulls).map_err(|e| bad(&e))?;
    if !DoubleArrays::new(&array).is_some_and(|arrays| arrays.is_consistent()) {
        return Err(bad(&"a shape does not match its elements"));
    }
    Ok(Arc::new(array))
}

/// Returns the Arrow type that [`to_nested`] produces.
#[must_use]
pub fn nested_type(dimensions: u8) -> DataType {
    (0..dimensions).fold(DataType::Float64, |inner, _| {
        DataType::List(Arc::new(Field::new_list_field(inner, true)))
    })
}

/// Converts the column to nested lists, the form that other programs use. Null elements have their
/// validity bit cleared. Fails if a batch has more than 2³¹ elements.
pub fn to_nested(array: &dyn Array) -> EngineResult<ArrayRef> {
    let arrays = DoubleArrays::new(array).ok_or_else(|| {
        EngineError::internal(format!("{} is not an array type", array.data_type()))
    })?;
    let dimensions = arrays.dimensions();
    let mut lengths: Vec<Vec<i32>> = vec![Vec::new(); dimensions];
    let mut elements: Vec<Option<f64>> = Vec::new();
    for row in 0..arrays.len() {
        let Some(cell) = arrays.get(row) else {
            lengths[0].push(0);
            continue;
        };
        let mut lists = 1;
        for (level, &length) in lengths.iter_mut().zip(cell.shape) {
            level.extend(std::iter::repeat_n(length, lists));
            lists *= length as usize;
        }
        elements.extend(cell.values.iter().map(|&value| (!value.is_nan()).then_some(value)));
    }
    let mut inner: ArrayRef = Arc::new(Float64Array::from(elements));
    for (level, lengths) in lengths.iter().enumerate().rev() {
        let mut offsets = Vec::with_capacity(lengths.len() + 1);
        let mut end = 0_i32;
        offsets.push(0);
        for length in lengths {
            end = end.checked_add(*length).ok_or_else(|| {
                let message = "the arrays of one batch have more than 2,147,483,647 elements";
                EngineError::new(ErrorCode::ResourceLimit, message)
            })?;
            offsets.push(end);
        }
        let nulls = array.nulls().filter(|_| level == 0).cloned();
        let item = Arc::new(Field::new_list_field(inner.data_type().clone(), true));
        let list = ListArray::try_new(item, OffsetBuffer::new(offsets.into()), inner, nulls);
        inner = Arc::new(list.map_err(|error| EngineError::internal(error.to_string()))?);
    }
    Ok(inner)
}

/// Returns the number of dimensions in nested lists of DOUBLE or FLOAT; `None` for other types.
#[must_use]
pub fn nested_dimensions(data_type: &DataType) -> Option<u8> {
    let mut dimensions = 0_u8;
    let mut level = data_type;
    loop {
        level = match level {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                dimensions = dimensions.checked_add(1)?;
                item.data_type()
            }
            DataType::Float64 | DataType::Float32 => break,
            _ => return None,
        };
    }
    (1..=32).contains(&dimensions).then_some(dimensions)
}

/// Converts nested lists of any kind to a column, the inverse of [`to_nested`]. Arrays are
/// rectangular. Null lists, and lists that are shorter than others at the same depth, are therefore
/// padded with nulls.
pub fn from_nested(array: &dyn Array) -> EngineResult<ArrayRef> {
    let dimensions = nested_dimensions(array.data_type()).ok_or_else(|| {
        EngineError::internal(format!("{} is not an array type", array.data_type()))
    })?;
    let mut builder = DoubleArrayBuilder::new(dimensions);
    for row in 0..array.len() {
        match list_at(array, row) {
            None => builder.push_null(),
            Some(cell) => {
                let mut shape = vec![0; usize::from(dimensions)];
                measure(&*cell, 0, &mut shape);
                let lengths = shape.iter().map(|length| u64::from(length.unsigned_abs()));
                if !is_allowed(lengths) {
                    let message = format!(
                        "a nested list of {shape:?} elements exceeds the maximum array size \
                         ({MAX_ARRAY_ELEMENTS})"
                    );
                    return Err(EngineError::new(ErrorCode::ResourceLimit, message));
                }
                let count = shape.iter().map(|length| *length as usize).product();
                account::check_allocation(count * size_of::<f64>())?;
                let mut values = Vec::with_capacity(count);
                collect(Some(&*cell), &shape, &mut values);
                builder.push(&shape, values)?;
            }
        }
    }
    builder.finish()
}

/// Converts the column to bytes, the compact form in Parquet files. Each array consists of the
/// length of each dimension (32 bits) and the elements (64 bits, NaN is null), all little-endian.
/// Fails if a batch has more than 2 GiB.
pub fn to_raw(array: &dyn Array) -> EngineResult<ArrayRef> {
    let arrays = DoubleArrays::new(array).ok_or_else(|| {
        EngineError::internal(format!("{} is not an array type", array.data_type()))
    })?;
    let mut builder = BinaryBuilder::new();
    let (mut bytes, mut total) = (Vec::new(), 0_usize);
    for row in 0..arrays.len() {
        let Some(cell) = arrays.get(row) else {
            builder.append_null();
            continue;
        };
        bytes.clear();
        bytes.extend(cell.shape.iter().flat_map(|length| length.to_le_bytes()));
        bytes.extend(cell.values.iter().flat_map(|value| value.to_le_bytes()));
        total += bytes.len();
        if i32::try_from(total).is_err() {
            let message = "the arrays of one batch have more than 2,147,483,647 bytes";
            return Err(EngineError::new(ErrorCode::ResourceLimit, message));
        }
        builder.append_value(&bytes);
    }
    Ok(Arc::new(builder.finish()))
}

/// Converts bytes to a column, the inverse of [`to_raw`]. Fails if the bytes are not arrays with
/// `dimensions` dimensions.
pub fn from_raw(array: &dyn Array, dimensions: u8) -> EngineResult<ArrayRef> {
    let cells = array.as_binary_opt::<i32>().ok_or_else(|| {
        EngineError::internal(format!("{} is not a binary type", array.data_type()))
    })?;
    let mut builder = DoubleArrayBuilder::new(dimensions);
    for cell in cells {
        let Some(bytes) = cell else {
            builder.push_null();
            continue;
        };
        let (shape, values) = raw_parts(bytes, dimensions).ok_or_else(|| {
            let message =
                format!("{} bytes do not encode an array of {dimensions} dimensions", bytes.len());
            EngineError::new(ErrorCode::InvalidValue, message)
        })?;
        builder.push(&shape, values)?;
    }
    builder.finish()
}

/// Returns a raw array's shape and elements; `None` when they are inconsistent.
fn raw_parts(bytes: &[u8], dimensions: u8) -> Option<(Vec<i32>, impl Iterator<Item = f64>)> {
    let (shape, values) = bytes.split_at_checked(usize::from(dimensions) * 4)?;
    let (shape, _) = shape.as_chunks::<4>();
    let shape: Vec<i32> = shape.iter().map(|length| i32::from_le_bytes(*length)).collect();
    let (values, rest) = values.as_chunks::<8>();
    let mut lengths = shape.iter().map(|&length| usize::try_from(length).ok());
    let count = lengths.try_fold(1_usize, |all, length| all.checked_mul(length?))?;
    let fits = rest.is_empty() && count == values.len();
    fits.then(|| (shape, values.iter().map(|value| f64::from_le_bytes(*value))))
}

fn list_at(array: &dyn Array, row: usize) -> Option<ArrayRef> {
    if array.is_null(row) {
        return None;
    }
    match array.data_type() {
        DataType::List(_) => Some(array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => Some(array.as_list::<i64>().value(row)),
        DataType::FixedSizeList(..) => Some(array.as_fixed_size_list().value(row)),
        _ => None,
    }
}

/// Raises each length in `shape` to the maximum list length at that depth.
fn measure(list: &dyn Array, depth: usize, shape: &mut [i32]) {
    shape[depth] = shape[depth].max(list.len() as i32);
    if depth + 1 < shape.len() {
        for inner in (0..list.len()).filter_map(|row| list_at(list, row)) {
            measure(&*inner, depth + 1, shape);
        }
    }
}

/// Appends the elements of one list, padded with nulls at every depth to the lengths in `shape`.
fn collect(list: Option<&dyn Array>, shape: &[i32], values: &mut Vec<f64>) {
    let Some((length, below)) = shape.split_first() else { return };
    let (start, length) = (values.len(), *length as usize);
    let Some(list) = list else {
        let missing = length * below.iter().map(|length| *length as usize).product::<usize>();
        values.resize(start + missing, f64::NAN);
        return;
    };
    if let Some(doubles) = list.as_primitive_opt::<Float64Type>() {
        values.extend(doubles.iter().map(|value| value.unwrap_or(f64::NAN)));
    } else if let Some(floats) = list.as_primitive_opt::<Float32Type>() {
        values.extend(floats.iter().map(|value| value.map_or(f64::NAN, f64::from)));
    } else {
        for row in 0..length {
            let inner = if row < list.len() { list_at(list, row) } else { None };
            collect(inner.as_deref(), below, values);
        }
        return;
    }
    values.resize(start + length, f64::NAN);
}

/// Parses `{1.5,NULL,-2}` or `[[1,2],[3,4]]`; `None` when the string is not an array with
/// `dimensions` dimensions. The only empty shape is `[0, …, 0]`.
#[must_use]
pub fn parse_text(dimensions: u8, text: &str) -> Option<(Vec<i32>, Vec<f64>)> {
    let mut parser = TextParser {
        remaining: text.trim().as_bytes(),
        shape: vec![-1; usize::from(dimensions)],
        values: Vec::new(),
    };
    parser.list(0)?;
    if !parser.remaining.is_empty() {
        return None;
    }
    let empty = parser.shape.iter().any(|length| *length < 1);
    let shape = if empty { vec![0; usize::from(dimensions)] } else { parser.shape };
    Some((shape, parser.values))
}

struct TextParser<'a> {
    remaining: &'a [u8],
    shape: Vec<i32>,
    values: Vec<f64>,
}

impl TextParser<'_> {
    fn skip_space(&mut self) {
        self.remaining = self.remaining.trim_ascii_start();
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.remaining.first() == Some(&byte);
        if found {
            self.remaining = &self.remaining[1..];
        }
        found
    }

    /// The recursion depth is limited by the number of dimensions, at most 32.
    fn list(&mut self, depth: usize) -> Option<()> {
        let close = if self.take(b'{') {
            b'}'
        } else if self.take(b'[') {
            b']'
        } else {
            return None;
        };
        let mut length = 0;
        if !self.take(close) {
            loop {
                if depth + 1 < self.shape.len() {
                    self.list(depth + 1)?;
                } else {
                    self.element()?;
                }
                length += 1;
                if self.take(close) {
                    break;
                }
                if !self.take(b',') {
                    return None;
                }
            }
        }
        // `{}` is the empty array, whatever the number of dimensions.
        if length == 0 && depth == 0 {
            self.shape.fill(0);
            return Some(());
        }
        let known = &mut self.shape[depth];
        if *known == -1 {
            *known = length;
        }
        (*known == length).then_some(())
    }

    fn element(&mut self) -> Option<()> {
        self.skip_space();
        let end = self.remaining.iter().position(|byte| matches!(byte, b',' | b'}' | b']'))?;
        let text = std::str::from_utf8(&self.remaining[..end]).ok()?.trim();
        self.remaining = &self.remaining[end..];
        let null = text.eq_ignore_ascii_case("null");
        self.values.push(if null { f64::NAN } else { text.parse().ok()? });
        Some(())
    }
}

impl SqlType {
    /// Returns an array type's number of dimensions; `None` for other types.
    #[must_use]
    pub fn dimensions(self) -> Option<u8> {
        match self {
            Self::DoubleArray(dimensions) => Some(dimensions),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(cells: &[Option<(&[i32], &[f64])>], dimensions: u8) -> ArrayRef {
        let mut builder = DoubleArrayBuilder::new(dimensions);
        for cell in cells {
            match cell {
                Some((shape, values)) => {
                    builder.push(shape, values.iter().copied()).unwrap();
                }
                None => builder.push_null(),
            }
        }
        builder.finish().unwrap()
    }

    #[test]
    fn a_large_array_is_not_folded_to_a_constant() {
        assert!(check_elements(MAX_CONSTANT_ELEMENTS + 1).is_ok());
        assert!(bounded::folding(|| check_elements(MAX_CONSTANT_ELEMENTS)).is_ok());
        assert!(bounded::folding(|| check_elements(MAX_CONSTANT_ELEMENTS + 1)).is_err());
        assert!(check_elements(MAX_CONSTANT_ELEMENTS + 1).is_ok(), "no limit after planning");
    }

    #[test]
    fn raw_arrays_round_trip_and_malformed_bytes_are_rejected() {
        let cells: [Option<(&[i32], &[f64])>; 4] = [
            Some((&[2, 2], &[1.0, f64::NAN, -0.0, 4.0])),
            None,
            Some((&[3, 0], &[])),
            Some((&[1, 1], &[7.0])),
        ];
        let array = column(&cells, 2);
        for array_slice in [Arc::clone(&array), array.slice(1, 3)] {
            let raw = to_raw(&array_slice).unwrap();
            let back = from_raw(&raw, 2).unwrap();
            let (a, b) =
                (DoubleArrays::new(&array_slice).unwrap(), DoubleArrays::new(&back).unwrap());
            for row in 0..array_slice.len() {
                match (a.get(row), b.get(row)) {
                    (Some(a), Some(b)) => assert!(a.same(&b), "{a:?} {b:?}"),
                    (a, b) => assert!(a.is_none() && b.is_none()),
                }
            }
        }
        let of = |bytes: Vec<u8>| arrow_array::BinaryArray::from_iter_values([bytes]);
        let with = |shape: [i32; 2], values: usize| {
            let shape = shape.into_iter().flat_map(i32::to_le_bytes);
            of(shape.chain(std::iter::repeat_n(0, values)).collect())
        };
        assert!(from_raw(&with([2, 1], 16), 2).is_ok());
        for bad in [with([2, 1], 8), with([2, 1], 17), with([-1, -1], 8), of(vec![1; 7])] {
            assert!(from_raw(&bad, 2).is_err());
        }
        assert!(from_raw(&with([i32::MAX, i32::MAX], 8), 2).is_err());
    }

    #[test]
    fn nested_lists_round_trip() {
        let cells: [Option<(&[i32], &[f64])>; 5] = [
            Some((&[2, 3], &[1.0, 2.0, f64::INFINITY, 4.0, 5.0, 6.0])),
            None,
            Some((&[0, 0], &[])),
            Some((&[3, 0], &[])),
            Some((&[1, 1], &[7.0])),
        ];
        let array = column(&cells, 2);
        assert_eq!(array.data_type(), &SqlType::DoubleArray(2).arrow_type());
        for array_slice in [Arc::clone(&array), array.slice(1, 3), array.slice(4, 1)] {
            let nested = to_nested(&array_slice).unwrap();
            assert_eq!(nested.data_type(), &nested_type(2));
            let back = from_nested(&nested).unwrap();
            let (a, b) =
                (DoubleArrays::new(&array_slice).unwrap(), DoubleArrays::new(&back).unwrap());
            for row in 0..array_slice.len() {
                match (a.get(row), b.get(row)) {
                    (Some(a), Some(b)) => assert!(a.same(&b), "{a:?} {b:?}"),
                    (a, b) => assert!(a.is_none() && b.is_none()),
                }
            }
        }
    }

    #[test]
    fn ragged_lists_are_padded_with_nulls() {
        let inner: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0]));
        let item =
            |array: &ArrayRef| Arc::new(Field::new_list_field(array.data_type().clone(), true));
        let offsets = OffsetBuffer::new(vec![0, 2, 3].into());
        let rows: ArrayRef = Arc::new(ListArray::new(item(&inner), offsets, inner, None));
        let offsets = OffsetBuffer::new(vec![0, 2].into());
        let table = ListArray::new(item(&rows), offsets, rows, None);
        let filled = from_nested(&table).unwrap();
        let filled = DoubleArrays::new(&filled).unwrap().get(0).unwrap();
        assert_eq!(filled.shape, [2, 2]);
        assert_eq!(filled.values[..3], [1.0, 2.0, 3.0]);
        assert!(filled.values[3].is_nan());
    }

    #[test]
    fn array_literals_are_parsed() {
        let read = |dimensions, text| parse_text(dimensions, text);
        assert_eq!(read(1, "{1.5, -2}"), Some((vec![2], vec![1.5, -2.0])));
        assert_eq!(read(2, "[[1,2],[3,4]]"), Some((vec![2, 2], vec![1.0, 2.0, 3.0, 4.0])));
        assert_eq!(read(3, "{}"), Some((vec![0, 0, 0], vec![])));
        assert!(read(1, "{1,NULL}").is_some_and(|(_, values)| values[1].is_nan()));
        for bad in ["", "{", "{1", "{1,}", "1", "{1}x", "{{1}}", "{a}", "{1]"] {
            assert_eq!(read(1, bad), None, "{bad}");
        }
        assert_eq!(read(2, "{{1,2},{3}}"), None);
    }

    #[test]
    fn inconsistent_shapes_and_offsets_are_reported_as_damage() {
        let build = |shapes: Vec<i32>, offsets: Vec<i64>, values: Vec<f64>| {
            assemble(1, shapes.into(), offsets.into(), values.into(), None)
        };
        assert!(build(vec![2, 1], vec![0, 2, 3], vec![1.0; 3]).is_ok());
        assert!(build(vec![1, 2], vec![0, 2, 3], vec![1.0; 3]).is_err());
        assert!(build(vec![2, 1], vec![0, 2, 4], vec![1.0; 3]).is_err());
        assert!(build(vec![2, -1], vec![0, 2, 1], vec![1.0; 3]).is_err());
        assert!(build(vec![2], vec![0, 2, 3], vec![1.0; 3]).is_err());
    }
}
