//! Rounds DOUBLE values to decimal places, based on their decimal representation.

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int32Type};
use datafusion::common::Result;

use crate::column::{Call, build};

/// How surplus digits are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Digits {
    /// To the nearest number; halves away from zero.
    Half,
    /// To the nearest number; halves to the even digit.
    HalfEven,
    /// Away from zero.
    Up,
    /// Toward zero.
    Down,
}

/// Magnitude at and above which DOUBLE has no fractions, so rounding to decimal places has no
/// effect.
const MAX_SCALED: f64 = 4_503_599_627_370_496.0;

/// Rounds `value` to `places` decimal places. Negative places are counted to the left of the point.
///
/// The quotient of two whole numbers is rounded correctly, so comparing `value` with such a
/// quotient shows whether `value` is above or below a decimal. Multiplying by a power of ten is not
/// exact: 9.2 * 10 may be less than 92.
pub(super) fn to_places(value: f64, places: i32, digits: Digits) -> f64 {
    let power = 10_f64.powi(places.saturating_abs());
    if !power.is_finite() {
        return if places < 0 { 0.0_f64.copysign(value) } else { value };
    }
    let magnitude = value.abs();
    let scaled = if places < 0 { magnitude / power } else { magnitude * power };
    if scaled.is_nan() || scaled >= MAX_SCALED {
        return value;
    }
    let decimal = |number: f64| if places < 0 { number * power } else { number / power };
    if decimal(scaled.round()) == magnitude {
        return value;
    }
    let mut low = scaled.floor();
    if decimal(low) > magnitude {
        low -= 1.0;
    } else if decimal(low + 1.0) < magnitude {
        low += 1.0;
    }
    // Where decimals are closer together than DOUBLEs, the halfway value may equal the decimal
    // itself.
    if decimal(low) == magnitude {
        return value;
    }
    let doubled = 2.0 * low + 1.0;
    let half = if places < 0 { doubled * (power / 2.0) } else { doubled / (2.0 * power) };
    let is_up = match digits {
        Digits::Up => true,
        Digits::Down => false,
        Digits::Half => magnitude >= half,
        Digits::HalfEven => magnitude > half || (magnitude == half && low % 2.0 != 0.0),
    };
    decimal(if is_up { low + 1.0 } else { low }).copysign(value)
}

/// Rounds to the nearest whole number, with halves rounded up.
pub(super) fn to_integer(value: f64) -> f64 {
    let floor = value.floor();
    if value - floor >= 0.5 { floor + 1.0 } else { floor }
}

/// Rounds each number to the number of places given in the second argument.
pub(super) fn rounded(call: &Call<'_>, digits: Digits) -> Result<ArrayRef> {
    let (values, places) = (call.primitive::<Float64Type>(0)?, call.primitive::<Int32Type>(1)?);
    Ok(build::<Float64Type>(call.rows, |row| {
        Some(to_places(values.get(row)?, places.get(row)?, digits))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds the decimal `number` / 10^`scale` using integer arithmetic and parses the resulting
    /// digits.
    fn model(number: i64, scale: u32, places: i32, digits: Digits) -> f64 {
        let dropped = i64::from(scale) - i64::from(places);
        if dropped <= 0 {
            return format!("{number}e-{scale}").parse().unwrap();
        }
        let unit = 10_i128.pow(u32::try_from(dropped).unwrap());
        let magnitude = i128::from(number.unsigned_abs());
        let (low, rest) = (magnitude / unit, magnitude % unit);
        let is_up = match digits {
            Digits::Up => rest > 0,
            Digits::Down => false,
            Digits::Half => rest * 2 >= unit,
            Digits::HalfEven => rest * 2 > unit || (rest * 2 == unit && low % 2 == 1),
        };
        let rounded = low + i128::from(is_up);
        let sign = if number < 0 { "-" } else { "" };
        format!("{sign}{rounded}e{}", -places).parse().unwrap()
    }

    #[test]
    fn doubles_are_rounded_by_their_decimal_representation() {
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let mut state: u64 = seed.unwrap_or(1);
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let all = [Digits::Half, Digits::HalfEven, Digits::Up, Digits::Down];
        for _ in 0..20_000 {
            let size = 10_u64.pow(1 + random(14) as u32);
            let wide = random(1 << 31) << 31 | random(1 << 31);
            let number = (wide % size) as i64 * if random(2) == 0 { 1 } else { -1 };
            let scale = random(16) as u32;
            let value: f64 = format!("{number}e-{scale}").parse().unwrap();
            let places = random(24) as i32 - 6;
            for digits in all {
                let expected = model(number, scale, places, digits);
                let found = to_places(value, places, digits);
                assert_eq!(found, expected, "{value} to {places} {digits:?}");
            }
        }
    }

    #[test]
    fn numbers_with_fewer_decimal_places_are_unchanged() {
        for integer in -1_000..1_000 {
            for places in 1..6 {
                let value = f64::from(integer) / 10_f64.powi(places);
                for digits in [Digits::Half, Digits::HalfEven, Digits::Up, Digits::Down] {
                    assert_eq!(to_places(value, places, digits), value);
                    assert_eq!(to_places(value, places + 3, digits), value);
                }
            }
        }
        for value in [f64::MAX, f64::MIN_POSITIVE, 0.0, -0.0, 4_503_599_627_370_497.0] {
            for places in [0, 22, 308, 400, i32::MAX] {
                let found = to_places(value, places, Digits::Half);
                assert!(found == value || value == f64::MIN_POSITIVE, "{value} {places}");
            }
            assert_eq!(to_places(value, i32::MIN, Digits::Half), 0.0);
        }
    }

    #[test]
    fn halves_are_rounded_up() {
        for (value, expected) in [
            (2.5, 3.0),
            (-2.5, -2.0),
            (0.499_999_999_999_999_94, 0.0),
            (4_503_599_627_370_497.0, 4_503_599_627_370_497.0),
            (-0.2, 0.0),
        ] {
            assert_eq!(to_integer(value), expected, "{value}");
        }
    }
}
