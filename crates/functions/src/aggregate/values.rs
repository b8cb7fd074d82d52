//! Aggregates that store every value: percentiles, sparklines and the mode.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use hashbrown::HashMap;
use tidemark_types::{SqlType, account};

use super::native::NativeAggregate;
use super::sorted::{self, Choose};
use crate::column::{invalid, stopped};
use crate::resolve::{Argument, ResolveError, ResolvedAggregate, types_of};

/// Computes the result from all values in a group, in row order.
type Finish = Arc<dyn Fn(&mut Vec<f64>) -> Result<ScalarValue> + Send + Sync>;

/// Builds an aggregate that collects numbers; `variant` names its constants.
fn collected(
    name: &'static str,
    variant: String,
    returns: SqlType,
    finish: Finish,
) -> Arc<AggregateUDF> {
    NativeAggregate {
        name,
        variant,
        returns,
        state: vec![list_of(DataType::Float64)],
        one: Arc::new(move || {
            Box::new(Collected { values: Vec::new(), finish: Arc::clone(&finish) })
        }),
        many: None,
    }
    .udaf()
}

/// Returns the argument types. The first argument is a DOUBLE; each constant has its own type, or
/// DOUBLE if it is untyped.
fn value_and_constants(arguments: &[Argument]) -> Vec<SqlType> {
    let mut types = types_of(arguments);
    types[0] = SqlType::Double;
    for open in types.iter_mut().filter(|of| **of == SqlType::Null) {
        *open = SqlType::Double;
    }
    types
}

/// Resolves `median(x)`, `percentile(x, p)`, `percentile_disc(x, p)` and their approximate variants
/// `approx_median(x [, digits])` and `approx_percentile(x, p [, digits])`.
pub(super) fn percentile(
    name: &str,
    arguments: &[Argument],
) -> std::result::Result<Option<ResolvedAggregate>, ResolveError> {
    let is_median = name.ends_with("median");
    let is_approximate = name.starts_with("approx");
    let constants = if is_median { 1 } else { 2 };
    let is_discrete = name == "percentile_disc";
    let has_more = (is_approximate || is_discrete) && arguments.len() == constants + 1;
    let is_read = is_discrete || super::shape::reads_as_double(arguments[0].sql_type);
    if !(arguments.len() == constants || has_more) || !is_read {
        return Ok(None);
    }
    let fraction = if is_median { Some(0.5) } else { arguments[1].double() };
    let Some(fraction) = fraction else {
        let message = "constant percentile expected".to_owned();
        return Err(ResolveError::InvalidArgument { index: 1, message });
    };
    if !(0.0..=1.0).contains(&fraction) {
        let message = "percentile must be between 0.0 and 1.0".to_owned();
        return Err(ResolveError::Invalid { message });
    }
    if is_discrete {
        return Ok(discrete(fraction, arguments));
    }
    let digits = match arguments.get(constants) {
        None => 1,
        Some(digits) => digits.integer().unwrap_or(-1),
    };
    if !(0..=5).contains(&digits) {
        let message = "precision must be between 0 and 5".to_owned();
        return Err(ResolveError::InvalidArgument { index: constants, message });
    }
    let is_whole = arguments[0].sql_type.is_integer();
    let (name, finish): (&'static str, Finish) = match name {
        _ if is_approximate => (
            "approx_percentile",
            Arc::new(move |values| in_histogram(values, fraction, digits as u32, is_whole)),
        ),
        _ => ("percentile", Arc::new(move |values| double(interpolated(values, fraction)))),
    };
    let variant = format!("{fraction},{digits},{is_whole}");
    let udaf = collected(name, variant, SqlType::Double, finish);
    Ok(Some(super::shape::unordered(udaf, value_and_constants(arguments), SqlType::Double)))
}

/// Resolves `percentile_disc(x, p [, true])`. With `true`, the rank is counted from the greatest
/// value. Numbers are read as DOUBLE; other types are unchanged.
fn discrete(fraction: f64, arguments: &[Argument]) -> Option<ResolvedAggregate> {
    let is_from_top = match arguments.get(2) {
        None => false,
        Some(Argument { constant: Some(ScalarValue::Boolean(Some(flag))), .. }) => *flag,
        Some(_) => return None,
    };
    let mut types = types_of(arguments);
    let variant = format!("{fraction},{is_from_top}");
    if super::shape::is_number(types[0]) || types[0] == SqlType::Null {
        let finish: Finish = Arc::new(move |values| {
            let rank = rank(values.len(), fraction, is_from_top);
            double(rank.map(|rank| ranked(values, rank)))
        });
        types[..2].fill(SqlType::Double);
        let udaf = collected("percentile_disc", variant, SqlType::Double, finish);
        return Some(super::shape::unordered(udaf, types, SqlType::Double));
    }
    types[0] = match types[0] {
        SqlType::Symbol | SqlType::Char => SqlType::Varchar,
        of => of,
    };
    types[1] = SqlType::Double;
    let returns = types[0];
    let choose: Choose = Arc::new(move |count| rank(count, fraction, is_from_top));
    Some(super::shape::unordered(sorted::chosen(returns, &variant, choose)?, types, returns))
}

/// Returns the 0-based rank of the percentile at `fraction`: the smallest value such that at least
/// this fraction of all values is at or below it. With `is_from_top`, ranks are counted from the
/// greatest value.
fn rank(count: usize, fraction: f64, is_from_top: bool) -> Option<usize> {
    let last = count.checked_sub(1)?;
    let rank = ((fraction * count as f64).ceil() as usize).clamp(1, count) - 1;
    Some(if is_from_top { last - rank } else { rank })
}

fn double(value: Option<f64>) -> Result<ScalarValue> {
    Ok(ScalarValue::Float64(value))
}

/// Returns the value with the 0-based rank `index`.
fn ranked(values: &mut [f64], index: usize) -> f64 {
    *values.select_nth_unstable_by(index, f64::total_cmp).1
}

/// Returns the percentile at `fraction` without interpolation: the smallest value such that at
/// least this fraction of all values is at or below it.
fn nearest_rank(values: &mut [f64], fraction: f64) -> Option<f64> {
    rank(values.len(), fraction, false).map(|rank| ranked(values, rank))
}

/// Returns the percentile at `fraction`, linearly interpolated between the two neighbouring values.
fn interpolated(values: &mut [f64], fraction: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let position = fraction * last as f64;
    let index = (position.floor() as usize).min(last);
    let low = ranked(values, index);
    let share = position - index as f64;
    if share <= 0.0 || index == last {
        return Some(low);
    }
    // Selecting `low` has moved all greater values to positions after `index`.
    let high = values[index + 1..].iter().copied().fold(f64::INFINITY, f64::min);
    Some(low + (high - low) * share)
}

/// Returns the percentile at `fraction` from a histogram with this number of significant digits.
/// The result is the greatest value in the bucket that contains the percentile's rank.
///
/// Buckets divide each power of two into equal intervals. The powers start at 1 for whole numbers,
/// otherwise at the smallest positive value.
fn in_histogram(
    values: &mut [f64],
    fraction: f64,
    digits: u32,
    is_whole: bool,
) -> Result<ScalarValue> {
    if values.iter().any(|value| *value < 0.0) {
        return Err(invalid("Histogram recorded value cannot be negative."));
    }
    let half = f64::from((2 * 10_u32.pow(digits)).next_power_of_two() / 2);
    let lowest = values.iter().copied().filter(|value| *value > 0.0).fold(f64::MAX, f64::min);
    let scale = if is_whole { 1.0 } else { half / lowest.log2().floor().exp2() };
    let in_cell = |value: f64| {
        let steps = (value * scale).floor();
        let width = if steps < 2.0 * half { 1.0 } else { (steps / half).log2().floor().exp2() };
        ((steps / width).floor() * width + width - 1.0) / scale
    };
    double(nearest_rank(values, fraction).map(in_cell))
}

/// Resolves `sparkline(x)` and `sparkline(x, min, max, width)`. A null bound is replaced by the
/// minimum or maximum value.
pub(super) fn sparkline(
    arguments: &[Argument],
) -> std::result::Result<Option<ResolvedAggregate>, ResolveError> {
    let bounds = match arguments {
        [_] => [None, None],
        [_, low, high, _] => [low.double(), high.double()],
        _ => return Ok(None),
    };
    if !super::shape::reads_as_double(arguments[0].sql_type) {
        return Ok(None);
    }
    if let Some(index) = (1..arguments.len()).find(|index| arguments[*index].constant.is_none()) {
        let message = "constant expected".to_owned();
        return Err(ResolveError::InvalidArgument { index, message });
    }
    let width = match arguments.get(3).map(Argument::integer) {
        None => MAX_BLOCKS,
        Some(Some(width)) if (1..=MAX_BLOCKS as i64).contains(&width) => width as usize,
        Some(_) => {
            let message = format!("width must be between 1 and {MAX_BLOCKS}");
            return Err(ResolveError::InvalidArgument { index: 3, message });
        }
    };
    let has_width = arguments.len() == 4;
    let finish: Finish = Arc::new(move |values| {
        if values.len() > MAX_BLOCKS && !has_width {
            let message = format!("sparkline() of more than {MAX_BLOCKS} values requires a width");
            return Err(invalid(message));
        }
        let text = (!values.is_empty()).then(|| blocks(values, bounds, width));
        Ok(ScalarValue::Utf8View(text))
    });
    let variant = format!("{bounds:?},{width},{has_width}");
    let udaf = collected("sparkline", variant, SqlType::Varchar, finish);
    Ok(Some(super::shape::ordered(udaf, value_and_constants(arguments), SqlType::Varchar)))
}

/// Maximum number of block characters, which take up 1 MiB of UTF-8 in total.
const MAX_BLOCKS: usize = (1 << 20) / 3;

/// Draws one block character per value, in eight heights. If there are more than `width` values,
/// they are averaged in groups of equal size.
fn blocks(values: &[f64], [low, high]: [Option<f64>; 2], width: usize) -> String {
    let parts = values.len().min(width);
    let part = |index: usize| {
        let part = &values[index * values.len() / parts..(index + 1) * values.len() / parts];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let heights: Vec<f64> = (0..parts).map(part).collect();
    let low = low.unwrap_or_else(|| heights.iter().copied().fold(f64::INFINITY, f64::min));
    let high = high.unwrap_or_else(|| heights.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    let block = |height: &f64| {
        let fraction =
            if high > low { ((height - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
        ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(fraction * 7.0).round() as usize]
    };
    heights.iter().map(block).collect()
}

/// How a tie between equally frequent values is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie {
    FirstFound,
    Min,
    Greatest,
}

/// Builds the aggregate that returns the most frequent value.
pub(super) fn mode(sql_type: SqlType, tie: Tie) -> Arc<AggregateUDF> {
    let data_type = sql_type.arrow_type();
    NativeAggregate {
        name: "mode",
        variant: format!("{},{tie:?}", sql_type.name()),
        returns: sql_type,
        state: vec![list_of(data_type.clone())],
        one: Arc::new(move || {
            Box::new(Mode { data_type: data_type.clone(), tie, counts: HashMap::new() })
        }),
        many: None,
    }
    .udaf()
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type, true)))
}

struct Collected {
    values: Vec<f64>,
    finish: Finish,
}

impl std::fmt::Debug for Collected {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} values", self.values.len())
    }
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = cast(&values[0], &DataType::Float64)?;
        self.values.extend(values.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        (self.finish)(&mut self.values)
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: Vec<ScalarValue> = self.values.drain(..).map(ScalarValue::from).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &DataType::Float64))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}

/// Number of rows between checks of the query's deadline and cancellation.
const ROWS_BETWEEN_CHECKS: usize = 256;

#[derive(Debug)]
struct Mode {
    data_type: DataType,
    tie: Tie,
    /// Number of occurrences and first position of each value.
    counts: HashMap<ScalarValue, (u64, usize)>,
}

impl Accumulator for Mode {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in (0..values[0].len()).filter(|row| values[0].is_valid(*row)) {
            if row % ROWS_BETWEEN_CHECKS == 0 {
                account::check().map_err(stopped)?;
            }
            let value = ScalarValue::try_from_array(&values[0], row)?;
            let order = self.counts.len();
            self.counts.entry(value).or_insert((0, order)).0 += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let best = self.counts.iter().max_by(|(value, tally), (other, others)| {
            let in_order = match self.tie {
                Tie::FirstFound => None,
                Tie::Min => other.partial_cmp(value),
                Tie::Greatest => value.partial_cmp(other),
            };
            let in_order = in_order.filter(|order| order.is_ne());
            tally.0.cmp(&others.0).then(in_order.unwrap_or(others.1.cmp(&tally.1)))
        });
        match best {
            Some((value, _)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<(ScalarValue, (u64, usize))>()
    }

    /// Returns each value as often as it occurs, in order of first appearance.
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut tallies: Vec<_> = self.counts.drain().collect();
        tallies.sort_by_key(|(_, (_, order))| *order);
        let repeated = |(value, (count, _)): (ScalarValue, (u64, usize))| {
            std::iter::repeat_n(value, count as usize)
        };
        let values: Vec<ScalarValue> = tallies.into_iter().flat_map(repeated).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.data_type))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}
