//! Aggregates over rows in time order: the length of a path, and whether values are ascending.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::Accumulator;
use tidemark_types::SqlType;

use super::fold::{Fold, udaf};
use super::native::NativeAggregate;
use crate::resolve::ResolvedAggregate;

/// Radius of the earth in kilometres.
const EARTH_RADIUS: f64 = 6_371.088;

/// Resolves `haversine_dist_deg(lat, lon, timestamp)`.
pub(super) fn length(types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [lat, lon, timestamp] = types else { return None };
    let numbers = super::shape::reads_as_double(*lat) && super::shape::reads_as_double(*lon);
    if !numbers || !timestamp.is_timestamp() {
        return None;
    }
    let udaf = udaf::<Path>("haversine_dist_deg", &timestamp.name(), SqlType::Double);
    let types = vec![SqlType::Double, SqlType::Double, *timestamp];
    Some(super::shape::ordered(udaf, types, SqlType::Double))
}

/// A path through consecutive points on a sphere.
#[derive(Debug, Default, Clone)]
struct Path {
    count: f64,
    length: f64,
    first: [f64; 2],
    last: [f64; 2],
}

/// Returns the great-circle distance between two points in kilometres.
fn distance([lat, lon]: [f64; 2], [to_lat, to_lon]: [f64; 2]) -> f64 {
    let half_chord = |from: f64, to: f64| ((to - from).to_radians() / 2.0).sin().powi(2);
    let across = lat.to_radians().cos() * to_lat.to_radians().cos();
    let fraction = half_chord(lat, to_lat) + across * half_chord(lon, to_lon);
    2.0 * EARTH_RADIUS * fraction.sqrt().min(1.0).asin()
}

impl Fold for Path {
    const COLUMNS: usize = 3;
    const STATE: usize = 6;

    fn add(&mut self, row: &[f64]) {
        let point = [row[0], row[1]];
        self.merge(&Self { count: 1.0, length: 0.0, first: point, last: point });
    }

    fn merge(&mut self, later: &Self) {
        if later.count == 0.0 {
            return;
        }
        if self.count == 0.0 {
            self.first = later.first;
        } else {
            self.length += distance(self.last, later.first);
        }
        self.length += later.length;
        self.count += later.count;
        self.last = later.last;
    }

    fn to_state(&self) -> Vec<f64> {
        let [[a, b], [c, d]] = [self.first, self.last];
        vec![self.count, self.length, a, b, c, d]
    }

    fn from_state(state: &[f64]) -> Self {
        Self {
            count: state[0],
            length: state[1],
            first: [state[2], state[3]],
            last: [state[4], state[5]],
        }
    }

    fn finish(&self) -> Option<f64> {
        (self.count > 0.0).then_some(self.length)
    }
}

/// Resolves `isOrdered(value)`.
pub(super) fn is_ordered(types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    let is_time = only.is_timestamp() || *only == SqlType::Date;
    if !is_time && !only.is_integer() && !only.is_floating() {
        return None;
    }
    let udaf = NativeAggregate {
        name: "isOrdered",
        variant: only.name(),
        returns: SqlType::Boolean,
        state: vec![DataType::Boolean, DataType::Int64, DataType::Int64],
        one: Arc::new(|| Box::new(Ascent::default())),
        many: None,
    }
    .udaf();
    Some(super::shape::ordered(udaf, vec![*only], SqlType::Boolean))
}

/// Whether the values are ascending, along with the first and last value.
#[derive(Debug, Default)]
struct Ascent {
    broken: bool,
    ends: Option<(i64, i64)>,
}

impl Ascent {
    fn add(&mut self, first: i64, last: i64) {
        self.broken |= self.ends.is_some_and(|(_, before)| before > first);
        self.ends = Some((self.ends.map_or(first, |(start, _)| start), last));
    }
}

/// Converts values to integers that sort in the same order.
fn keys(values: &ArrayRef) -> Result<Int64Array> {
    if !values.data_type().is_floating() {
        return Ok(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone());
    }
    let doubles = cast(values, &DataType::Float64)?;
    let key = |value: f64| {
        let bits = (value + 0.0).to_bits() as i64;
        if bits < 0 { bits ^ i64::MAX } else { bits }
    };
    Ok(doubles.as_primitive::<Float64Type>().unary(key))
}

impl Accumulator for Ascent {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        keys(&values[0])?.iter().flatten().for_each(|key| self.add(key, key));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Boolean(Some(!self.broken)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (first, last) = self.ends.unzip();
        Ok(vec![self.broken.into(), ScalarValue::Int64(first), ScalarValue::Int64(last)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let broken = states[0].as_boolean();
        let (first, last) = (states[1].as_primitive::<Int64Type>(), states[2].as_primitive());
        let last: &Int64Array = last;
        for row in 0..broken.len() {
            self.broken |= broken.value(row);
            if first.is_valid(row) {
                self.add(first.value(row), last.value(row));
            }
        }
        Ok(())
    }
}
