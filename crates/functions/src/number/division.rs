//! Remainders, quotients and divisors of whole numbers. As with `/`, division by zero yields null.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::Result;
use tidemark_types::SqlType::{Double, Long};

use crate::column::{Call, build};
use crate::signature::Param::Is;
use crate::signature::{Function, direct, pure};

fn longs(call: &Call<'_>, compute: impl Fn(i64, i64) -> Option<i64>) -> Result<ArrayRef> {
    let (left, right) = (call.primitive::<Int64Type>(0)?, call.primitive::<Int64Type>(1)?);
    Ok(build::<Int64Type>(call.rows, |row| compute(left.get(row)?, right.get(row)?)))
}

fn doubles(call: &Call<'_>, compute: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (left, right) = (call.primitive::<Float64Type>(0)?, call.primitive::<Float64Type>(1)?);
    Ok(build::<Float64Type>(call.rows, |row| Some(compute(left.get(row)?, right.get(row)?))))
}

fn greatest_divisor(left: i64, right: i64) -> Option<i64> {
    let (mut a, mut b) = (left.unsigned_abs(), right.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).ok()
}

fn lowest_common_multiple(left: i64, right: i64) -> Option<i64> {
    match greatest_divisor(left, right)? {
        0 => Some(0),
        divisor => (left / divisor).checked_mul(right)?.checked_abs(),
    }
}

pub(crate) const FUNCTIONS: &[Function] = &[
    pure(
        "mod",
        &[
            direct(&[Is(Long), Is(Long)], Long, |call| longs(call, i64::checked_rem)),
            direct(&[Is(Double), Is(Double)], Double, |call| doubles(call, |a, b| a % b)),
        ],
        "remainder of a division, with the sign of the dividend",
    ),
    pure(
        "div",
        &[
            direct(&[Is(Long), Is(Long)], Long, |call| longs(call, i64::checked_div)),
            direct(&[Is(Double), Is(Double)], Double, |call| doubles(call, |a, b| (a / b).trunc())),
        ],
        "quotient of a division, truncated toward zero",
    ),
    pure(
        "gcd",
        &[direct(&[Is(Long), Is(Long)], Long, |call| longs(call, greatest_divisor))],
        "greatest common divisor",
    ),
    pure(
        "lcm",
        &[direct(&[Is(Long), Is(Long)], Long, |call| longs(call, lowest_common_multiple))],
        "least common multiple; null if it does not fit in LONG",
    ),
];
