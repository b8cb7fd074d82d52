//! Access to array elements by position: selectors, transposition and element-wise combination.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::double_array::{DoubleArray, check_elements};
use tidemark_types::{EngineResult, SqlType};

use crate::array::arrays::{Arrays, build_arrays, failed};
use crate::column::{Call, Primitives, build};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::resolved;

/// The selector between `[` and `]` for one dimension. Its bounds are passed as separate arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector {
    /// `i`, which has one argument.
    Item,
    /// `lo:`, which has one argument.
    From,
    /// `lo:hi`, which has two arguments.
    Range,
}

/// Binds `array[selectors]`. `arguments` contains the array, then the selectors' values in order.
/// Positions are counted from 1; negative positions are counted from the end.
pub fn resolve_index(
    selectors: &[Selector],
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let array = arguments.first().map_or(SqlType::Null, |argument| argument.sql_type);
    let SqlType::DoubleArray(dimensions) = array else {
        let message = format!("cannot index a value of type {}: expected an array", array.name());
        return Err(ResolveError::InvalidArgument { index: 0, message });
    };
    if selectors.len() > usize::from(dimensions) {
        let count = selectors.len();
        let message =
            format!("too many array access arguments [nDims={dimensions}, nArgs={count}]");
        return Err(ResolveError::InvalidArgument { index: 1, message });
    }
    for (index, argument) in arguments.iter().enumerate().skip(1) {
        if !argument.sql_type.is_integer() && argument.sql_type != SqlType::Null {
            let message = format!(
                "invalid array index of type {}: expected an integer",
                argument.sql_type.name()
            );
            return Err(ResolveError::InvalidArgument { index, message });
        }
    }
    let items = selectors.iter().filter(|selector| **selector == Selector::Item).count() as u8;
    let left = dimensions - items;
    let returns = if left == 0 { SqlType::Double } else { SqlType::DoubleArray(left) };
    let selectors = selectors.to_vec();
    let name: &'static str = "array_at";
    let mut types = vec![SqlType::Long; arguments.len()];
    types[0] = array;
    let positions: Vec<Selector> = selectors.clone();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| select(call, &positions, left));
    // The kernel's identity includes the selectors as well as the types.
    let shape = Argument::constant(
        SqlType::String,
        datafusion::common::ScalarValue::Utf8View(Some(format!("{selectors:?}"))),
    );
    let identity: Vec<Argument> = arguments.iter().cloned().chain([shape]).collect();
    Ok(resolved(name, Volatility::Immutable, types, returns, &identity, kernel))
}

/// The range selected in one dimension.
#[derive(Debug, Clone, Copy)]
struct DimensionRange {
    first: usize,
    count: usize,
    keeps_dimension: bool,
}

fn select(call: &Call<'_>, selectors: &[Selector], left: u8) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    let positions: Vec<Primitives<Int64Type>> = (1..call.arguments.len())
        .map(|index| call.primitive::<Int64Type>(index))
        .collect::<Result<_>>()?;
    if left == 0 {
        return Ok(build::<Float64Type>(call.rows, |row| {
            let array = input.get(row)?;
            let ranges = selected_ranges(array.shape, selectors, &positions, row)??;
            let (_, values) = pick(array, &ranges);
            values.first().copied()
        }));
    }
    build_arrays(call.rows, left, |row, out| {
        let found = input.get(row).and_then(|array| {
            Some((array, selected_ranges(array.shape, selectors, &positions, row)?))
        });
        match found {
            Some((array, Some(ranges))) => {
                let (shape, values) = pick(array, &ranges);
                out.push(&shape, values).map_err(failed)
            }
            // For a subarray, an out-of-range position results in an empty array.
            Some((_, None)) => {
                out.push(&vec![0; usize::from(left)], std::iter::empty()).map_err(failed)
            }
            None => {
                out.push_null();
                Ok(())
            }
        }
    })
}

/// Returns the range selected in each dimension, `None` if a position is null, or `Some(None)` if a
/// position is out of range.
#[expect(clippy::option_option, reason = "null and out-of-range positions differ for sub-arrays")]
fn selected_ranges(
    shape: &[i32],
    selectors: &[Selector],
    positions: &[Primitives<Int64Type>],
    row: usize,
) -> Option<Option<Vec<DimensionRange>>> {
    let mut ranges = Vec::with_capacity(shape.len());
    let mut positions = positions.iter();
    let mut inside = true;
    for (dimension, &length) in shape.iter().enumerate() {
        let length = i64::from(length);
        // Positions are counted from 1; negative positions are counted from the end.
        let mut position = || {
            let position = positions.next()?.get(row)?;
            Some(if position < 0 {
                length.saturating_add(position).saturating_add(1)
            } else {
                position
            })
        };
        let (first, end, keeps) = match selectors.get(dimension) {
            None => (1, length + 1, true),
            Some(Selector::Item) => {
                let item = position()?;
                inside &= (1..=length).contains(&item);
                (item, item.saturating_add(1), false)
            }
            Some(Selector::From) => (position()?.max(1), length + 1, true),
            Some(Selector::Range) => (position()?.max(1), position()?.min(length + 1), true),
        };
        let count = end.saturating_sub(first).max(0) as usize;
        ranges.push(DimensionRange {
            first: first.saturating_sub(1).max(0) as usize,
            count,
            keeps_dimension: keeps,
        });
    }
    Some(inside.then_some(ranges))
}

/// Returns the shape and the selected elements in row-major order.
fn pick(array: DoubleArray<'_>, ranges: &[DimensionRange]) -> (Vec<i32>, Vec<f64>) {
    let shape = ranges
        .iter()
        .filter(|range| range.keeps_dimension)
        .map(|range| range.count as i32)
        .collect();
    let mut values = Vec::with_capacity(ranges.iter().map(|range| range.count).product());
    pick_into(array.shape, array.values, ranges, &mut values);
    (shape, values)
}

fn pick_into(shape: &[i32], values: &[f64], ranges: &[DimensionRange], out: &mut Vec<f64>) {
    let ([length, inner @ ..], [here, rest @ ..]) = (shape, ranges) else { return };
    if here.count == 0 {
        return;
    }
    let step = values.len().checked_div(*length as usize).unwrap_or(0);
    let chosen = &values[here.first * step..(here.first + here.count) * step];
    let whole = |(length, range): (&i32, &DimensionRange)| range.count == *length as usize;
    if inner.iter().zip(rest).all(whole) {
        out.extend_from_slice(chosen);
    } else if step > 0 {
        chosen.chunks(step).for_each(|values| pick_into(inner, values, rest, out));
    }
}

/// Returns the array with its dimensions reversed.
pub(crate) fn transposed(array: DoubleArray<'_>) -> (Vec<i32>, Vec<f64>) {
    let shape: Vec<i32> = array.shape.iter().rev().copied().collect();
    let mut strides: Vec<usize> = Vec::with_capacity(shape.len());
    let mut step = 1;
    // Strides of the source array, innermost dimension first. The source's innermost dimension
    // becomes the result's outermost.
    for &length in array.shape.iter().rev() {
        strides.push(step);
        step *= length as usize;
    }
    let position = |target: usize| {
        let (mut rest, mut source) = (target, 0);
        for (&length, stride) in shape.iter().zip(&strides).rev() {
            source += rest % length as usize * stride;
            rest /= length as usize;
        }
        array.values[source]
    };
    let values = (0..array.values.len()).map(position).collect();
    (shape, values)
}

/// Combines the values of several arrays at each position. Each dimension is as long as the longest
/// input in that dimension.
pub(crate) fn combined(
    arrays: &[DoubleArray<'_>],
    combine: impl Fn(&[f64]) -> Option<f64>,
) -> EngineResult<(Vec<i32>, Vec<f64>)> {
    let dimensions = arrays.first().map_or(0, |array| array.shape.len());
    let max = |dimension: usize| arrays.iter().map(|array| array.shape[dimension]).max();
    let shape: Vec<i32> = (0..dimensions).map(|d| max(d).unwrap_or(0)).collect();
    let count = shape.iter().fold(1_usize, |all, &length| all.saturating_mul(length as usize));
    check_elements(count)?;
    let mut here = Vec::with_capacity(arrays.len());
    let values = (0..count).map(|target| {
        here.clear();
        here.extend(arrays.iter().filter_map(|array| at(*array, &shape, target)));
        combine(&here).unwrap_or(f64::NAN)
    });
    let values = values.collect();
    Ok((shape, values))
}

/// Returns the element of `array` at a position in the larger `shape`; `None` if it is outside the
/// array.
fn at(array: DoubleArray<'_>, shape: &[i32], target: usize) -> Option<f64> {
    let (mut rest, mut source, mut step) = (target, 0, 1);
    for (&outer, &own) in shape.iter().zip(array.shape).rev() {
        let position = rest % outer as usize;
        if position >= own as usize {
            return None;
        }
        source += position * step;
        step *= own as usize;
        rest /= outer as usize;
    }
    array.values.get(source).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transpose_reverses_the_dimensions() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        let array = DoubleArray { shape: &[2, 3, 4], values: &values };
        let (shape, turned) = transposed(array);
        assert_eq!(shape, [4, 3, 2]);
        for (i, j, k) in (0..2).flat_map(|i| (0..12).map(move |jk| (i, jk / 4, jk % 4))) {
            assert_eq!(turned[(k * 3 + j) * 2 + i], values[(i * 3 + j) * 4 + k]);
        }
    }

    #[test]
    fn selectors_return_subarrays() {
        let values: Vec<f64> = (0..12).map(f64::from).collect();
        let array = DoubleArray { shape: &[3, 4], values: &values };
        let all = |first, count, keeps| DimensionRange { first, count, keeps_dimension: keeps };
        let (shape, picked) = pick(array, &[all(1, 2, true), all(1, 2, true)]);
        assert_eq!((shape, picked), (vec![2, 2], vec![5.0, 6.0, 9.0, 10.0]));
        let (shape, picked) = pick(array, &[all(2, 1, false), all(0, 4, true)]);
        assert_eq!((shape, picked), (vec![4], vec![8.0, 9.0, 10.0, 11.0]));
        let (shape, picked) = pick(array, &[all(3, 0, true), all(0, 4, true)]);
        assert_eq!((shape, picked), (vec![0, 4], vec![]));
    }

    #[test]
    fn combined_array_has_the_maximum_length_in_each_dimension() {
        let (a, b) = ([1.0, 2.0], [10.0, 20.0, 30.0]);
        let arrays = [
            DoubleArray { shape: &[1, 2], values: &a },
            DoubleArray { shape: &[3, 1], values: &b },
        ];
        let (shape, values) =
            combined(&arrays, |values| values.iter().copied().reduce(f64::max)).unwrap();
        assert_eq!(shape, [3, 2]);
        assert_eq!(values[..3], [10.0, 2.0, 20.0]);
        assert!(values[3].is_nan() && values[5].is_nan());
    }
}
