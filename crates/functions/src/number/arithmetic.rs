//! `+ - * / %`, bit operations and negation. Integers wrap. The result is null if it is the type's
//! minimum, if it is not finite, or if the divisor is zero.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampNanosecondType, UInt32Type,
};
use datafusion::common::Result;
use tidemark_ast::BinaryOperator;
use tidemark_types::SqlType;

use crate::column::{Call, Primitives, SentinelType, build, canonical, internal};
use crate::native::Kernel;

/// The operations on a number type that the arithmetic kernels need.
trait Number: Copy {
    fn compute(op: BinaryOperator) -> Option<fn(Self, Self) -> Self>;
}

macro_rules! integers {
    ($($native:ty),*) => {$(
        impl Number for $native {
            fn compute(op: BinaryOperator) -> Option<fn(Self, Self) -> Self> {
                // The minimum represents null, so division by zero simply returns it.
                Some(match op {
                    BinaryOperator::Add => |a, b| a.wrapping_add(b),
                    BinaryOperator::Subtract => |a, b| a.wrapping_sub(b),
                    BinaryOperator::Multiply => |a, b| a.wrapping_mul(b),
                    BinaryOperator::Divide => |a, b| {
                        if b == 0 { Self::MIN } else { a.wrapping_div(b) }
                    },
                    BinaryOperator::Modulo => |a, b| {
                        if b == 0 { Self::MIN } else { a.wrapping_rem(b) }
                    },
                    BinaryOperator::BitAnd => |a, b| a & b,
                    BinaryOperator::BitOr => |a, b| a | b,
                    BinaryOperator::BitXor => |a, b| a ^ b,
                    _ => return None,
                })
            }
        }
    )*};
}

macro_rules! floats {
    ($($native:ty),*) => {$(
        impl Number for $native {
            fn compute(op: BinaryOperator) -> Option<fn(Self, Self) -> Self> {
                Some(match op {
                    BinaryOperator::Add => |a, b| a + b,
                    BinaryOperator::Subtract => |a, b| a - b,
                    BinaryOperator::Multiply => |a, b| a * b,
                    BinaryOperator::Divide => |a, b| a / b,
                    BinaryOperator::Modulo => |a, b| a % b,
                    _ => return None,
                })
            }
        }
    )*};
}

integers!(i32, i64, u32);
floats!(f32, f64);

/// Evaluates `op` row by row. Each of the most frequent operations is passed as a separate closure
/// so that it compiles to its own vectorised loop.
fn evaluate<A, B, R>(call: &Call<'_>, op: BinaryOperator) -> Result<ArrayRef>
where
    A: SentinelType,
    B: SentinelType<Native = A::Native>,
    R: SentinelType<Native = A::Native>,
    A::Native: Number + Hot,
{
    let (left, right) = (call.primitive::<A>(0)?, call.primitive::<B>(1)?);
    match op {
        BinaryOperator::Add => Ok(zip::<A, B, R, _>(call, &left, &right, Hot::plus)),
        BinaryOperator::Subtract => Ok(zip::<A, B, R, _>(call, &left, &right, Hot::minus)),
        BinaryOperator::Multiply => Ok(zip::<A, B, R, _>(call, &left, &right, Hot::times)),
        _ => {
            let compute = A::Native::compute(op).ok_or_else(|| internal("no such operation"))?;
            Ok(zip::<A, B, R, _>(call, &left, &right, compute))
        }
    }
}

/// The operations that have a specialised loop.
trait Hot: Copy {
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
}

macro_rules! hot {
    ($($native:ty: $plus:ident $minus:ident $times:ident;)*) => {$(
        impl Hot for $native {
            fn plus(self, other: Self) -> Self { self.$plus(other) }
            fn minus(self, other: Self) -> Self { self.$minus(other) }
            fn times(self, other: Self) -> Self { self.$times(other) }
        }
    )*};
}

hot! {
    i32: wrapping_add wrapping_sub wrapping_mul;
    i64: wrapping_add wrapping_sub wrapping_mul;
    u32: wrapping_add wrapping_sub wrapping_mul;
}

macro_rules! hot_floats {
    ($($native:ty),*) => {$(
        impl Hot for $native {
            fn plus(self, other: Self) -> Self { self + other }
            fn minus(self, other: Self) -> Self { self - other }
            fn times(self, other: Self) -> Self { self * other }
        }
    )*};
}

hot_floats!(f32, f64);

fn zip<A, B, R, F>(call: &Call<'_>, left: &Primitives<A>, right: &Primitives<B>, op: F) -> ArrayRef
where
    A: SentinelType,
    B: SentinelType<Native = A::Native>,
    R: SentinelType<Native = A::Native>,
    F: Fn(A::Native, A::Native) -> A::Native,
{
    let null_scalar = |nulls: Option<&NullBuffer>| nulls.is_some_and(|nulls| nulls.is_null(0));
    if (left.scalar && null_scalar(left.nulls.as_ref()))
        || (right.scalar && null_scalar(right.nulls.as_ref()))
    {
        return arrow::array::new_null_array(&R::DATA_TYPE, call.rows);
    }
    let values: Vec<A::Native> = match (left.scalar, right.scalar) {
        (false, false) => {
            left.values.iter().zip(right.values.iter()).map(|(&a, &b)| op(a, b)).collect()
        }
        (false, true) => {
            let b = right.values[0];
            left.values.iter().map(|&a| op(a, b)).collect()
        }
        (true, false) => {
            let a = left.values[0];
            right.values.iter().map(|&b| op(a, b)).collect()
        }
        (true, true) => vec![op(left.values[0], right.values[0]); call.rows],
    };
    let of = |scalar: bool, nulls: &Option<NullBuffer>| nulls.clone().filter(|_| !scalar);
    let nulls = NullBuffer::union(
        of(left.scalar, &left.nulls).as_ref(),
        of(right.scalar, &right.nulls).as_ref(),
    );
    Arc::new(canonical::<R>(values, nulls))
}

/// Returns the kernel of `op` for operands of types `left` and `right`, with a result of type
/// `returns`. Returns `None` if this combination is not supported.
pub(crate) fn kernel(
    op: BinaryOperator,
    left: SqlType,
    right: SqlType,
    returns: SqlType,
) -> Option<Kernel> {
    use SqlType as T;
    type Us = TimestampMicrosecondType;
    type Ns = TimestampNanosecondType;
    macro_rules! of {
        ($a:ty, $b:ty, $r:ty) => {
            Arc::new(move |call: &Call<'_>| evaluate::<$a, $b, $r>(call, op)) as Kernel
        };
    }
    Some(match (left, right, returns) {
        (T::Int, T::Int, T::Int) => of!(Int32Type, Int32Type, Int32Type),
        (T::Long, T::Long, T::Long) => of!(Int64Type, Int64Type, Int64Type),
        (T::Float, T::Float, T::Float) => of!(Float32Type, Float32Type, Float32Type),
        (T::Double, T::Double, T::Double) => of!(Float64Type, Float64Type, Float64Type),
        (T::Timestamp, T::Long, T::Timestamp) => of!(Us, Int64Type, Us),
        (T::Long, T::Timestamp, T::Timestamp) => of!(Int64Type, Us, Us),
        (T::TimestampNs, T::Long, T::TimestampNs) => of!(Ns, Int64Type, Ns),
        (T::Long, T::TimestampNs, T::TimestampNs) => of!(Int64Type, Ns, Ns),
        (T::Timestamp, T::Timestamp, T::Timestamp) => of!(Us, Us, Us),
        (T::Timestamp, T::Timestamp, T::Long) => of!(Us, Us, Int64Type),
        (T::TimestampNs, T::TimestampNs, T::TimestampNs) => of!(Ns, Ns, Ns),
        (T::TimestampNs, T::TimestampNs, T::Long) => of!(Ns, Ns, Int64Type),
        (T::Ipv4, T::Ipv4, T::Ipv4) => of!(UInt32Type, UInt32Type, UInt32Type),
        (T::Ipv4, T::Ipv4, T::Long) => Arc::new(|call: &Call<'_>| {
            let (left, right) =
                (call.primitive::<UInt32Type>(0)?, call.primitive::<UInt32Type>(1)?);
            Ok(build::<Int64Type>(call.rows, |row| {
                Some(i64::from(left.get(row)?) - i64::from(right.get(row)?))
            }))
        }),
        (T::Ipv4, T::Long, T::Ipv4) | (T::Long, T::Ipv4, T::Ipv4) => {
            let address = usize::from(left == T::Long);
            Arc::new(move |call: &Call<'_>| moved_address(call, address, op))
        }
        _ => return None,
    })
}

/// Adds an offset to an address, or subtracts it. `address` is the address's index among the two
/// arguments. An out-of-range result is null.
fn moved_address(call: &Call<'_>, address: usize, op: BinaryOperator) -> Result<ArrayRef> {
    let addresses = call.primitive::<UInt32Type>(address)?;
    let distances = call.primitive::<Int64Type>(1 - address)?;
    Ok(build::<UInt32Type>(call.rows, |row| {
        let (address, distance) = (i64::from(addresses.get(row)?), distances.get(row)?);
        let moved = match op {
            BinaryOperator::Subtract => address.checked_sub(distance),
            _ => address.checked_add(distance),
        };
        moved.and_then(|moved| u32::try_from(moved).ok())
    }))
}

fn map_canonical<T: SentinelType>(
    call: &Call<'_>,
    op: impl Fn(T::Native) -> T::Native,
) -> Result<ArrayRef> {
    let input = call.primitive::<T>(0)?;
    let values = input.values.iter().map(|&value| op(value)).collect();
    Ok(Arc::new(canonical::<T>(values, input.nulls)))
}

/// Returns the kernel for unary minus. BYTE and SHORT keep their type.
pub(crate) fn negation(sql_type: SqlType) -> Option<Kernel> {
    Some(match sql_type {
        SqlType::Byte => {
            Arc::new(|call: &Call<'_>| map_canonical::<Int8Type>(call, i8::wrapping_neg))
        }
        SqlType::Short => {
            Arc::new(|call: &Call<'_>| map_canonical::<Int16Type>(call, i16::wrapping_neg))
        }
        SqlType::Int => {
            Arc::new(|call: &Call<'_>| map_canonical::<Int32Type>(call, i32::wrapping_neg))
        }
        SqlType::Long => {
            Arc::new(|call: &Call<'_>| map_canonical::<Int64Type>(call, i64::wrapping_neg))
        }
        SqlType::Float => Arc::new(|call: &Call<'_>| map_canonical::<Float32Type>(call, |x| -x)),
        SqlType::Double => Arc::new(|call: &Call<'_>| map_canonical::<Float64Type>(call, |x| -x)),
        SqlType::Decimal(..) => Arc::new(|call: &Call<'_>| {
            Ok(arrow::compute::kernels::numeric::neg(&call.array(0)?.0)?)
        }),
        _ => return None,
    })
}

/// Returns the kernel for `~`.
pub(crate) fn bit_not(sql_type: SqlType) -> Option<Kernel> {
    Some(match sql_type {
        SqlType::Int => Arc::new(|call: &Call<'_>| map_canonical::<Int32Type>(call, |x| !x)),
        SqlType::Long => Arc::new(|call: &Call<'_>| map_canonical::<Int64Type>(call, |x| !x)),
        SqlType::Ipv4 => Arc::new(|call: &Call<'_>| map_canonical::<UInt32Type>(call, |x| !x)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array, AsArray, Float64Array, Int32Array, Int64Array};
    use datafusion::common::ScalarValue;
    use datafusion_expr::ColumnarValue;

    use super::*;

    fn run(
        op: BinaryOperator,
        sql_type: SqlType,
        arguments: &[ColumnarValue; 2],
        rows: usize,
    ) -> ArrayRef {
        let kernel = kernel(op, sql_type, sql_type, sql_type).unwrap();
        kernel(&Call { arguments, rows, random: None }).unwrap()
    }

    #[test]
    fn integers_wrap_on_overflow_and_the_minimum_value_is_null() {
        let left = Int32Array::from(vec![Some(i32::MAX), Some(i32::MAX), None, Some(7)]);
        let right = Int32Array::from(vec![1, 2, 3, 0]);
        let columns = [ColumnarValue::Array(Arc::new(left)), ColumnarValue::Array(Arc::new(right))];
        let sum = run(BinaryOperator::Add, SqlType::Int, &columns, 4);
        let expected = Int32Array::from(vec![None, Some(i32::MIN + 1), None, Some(7)]);
        assert_eq!(sum.as_primitive::<Int32Type>(), &expected);
        let quotient = run(BinaryOperator::Divide, SqlType::Int, &columns, 4);
        assert!(quotient.is_null(3));
    }

    #[test]
    fn non_finite_results_are_null() {
        let left = ColumnarValue::Array(Arc::new(Float64Array::from(vec![1.0, 1e308, 0.0])));
        let zero = ColumnarValue::Scalar(ScalarValue::Float64(Some(0.0)));
        assert_eq!(
            run(BinaryOperator::Divide, SqlType::Double, &[left.clone(), zero], 3).null_count(),
            3
        );
        let ten = ColumnarValue::Scalar(ScalarValue::Float64(Some(10.0)));
        assert_eq!(run(BinaryOperator::Multiply, SqlType::Double, &[left, ten], 3).null_count(), 1);
    }

    #[test]
    fn vectorised_arithmetic_matches_scalar_arithmetic() {
        let numbers = [0, 1, -1, 2, 3, -7, 1 << 40, i64::MAX, i64::MIN + 1];
        let pairs: Vec<(Option<i64>, Option<i64>)> = numbers
            .iter()
            .flat_map(|&a| numbers.iter().map(move |&b| (Some(a), Some(b))))
            .chain([(None, Some(1)), (Some(1), None), (None, None)])
            .collect();
        let columns = [
            ColumnarValue::Array(Arc::new(pairs.iter().map(|pair| pair.0).collect::<Int64Array>())),
            ColumnarValue::Array(Arc::new(pairs.iter().map(|pair| pair.1).collect::<Int64Array>())),
        ];
        for op in [
            BinaryOperator::Add,
            BinaryOperator::Subtract,
            BinaryOperator::Multiply,
            BinaryOperator::Divide,
            BinaryOperator::Modulo,
            BinaryOperator::BitAnd,
            BinaryOperator::BitOr,
            BinaryOperator::BitXor,
        ] {
            let plain = |a: i64, b: i64| match op {
                BinaryOperator::Add => Some(a.wrapping_add(b)),
                BinaryOperator::Subtract => Some(a.wrapping_sub(b)),
                BinaryOperator::Multiply => Some(a.wrapping_mul(b)),
                BinaryOperator::Divide => a.checked_div(b),
                BinaryOperator::Modulo => a.checked_rem(b),
                BinaryOperator::BitAnd => Some(a & b),
                BinaryOperator::BitOr => Some(a | b),
                _ => Some(a ^ b),
            };
            let expected: Int64Array = pairs
                .iter()
                .map(|&(a, b)| plain(a?, b?).filter(|&value| value != i64::MIN))
                .collect();
            let found = run(op, SqlType::Long, &columns, pairs.len());
            assert_eq!(found.as_primitive::<Int64Type>(), &expected, "{op:?}");
        }
    }
}
