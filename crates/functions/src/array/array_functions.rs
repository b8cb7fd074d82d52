//! DOUBLE[] functions. A null array yields null.
//!
//! Kernels represent a null element as NaN; the function table states how each function treats it.
//! Shapes that must match are checked during binding if both arrays are constants.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{Float64Type, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType::{self, Boolean, Double, Int};
use tidemark_types::double_array::{DoubleArrays, check_elements};

use crate::array::array_select;
use crate::array::arrays::{
    Arrays, build_arrays, different_shapes, failed, map_arrays, same_shapes,
};
use crate::column::{Call, build, internal, invalid, try_build};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};
use crate::signature::Param::{self, Is};
use crate::signature::{
    Bound, Function, Overload, ResultType, direct, mismatch, per_call, pure, resolved, special,
};

type Resolved = std::result::Result<ResolvedScalar, ResolveError>;

/// Reduces each array in the first argument to a number.
fn fold(call: &Call<'_>, number: impl Fn(&[f64]) -> Option<f64>) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    Ok(build::<Float64Type>(call.rows, |row| number(input.get(row)?.values)))
}

fn present(values: &[f64]) -> impl Iterator<Item = f64> + '_ {
    values.iter().copied().filter(|value| !value.is_nan())
}

/// Returns the Neumaier sum and the number of non-null elements.
fn sum_and_count(values: impl Iterator<Item = f64>) -> (f64, usize) {
    let (mut sum, mut lost, mut count) = (0.0_f64, 0.0, 0);
    for value in values {
        let next = sum + value;
        let (large, small) = if sum.abs() >= value.abs() { (sum, value) } else { (value, sum) };
        lost += (large - next) + small;
        (sum, count) = (next, count + 1);
    }
    (sum + lost, count)
}

fn average(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = sum_and_count(values);
    (count > 0).then(|| sum / count as f64)
}

/// Returns the standard deviation. `lost` is subtracted from the count; it is 1 for a sample
/// standard deviation.
fn deviation(values: &[f64], lost: usize) -> Option<f64> {
    let mean = average(present(values))?;
    let (squares, count) = sum_and_count(present(values).map(|value| (value - mean).powi(2)));
    (count > lost).then(|| (squares / (count - lost) as f64).sqrt())
}

/// Applies `change` to every innermost row of the arrays in the first argument.
fn map_rows(call: &Call<'_>, change: impl Fn(&mut [f64])) -> Result<ArrayRef> {
    map_arrays(call, |array| {
        let mut values = array.values.to_vec();
        let length = array.shape.last().map_or(0, |&length| length as usize);
        if length > 0 {
            values.chunks_mut(length).for_each(&change);
        }
        values
    })
}

fn sorted(call: &Call<'_>) -> Result<ArrayRef> {
    let flag = |index: usize| -> Result<Option<bool>> {
        if call.arguments.len() <= index {
            return Ok(None);
        }
        let (array, _) = call.array(index)?;
        let flags = array.as_boolean_opt().ok_or_else(|| internal("not a boolean"))?;
        Ok((!flags.is_empty()).then(|| flags.value(0)))
    };
    let descending = flag(1)?.unwrap_or(false);
    let nulls_first = flag(2)?.unwrap_or(descending);
    map_rows(call, |row| {
        row.sort_by(|a, b| match (a.is_nan(), b.is_nan()) {
            (true, true) => std::cmp::Ordering::Equal,
            (true, false) if nulls_first => std::cmp::Ordering::Less,
            (true, false) => std::cmp::Ordering::Greater,
            (false, true) if nulls_first => std::cmp::Ordering::Greater,
            (false, true) => std::cmp::Ordering::Less,
            _ if descending => b.total_cmp(a),
            _ => a.total_cmp(b),
        });
    })
}

fn shift(call: &Call<'_>) -> Result<ArrayRef> {
    let distance = call.primitive::<Int32Type>(1)?;
    let fill = match call.arguments.len() {
        3 => Some(call.primitive::<Float64Type>(2)?),
        _ => None,
    };
    let input = Arrays::of(call, 0)?;
    build_arrays(call.rows, input.dimensions(), |row, out| {
        let (Some(array), Some(distance)) = (input.get(row), distance.get(row)) else {
            out.push_null();
            return Ok(());
        };
        let fill = fill.as_ref().and_then(|fill| fill.get(row)).unwrap_or(f64::NAN);
        let length = array.shape.last().map_or(0, |&length| i64::from(length));
        let values = (0..array.values.len()).map(|index| {
            let within = (index as i64) % length - i64::from(distance);
            if (0..length).contains(&within) {
                array.values[(index as i64 - i64::from(distance)) as usize]
            } else {
                fill
            }
        });
        out.push(array.shape, values).map_err(failed)
    })
}

fn transpose(call: &Call<'_>) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    build_arrays(call.rows, input.dimensions(), |row, out| {
        match input.get(row) {
            Some(array) => {
                let (shape, values) = array_select::transposed(array);
                out.push(&shape, values).map_err(failed)?;
            }
            None => out.push_null(),
        }
        Ok(())
    })
}

/// Applies `change` to the elements in row-major order and returns a one-dimensional array.
fn flat(call: &Call<'_>, change: impl Fn(&[f64]) -> Vec<f64>) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    build_arrays(call.rows, 1, |row, out| {
        match input.get(row) {
            Some(array) => {
                let values = change(array.values);
                out.push(&[values.len() as i32], values).map_err(failed)?;
            }
            None => out.push_null(),
        }
        Ok(())
    })
}

/// Returns the running sums, which are null before the first non-null element.
fn running_sums(values: &[f64]) -> Vec<f64> {
    let sums = values.iter().scan(f64::NAN, |sum, &value| {
        *sum = match (sum.is_nan(), value.is_nan()) {
            (true, _) => value,
            (false, true) => *sum,
            (false, false) => *sum + value,
        };
        Some(*sum)
    });
    sums.collect()
}

fn dimension_length(call: &Call<'_>) -> Result<ArrayRef> {
    let (input, required) = (Arrays::of(call, 0)?, call.primitive::<Int32Type>(1)?);
    try_build::<Int32Type>(call.rows, |row| {
        let (Some(array), Some(required)) = (input.get(row), required.get(row)) else {
            return Ok(None);
        };
        let index = usize::try_from(required).ok().and_then(|required| required.checked_sub(1));
        match index.and_then(|index| array.shape.get(index)) {
            Some(length) => Ok(Some(*length)),
            None => Err(invalid(format!(
                "array dimension out of bounds [dim={required}, dims={}]",
                array.shape.len()
            ))),
        }
    })
}

fn dot_product(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    if let [left, right] = bound.arguments {
        same_shapes(left, right)?;
    }
    Ok(Arc::new(|call: &Call<'_>| {
        let (left, right) = (Arrays::of(call, 0)?, Arrays::of(call, 1)?);
        try_build::<Float64Type>(call.rows, |row| {
            let (Some(a), Some(b)) = (left.get(row), right.get(row)) else { return Ok(None) };
            if a.shape != b.shape {
                return Err(invalid(different_shapes(a.shape, b.shape)));
            }
            let products = a.values.iter().zip(b.values).map(|(a, b)| a * b);
            Ok(Some(sum_and_count(products.filter(|product| !product.is_nan())).0))
        })
    }))
}

fn matrix_product(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (Arrays::of(call, 0)?, Arrays::of(call, 1)?);
    build_arrays(call.rows, 2, |row, out| {
        let (Some(a), Some(b)) = (left.get(row), right.get(row)) else {
            out.push_null();
            return Ok(());
        };
        let ([rows, inner], [same, columns]) = (a.shape, b.shape) else {
            return Err(internal("expected a two-dimensional array"));
        };
        if inner != same {
            return Err(invalid(format!(
                "left array row length doesn't match right array column length \
                 [leftRowLen={inner}, rightColLen={same}]"
            )));
        }
        let (inner, columns) = (*inner as usize, *columns as usize);
        let cells = *rows as usize * columns;
        check_elements(cells).map_err(failed)?;
        let values = (0..cells).map(|cell| {
            let (row, column) = (cell / columns, cell % columns);
            (0..inner).map(|k| a.values[row * inner + k] * b.values[k * columns + column]).sum()
        });
        out.push(&[*rows, columns as i32], values.collect::<Vec<f64>>()).map_err(failed)
    })
}

fn position(call: &Call<'_>) -> Result<ArrayRef> {
    let (input, required) = (Arrays::of(call, 0)?, call.primitive::<Float64Type>(1)?);
    Ok(build::<Int32Type>(call.rows, |row| {
        let required = required.get(row);
        let found = input.get(row)?.values.iter().position(|value| match required {
            Some(required) => {
                (value - required).abs() < crate::operator::comparison::DOUBLE_TOLERANCE
            }
            None => value.is_nan(),
        });
        found.map(|index| index as i32 + 1)
    }))
}

fn insertion_point(call: &Call<'_>) -> Result<ArrayRef> {
    let (input, required) = (Arrays::of(call, 0)?, call.primitive::<Float64Type>(1)?);
    let ahead = match call.arguments.len() {
        3 => Some(call.array(2)?.0),
        _ => None,
    };
    let ahead = ahead.as_ref().and_then(|flags| flags.as_boolean_opt());
    Ok(build::<Int32Type>(call.rows, |row| {
        let (values, required) = (input.get(row)?.values, required.get(row)?);
        let ahead = ahead.is_some_and(|flags| flags.value(if flags.len() == 1 { 0 } else { row }));
        let falling = values.first() > values.last();
        let before = |value: &f64| match (falling, ahead) {
            (false, false) => *value <= required,
            (false, true) => *value < required,
            (true, false) => *value >= required,
            (true, true) => *value > required,
        };
        Some(values.partition_point(before) as i32 + 1)
    }))
}

/// Whether `||` builds an array from operands of these types. At least one operand must be an
/// array; the others may be arrays, elements or null.
#[must_use]
pub fn joins_arrays(types: impl Iterator<Item = SqlType> + Clone) -> bool {
    joined_dimensions(types).is_some()
}

/// Returns the number of dimensions of the concatenated array. Operands may have one fewer
/// dimension.
fn joined_dimensions(mut types: impl Iterator<Item = SqlType> + Clone) -> Option<u8> {
    let dimensions = |of: SqlType| match of {
        SqlType::DoubleArray(dimensions) => Some(dimensions),
        number if number.is_integer() || number.is_floating() => Some(0),
        _ => None,
    };
    let max = types.clone().filter_map(dimensions).max().filter(|max| *max > 0)?;
    let fits = |of: SqlType| match dimensions(of) {
        Some(own) => own == max || own + 1 == max,
        None => of == SqlType::Null,
    };
    types.all(fits).then_some(max)
}

/// Resolves `array_cat(part, …)`, also written `||`, which concatenates arrays along their first
/// dimension. An operand with one fewer dimension becomes a single element. A null array adds
/// nothing; a null number adds an element.
fn array_cat(name: &str, arguments: &[Argument]) -> Resolved {
    let types = types_of(arguments);
    let Some(dimensions) = joined_dimensions(types.iter().copied()) else {
        return Err(mismatch(name, [0, 2].into_iter(), arguments));
    };
    let whole = SqlType::DoubleArray(dimensions);
    let read = |of: SqlType| match of {
        SqlType::DoubleArray(_) => of,
        SqlType::Null => whole,
        _ => Double,
    };
    let types: Vec<SqlType> = types.into_iter().map(read).collect();
    let kinds = types.clone();
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| joined(call, &kinds, dimensions));
    Ok(resolved("array_cat", Volatility::Immutable, types, whole, arguments, kernel))
}

fn joined(call: &Call<'_>, types: &[SqlType], dimensions: u8) -> Result<ArrayRef> {
    enum Input {
        Number(crate::column::Primitives<Float64Type>),
        Arrays(Arrays),
    }
    let input = |(index, of): (usize, &SqlType)| match of {
        SqlType::DoubleArray(_) => Arrays::of(call, index).map(Input::Arrays),
        _ => call.primitive::<Float64Type>(index).map(Input::Number),
    };
    let inputs = types.iter().enumerate().map(input).collect::<Result<Vec<_>>>()?;
    build_arrays(call.rows, dimensions, |row, out| {
        let (mut length, mut inner, mut values) = (0, None::<Vec<i32>>, Vec::new());
        for input in &inputs {
            let (added, shape, cells) = match input {
                Input::Number(numbers) => (1, &[][..], vec![numbers.get(row).unwrap_or(f64::NAN)]),
                Input::Arrays(arrays) => match arrays.get(row) {
                    None => continue,
                    Some(array) if array.shape.len() == usize::from(dimensions) => {
                        (array.shape[0], &array.shape[1..], array.values.to_vec())
                    }
                    Some(array) => (1, array.shape, array.values.to_vec()),
                },
            };
            if cells.is_empty() {
                inner.get_or_insert_with(|| shape.to_vec());
                continue;
            }
            if length > 0 && inner.as_deref().is_some_and(|inner| inner != shape) {
                return Err(invalid(different_shapes(inner.as_deref().unwrap_or_default(), shape)));
            }
            inner = Some(shape.to_vec());
            length += added;
            values.extend(cells);
            check_elements(values.len()).map_err(failed)?;
        }
        match inner {
            None => out.push_null(),
            Some(inner) => {
                let shape: Vec<i32> = std::iter::once(length).chain(inner).collect();
                out.push(&shape, values).map_err(failed)?;
            }
        }
        Ok(())
    })
}

/// Combines the values that several arrays have at one position into a single value.
pub(crate) type Combine = fn(&[f64]) -> Option<f64>;

/// Resolves `array_elem_…` with several arguments, which are combined row by row.
fn by_position(name: &'static str, arguments: &[Argument], combine: Combine) -> Resolved {
    let array = arguments.iter().find_map(|argument| argument.sql_type.dimensions());
    let fits = |argument: &Argument| {
        matches!(argument.sql_type, SqlType::DoubleArray(d) if Some(d) == array)
            || argument.sql_type == SqlType::Null
    };
    let (Some(dimensions), true) = (array, arguments.len() > 1 && arguments.iter().all(fits))
    else {
        return Err(mismatch(name, [0, 2].into_iter(), arguments));
    };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let inputs: Vec<_> =
            (0..call.arguments.len()).map(|i| Arrays::of(call, i)).collect::<Result<_>>()?;
        build_arrays(call.rows, dimensions, |row, out| {
            let cells: Vec<_> = inputs.iter().filter_map(|input| input.get(row)).collect();
            if cells.is_empty() {
                out.push_null();
                return Ok(());
            }
            let (shape, values) = array_select::combined(&cells, combine).map_err(failed)?;
            out.push(&shape, values).map_err(failed)
        })
    });
    let returns = SqlType::DoubleArray(dimensions);
    let types = vec![returns; arguments.len()];
    Ok(resolved(name, Volatility::Immutable, types, returns, arguments, kernel))
}

pub(crate) fn min_of(values: &[f64]) -> Option<f64> {
    present(values).reduce(f64::min)
}

pub(crate) fn greatest(values: &[f64]) -> Option<f64> {
    present(values).reduce(f64::max)
}

pub(crate) fn total(values: &[f64]) -> Option<f64> {
    let (sum, count) = sum_and_count(present(values));
    (count > 0).then_some(sum)
}

fn mean(values: &[f64]) -> Option<f64> {
    average(present(values))
}

/// Returns the average price per unit when an order for `target` units is filled from levels given
/// as (size, price).
fn level_two_price(target: f64, levels: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (mut left, mut cost) = (target, 0.0);
    for (size, price) in levels {
        // `min` would ignore a null size.
        let used = if size.is_nan() { size } else { left.min(size) };
        cost += used * price;
        left -= used;
        // A null size or price makes the cost NaN, which is null.
        if left <= 0.0 || left.is_nan() {
            return Some(cost / target);
        }
    }
    None
}

fn l2price(_: &str, arguments: &[Argument]) -> Resolved {
    let books = matches!(
        arguments,
        [
            _,
            Argument { sql_type: SqlType::DoubleArray(1), .. },
            Argument { sql_type: SqlType::DoubleArray(1), .. }
        ]
    );
    if books {
        let kernel: Kernel = Arc::new(|call: &Call<'_>| {
            let target = call.primitive::<Float64Type>(0)?;
            let (sizes, prices) = (Arrays::of(call, 1)?, Arrays::of(call, 2)?);
            Ok(build::<Float64Type>(call.rows, |row| {
                let (sizes, prices) = (sizes.get(row)?.values, prices.get(row)?.values);
                let levels = sizes.iter().copied().zip(prices.iter().copied());
                level_two_price(target.get(row)?, levels)
            }))
        });
        let book = SqlType::DoubleArray(1);
        let types = vec![Double, book, book];
        return Ok(resolved("l2price", Volatility::Immutable, types, Double, arguments, kernel));
    }
    let number = |argument: &Argument| {
        argument.sql_type.is_integer()
            || argument.sql_type.is_floating()
            || argument.sql_type == SqlType::Null
    };
    if arguments.len() < 3 || arguments.len().is_multiple_of(2) || !arguments.iter().all(number) {
        return Err(mismatch("l2price", [0, 3].into_iter(), arguments));
    }
    let kernel: Kernel = Arc::new(|call: &Call<'_>| {
        let numbers: Vec<_> = (0..call.arguments.len())
            .map(|index| call.primitive::<Float64Type>(index))
            .collect::<Result<_>>()?;
        Ok(build::<Float64Type>(call.rows, |row| {
            let at = |index: usize| numbers[index].get(row).unwrap_or(f64::NAN);
            let levels = (1..numbers.len()).step_by(2).map(|index| (at(index), at(index + 1)));
            level_two_price(at(0), levels)
        }))
    });
    let types = vec![Double; arguments.len()];
    Ok(resolved("l2price", Volatility::Immutable, types, Double, arguments, kernel))
}

/// Resolves `array_build(count, size, filler, …)`, which builds one row of the array per filler.
fn array_build(name: &str, arguments: &[Argument]) -> Resolved {
    let refuse = |index, message: &str| {
        Err(ResolveError::InvalidArgument { index, message: message.to_owned() })
    };
    let [_, size, fillers @ ..] = arguments else {
        return Err(mismatch(name, [0, 3].into_iter(), arguments));
    };
    let count = match arguments.first().and_then(Argument::integer) {
        Some(count @ 1..=1_000) => count as usize,
        _ => return refuse(0, "the number of arrays must be a constant from 1 to 1000"),
    };
    if fillers.len() != count {
        return refuse(
            0,
            &format!("{count} arrays require {count} fillers, found {}", fillers.len()),
        );
    }
    let as_filler = |argument: &Argument| match argument.sql_type {
        SqlType::DoubleArray(1) => Some(SqlType::DoubleArray(1)),
        number if number.is_integer() || number.is_floating() => Some(Double),
        SqlType::Null => Some(Double),
        _ => None,
    };
    let size_type = match size.sql_type {
        SqlType::DoubleArray(1) => SqlType::DoubleArray(1),
        _ => SqlType::Long,
    };
    let mut types = vec![SqlType::Long, size_type];
    for filler in fillers {
        let Some(filler) = as_filler(filler) else {
            return Err(mismatch(name, [0, 3].into_iter(), arguments));
        };
        types.push(filler);
    }
    let dimensions = if count == 1 { 1 } else { 2 };
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| build_rows(call, count));
    let returns = SqlType::DoubleArray(dimensions);
    Ok(resolved("array_build", Volatility::Immutable, types, returns, arguments, kernel))
}

fn build_rows(call: &Call<'_>, count: usize) -> Result<ArrayRef> {
    enum Filler {
        Numbers(crate::column::Primitives<Float64Type>),
        Arrays(Arrays),
    }
    let is_array =
        |index: usize| -> Result<bool> { Ok(DoubleArrays::new(&call.array(index)?.0).is_some()) };
    let owner = if is_array(1)? { Some(Arrays::of(call, 1)?) } else { None };
    let size = if owner.is_none() { Some(call.primitive::<Int64Type>(1)?) } else { None };
    let mut fillers = Vec::with_capacity(count);
    for index in 2..count + 2 {
        fillers.push(if is_array(index)? {
            Filler::Arrays(Arrays::of(call, index)?)
        } else {
            Filler::Numbers(call.primitive::<Float64Type>(index)?)
        });
    }
    build_arrays(call.rows, if count == 1 { 1 } else { 2 }, |row, out| {
        let length = match (&owner, &size) {
            (Some(owner), _) => owner.get(row).map(|array| array.values.len() as i64),
            (_, Some(size)) => size.get(row),
            _ => None,
        };
        let Some(length) = length else {
            out.push_null();
            return Ok(());
        };
        let length = usize::try_from(length)
            .map_err(|_| invalid(format!("array size {length} is negative")))?;
        check_elements(length.saturating_mul(count)).map_err(failed)?;
        let mut values = vec![f64::NAN; length * count];
        for (filler, values) in fillers.iter().zip(values.chunks_mut(length.max(1))) {
            match filler {
                Filler::Numbers(numbers) => values.fill(numbers.get(row).unwrap_or(f64::NAN)),
                Filler::Arrays(arrays) => {
                    let source = arrays.get(row).map(|array| array.values).unwrap_or_default();
                    let retained = source.len().min(length);
                    values[..retained].copy_from_slice(&source[..retained]);
                }
            }
        }
        let shape = [count as i32, length as i32];
        out.push(if count == 1 { &shape[1..] } else { &shape }, values).map_err(failed)
    })
}

const A: &[Param] = &[Param::Array];
const V: SqlType = SqlType::DoubleArray(1);
const M: SqlType = SqlType::DoubleArray(2);

macro_rules! number_of {
    ($name:literal, $number:expr, $summary:literal) => {
        pure($name, &[direct(A, Double, |call| fold(call, $number))], $summary)
    };
}

/// Creates a signature whose result has the type of the first argument.
const fn same(
    takes: &'static [Param],
    body: fn(&Bound<'_>) -> std::result::Result<Kernel, ResolveError>,
) -> Overload {
    per_call(takes, ResultType::SameAs(0), body)
}

pub(crate) const FUNCTIONS: &[Function] = &[
    number_of!("array_avg", mean, "mean of the elements"),
    number_of!("array_max", greatest, "greatest element"),
    number_of!("array_min", min_of, "least element"),
    number_of!("array_sum", total, "sum of the elements; null if there are none"),
    number_of!("array_stddev", |values| deviation(values, 1), "sample standard deviation"),
    number_of!("array_stddev_samp", |values| deviation(values, 1), "sample standard deviation"),
    number_of!("array_stddev_pop", |values| deviation(values, 0), "population standard deviation"),
    pure(
        "array_count",
        &[direct(A, Int, |call| {
            let input = Arrays::of(call, 0)?;
            Ok(build::<Int32Type>(call.rows, |row| {
                Some(input.get(row).map_or(0, |array| present(array.values).count() as i32))
            }))
        })],
        "number of non-null elements",
    ),
    pure(
        "array_cum_sum",
        &[direct(A, V, |call| flat(call, running_sums))],
        "cumulative sums of the elements",
    ),
    pure("flatten", &[direct(A, V, |call| flat(call, <[f64]>::to_vec))], "one-dimensional array"),
    pure(
        "array_reverse",
        &[same(A, |_| Ok(Arc::new(|call| map_rows(call, <[f64]>::reverse))))],
        "reverses the innermost arrays",
    ),
    pure(
        "array_sort",
        &[
            same(A, |_| Ok(Arc::new(sorted))),
            same(&[Param::Array, Is(Boolean)], |_| Ok(Arc::new(sorted))),
            same(&[Param::Array, Is(Boolean), Is(Boolean)], |_| Ok(Arc::new(sorted))),
        ],
        "sorts the innermost arrays: (array [, descending [, nulls first]])",
    ),
    pure(
        "shift",
        &[
            same(&[Param::Array, Is(Int)], |_| Ok(Arc::new(shift))),
            same(&[Param::Array, Is(Int), Is(Double)], |_| Ok(Arc::new(shift))),
        ],
        "shifts the elements of the innermost arrays: (array, distance [, filler])",
    ),
    pure("transpose", &[same(A, |_| Ok(Arc::new(transpose)))], "dimensions in reverse order"),
    pure(
        "dim_length",
        &[direct(&[Param::Array, Is(Int)], Int, dimension_length)],
        "length of dimension n, counting from 1",
    ),
    pure(
        "dot_product",
        &[per_call(&[Param::Array, Param::Array], ResultType::Is(Double), dot_product)],
        "dot product of two arrays",
    ),
    pure("matmul", &[direct(&[Is(M), Is(M)], M, matrix_product)], "product of two matrices"),
    pure(
        "array_position",
        &[direct(&[Is(V), Is(Double)], Int, position)],
        "1-based position of the first occurrence of a value",
    ),
    pure(
        "insertion_point",
        &[
            direct(&[Is(V), Is(Double)], Int, insertion_point),
            direct(&[Is(V), Is(Double), Is(Boolean)], Int, insertion_point),
        ],
        "insertion position in a sorted array: (array, value [, before equal elements])",
    ),
    special(
        "array_elem_min",
        |_, arguments| by_position("array_elem_min", arguments, min_of),
        "minimum at each position",
    ),
    special(
        "array_elem_max",
        |_, arguments| by_position("array_elem_max", arguments, greatest),
        "maximum at each position",
    ),
    special(
        "array_elem_sum",
        |_, arguments| by_position("array_elem_sum", arguments, total),
        "sum at each position",
    ),
    special(
        "array_elem_avg",
        |_, arguments| by_position("array_elem_avg", arguments, mean),
        "mean at each position",
    ),
    special("array_cat", array_cat, "concatenates arrays and elements; also written ||"),
    special("array_build", array_build, "builds an array of rows: (rows, length, filler, …)"),
    special("l2price", l2price, "average price of an order at the levels of an order book"),
];
