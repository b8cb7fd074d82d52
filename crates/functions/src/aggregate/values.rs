//! Aggregates that keep every value: percentiles and the mode.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use hashbrown::HashMap;
use tidemark_types::SqlType;

use super::native::NativeAggregate;
use crate::resolve::{Argument, ResolvedAggregate};

/// `median(x)`, `percentile(x, p)` and their approximate forms, which are exact here: the
/// smallest value at or above the fraction.
pub(super) fn percentile(name: &str, arguments: &[Argument]) -> Option<ResolvedAggregate> {
    let median = name.ends_with("median");
    let value = arguments.first()?;
    if !super::reads_as_double(value.sql_type) {
        return None;
    }
    let fraction = if median { 0.5 } else { number(arguments.get(1)?)? };
    let most = if median { 2 } else { 3 };
    if !(0.0..=1.0).contains(&fraction) || arguments.len() > most {
        return None;
    }
    let mut types = vec![SqlType::Double; arguments.len()];
    types[1..].clone_from_slice(&arguments[1..].iter().map(|a| a.sql_type).collect::<Vec<_>>());
    let udaf = NativeAggregate {
        name: "percentile",
        variant: fraction.to_string(),
        returns: SqlType::Double,
        state: vec![list_of(DataType::Float64)],
        one: Arc::new(move || Box::new(Percentile { fraction, values: Vec::new() })),
        many: None,
    }
    .udaf();
    Some(super::unordered(udaf, types, SqlType::Double))
}

/// The most frequent value; of equally frequent ones the first met.
pub(super) fn mode(sql_type: SqlType) -> Arc<AggregateUDF> {
    let data_type = sql_type.arrow_type();
    NativeAggregate {
        name: "mode",
        variant: sql_type.name(),
        returns: sql_type,
        state: vec![list_of(data_type.clone())],
        one: Arc::new(move || {
            Box::new(Mode { data_type: data_type.clone(), counts: HashMap::new() })
        }),
        many: None,
    }
    .udaf()
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(data_type, true)))
}

fn number(argument: &Argument) -> Option<f64> {
    let value = argument.constant.as_ref()?.cast_to(&DataType::Float64).ok()?;
    match value {
        ScalarValue::Float64(value) => value,
        _ => None,
    }
}

#[derive(Debug)]
struct Percentile {
    fraction: f64,
    values: Vec<f64>,
}

impl Accumulator for Percentile {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = cast(&values[0], &DataType::Float64)?;
        self.values.extend(values.as_primitive::<Float64Type>().iter().flatten());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.values.is_empty() {
            return Ok(ScalarValue::Float64(None));
        }
        let rank = (self.fraction * self.values.len() as f64).ceil() as usize;
        let index = rank.clamp(1, self.values.len()) - 1;
        let (_, value, _) = self.values.select_nth_unstable_by(index, f64::total_cmp);
        Ok(ScalarValue::Float64(Some(*value)))
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

#[derive(Debug)]
struct Mode {
    data_type: DataType,
    /// How often each value came, and when it came first.
    counts: HashMap<ScalarValue, (u64, usize)>,
}

impl Accumulator for Mode {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in (0..values[0].len()).filter(|row| values[0].is_valid(*row)) {
            let value = ScalarValue::try_from_array(&values[0], row)?;
            let order = self.counts.len();
            self.counts.entry(value).or_insert((0, order)).0 += 1;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let key = |(count, order): &(u64, usize)| (*count, std::cmp::Reverse(*order));
        let best = self.counts.iter().max_by_key(|(_, tally)| key(tally));
        match best {
            Some((value, _)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        self.counts.capacity() * size_of::<(ScalarValue, (u64, usize))>()
    }

    /// Values repeated as often as they came, in order of first appearance.
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
