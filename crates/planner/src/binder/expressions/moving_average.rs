//! Exponential moving averages: `avg(x, 'alpha' | 'period' | unit, n [, volume]) OVER (…)`. A row
//! with a null value repeats the previous average.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::WindowUDF;
use tidemark_ast::{CallNode, Span};
use tidemark_functions::CastMode;
use tidemark_types::{EngineResult, ErrorCode, SqlType};

use crate::binder::expressions::constant;
use crate::binder::expressions::partition_kernel::{PartitionKernel, over_partitions};
use crate::binder::state::named_windows::Window;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

/// A row's weight relative to the average so far. Floats are stored as bits, so the enum can be
/// compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Smoothing {
    /// The same weight for each row.
    Constant(u64),
    /// A weight that grows with the time since the previous row, with this time constant.
    Decay(u64),
}

impl Smoothing {
    fn weight(self, elapsed: i64) -> f64 {
        match self {
            Self::Constant(share) => f64::from_bits(share),
            Self::Decay(constant) => -(-(elapsed as f64) / f64::from_bits(constant)).exp_m1(),
        }
    }
}

impl PartitionKernel for Smoothing {
    /// A value and a volume as DOUBLE, and the timestamp as LONG.
    const ARGUMENTS: usize = 3;

    fn name(&self) -> &'static str {
        "moving_average"
    }

    fn returns(&self) -> DataType {
        DataType::Float64
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let values = arguments[0].as_primitive::<Float64Type>();
        let volumes = arguments[1].as_primitive::<Float64Type>();
        let timestamps = arguments[2].as_primitive::<Int64Type>();
        let mut averages = Vec::with_capacity(rows);
        // Weighted sum, sum of weights, and timestamp of the last row that changed them.
        let mut state: Option<(f64, f64, i64)> = None;
        for row in 0..rows {
            if values.is_valid(row) && volumes.is_valid(row) && volumes.value(row) > 0.0 {
                let (volume, at) = (volumes.value(row), timestamps.value(row));
                let weighted = values.value(row) * volume;
                state = Some(match state {
                    None => (weighted, volume, at),
                    Some((sum, weight, before)) => {
                        let share = self.weight(at.saturating_sub(before));
                        let mixed = |new: f64, old: f64| share * new + (1.0 - share) * old;
                        (mixed(weighted, sum), mixed(volume, weight), at)
                    }
                });
            }
            let average = state.map(|(sum, weight, _)| sum / weight);
            averages.push(average.filter(|average| average.is_finite()));
        }
        Ok(Arc::new(Float64Array::from(averages)))
    }
}

impl Binder<'_> {
    /// Returns the moving-average function and its three arguments.
    pub(crate) fn moving_average(
        &mut self,
        call: &CallNode,
        over: &Window,
        scope: &Scope<'_>,
    ) -> EngineResult<(Arc<WindowUDF>, Vec<Typed>)> {
        let at = call.name.span;
        let mut arguments = self.expressions(&call.arguments, scope)?.into_iter();
        let (value, kind, number) = (arguments.next(), arguments.next(), arguments.next());
        let (Some(value), Some(_), Some(_)) = (value, kind, number) else {
            return Err(refused("expected 3 or 4 arguments", at));
        };
        let period = ScalarValue::Utf8View(Some("period".to_owned()));
        let kind = self.demanded(call.arguments[1], SqlType::Varchar, period)?;
        let half = ScalarValue::Float64(Some(0.5));
        let number = self.demanded(call.arguments[2], SqlType::Double, half)?;
        let value = self.cast(value, SqlType::Double, CastMode::Implicit, at)?;
        let volume = match arguments.next() {
            Some(volume) => self.cast(volume, SqlType::Double, CastMode::Implicit, at)?,
            None => Typed::literal(ScalarValue::Float64(Some(1.0)), SqlType::Double),
        };
        let timestamp = match over.order_by.first() {
            Some(first) => self.expression(first.expression, scope)?,
            None => return Err(refused("avg with smoothing requires ORDER BY", at)),
        };
        let kind = kind.constant.as_ref().and_then(constant::as_text).unwrap_or_default();
        let number = self.cast(number, SqlType::Double, CastMode::Implicit, at)?;
        let Some(ScalarValue::Float64(Some(number))) = number.constant else {
            return Err(refused("constant parameter expected", at));
        };
        let smoothing = smoothing(kind, number, timestamp.sql_type, at)?;
        let timestamp = match smoothing {
            Smoothing::Constant(_) => Typed::literal(ScalarValue::Int64(Some(0)), SqlType::Long),
            Smoothing::Decay(_) => self.cast(timestamp, SqlType::Long, CastMode::Explicit, at)?,
        };
        Ok((over_partitions(smoothing), vec![value, volume, timestamp]))
    }
}

fn smoothing(kind: &str, number: f64, unit: SqlType, at: Span) -> EngineResult<Smoothing> {
    if number <= 0.0 {
        return Err(refused("parameter value must be positive", at));
    }
    match kind.to_ascii_lowercase().as_str() {
        "alpha" if number > 1.0 => Err(refused("alpha must be between 0 and 1", at)),
        "alpha" => Ok(Smoothing::Constant(number.to_bits())),
        "period" => Ok(Smoothing::Constant((2.0 / (number + 1.0)).to_bits())),
        word => {
            let nanos =
                crate::binder::expressions::window_frame::time_word(word).ok_or_else(|| {
                    refused("invalid kind: expected 'alpha', 'period' or a time unit", at)
                })?;
            let per_unit = match unit {
                SqlType::Timestamp => 1_000.0,
                SqlType::TimestampNs => 1.0,
                _ => return Err(refused("a time unit requires ORDER BY on a timestamp", at)),
            };
            Ok(Smoothing::Decay((number * nanos as f64 / per_unit).to_bits()))
        }
    }
}

fn refused(message: &str, at: Span) -> tidemark_types::EngineError {
    error::at(ErrorCode::InvalidValue, message, at)
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    fn averages(smoothing: Smoothing, rows: &[(Option<f64>, f64, i64)]) -> Vec<Option<f64>> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>()),
            Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Float64Array>()),
            Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>()),
        ];
        let result = smoothing.evaluate(&columns, rows.len()).unwrap();
        result.as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn null_values_repeat_the_previous_moving_average() {
        let half = Smoothing::Constant(0.5_f64.to_bits());
        let rows = [(None, 1.0, 0), (Some(1.0), 1.0, 1), (None, 1.0, 2), (Some(4.0), 1.0, 3)];
        assert_eq!(averages(half, &rows), [None, Some(1.0), Some(1.0), Some(2.5)]);
    }

    #[test]
    fn moving_averages_are_weighted_by_volume_and_decay_with_time() {
        let half = Smoothing::Constant(0.5_f64.to_bits());
        let weighed = averages(half, &[(Some(1.0), 1.0, 0), (Some(2.0), 2.0, 1)]);
        assert_eq!(weighed, [Some(1.0), Some(2.5 / 1.5)]);
        let decay = Smoothing::Decay(10.0_f64.to_bits());
        let faded = averages(decay, &[(Some(0.0), 1.0, 0), (Some(1.0), 1.0, 10)]);
        assert_eq!(faded[1], Some(-(-1.0_f64).exp_m1()));
    }
}
