//! Reads and builds DOUBLE[] values in kernels, literals and operators. Shapes that must match are
//! checked during binding if both arrays are constants.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::Float64Type;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion_expr::Volatility;
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType::{self, Boolean, Double};
use tidemark_types::account;
use tidemark_types::double_array::{DoubleArray, DoubleArrayBuilder, DoubleArrays, check_elements};

use crate::column::{Call, build_flags, internal, invalid};
use crate::native::Kernel;
use crate::operator::infix::operator;
use crate::resolve::{Argument, ResolveError, ResolvedOperator, ResolvedScalar};
use crate::signature::resolved;

type Resolved = std::result::Result<ResolvedScalar, ResolveError>;

/// An argument of type DOUBLE[].
pub(crate) struct Arrays {
    array: ArrayRef,
    scalar: bool,
}

impl Arrays {
    pub(crate) fn of(call: &Call<'_>, index: usize) -> Result<Self> {
        let (array, scalar) = call.array(index)?;
        match DoubleArrays::new(&array) {
            Some(_) => Ok(Self { array, scalar }),
            None => Err(internal(format!("expected an array, found {}", array.data_type()))),
        }
    }

    /// Returns the number of dimensions, which is the same for every array.
    pub(crate) fn dimensions(&self) -> u8 {
        DoubleArrays::new(&self.array).map_or(0, |cells| cells.dimensions() as u8)
    }

    pub(crate) fn get(&self, row: usize) -> Option<DoubleArray<'_>> {
        DoubleArrays::new(&self.array)?.get(if self.scalar { 0 } else { row })
    }
}

/// Number of rows between checks of the query's deadline and cancellation.
const ROWS_BETWEEN_CHECKS: usize = 64;

/// Builds an array column; `write` adds each row's array.
pub(crate) fn build_arrays(
    rows: usize,
    dimensions: u8,
    mut write: impl FnMut(usize, &mut DoubleArrayBuilder) -> Result<()>,
) -> Result<ArrayRef> {
    let mut builder = DoubleArrayBuilder::new(dimensions);
    for row in 0..rows {
        write(row, &mut builder)?;
        if row % ROWS_BETWEEN_CHECKS == ROWS_BETWEEN_CHECKS - 1 {
            account::check().map_err(failed)?;
        }
    }
    builder.finish().map_err(failed)
}

pub(crate) fn failed(error: tidemark_types::EngineError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Maps each array in the first argument to an array of the same shape.
pub(crate) fn map_arrays(
    call: &Call<'_>,
    change: impl Fn(DoubleArray<'_>) -> Vec<f64>,
) -> Result<ArrayRef> {
    let input = Arrays::of(call, 0)?;
    let dimensions = input.dimensions();
    build_arrays(call.rows, dimensions, |row, out| {
        match input.get(row) {
            Some(array) => out.push(array.shape, change(array)).map_err(failed)?,
            None => out.push_null(),
        }
        Ok(())
    })
}

/// Returns the shape of a constant array.
fn constant_shape(argument: &Argument) -> Option<Vec<i32>> {
    match argument.constant.as_ref()? {
        ScalarValue::Struct(cell) => {
            let cell: &dyn Array = cell.as_ref();
            Some(DoubleArrays::new(cell)?.get(0)?.shape.to_vec())
        }
        _ => None,
    }
}

pub(crate) fn different_shapes(left: &[i32], right: &[i32]) -> String {
    shapes("different", left, right)
}

fn incompatible_shapes(left: &[i32], right: &[i32]) -> String {
    shapes("incompatible", left, right)
}

fn shapes(what: &str, left: &[i32], right: &[i32]) -> String {
    let list = |shape: &[i32]| shape.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
    let (left, right) = (list(left), list(right));
    format!("arrays have {what} shapes [leftShape=[{left}], rightShape=[{right}]]")
}

/// Rejects two constant arrays if their shapes differ.
pub(crate) fn same_shapes(
    left: &Argument,
    right: &Argument,
) -> std::result::Result<(), ResolveError> {
    match (constant_shape(left), constant_shape(right)) {
        (Some(a), Some(b)) if a != b => {
            Err(ResolveError::InvalidArgument { index: 0, message: different_shapes(&a, &b) })
        }
        _ => Ok(()),
    }
}

/// Resolves `ARRAY[…]`. Numbers form a one-dimensional array; arrays form an array with one more
/// dimension.
pub fn resolve_array(elements: &[Argument]) -> Resolved {
    let inner = elements.iter().map(|element| element.sql_type).find(|t| *t != SqlType::Null);
    let inner = match inner {
        Some(SqlType::DoubleArray(32)) => {
            let message = "an array can have at most 32 dimensions".to_owned();
            return Err(ResolveError::Invalid { message });
        }
        Some(array @ SqlType::DoubleArray(_)) => array,
        _ => Double,
    };
    let mut shape: Option<Vec<i32>> = None;
    for (index, element) in elements.iter().enumerate() {
        let number = element.sql_type.is_integer()
            || element.sql_type.is_floating()
            || matches!(element.sql_type, SqlType::Decimal(..) | SqlType::Null);
        let fits = if inner == Double { number } else { element.sql_type == inner };
        if !fits {
            let message = format!(
                "array element has type {}, expected {}",
                element.sql_type.name(),
                inner.name()
            );
            return Err(ResolveError::InvalidArgument { index, message });
        }
        if let Some(found) = constant_shape(element) {
            if shape.as_ref().is_some_and(|shape| *shape != found) {
                let message = "array shapes don't match".to_owned();
                return Err(ResolveError::InvalidArgument { index, message });
            }
            shape = Some(found);
        }
    }
    let dimensions = inner.dimensions().unwrap_or(0) + 1;
    let kernel: Kernel = match inner {
        Double => Arc::new(numbers_to_array),
        _ => Arc::new(move |call: &Call<'_>| arrays_to_array(call, dimensions)),
    };
    let returns = SqlType::DoubleArray(dimensions);
    let types = vec![inner; elements.len()];
    Ok(resolved("array", Volatility::Immutable, types, returns, elements, kernel))
}

fn numbers_to_array(call: &Call<'_>) -> Result<ArrayRef> {
    let elements: Vec<_> = (0..call.arguments.len())
        .map(|index| call.primitive::<Float64Type>(index))
        .collect::<Result<_>>()?;
    build_arrays(call.rows, 1, |row, out| {
        let values = elements.iter().map(|element| element.get(row).unwrap_or(f64::NAN));
        out.push(&[elements.len() as i32], values).map_err(failed)
    })
}

fn arrays_to_array(call: &Call<'_>, dimensions: u8) -> Result<ArrayRef> {
    let elements: Vec<_> =
        (0..call.arguments.len()).map(|index| Arrays::of(call, index)).collect::<Result<_>>()?;
    build_arrays(call.rows, dimensions, |row, out| {
        let cells: Option<Vec<_>> = elements.iter().map(|element| element.get(row)).collect();
        let Some(cells) = cells else {
            out.push_null();
            return Ok(());
        };
        let mut shape = vec![cells.len() as i32];
        shape.extend_from_slice(cells.first().map(|cell| cell.shape).unwrap_or_default());
        if cells.iter().any(|cell| cell.shape != &shape[1..]) {
            return Err(invalid("array shapes don't match"));
        }
        let values = cells.iter().flat_map(|cell| cell.values.iter().copied());
        out.push(&shape, values).map_err(failed)
    })
}

/// Resolves `+ - * /` if at least one operand is an array; `None` for other operators and types.
pub(crate) fn arithmetic(
    op: BinaryOperator,
    left: &Argument,
    right: &Argument,
) -> Option<std::result::Result<ResolvedOperator, ResolveError>> {
    let array = left.sql_type.dimensions().max(right.sql_type.dimensions())?;
    let array = SqlType::DoubleArray(array);
    let compute: fn(f64, f64) -> f64 = match op {
        BinaryOperator::Add => |a, b| a + b,
        BinaryOperator::Subtract => |a, b| a - b,
        BinaryOperator::Multiply => |a, b| a * b,
        BinaryOperator::Divide => |a, b| a / b,
        _ => return None,
    };
    let side = |sql_type: SqlType| match sql_type {
        own @ SqlType::DoubleArray(_) => Some(own),
        number if number.is_integer() || number.is_floating() => Some(Double),
        SqlType::Null => Some(Double),
        _ => None,
    };
    let (l, r) = (side(left.sql_type)?, side(right.sql_type)?);
    if let (Some(a), Some(b)) = (constant_shape(left), constant_shape(right))
        && broadcast(&a, &b).is_none()
    {
        return Some(Err(ResolveError::Invalid { message: incompatible_shapes(&a, &b) }));
    }
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| match (l, r) {
        (_, Double) => {
            let number = call.primitive::<Float64Type>(1)?;
            with_number(call, 0, |row| number.get(row), compute)
        }
        (Double, _) => {
            let number = call.primitive::<Float64Type>(0)?;
            with_number(call, 1, |row| number.get(row), |element, number| compute(number, element))
        }
        _ => element_wise(call, array.dimensions().unwrap_or(1), compute),
    });
    Some(Ok(operator("array_operator", (l, r, array), op.sign(), kernel)))
}

fn with_number(
    call: &Call<'_>,
    side: usize,
    number: impl Fn(usize) -> Option<f64>,
    compute: impl Fn(f64, f64) -> f64,
) -> Result<ArrayRef> {
    let input = Arrays::of(call, side)?;
    let dimensions = input.dimensions();
    build_arrays(call.rows, dimensions, |row, out| {
        match input.get(row) {
            Some(array) => {
                let number = number(row).unwrap_or(f64::NAN);
                let values = array.values.iter().map(|value| compute(*value, number));
                out.push(array.shape, values).map_err(failed)?;
            }
            None => out.push_null(),
        }
        Ok(())
    })
}

/// Returns the shape to which two shapes broadcast, aligned at the innermost dimension. A dimension
/// that is missing or has length 1 is repeated to match the other shape.
fn broadcast(left: &[i32], right: &[i32]) -> Option<Vec<i32>> {
    let dimensions = left.len().max(right.len());
    let length = |shape: &[i32], position: usize| {
        (position + shape.len()).checked_sub(dimensions).map_or(1, |position| shape[position])
    };
    (0..dimensions)
        .map(|position| match (length(left, position), length(right, position)) {
            (a, b) if a == b => Some(a),
            (1, other) | (other, 1) => Some(other),
            _ => None,
        })
        .collect()
}

/// Returns, for each position in an array of shape `shape`, the position in an array of shape
/// `own`. Positions are in row-major order.
fn repeated_positions(shape: &[i32], own: &[i32]) -> Vec<usize> {
    let mut positions = vec![0];
    let mut stride = 1;
    // Proceeds from the innermost dimension outwards; each dimension repeats the dimensions inside
    // it.
    for distance in 1..=shape.len() {
        let length = shape[shape.len() - distance] as usize;
        let own_length =
            own.len().checked_sub(distance).map_or(1, |position| own[position] as usize);
        let inner = std::mem::take(&mut positions);
        let step = if own_length == 1 { 0 } else { stride };
        positions.reserve(length * inner.len());
        for outer in 0..length {
            positions.extend(inner.iter().map(|position| position + outer * step));
        }
        stride *= own_length;
    }
    positions
}

fn element_wise(call: &Call<'_>, dimensions: u8, compute: fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (Arrays::of(call, 0)?, Arrays::of(call, 1)?);
    build_arrays(call.rows, dimensions, |row, out| {
        let (Some(a), Some(b)) = (left.get(row), right.get(row)) else {
            out.push_null();
            return Ok(());
        };
        if a.shape == b.shape {
            let values = a.values.iter().zip(b.values).map(|(a, b)| compute(*a, *b));
            return out.push(a.shape, values).map_err(failed);
        }
        let Some(shape) = broadcast(a.shape, b.shape) else {
            return Err(invalid(incompatible_shapes(a.shape, b.shape)));
        };
        let count = shape.iter().fold(1_usize, |count, &n| count.saturating_mul(n as usize));
        check_elements(count).map_err(failed)?;
        let positions = repeated_positions(&shape, a.shape)
            .into_iter()
            .zip(repeated_positions(&shape, b.shape));
        let values = positions.map(|(x, y)| compute(a.values[x], b.values[y]));
        out.push(&shape, values).map_err(failed)
    })
}

/// Returns the kernel for `-array`.
pub(crate) fn negation() -> Kernel {
    Arc::new(|call: &Call<'_>| {
        map_arrays(call, |array| array.values.iter().map(|value| -value).collect())
    })
}

/// Resolves `=` for arrays. Arrays are equal if their shapes and elements are equal; null equals
/// null.
pub(crate) fn equality(op: BinaryOperator, array: SqlType) -> ResolvedOperator {
    let equal = op == BinaryOperator::Equal;
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let (left, right) = (Arrays::of(call, 0)?, Arrays::of(call, 1)?);
        Ok(build_flags(call.rows, |row| {
            let same = match (left.get(row), right.get(row)) {
                (Some(a), Some(b)) => a.same(&b),
                (a, b) => a.is_none() && b.is_none(),
            };
            same == equal
        }))
    });
    operator("array_equal", (array, array, Boolean), op.sign(), kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcast_aligns_shapes_at_the_innermost_dimension() {
        assert_eq!(broadcast(&[2, 2], &[2]), Some(vec![2, 2]));
        assert_eq!(broadcast(&[2, 1], &[3]), Some(vec![2, 3]));
        assert_eq!(broadcast(&[4, 1, 3], &[2, 1]), Some(vec![4, 2, 3]));
        assert_eq!(broadcast(&[2], &[3]), None);
        assert_eq!(repeated_positions(&[2, 3], &[3]), [0, 1, 2, 0, 1, 2]);
        assert_eq!(repeated_positions(&[2, 3], &[2, 1]), [0, 0, 0, 1, 1, 1]);
        assert_eq!(repeated_positions(&[2, 2], &[2, 2]), [0, 1, 2, 3]);
    }
}
