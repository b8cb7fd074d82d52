//! Integer sums, which wrap on overflow, and AND/OR over booleans.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};
use tidemark_types::SqlType;

use super::native::{NativeAggregate, is_selected};

/// How the result is derived from the accumulated integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The sum; null if there are no values, or if the wrapped sum equals LONG's null.
    Sum,
    /// True if there is at least one value and all values are true.
    All,
    /// True if at least one value is true.
    Any,
}

/// Builds the integer `sum`, which returns LONG.
pub(super) fn sum(argument: SqlType) -> Arc<AggregateUDF> {
    udaf("sum", &argument.name(), SqlType::Long, Reading::Sum)
}

/// Resolves `bool_and` and `bool_or`. Both are false when there are no values.
pub(super) fn boolean(name: &str) -> Arc<AggregateUDF> {
    match name {
        "bool_and" | "every" => udaf("bool_and", "BOOLEAN", SqlType::Boolean, Reading::All),
        _ => udaf("bool_or", "BOOLEAN", SqlType::Boolean, Reading::Any),
    }
}

fn udaf(
    name: &'static str,
    variant: &str,
    returns: SqlType,
    reading: Reading,
) -> Arc<AggregateUDF> {
    NativeAggregate {
        name,
        variant: variant.to_owned(),
        returns,
        state: vec![DataType::Int64, DataType::Int64],
        one: Arc::new(move || Box::new(One { reading, tally: Tally::default() })),
        many: Some(Arc::new(move || Box::new(Many { reading, tallies: Vec::new() }))),
    }
    .udaf()
}

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    count: i64,
    sum: i64,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    fn result(self, reading: Reading) -> Option<i64> {
        match reading {
            Reading::Sum => (self.count > 0 && self.sum != i64::MIN).then_some(self.sum),
            Reading::All => Some(i64::from(self.count > 0 && self.sum == self.count)),
            Reading::Any => Some(i64::from(self.sum > 0)),
        }
    }
}

fn longs(values: &ArrayRef) -> Result<Int64Array> {
    Ok(cast(values, &DataType::Int64)?.as_primitive::<Int64Type>().clone())
}

fn results(tallies: &[Tally], reading: Reading) -> Result<ArrayRef> {
    let values: Int64Array = tallies.iter().map(|tally| tally.result(reading)).collect();
    if reading == Reading::Sum {
        return Ok(Arc::new(values));
    }
    Ok(cast(&values, &DataType::Boolean)?)
}

fn tallies(states: &[ArrayRef]) -> impl Iterator<Item = Tally> + '_ {
    let (counts, sums) = (states[0].as_primitive::<Int64Type>(), states[1].as_primitive());
    let sums: &Int64Array = sums;
    (0..counts.len()).map(move |row| Tally { count: counts.value(row), sum: sums.value(row) })
}

fn state_columns(tallies: &[Tally]) -> Vec<ArrayRef> {
    let counts = Int64Array::from_iter_values(tallies.iter().map(|tally| tally.count));
    let sums = Int64Array::from_iter_values(tallies.iter().map(|tally| tally.sum));
    vec![Arc::new(counts), Arc::new(sums)]
}

#[derive(Debug)]
struct One {
    reading: Reading,
    tally: Tally,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for sum in longs(&values[0])?.iter().flatten() {
            self.tally.add(Tally { count: 1, sum });
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&results(&[self.tally], self.reading)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.tally.count.into(), self.tally.sum.into()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        tallies(states).for_each(|tally| self.tally.add(tally));
        Ok(())
    }
}

#[derive(Debug)]
struct Many {
    reading: Reading,
    tallies: Vec<Tally>,
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.tallies.resize(total_num_groups, Tally::default());
        let values = longs(&values[0])?;
        for (row, &group) in group_indices.iter().enumerate() {
            if is_selected(opt_filter, row) && values.is_valid(row) {
                self.tallies[group].add(Tally { count: 1, sum: values.value(row) });
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        results(&emit_to.take_needed(&mut self.tallies), self.reading)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(state_columns(&emit_to.take_needed(&mut self.tallies)))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows: Vec<usize> = (0..values[0].len()).collect();
        let mut one_per_row = Self { reading: self.reading, tallies: Vec::new() };
        one_per_row.update_batch(values, &rows, opt_filter, rows.len())?;
        Ok(state_columns(&one_per_row.tallies))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.tallies.resize(total_num_groups, Tally::default());
        for (tally, &group) in tallies(values).zip(group_indices) {
            self.tallies[group].add(tally);
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.tallies.capacity() * size_of::<Tally>()
    }
}
