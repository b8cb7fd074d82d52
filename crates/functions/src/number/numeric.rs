//! Numeric, trigonometric and price functions.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use super::rounding::{Digits, rounded, to_integer};
use crate::column::{Call, SentinelType, build, build_text, invalid, try_build};
use crate::resolve::{Argument, ResolveError, ResolvedScalar};
use crate::signature::Param::Is;
use crate::signature::{Function, direct, mismatch, pure, resolved, special};
use SqlType::{Byte, Double, Float, Int, Long, Short, String};

/// Applies a function to a column of type `T`.
fn map<T: SentinelType>(
    call: &Call<'_>,
    compute: impl Fn(T::Native) -> T::Native,
) -> Result<ArrayRef> {
    let input = call.primitive::<T>(0)?;
    Ok(build::<T>(call.rows, |row| input.get(row).map(&compute)))
}

fn doubles1(call: &Call<'_>, compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    map::<Float64Type>(call, compute)
}

fn doubles2(call: &Call<'_>, compute: impl Fn(f64, f64) -> f64) -> Result<ArrayRef> {
    let (a, b) = (call.primitive::<Float64Type>(0)?, call.primitive::<Float64Type>(1)?);
    Ok(build::<Float64Type>(call.rows, |row| Some(compute(a.get(row)?, b.get(row)?))))
}

fn extreme(
    name: &str,
    arguments: &[Argument],
    greatest: bool,
) -> std::result::Result<ResolvedScalar, ResolveError> {
    if arguments.is_empty() {
        return Err(ResolveError::NoArguments { name: name.into() });
    }
    let mut common = SqlType::Null;
    for argument in arguments {
        let next = match argument.sql_type {
            SqlType::Null => continue,
            number @ (Byte | Short | Int | Long | Float | Double) => number,
            time @ (SqlType::Date | SqlType::Timestamp | SqlType::TimestampNs) => time,
            _ => return Err(mismatch(name, [0, 1].into_iter(), arguments)),
        };
        let rank = |sql_type| {
            [
                SqlType::Null,
                Byte,
                Short,
                Int,
                Long,
                SqlType::Date,
                SqlType::Timestamp,
                SqlType::TimestampNs,
                Float,
                Double,
            ]
            .iter()
            .position(|&step| step == sql_type)
        };
        common = if rank(next) > rank(common) { next } else { common };
    }
    if common == SqlType::Null {
        common = Int;
    }
    let kernel: crate::native::Kernel = match common {
        Byte => std::sync::Arc::new(move |call: &Call<'_>| pick::<Int8Type>(call, greatest)),
        Short => std::sync::Arc::new(move |call: &Call<'_>| pick::<Int16Type>(call, greatest)),
        Int => std::sync::Arc::new(move |call: &Call<'_>| pick::<Int32Type>(call, greatest)),
        Float => std::sync::Arc::new(move |call: &Call<'_>| pick::<Float32Type>(call, greatest)),
        Double => std::sync::Arc::new(move |call: &Call<'_>| pick::<Float64Type>(call, greatest)),
        Long => std::sync::Arc::new(move |call: &Call<'_>| pick::<Int64Type>(call, greatest)),
        SqlType::Date => std::sync::Arc::new(move |call: &Call<'_>| {
            pick::<arrow::datatypes::TimestampMillisecondType>(call, greatest)
        }),
        SqlType::Timestamp => std::sync::Arc::new(move |call: &Call<'_>| {
            pick::<arrow::datatypes::TimestampMicrosecondType>(call, greatest)
        }),
        _ => std::sync::Arc::new(move |call: &Call<'_>| {
            pick::<arrow::datatypes::TimestampNanosecondType>(call, greatest)
        }),
    };
    let name = if greatest { "greatest" } else { "least" };
    let types = vec![common; arguments.len()];
    Ok(resolved(name, Volatility::Immutable, types, common, arguments, kernel))
}

/// Returns each row's greatest or least value, ignoring nulls.
fn pick<T: SentinelType>(call: &Call<'_>, greatest: bool) -> Result<ArrayRef>
where
    T::Native: PartialOrd,
{
    let columns: Vec<_> =
        (0..call.arguments.len()).map(|index| call.primitive::<T>(index)).collect::<Result<_>>()?;
    Ok(build::<T>(call.rows, |row| {
        let values = columns.iter().filter_map(|column| column.get(row));
        values.reduce(|best, value| if (value > best) == greatest { value } else { best })
    }))
}

/// Formats a byte count for display: `1.5 KiB`.
pub fn size_text(bytes: f64) -> std::string::String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut shown = bytes;
    let mut unit = 0;
    while shown.abs() >= 1024.0 && unit + 1 < units.len() {
        shown /= 1024.0;
        unit += 1;
    }
    format!("{shown:.1} {}", units[unit])
}

fn size_pretty(call: &Call<'_>) -> Result<ArrayRef> {
    let sizes = call.primitive::<Int64Type>(0)?;
    build_text(call.rows, |row, out| {
        let Some(size) = sizes.get(row) else { return false };
        out.push_str(&size_text(size as f64));
        true
    })
}

fn weighted_mid(call: &Call<'_>) -> Result<ArrayRef> {
    let of = |index| call.primitive::<Float64Type>(index);
    let (bid_size, bid, ask, ask_size) = (of(0)?, of(1)?, of(2)?, of(3)?);
    Ok(build::<Float64Type>(call.rows, |row| {
        let (bid_size, ask_size) = (bid_size.get(row)?, ask_size.get(row)?);
        let imbalance = bid_size / (bid_size + ask_size);
        Some(ask.get(row)? * imbalance + bid.get(row)? * (1.0 - imbalance))
    }))
}

const D1: &[crate::signature::Param] = &[Is(Double)];
const D2: &[crate::signature::Param] = &[Is(Double), Is(Double)];
const DN: &[crate::signature::Param] = &[Is(Double), Is(Int)];

macro_rules! one {
    ($name:literal, $compute:expr, $summary:literal) => {
        pure($name, &[direct(D1, Double, |call| doubles1(call, $compute))], $summary)
    };
}

macro_rules! two {
    ($name:literal, $compute:expr, $summary:literal) => {
        pure($name, &[direct(D2, Double, |call| doubles2(call, $compute))], $summary)
    };
}

macro_rules! rounding {
    ($compute:expr) => {
        &[
            direct(&[Is(Float)], Float, |call| {
                map::<Float32Type>(call, |x| $compute(f64::from(x)) as f32)
            }),
            direct(D1, Double, |call| doubles1(call, $compute)),
        ]
    };
}

/// Returns the number of the bucket that contains a value. Buckets are of equal width and numbered
/// from 1. A value below the first bucket yields 0; a value above the last yields the number of
/// buckets plus 1. The bounds may be in either order.
fn width_bucket(call: &Call<'_>) -> Result<ArrayRef> {
    let [value, low, high] = [0, 1, 2].map(|index| call.primitive::<Float64Type>(index));
    let (value, low, high) = (value?, low?, high?);
    let buckets = call.primitive::<Int32Type>(3)?;
    try_build::<Int32Type>(call.rows, |row| {
        let bounds = low.get(row).zip(high.get(row)).zip(buckets.get(row));
        let Some((value, ((low, high), buckets))) = value.get(row).zip(bounds) else {
            return Ok(None);
        };
        if buckets < 1 || low == high {
            let message = "width_bucket: expected different bounds and at least one bucket";
            return Err(invalid(message));
        }
        let fraction = (value - low) / (high - low);
        Ok(Some(match fraction {
            fraction if fraction < 0.0 => 0,
            fraction if fraction >= 1.0 => buckets.saturating_add(1),
            fraction => (fraction * f64::from(buckets)) as i32 + 1,
        }))
    })
}

pub(crate) const FUNCTIONS: &[Function] = &[
    pure(
        "abs",
        &[
            // BYTE returns a SHORT because the smallest BYTE has no positive counterpart. INT comes
            // first because it accepts the untyped null.
            direct(&[Is(Int)], Int, |call| map::<Int32Type>(call, i32::wrapping_abs)),
            direct(&[Is(Byte)], Short, |call| {
                let bytes = call.primitive::<Int8Type>(0)?;
                Ok(build::<Int16Type>(call.rows, |row| Some(i16::from(bytes.get(row)?).abs())))
            }),
            direct(&[Is(Short)], Short, |call| map::<Int16Type>(call, i16::wrapping_abs)),
            direct(&[Is(Long)], Long, |call| map::<Int64Type>(call, i64::wrapping_abs)),
            direct(&[Is(Float)], Float, |call| map::<Float32Type>(call, f32::abs)),
            direct(D1, Double, |call| doubles1(call, f64::abs)),
        ],
        "absolute value",
    ),
    pure(
        "sign",
        &[
            direct(&[Is(Byte)], Byte, |call| map::<Int8Type>(call, i8::signum)),
            direct(&[Is(Short)], Short, |call| map::<Int16Type>(call, i16::signum)),
            direct(&[Is(Int)], Int, |call| map::<Int32Type>(call, i32::signum)),
            direct(&[Is(Long)], Long, |call| map::<Int64Type>(call, i64::signum)),
            direct(&[Is(Float)], Float, |call| {
                map::<Float32Type>(call, |x| if x == 0.0 { 0.0 } else { x.signum() })
            }),
            direct(D1, Double, |call| doubles1(call, |x| if x == 0.0 { 0.0 } else { x.signum() })),
        ],
        "sign of a number: -1, 0 or 1",
    ),
    pure(
        "round",
        &[
            direct(D1, Double, |call| doubles1(call, to_integer)),
            direct(DN, Double, |call| rounded(call, Digits::Half)),
        ],
        "rounds to the given number of decimal places, 0 by default; ties round up",
    ),
    pure(
        "round_half_even",
        &[direct(DN, Double, |call| rounded(call, Digits::HalfEven))],
        "rounds to the given number of decimal places; ties round to the even digit",
    ),
    pure(
        "round_up",
        &[direct(DN, Double, |call| rounded(call, Digits::Up))],
        "rounds to the given number of decimal places, away from zero",
    ),
    pure(
        "round_down",
        &[direct(DN, Double, |call| rounded(call, Digits::Down))],
        "rounds to the given number of decimal places, toward zero",
    ),
    pure(
        "trunc",
        &[
            direct(D1, Double, |call| doubles1(call, f64::trunc)),
            direct(DN, Double, |call| rounded(call, Digits::Down)),
        ],
        "truncates to the given number of decimal places, 0 by default",
    ),
    pure("floor", rounding!(f64::floor), "largest whole number not greater than the argument"),
    pure("ceil", rounding!(f64::ceil), "smallest whole number not less than the argument"),
    pure("ceiling", rounding!(f64::ceil), "smallest whole number not less than the argument"),
    one!("sqrt", f64::sqrt, "square root"),
    one!("cbrt", f64::cbrt, "cube root"),
    one!("exp", f64::exp, "e raised to the given power"),
    one!("ln", f64::ln, "natural logarithm"),
    one!("log", f64::log10, "logarithm to base 10"),
    two!("power", f64::powf, "first argument raised to the power of the second"),
    one!("sin", f64::sin, "sine of an angle in radians"),
    one!("cos", f64::cos, "cosine of an angle in radians"),
    one!("tan", f64::tan, "tangent of an angle in radians"),
    one!(
        "cot",
        |x: f64| if x == 0.0 { f64::NAN } else { 1.0 / x.tan() },
        "cotangent of an angle in radians"
    ),
    one!("asin", f64::asin, "arc sine"),
    one!("acos", f64::acos, "arc cosine"),
    one!("atan", f64::atan, "arc tangent"),
    two!("atan2", f64::atan2, "angle of the point (x, y) in radians: (y, x)"),
    one!("degrees", f64::to_degrees, "converts radians to degrees"),
    one!("radians", f64::to_radians, "converts degrees to radians"),
    pure(
        "pi",
        &[direct(&[], Double, |call| {
            Ok(build::<Float64Type>(call.rows, |_| Some(std::f64::consts::PI)))
        })],
        "the ratio of a circle's circumference to its diameter",
    ),
    special(
        "greatest",
        |name, arguments| extreme(name, arguments, true),
        "largest argument; nulls are ignored",
    ),
    special(
        "least",
        |name, arguments| extreme(name, arguments, false),
        "smallest argument; nulls are ignored",
    ),
    pure(
        "width_bucket",
        &[direct(&[Is(Double), Is(Double), Is(Double), Is(Int)], Int, width_bucket)],
        "bucket number of a value: (value, low, high, buckets); 0 below and buckets + 1 above the \
         range",
    ),
    pure(
        "size_pretty",
        &[direct(&[Is(Long)], String, size_pretty)],
        "formats a size in B, KiB, MiB, …",
    ),
    two!("mid", f64::midpoint, "midpoint of bid and ask: (bid, ask)"),
    two!("spread", |bid, ask| ask - bid, "ask minus bid: (bid, ask)"),
    two!(
        "spread_bps",
        |bid, ask| (ask - bid) / f64::midpoint(bid, ask) * 10_000.0,
        "spread in basis points of the midpoint: (bid, ask)"
    ),
    pure(
        "wmid",
        &[direct(&[Is(Double), Is(Double), Is(Double), Is(Double)], Double, weighted_mid)],
        "midpoint weighted by size: (bid size, bid, ask, ask size)",
    ),
];
