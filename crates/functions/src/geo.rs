//! Points in shapes, and geohashes within others.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use crate::column::{Call, build_flags};
use crate::native::Kernel;
use crate::registry::Param::Is;
use crate::registry::{Function, direct, mismatch, pure, resolved, special};
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};
use SqlType::{Boolean, Double};

/// Mean radius of the earth in metres.
const EARTH_RADIUS: f64 = 6_371_000.0;

/// A test of `N` numbers; false where one is null.
fn test<const N: usize>(call: &Call<'_>, holds: impl Fn([f64; N]) -> bool) -> Result<ArrayRef> {
    let mut columns = Vec::with_capacity(N);
    for index in 0..N {
        columns.push(call.primitive::<Float64Type>(index)?);
    }
    Ok(build_flags(call.rows, |row| {
        let mut values = [0.0; N];
        for (value, column) in values.iter_mut().zip(&columns) {
            let Some(found) = column.get(row) else { return false };
            *value = found;
        }
        holds(values)
    }))
}

fn within_box([x, y, min_x, min_y, max_x, max_y]: [f64; 6]) -> bool {
    (min_x..=max_x).contains(&x) && (min_y..=max_y).contains(&y)
}

fn within_radius([x, y, centre_x, centre_y, radius]: [f64; 5]) -> bool {
    (x - centre_x).hypot(y - centre_y) <= radius
}

fn within_metres([lat, lon, centre_lat, centre_lon, metres]: [f64; 5]) -> bool {
    let half_chord = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
    let across = lat.to_radians().cos() * centre_lat.to_radians().cos();
    let share = half_chord(centre_lat, lat) + across * half_chord(centre_lon, lon);
    2.0 * EARTH_RADIUS * share.sqrt().asin() <= metres
}

/// Whether a geohash lies in one of the others, which must not be finer than it is.
fn within(name: &str, arguments: &[Argument]) -> std::result::Result<ResolvedScalar, ResolveError> {
    let none = || mismatch(name, [1, 2].into_iter(), arguments);
    let [inner, outer @ ..] = arguments else { return Err(none()) };
    let SqlType::Geohash(bits) = inner.sql_type else { return Err(none()) };
    let mut shifts = Vec::with_capacity(outer.len());
    for (index, argument) in outer.iter().enumerate() {
        let SqlType::Geohash(fewer) = argument.sql_type else { return Err(none()) };
        let shift = bits.checked_sub(fewer).ok_or_else(|| ResolveError::InvalidArgument {
            index: index + 1,
            message: "precision of the geohash is greater than that of the column".into(),
        })?;
        shifts.push(shift);
    }
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let inner = cells(call, 0)?;
        let mut outer = Vec::with_capacity(shifts.len());
        for (index, shift) in shifts.iter().enumerate() {
            outer.push((cells(call, index + 1)?, *shift));
        }
        Ok(build_flags(call.rows, |row| {
            let Some(cell) = inner(row) else { return false };
            outer.iter().any(|(outer, shift)| outer(row) == Some(cell >> shift))
        }))
    });
    let types = types_of(arguments);
    Ok(resolved("within", Volatility::Immutable, types, Boolean, arguments, kernel))
}

/// A geohash argument's values, whatever integer holds them.
fn cells(call: &Call<'_>, index: usize) -> Result<impl Fn(usize) -> Option<i64> + use<>> {
    let (array, scalar) = call.array(index)?;
    let wide = arrow::compute::cast(&array, &DataType::Int64)?;
    let values = wide.as_primitive::<Int64Type>().clone();
    Ok(move |row: usize| {
        let row = if scalar { 0 } else { row };
        values.is_valid(row).then(|| values.value(row))
    })
}

const FIVE: &[crate::registry::Param] =
    &[Is(Double), Is(Double), Is(Double), Is(Double), Is(Double)];
const SIX: &[crate::registry::Param] =
    &[Is(Double), Is(Double), Is(Double), Is(Double), Is(Double), Is(Double)];

pub(crate) const FUNCTIONS: &[Function] = &[
    special("within", within, "whether a geohash lies in one of the others"),
    pure(
        "within_box",
        &[direct(SIX, Boolean, |call| test(call, within_box))],
        "whether a point lies in a rectangle: (x, y, min_x, min_y, max_x, max_y)",
    ),
    pure(
        "within_radius",
        &[direct(FIVE, Boolean, |call| test(call, within_radius))],
        "whether a point lies in a circle: (x, y, centre_x, centre_y, radius)",
    ),
    pure(
        "geo_within_radius_latlon",
        &[direct(FIVE, Boolean, |call| test(call, within_metres))],
        "whether a point lies within metres of another: (lat, lon, lat, lon, metres)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_belong_to_the_shape() {
        assert!(within_box([2.0, 0.0, 0.0, 0.0, 2.0, 2.0]));
        assert!(!within_box([2.1, 0.0, 0.0, 0.0, 2.0, 2.0]));
        assert!(within_radius([3.0, 4.0, 0.0, 0.0, 5.0]));
        // A degree of the equator is 111,195 m.
        assert!(within_metres([0.0, 0.0, 0.0, 1.0, 111_200.0]));
        assert!(!within_metres([0.0, 0.0, 0.0, 1.0, 111_190.0]));
    }

    #[test]
    fn a_geohash_must_not_be_finer_than_what_lies_in_it() {
        let of = |bits| Argument::column(SqlType::Geohash(bits));
        assert!(within("within", &[of(20), of(15), of(20)]).is_ok());
        assert!(within("within", &[of(15), of(20)]).is_err());
        assert!(within("within", &[Argument::column(SqlType::Int), of(20)]).is_err());
    }
}
