//! `generate_series` in the select list: one row per value. The operator that expands rows receives
//! only the number of values; each value is computed from its index. This module also defines the
//! steps of timestamp series.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, PrimitiveArray};
use arrow_schema::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
    lit,
};
use tidemark_ast::{CallNode, NodeId, Span};
use tidemark_functions::CastMode;
use tidemark_operators::UnnestItem;
use tidemark_types::calendar::{MICROS_PER_DAY, step_months};
use tidemark_types::duration::{fixed_nanos, unit_months};
use tidemark_types::period::Period;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, TimestampUnit};

use crate::binder::expressions::constant;
use crate::binder::state::scope::Scope;
use crate::binder::{Binder, Typed, error};

impl Binder<'_> {
    /// Binds a series in the select list; its bounds may come from columns.
    pub(crate) fn list_series(
        &mut self,
        call: &CallNode,
        scope: &Scope<'_>,
    ) -> EngineResult<Typed> {
        let (low, high, step) = self.series_arguments(call)?;
        let bounds = [self.expression(low, scope)?, self.expression(high, scope)?];
        self.series_between(bounds, step, scope, call.name.span)
    }

    /// Binds the start, end and step arguments of a series.
    pub(crate) fn series_arguments(
        &self,
        call: &CallNode,
    ) -> EngineResult<(NodeId, NodeId, Option<NodeId>)> {
        match self.plain_arguments(call)? {
            [low, high] => Ok((*low, *high, None)),
            [low, high, step] => Ok((*low, *high, Some(*step))),
            _ => {
                let message = "generate_series requires a start, an end and an optional step";
                Err(error::at(ErrorCode::InvalidValue, message, call.name.span))
            }
        }
    }

    /// The values between two bounds, with one row per value.
    pub(crate) fn series_between(
        &mut self,
        bounds: [Typed; 2],
        step: Option<NodeId>,
        scope: &Scope<'_>,
        at: Span,
    ) -> EngineResult<Typed> {
        let has_step = step.is_some();
        let types = bounds.each_ref().map(|bound| bound.sql_type);
        let timed = types.iter().any(|of| of.is_timestamp());
        let by = step.filter(|_| !timed).map(|step| self.expression(step, scope)).transpose()?;
        let (sql_type, values) = if timed {
            let is_nanos = types.contains(&SqlType::TimestampNs);
            let unit = if is_nanos { SqlType::TimestampNs } else { SqlType::Timestamp };
            let step = match step {
                Some(step) => self.series_step(step, unit)?,
                None => Step::Ticks(1),
            };
            (unit, Values::Times { step, is_nanos })
        } else {
            let all = [Some(types[0]), Some(types[1]), by.as_ref().map(|by| by.sql_type)];
            Values::of_numbers(all.into_iter().flatten())
        };
        let by = by.map(|by| self.cast(by, sql_type, CastMode::Explicit, at)).transpose()?;
        let [low, high] = bounds.map(|bound| self.cast(bound, sql_type, CastMode::Explicit, at));
        let (mut low, mut high) = (low?, high?);
        let is_descending = match (&values, &by) {
            (Values::Times { step, .. }, _) => has_step.then(|| step.is_negative()),
            (_, None) => None,
            (_, Some(by)) => by.constant.as_ref().map(is_negative),
        };
        if let (Some(low_value), Some(high_value)) = (&low.constant, &high.constant)
            && is_descending.is_some_and(|falls| is_other_way(low_value, high_value, falls))
        {
            std::mem::swap(&mut low, &mut high);
        }
        let bounds = [low.expr, high.expr].into_iter();
        let bounds = bounds.map(|bound| if timed { cast(bound, DataType::Int64) } else { bound });
        let mut arguments: Vec<Expr> = bounds.collect();
        arguments.extend(by.map(|by| by.expr));
        let length = Series::function(Output::Length, values).call(arguments.clone());
        let number = self.list_element(length, UnnestItem::Count, at)?;
        arguments.push(number);
        let value = Series::function(Output::Value, values).call(arguments);
        let value = if timed { cast(value, sql_type.arrow_type()) } else { value };
        Ok(Typed::computed(value, sql_type))
    }

    /// A decimal series between constant bounds.
    pub(crate) fn decimal_series(
        &mut self,
        bounds: [Typed; 2],
        step: Option<Typed>,
        at: Span,
    ) -> EngineResult<DecimalSeries> {
        let types = bounds.iter().chain(&step).map(|typed| typed.sql_type).collect::<Vec<_>>();
        let (sql_type, values) = Values::of_numbers(types.into_iter());
        let mut constant = |typed: Typed| {
            let cast = self.cast(typed, sql_type, CastMode::Explicit, at)?;
            match cast.constant {
                Some(ScalarValue::Decimal128(Some(value), ..)) => Ok(value),
                _ => Err(error::at(ErrorCode::InvalidValue, "constant bounds expected", at)),
            }
        };
        let [low, high] = bounds.map(&mut constant);
        let (mut low, mut high) = (low?, high?);
        let SqlType::Decimal(digits, scale) = sql_type else {
            return Err(error::at(ErrorCode::Internal, "a decimal series has no scale", at));
        };
        let step = step.map(constant).transpose()?;
        if step.is_some_and(|step| (low > high) != (step < 0)) {
            std::mem::swap(&mut low, &mut high);
        }
        let step = step.unwrap_or(10_i128.pow(scale.into()));
        let length = decimal_steps(low, high, step).map_err(|failure| match failure {
            DataFusionError::External(source) => {
                error::at(ErrorCode::InvalidValue, source.to_string(), at)
            }
            other => error::at(ErrorCode::Internal, other.to_string(), at),
        })?;
        let literal = |value| lit(ScalarValue::Decimal128(Some(value), digits, scale as i8));
        Ok(DecimalSeries { length, sql_type, values, bounds: [low, high, step].map(literal) })
    }

    /// The step of a timestamp series: a number of timestamp units, or a period.
    pub(crate) fn series_step(&mut self, id: NodeId, unit: SqlType) -> EngineResult<Step> {
        let position = self.tree.span(id);
        let hour = ScalarValue::Utf8View(Some("1h".to_owned()));
        let Some(value) = self.demanded(id, SqlType::Varchar, hour)?.constant else {
            return Err(error::at(ErrorCode::InvalidValue, "constant step expected", position));
        };
        if let Some(micros) = constant::as_i64(&value) {
            return Ok(Step::Ticks(micros));
        }
        let text = match value {
            ScalarValue::IntervalMonthDayNano(Some(step)) => Period::from(step).text(),
            value => constant::as_text(&value).unwrap_or_default().to_owned(),
        };
        match Step::parse(&text, unit).or_else(|| Step::of_length(&text, unit)) {
            Some(Step::Ticks(0) | Step::Months(0)) => {
                Err(error::at(ErrorCode::InvalidValue, "step cannot be zero", position))
            }
            Some(period) => Ok(period),
            None => {
                let message = format!("invalid period: {text}");
                Err(error::at(ErrorCode::InvalidValue, message, position))
            }
        }
    }
}

/// A decimal series in FROM.
pub(crate) struct DecimalSeries {
    pub(crate) length: i64,
    pub(crate) sql_type: SqlType,
    values: Values,
    /// Start, end and step.
    bounds: [Expr; 3],
}

impl DecimalSeries {
    /// The value at this index, counted from 0.
    pub(crate) fn value(&self, number: Expr) -> Expr {
        let arguments = self.bounds.iter().cloned().chain([number]).collect();
        Series::function(Output::Value, self.values).call(arguments)
    }
}

/// Whether a constant step is negative.
pub(crate) fn is_negative(step: &ScalarValue) -> bool {
    ScalarValue::new_zero(&step.data_type()).is_ok_and(|zero| *step < zero)
}

/// Whether the step points away from the end bound. If so, constant bounds are swapped. If the
/// bounds come from rows, the series is empty, as in `PostgreSQL`.
pub(crate) fn is_other_way(low: &ScalarValue, high: &ScalarValue, is_descending: bool) -> bool {
    if is_descending { low < high } else { low > high }
}

/// Type of the values in a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Values {
    Longs,
    Doubles,
    /// Decimals with this number of fractional digits.
    Decimals(u8),
    Times {
        step: Step,
        is_nanos: bool,
    },
}

/// The result computed for a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Output {
    /// The number of values, computed from `(low, high[, step])`.
    Length,
    /// One value, computed from `(low, high[, step], index from 0)`.
    Value,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Series {
    output: Output,
    values: Values,
    signature: Signature,
}

impl Series {
    fn function(output: Output, values: Values) -> ScalarUDF {
        let signature = Signature::variadic_any(Volatility::Immutable);
        ScalarUDF::from(Self { output, values, signature })
    }
}

impl ScalarUDFImpl for Series {
    fn name(&self) -> &'static str {
        match self.output {
            Output::Length => "series_length",
            Output::Value => "series_value",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match (self.output, self.values) {
            (Output::Value, Values::Doubles) => DataType::Float64,
            (Output::Value, Values::Decimals(scale)) => decimal(scale).arrow_type(),
            _ => DataType::Int64,
        })
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let arrays = arguments.args.iter().map(|argument| argument.to_array(rows));
        let mut bounds = arrays.collect::<Result<Vec<ArrayRef>>>()?;
        let numbers = (self.output == Output::Value).then(|| bounds.pop()).flatten();
        let numbers = numbers.as_ref().map(AsArray::as_primitive::<Int64Type>);
        let known = |row: &usize| {
            bounds.iter().all(|bound| bound.is_valid(*row))
                && numbers.is_none_or(|numbers| numbers.is_valid(*row))
        };
        let each = (0..rows).map(|row| Some(row).filter(known));
        let number = |row: usize| numbers.map_or(0, |numbers| numbers.value(row));
        let array: ArrayRef = match (self.values, self.output) {
            (Values::Doubles, output) => {
                let bounds = Bounds::<Float64Type>::new(&bounds);
                if output == Output::Value {
                    let value = |row| bounds.low(row) + bounds.step(row, 1.0) * number(row) as f64;
                    Arc::new(each.map(|row| row.map(value)).collect::<Float64Array>())
                } else {
                    let length = |row| {
                        double_steps(bounds.low(row), bounds.high(row), bounds.step(row, 1.0))
                    };
                    let lengths = each.map(|row| row.map(length).transpose());
                    Arc::new(lengths.collect::<Result<Int64Array>>()?)
                }
            }
            (Values::Decimals(scale), output) => {
                let bounds = Bounds::<Decimal128Type>::new(&bounds);
                let unit = 10_i128.pow(scale.into());
                if output == Output::Value {
                    let value = |row| {
                        let step = bounds.step(row, unit).checked_mul(number(row).into());
                        step.and_then(|step| bounds.low(row).checked_add(step))
                            .ok_or_else(|| failed("decimal overflow in generate_series"))
                    };
                    let values = each.map(|row| row.map(value).transpose());
                    let values = values.collect::<Result<PrimitiveArray<Decimal128Type>>>()?;
                    Arc::new(values.with_precision_and_scale(DECIMAL_DIGITS, scale as i8)?)
                } else {
                    let length = |row| {
                        decimal_steps(bounds.low(row), bounds.high(row), bounds.step(row, unit))
                    };
                    let lengths = each.map(|row| row.map(length).transpose());
                    Arc::new(lengths.collect::<Result<Int64Array>>()?)
                }
            }
            (values, output) => {
                let bounds = Bounds::<Int64Type>::new(&bounds);
                let cell = |row| {
                    let (low, high) = (bounds.low(row), bounds.high(row));
                    let (step, unit) = values.step(bounds.step(row, 1));
                    match output {
                        Output::Length => step.count(low, high, unit).map(Some),
                        Output::Value => Ok(step.after(low, number(row), unit)),
                    }
                };
                let cells = each.map(|row| row.map_or(Ok(None), cell));
                Arc::new(cells.collect::<Result<Int64Array>>()?)
            }
        };
        Ok(ColumnarValue::Array(array))
    }
}

impl Values {
    /// The step, and the timestamp type to which it applies. A plain number is a number of
    /// microseconds.
    fn step(self, number: i64) -> (Step, SqlType) {
        match self {
            Self::Times { step, is_nanos: true } => (step, SqlType::TimestampNs),
            Self::Times { step, is_nanos: false } => (step, SqlType::Timestamp),
            Self::Longs | Self::Doubles | Self::Decimals(_) => {
                (Step::Ticks(number), SqlType::Timestamp)
            }
        }
    }

    /// The type of a numeric series, and the kind of its values.
    fn of_numbers(types: impl Iterator<Item = SqlType> + Clone) -> (SqlType, Self) {
        let scale = |of| match of {
            SqlType::Decimal(_, scale) => Some(scale),
            _ => None,
        };
        if types.clone().any(SqlType::is_floating) {
            return (SqlType::Double, Self::Doubles);
        }
        match types.filter_map(scale).max() {
            Some(scale) => (decimal(scale), Self::Decimals(scale)),
            None => (SqlType::Long, Self::Longs),
        }
    }
}

/// The bounds of many series, one row per series.
struct Bounds<'a, T: ArrowPrimitiveType> {
    low: &'a PrimitiveArray<T>,
    high: &'a PrimitiveArray<T>,
    step: Option<&'a PrimitiveArray<T>>,
}

impl<'a, T: ArrowPrimitiveType> Bounds<'a, T> {
    fn new(arrays: &'a [ArrayRef]) -> Self {
        let step = arrays.get(2).map(AsArray::as_primitive);
        Self { low: arrays[0].as_primitive(), high: arrays[1].as_primitive(), step }
    }

    fn low(&self, row: usize) -> T::Native {
        self.low.value(row)
    }

    fn high(&self, row: usize) -> T::Native {
        self.high.value(row)
    }

    fn step(&self, row: usize, otherwise: T::Native) -> T::Native {
        self.step.map_or(otherwise, |step| step.value(row))
    }
}

/// A DOUBLE series must have fewer steps than this: below 2^53, consecutive integers are distinct
/// as doubles.
pub(crate) const MAX_STEPS: f64 = 9_007_199_254_740_992.0;

/// Precision of a decimal series.
const DECIMAL_DIGITS: u8 = 38;

fn decimal(scale: u8) -> SqlType {
    SqlType::Decimal(DECIMAL_DIGITS, scale)
}

/// Counts the decimals from `low` to `high`.
fn decimal_steps(low: i128, high: i128, step: i128) -> Result<i64> {
    if step == 0 {
        return Err(failed("step cannot be zero"));
    }
    let distance = high.checked_sub(low).and_then(|distance| distance.checked_div(step));
    let distance = distance.ok_or_else(|| failed("decimal overflow in generate_series"))?;
    let is_empty = if step > 0 { low > high } else { low < high };
    Ok(if is_empty { 0 } else { i64::try_from(distance).unwrap_or(i64::MAX).saturating_add(1) })
}

/// Counts the doubles from `low` to `high`.
fn double_steps(low: f64, high: f64, step: f64) -> Result<i64> {
    let steps = ((high - low) / step + 1e-9).floor();
    if step == 0.0 || steps.is_nan() || steps >= MAX_STEPS {
        return Err(failed("generate_series is too long: its step is too small"));
    }
    Ok(if steps < 0.0 { 0 } else { steps as i64 + 1 })
}

fn failed(message: &str) -> DataFusionError {
    DataFusionError::External(Box::new(EngineError::new(ErrorCode::InvalidValue, message)))
}

/// An upper bound on the number of months in the calendar.
const MAX_MONTHS: i64 = 10_000_000;

/// The step of a timestamp series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// A number of timestamp units.
    Ticks(i64),
    /// A number of calendar months.
    Months(i64),
}

impl Step {
    fn parse(text: &str, of: SqlType) -> Option<Self> {
        let unit = text.chars().next_back()?;
        let count: i64 = match &text[..text.len() - unit.len_utf8()] {
            "" => 1,
            "-" => -1,
            digits => digits.parse().ok()?,
        };
        if let Some(months) = unit_months(unit) {
            return count.checked_mul(months).map(Self::Months);
        }
        let nanos = fixed_nanos(unit)?;
        let per_tick = if of == SqlType::TimestampNs { 1 } else { 1_000 };
        let ticks = i128::from(count) * i128::from(nanos) / per_tick;
        i64::try_from(ticks).ok().map(Self::Ticks)
    }

    /// Parses `1 month` or `6 hours`: months or a fixed length, but not both.
    fn of_length(text: &str, of: SqlType) -> Option<Self> {
        let Period { months, days, micros } = Period::parse(text)?;
        if months != 0 {
            return (days == 0 && micros == 0).then_some(Self::Months(months.into()));
        }
        let micros = i64::from(days).checked_mul(MICROS_PER_DAY)?.checked_add(micros)?;
        let ticks = if of == SqlType::TimestampNs { 1_000 } else { 1 };
        micros.checked_mul(ticks).map(Self::Ticks)
    }

    /// Returns the number of values in a series.
    fn count(self, low: i64, high: i64, of: SqlType) -> Result<i64> {
        let is_within = |at: i64| if self.is_negative() { at >= high } else { at <= high };
        match self {
            Self::Ticks(0) | Self::Months(0) => Err(failed("step cannot be zero")),
            _ if !is_within(low) => Ok(0),
            Self::Ticks(ticks) => {
                let steps = (i128::from(high) - i128::from(low)) / i128::from(ticks);
                Ok(i64::try_from(steps + 1).unwrap_or(i64::MAX))
            }
            Self::Months(_) => {
                let (mut min, mut max) = (0, MAX_MONTHS);
                while min < max {
                    let middle = min + (max - min).div_euclid(2);
                    if self.after(low, middle, of).is_some_and(is_within) {
                        min = middle + 1;
                    } else {
                        max = middle;
                    }
                }
                Ok(min)
            }
        }
    }

    pub(crate) fn is_negative(self) -> bool {
        match self {
            Self::Ticks(count) | Self::Months(count) => count < 0,
        }
    }

    /// The timestamp after `number` steps; `None` if out of range.
    pub(crate) fn after(self, from: i64, number: i64, of: SqlType) -> Option<i64> {
        match self {
            Self::Ticks(ticks) => from.checked_add(ticks.checked_mul(number)?),
            Self::Months(months) => {
                let is_nanos = of == SqlType::TimestampNs;
                let unit = if is_nanos { TimestampUnit::Nanos } else { TimestampUnit::Micros };
                step_months(from, months, number, unit.per_day())
            }
        }
    }
}
