//! Aggregates over one or two numeric columns, with a state of a few DOUBLEs.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF, EmitTo, GroupsAccumulator};
use tidemark_types::SqlType;

use super::native::{NativeAggregate, is_selected};

/// State of a numeric aggregate, updated row by row. The caller skips rows that contain a null.
pub(crate) trait Fold: Default + Clone + Debug + Send + Sync + 'static {
    /// Number of columns the aggregate reads.
    const COLUMNS: usize;
    /// Number of values in the state.
    const STATE: usize;

    /// Adds a row.
    fn add(&mut self, row: &[f64]);
    /// Merges another state of the same aggregate.
    fn merge(&mut self, other: &Self);
    /// Returns the state as an array of numbers.
    fn to_state(&self) -> Vec<f64>;
    /// Restores a state from its numbers.
    fn from_state(state: &[f64]) -> Self;
    /// Returns the result; a non-finite value becomes null.
    fn finish(&self) -> Option<f64>;
}

/// Builds the aggregate for a fold. `variant` names its argument types.
pub(crate) fn udaf<F: Fold>(
    name: &'static str,
    variant: &str,
    returns: SqlType,
) -> Arc<AggregateUDF> {
    let output = returns.arrow_type();
    let many_output = output.clone();
    NativeAggregate {
        name,
        variant: variant.to_owned(),
        returns,
        state: vec![DataType::Float64; F::STATE],
        one: Arc::new(move || Box::new(One::<F> { state: F::default(), output: output.clone() })),
        many: Some(Arc::new(move || {
            Box::new(Many::<F> {
                states: Vec::new(),
                output: many_output.clone(),
                fold: PhantomData,
            })
        })),
    }
    .udaf()
}

/// Builds the floating-point `sum`.
pub(crate) fn sum(argument: SqlType, returns: SqlType) -> Arc<AggregateUDF> {
    udaf::<Sum>("sum", &argument.name(), returns)
}

/// Builds `avg`, the arithmetic mean.
pub(crate) fn average(argument: SqlType) -> Arc<AggregateUDF> {
    udaf::<Average>("avg", &argument.name(), SqlType::Double)
}

/// Builds `ksum`, which uses Kahan summation.
pub(crate) fn kahan_sum(argument: SqlType) -> Arc<AggregateUDF> {
    udaf::<Compensated<false>>("ksum", &argument.name(), SqlType::Double)
}

/// Builds `nsum`, which uses Neumaier summation.
pub(crate) fn neumaier_sum(argument: SqlType) -> Arc<AggregateUDF> {
    udaf::<Compensated<true>>("nsum", &argument.name(), SqlType::Double)
}

#[derive(Debug)]
struct One<F> {
    state: F,
    output: DataType,
}

#[derive(Debug)]
struct Many<F> {
    states: Vec<F>,
    output: DataType,
    fold: PhantomData<F>,
}

/// Reads the arguments as DOUBLE columns.
fn columns(values: &[ArrayRef], count: usize) -> Result<Vec<Float64Array>> {
    let column = |array: &ArrayRef| {
        Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
    };
    values.iter().take(count).map(column).collect()
}

/// Calls `visit` with each row that contains no null.
fn for_each_row(columns: &[Float64Array], mut visit: impl FnMut(usize, &[f64])) {
    let rows = columns.first().map_or(0, Array::len);
    let mut row = [0.0; 3];
    for index in 0..rows {
        if columns.iter().any(|column| column.is_null(index)) {
            continue;
        }
        for (slot, column) in row.iter_mut().zip(columns) {
            *slot = column.value(index);
        }
        visit(index, &row[..columns.len()]);
    }
}

fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|value| value.is_finite())
}

impl<F: Fold> Accumulator for One<F> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for_each_row(&columns(values, F::COLUMNS)?, |_, row| self.state.add(row));
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::Float64(finite(self.state.finish())).cast_to(&self.output)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(self.state.to_state().into_iter().map(ScalarValue::from).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for_each_state::<F>(states, |_, state| self.state.merge(&state))
    }
}

fn for_each_state<F: Fold>(states: &[ArrayRef], mut visit: impl FnMut(usize, F)) -> Result<()> {
    let columns = columns(states, F::STATE)?;
    let rows = columns.first().map_or(0, Array::len);
    for index in 0..rows {
        let numbers: Vec<f64> = columns.iter().map(|column| column.value(index)).collect();
        visit(index, F::from_state(&numbers));
    }
    Ok(())
}

fn state_columns<F: Fold>(states: &[F]) -> Vec<ArrayRef> {
    let rows: Vec<Vec<f64>> = states.iter().map(Fold::to_state).collect();
    let column = |index: usize| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(rows.iter().map(|row| row[index])))
    };
    (0..F::STATE).map(column).collect()
}

impl<F: Fold> GroupsAccumulator for Many<F> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        opt_filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.states.resize(total_num_groups, F::default());
        for_each_row(&columns(values, F::COLUMNS)?, |index, row| {
            if is_selected(opt_filter, index) {
                self.states[group_indices[index]].add(row);
            }
        });
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        let values: Float64Array = states.iter().map(|state| finite(state.finish())).collect();
        Ok(cast(&values, &self.output)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(state_columns(&emit_to.take_needed(&mut self.states)))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        opt_filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows: Vec<usize> = (0..values.first().map_or(0, Array::len)).collect();
        let mut one_per_row =
            Self { states: Vec::new(), output: self.output.clone(), fold: PhantomData };
        one_per_row.update_batch(values, &rows, opt_filter, rows.len())?;
        Ok(state_columns(&one_per_row.states))
    }

    fn merge_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        total_num_groups: usize,
    ) -> Result<()> {
        self.states.resize(total_num_groups, F::default());
        for_each_state::<F>(values, |index, state| {
            self.states[group_indices[index]].merge(&state);
        })
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<F>()
    }
}

#[derive(Debug, Default, Clone)]
struct Sum {
    count: f64,
    sum: f64,
}

impl Fold for Sum {
    const COLUMNS: usize = 1;
    const STATE: usize = 2;

    fn add(&mut self, row: &[f64]) {
        self.count += 1.0;
        self.sum += row[0];
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.sum]
    }

    fn from_state(state: &[f64]) -> Self {
        Self { count: state[0], sum: state[1] }
    }

    fn finish(&self) -> Option<f64> {
        (self.count > 0.0).then_some(self.sum)
    }
}

#[derive(Debug, Default, Clone)]
struct Average(Sum);

impl Fold for Average {
    const COLUMNS: usize = 1;
    const STATE: usize = 2;

    fn add(&mut self, row: &[f64]) {
        self.0.add(row);
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn to_state(&self) -> Vec<f64> {
        self.0.to_state()
    }

    fn from_state(state: &[f64]) -> Self {
        Self(Sum::from_state(state))
    }

    fn finish(&self) -> Option<f64> {
        self.0.finish().map(|sum| sum / self.0.count)
    }
}

/// A sum that also accumulates its rounding error. Neumaier's variant also corrects the error when
/// a term is larger than the sum.
#[derive(Debug, Default, Clone)]
struct Compensated<const NEUMAIER: bool> {
    count: f64,
    sum: f64,
    error: f64,
}

impl<const NEUMAIER: bool> Compensated<NEUMAIER> {
    fn add_term(&mut self, term: f64) {
        if NEUMAIER {
            let total = self.sum + term;
            self.error += if self.sum.abs() >= term.abs() {
                (self.sum - total) + term
            } else {
                (term - total) + self.sum
            };
            self.sum = total;
        } else {
            let corrected = term - self.error;
            let total = self.sum + corrected;
            self.error = (total - self.sum) - corrected;
            self.sum = total;
        }
    }
}

impl<const NEUMAIER: bool> Fold for Compensated<NEUMAIER> {
    const COLUMNS: usize = 1;
    const STATE: usize = 3;

    fn add(&mut self, row: &[f64]) {
        self.count += 1.0;
        self.add_term(row[0]);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.add_term(other.sum);
        self.add_term(if NEUMAIER { other.error } else { -other.error });
    }

    fn to_state(&self) -> Vec<f64> {
        vec![self.count, self.sum, self.error]
    }

    fn from_state(state: &[f64]) -> Self {
        Self { count: state[0], sum: state[1], error: state[2] }
    }

    fn finish(&self) -> Option<f64> {
        let total = if NEUMAIER { self.sum + self.error } else { self.sum };
        (self.count > 0.0).then_some(total)
    }
}
