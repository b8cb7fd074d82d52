//! Window functions over a partition in time order. `interpolate(x)` fills nulls linearly between
//! the neighbouring values. `lttb(x, n)` returns whether a row is among the n rows that best
//! preserve the curve's shape (largest triangle three buckets).

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array};
use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::WindowUDF;
use tidemark_ast::CallNode;
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType, account};

use crate::binder::expressions::constant;
use crate::binder::expressions::partition_kernel::{PartitionKernel, over_partitions};
use crate::binder::state::named_windows::Window;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

/// Number of rows between cancellation checks.
const ROWS_BETWEEN_CHECKS: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Interpolate,
    /// Maximum number of rows to select.
    Lttb(usize),
}

impl PartitionKernel for Kind {
    /// The value as DOUBLE and the timestamp as LONG.
    const ARGUMENTS: usize = 2;

    fn name(&self) -> &'static str {
        match self {
            Self::Interpolate => "interpolate",
            Self::Lttb(_) => "lttb",
        }
    }

    fn returns(&self) -> DataType {
        match self {
            Self::Interpolate => DataType::Float64,
            Self::Lttb(_) => DataType::Boolean,
        }
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values = arguments[0].as_primitive::<Float64Type>();
        let timestamps = arguments[1].as_primitive::<Int64Type>();
        let mut points = Vec::with_capacity(rows - values.null_count());
        for row in 0..rows {
            check_stop_at(row)?;
            if values.is_valid(row) && timestamps.is_valid(row) {
                points.push(Point { row, at: timestamps.value(row), value: values.value(row) });
            }
        }
        match *self {
            Self::Interpolate => {
                let at = |row| timestamps.is_valid(row).then(|| timestamps.value(row));
                Ok(Arc::new(interpolated(&points, rows, at)?))
            }
            Self::Lttb(max) => {
                let mut retained = vec![false; rows];
                for index in largest_triangles(&points, max)? {
                    retained[points[index].row] = true;
                }
                Ok(Arc::new(BooleanArray::from(retained)))
            }
        }
    }
}

/// A row with a value.
#[derive(Debug, Clone, Copy)]
struct Point {
    row: usize,
    at: i64,
    value: f64,
}

fn check_stop_at(row: usize) -> Result<()> {
    if !row.is_multiple_of(ROWS_BETWEEN_CHECKS) {
        return Ok(());
    }
    account::check().map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Fills nulls linearly between two values. Rows before the first value and after the last one stay
/// null.
fn interpolated(
    points: &[Point],
    rows: usize,
    at: impl Fn(usize) -> Option<i64>,
) -> Result<Float64Array> {
    let mut filled: Vec<Option<f64>> = vec![None; rows];
    for pair in points.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let width = high.at as f64 - low.at as f64;
        let between = low.row + 1..high.row;
        for (row, cell) in between.clone().zip(&mut filled[between]) {
            check_stop_at(row)?;
            let fraction = at(row).map(|at| (at as f64 - low.at as f64) / width);
            let value = fraction.map(|fraction| low.value + (high.value - low.value) * fraction);
            *cell = value.filter(|value| value.is_finite());
        }
    }
    for point in points {
        filled[point.row] = Some(point.value);
    }
    Ok(Float64Array::from(filled))
}

/// Indices of the points that best preserve the shape: the first, the last, and one from each equal
/// bucket between them. The point selected from a bucket forms the largest triangle with the
/// previously selected point and the mean of the next bucket.
fn largest_triangles(points: &[Point], max: usize) -> Result<Vec<usize>> {
    let count = points.len();
    if count <= max || max < 3 {
        let mut retained: Vec<usize> = (0..count.min(max)).collect();
        if let (2, Some(last)) = (max, retained.last_mut()) {
            *last = count - 1;
        }
        return Ok(retained);
    }
    let buckets = max - 2;
    let start = |bucket: usize| 1 + bucket * (count - 2) / buckets;
    let mut chosen = vec![0];
    let mut before = points[0];
    for bucket in 0..buckets {
        let next = if bucket + 1 < buckets {
            start(bucket + 1)..start(bucket + 2)
        } else {
            count - 1..count
        };
        let width = next.len() as f64;
        let origin = before.at as f64;
        let time = |point: &Point| point.at as f64 - origin;
        let mean_time = points[next.clone()].iter().map(time).sum::<f64>() / width;
        let mean = points[next].iter().map(|point| point.value).sum::<f64>() / width;
        let mut best = (start(bucket), -1.0);
        let own = start(bucket)..start(bucket + 1);
        for (index, point) in own.clone().zip(&points[own]) {
            check_stop_at(index)?;
            let area =
                mean_time * (point.value - before.value) - time(point) * (mean - before.value);
            if area.abs() > best.1 {
                best = (index, area.abs());
            }
        }
        chosen.push(best.0);
        before = points[best.0];
    }
    chosen.push(count - 1);
    Ok(chosen)
}

/// Whether the name is `interpolate` or `lttb`.
pub(crate) fn is_partition_function(name: &str) -> bool {
    name.eq_ignore_ascii_case("interpolate") || name.eq_ignore_ascii_case("lttb")
}

impl Binder<'_> {
    /// Returns the function with its arguments, and its result type.
    pub(crate) fn partition_function(
        &mut self,
        call: &CallNode,
        over: &Window,
        scope: &Scope<'_>,
    ) -> EngineResult<(Arc<WindowUDF>, Vec<Typed>, SqlType)> {
        let at = call.name.span;
        let refused = |message: String| Err(error::at(ErrorCode::InvalidValue, message, at));
        let name = call.name.text.to_ascii_lowercase();
        let [time] = &*over.order_by else {
            return refused(format!("{name} requires ORDER BY on the timestamp alone"));
        };
        let arguments = self.expressions(&call.arguments, scope)?;
        let (kind, returns) = match (name.as_str(), arguments.as_slice()) {
            ("interpolate", [_]) => (Kind::Interpolate, SqlType::Double),
            ("lttb", [_, _]) => {
                let max = ScalarValue::Int64(Some(1));
                let max = self.demanded(call.arguments[1], SqlType::Long, max)?;
                let max = max.constant.as_ref().and_then(constant::as_i64);
                let Some(Ok(max)) = max.map(usize::try_from) else {
                    return refused(
                        "lttb: the number of rows must be a non-negative constant".to_owned(),
                    );
                };
                (Kind::Lttb(max), SqlType::Boolean)
            }
            ("interpolate", _) => return refused("interpolate requires one value".to_owned()),
            _ => return refused("lttb requires a value and a number of rows".to_owned()),
        };
        let Some(value) = arguments.into_iter().next() else {
            return refused(format!("function `{name}` requires arguments"));
        };
        let value = self.cast(value, SqlType::Double, CastMode::Implicit, at)?;
        let time = self.expression(time.expression, scope)?;
        let time = self.cast(time, SqlType::Long, CastMode::Explicit, at)?;
        Ok((over_partitions(kind), vec![value, time], returns))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn evaluated(kind: Kind, rows: &[(Option<f64>, i64)]) -> ArrayRef {
        let values = rows.iter().map(|row| row.0).collect::<Float64Array>();
        let timestamps = rows.iter().map(|row| Some(row.1)).collect::<Int64Array>();
        let columns: [ArrayRef; 2] = [Arc::new(values), Arc::new(timestamps)];
        kind.evaluate(&columns, rows.len()).unwrap()
    }

    #[test]
    fn nulls_are_interpolated_linearly() {
        let rows =
            [(None, 0), (Some(1.0), 10), (None, 15), (None, 20), (Some(4.0), 40), (None, 50)];
        let filled = evaluated(Kind::Interpolate, &rows);
        let filled: Vec<Option<f64>> = filled.as_primitive::<Float64Type>().iter().collect();
        assert_eq!(filled, [None, Some(1.0), Some(1.5), Some(2.0), Some(4.0), None]);
    }

    /// For curves of up to 40 points and every number of selected rows, both ends and the peak are
    /// selected.
    #[test]
    fn lttb_downsampling_keeps_both_ends_and_the_peak() {
        for length in 0..40_usize {
            for max in 0..45 {
                let peak = length / 2;
                let value = |row: usize| if row == peak { 100.0 } else { (row % 3) as f64 };
                let rows: Vec<_> = (0..length).map(|row| (Some(value(row)), row as i64)).collect();
                let retained = evaluated(Kind::Lttb(max), &rows);
                let retained: Vec<bool> = retained.as_boolean().iter().flatten().collect();
                let number = retained.iter().filter(|retained| **retained).count();
                assert_eq!(number, length.min(max), "{length} {max}");
                if max >= 3 && length > 0 {
                    assert!(
                        retained[0] && retained[length - 1] && retained[peak],
                        "{length} {max}"
                    );
                }
            }
        }
    }
}
