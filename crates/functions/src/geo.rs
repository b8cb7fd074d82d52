//! Tests whether points lie within shapes, and geohashes within geohashes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::Result;
use datafusion_expr::Volatility;
use tidemark_types::SqlType;

use crate::column::{Call, Primitives, build, build_flags, invalid, try_build};
use crate::native::Kernel;
use crate::resolve::{Argument, ResolveError, ResolvedScalar, types_of};
use crate::signature::Param::Is;
use crate::signature::{
    Bound, Function, ResultType, direct, implicit_cost, mismatch, per_call, pure, resolved, special,
};
use SqlType::{Boolean, Double};

/// Metres per degree of latitude.
const METRES_PER_DEGREE: f64 = 111_320.0;

/// Reads the first `N` arguments as DOUBLE columns.
fn numbers<const N: usize>(call: &Call<'_>) -> Result<Vec<Primitives<Float64Type>>> {
    (0..N).map(|index| call.primitive::<Float64Type>(index)).collect()
}

/// Returns a row's numbers; `None` if any of them is null.
fn row_of<const N: usize>(columns: &[Primitives<Float64Type>], row: usize) -> Option<[f64; N]> {
    let mut values = [0.0; N];
    for (value, column) in values.iter_mut().zip(columns) {
        *value = column.get(row)?;
    }
    Some(values)
}

/// Builds a predicate over `N` numbers, which is false if any of them is null.
fn test<const N: usize>(call: &Call<'_>, holds: fn([f64; N]) -> bool) -> Result<ArrayRef> {
    let columns = numbers::<N>(call)?;
    Ok(build_flags(call.rows, |row| row_of(&columns, row).is_some_and(holds)))
}

fn within_box([x, y, min_x, min_y, max_x, max_y]: [f64; 6]) -> bool {
    (min_x..=max_x).contains(&x) && (min_y..=max_y).contains(&y)
}

fn within_radius([x, y, centre_x, centre_y, radius]: [f64; 5]) -> bool {
    (x - centre_x).hypot(y - centre_y) <= radius
}

/// Returns the distance between two points in metres, taking the shorter way around the globe. A
/// degree of longitude is measured at the first point's latitude, which is accurate for nearby
/// points.
fn distance([lat, lon, to_lat, to_lon]: [f64; 4]) -> f64 {
    let east = (to_lon - lon + 540.0).rem_euclid(360.0) - 180.0;
    METRES_PER_DEGREE * (to_lat - lat).hypot(east * lat.to_radians().cos())
}

fn within_metres([lat, lon, centre_lat, centre_lon, metres]: [f64; 5]) -> bool {
    distance([lat, lon, centre_lat, centre_lon]) <= metres
}

/// The limits of latitude and longitude. The two coordinates alternate in the arguments.
const LIMITS: [(&str, f64); 2] = [("latitude", 90.0), ("longitude", 180.0)];

fn outside(index: usize, value: f64) -> Option<String> {
    let (what, limit) = LIMITS[index % 2];
    (value.abs() > limit).then(|| {
        let shown = tidemark_types::number_text::f64_text(value);
        format!("{what} must be between -{limit:.0} and {limit:.0} [value={shown}]")
    })
}

/// Rejects out-of-range constant coordinates. The first four arguments are the coordinates of two
/// points.
fn check_points(arguments: &[Argument]) -> std::result::Result<(), ResolveError> {
    for (index, argument) in arguments.iter().take(4).enumerate() {
        if let Some(message) = argument.double().and_then(|value| outside(index, value)) {
            return Err(ResolveError::InvalidArgument { index, message });
        }
    }
    Ok(())
}

fn check_row(values: &[f64]) -> Result<()> {
    let found = values.iter().take(4).enumerate().find_map(|(index, value)| outside(index, *value));
    found.map_or(Ok(()), |message| Err(invalid(message)))
}

/// Builds the kernel for `geo_distance_meters(lat, lon, lat, lon)`.
fn distance_of(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    check_points(bound.arguments)?;
    Ok(Arc::new(|call: &Call<'_>| {
        let columns = numbers::<4>(call)?;
        try_build::<Float64Type>(call.rows, |row| {
            let Some(values) = row_of::<4>(&columns, row) else { return Ok(None) };
            check_row(&values)?;
            Ok(Some(distance(values)))
        })
    }))
}

/// Builds the kernel for `geo_within_radius_latlon(lat, lon, centre lat, centre lon, metres)`.
fn within_radius_latlon(bound: &Bound<'_>) -> std::result::Result<Kernel, ResolveError> {
    check_points(bound.arguments)?;
    Ok(Arc::new(|call: &Call<'_>| {
        let columns = numbers::<5>(call)?;
        for row in 0..call.rows {
            if let Some(values) = row_of::<5>(&columns, row) {
                check_row(&values)?;
            }
        }
        Ok(build_flags(call.rows, |row| row_of(&columns, row).is_some_and(within_metres)))
    }))
}

/// Returns the cell that contains a point. Bits of longitude and latitude alternate, starting with
/// longitude.
fn geohash_of(lon: f64, lat: f64, bits: u32) -> i64 {
    let mut cell = 0_i64;
    let mut ranges = [(-180.0, 180.0), (-90.0, 90.0)];
    for bit in 0..bits as usize {
        let value = [lon, lat][bit % 2];
        let (low, high) = &mut ranges[bit % 2];
        let middle = f64::midpoint(*low, *high);
        let upper = value >= middle;
        if upper {
            *low = middle;
        } else {
            *high = middle;
        }
        cell = cell << 1 | i64::from(upper);
    }
    cell
}

/// Resolves `make_geohash(lon, lat, bits)`. Out-of-range constants are rejected; other out-of-range
/// values become null.
fn make_geohash(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<ResolvedScalar, ResolveError> {
    let [lon, lat, bits] = arguments else {
        return Err(mismatch(name, std::iter::once(3), arguments));
    };
    let number = |argument: &Argument| implicit_cost(argument.sql_type, Double).is_some();
    if !number(lon) || !number(lat) || !(bits.sql_type.is_integer() || bits.is_null()) {
        return Err(mismatch(name, [0, 3].into_iter(), arguments));
    }
    for (index, argument, limit, what) in [(0, lon, 180.0, "longitude"), (1, lat, 90.0, "latitude")]
    {
        if argument.double().is_some_and(|value| value.abs() > limit) {
            let message = format!("{what} must be in [-{limit:.1}..{limit:.1}] range");
            return Err(ResolveError::InvalidArgument { index, message });
        }
    }
    let Some(bits @ 1..=60) = bits.integer() else {
        let message = "precision must be in [1..60] range".into();
        return Err(ResolveError::InvalidArgument { index: 2, message });
    };
    let returns = SqlType::Geohash(bits as u8);
    let kernel: Kernel = Arc::new(move |call: &Call<'_>| {
        let (lon, lat) = (call.primitive::<Float64Type>(0)?, call.primitive::<Float64Type>(1)?);
        let wide = build::<Int64Type>(call.rows, |row| {
            let (lon, lat) = (lon.get(row)?, lat.get(row)?);
            let inside = lon.abs() <= 180.0 && lat.abs() <= 90.0;
            inside.then(|| geohash_of(lon, lat, bits as u32))
        });
        Ok(arrow::compute::cast(&wide, &returns.arrow_type())?)
    });
    let types = vec![Double, Double, SqlType::Int];
    Ok(resolved("make_geohash", Volatility::Immutable, types, returns, arguments, kernel))
}

/// Resolves `within`, which tests whether the first geohash lies within any of the others. The
/// others must not have more bits than the first.
fn within(name: &str, arguments: &[Argument]) -> std::result::Result<ResolvedScalar, ResolveError> {
    let none = || mismatch(name, [1, 2].into_iter(), arguments);
    let [inner, outer @ ..] = arguments else { return Err(none()) };
    let SqlType::Geohash(bits) = inner.sql_type else { return Err(none()) };
    let mut shifts = Vec::with_capacity(outer.len());
    for (index, argument) in outer.iter().enumerate() {
        let SqlType::Geohash(fewer) = argument.sql_type else { return Err(none()) };
        let shift = bits.checked_sub(fewer).ok_or_else(|| ResolveError::InvalidArgument {
            index: index + 1,
            message: "the geohash is more precise than the column".into(),
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

/// Reads the values of a geohash argument, whatever its integer width.
fn cells(call: &Call<'_>, index: usize) -> Result<impl Fn(usize) -> Option<i64> + use<>> {
    let (array, scalar) = call.array(index)?;
    let wide = arrow::compute::cast(&array, &DataType::Int64)?;
    let values = wide.as_primitive::<Int64Type>().clone();
    Ok(move |row: usize| {
        let row = if scalar { 0 } else { row };
        values.is_valid(row).then(|| values.value(row))
    })
}

const FOUR: &[crate::signature::Param] = &[Is(Double), Is(Double), Is(Double), Is(Double)];
const FIVE: &[crate::signature::Param] =
    &[Is(Double), Is(Double), Is(Double), Is(Double), Is(Double)];
const SIX: &[crate::signature::Param] =
    &[Is(Double), Is(Double), Is(Double), Is(Double), Is(Double), Is(Double)];

pub(crate) const FUNCTIONS: &[Function] = &[
    special("within", within, "whether a geohash is inside one of the others"),
    pure(
        "within_box",
        &[direct(SIX, Boolean, |call| test(call, within_box))],
        "whether a point is inside a rectangle: (x, y, min_x, min_y, max_x, max_y)",
    ),
    pure(
        "within_radius",
        &[direct(FIVE, Boolean, |call| test(call, within_radius))],
        "whether a point is inside a circle: (x, y, centre_x, centre_y, radius)",
    ),
    pure(
        "geo_within_radius_latlon",
        &[per_call(FIVE, ResultType::Is(Boolean), within_radius_latlon)],
        "whether two points are within a distance: (lat, lon, lat, lon, metres)",
    ),
    pure(
        "geo_distance_meters",
        &[per_call(FOUR, ResultType::Is(Double), distance_of)],
        "distance in metres between two nearby points: (lat, lon, lat, lon)",
    ),
    special("make_geohash", make_geohash, "geohash of a point: (lon, lat, bits)"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_the_border_are_within_the_shape() {
        assert!(within_box([2.0, 0.0, 0.0, 0.0, 2.0, 2.0]));
        assert!(!within_box([2.1, 0.0, 0.0, 0.0, 2.0, 2.0]));
        assert!(within_radius([3.0, 4.0, 0.0, 0.0, 5.0]));
        assert!(within_metres([0.0, 0.0, 0.0, 1.0, 111_320.0]));
        assert!(!within_metres([0.0, 0.0, 0.0, 1.0, 111_319.0]));
        // The path across the date line is shorter.
        let over = distance([0.0, 179.0, 0.0, -179.0]);
        assert!((over - 2.0 * METRES_PER_DEGREE).abs() < 1e-6);
    }

    #[test]
    fn points_map_to_geohash_cells() {
        let text = |lon, lat, bits| {
            crate::text::parse::geohash_text(geohash_of(lon, lat, bits), bits as u8)
        };
        assert_eq!(text(13.4, 52.5, 25), "u33d8");
        assert_eq!(text(142.891_241_48, -12.906_041_53, 8), "10111100");
    }

    #[test]
    fn a_geohash_cannot_contain_a_coarser_one() {
        let of = |bits| Argument::column(SqlType::Geohash(bits));
        assert!(within("within", &[of(20), of(15), of(20)]).is_ok());
        assert!(within("within", &[of(15), of(20)]).is_err());
        assert!(within("within", &[Argument::column(SqlType::Int), of(20)]).is_err());
    }
}
