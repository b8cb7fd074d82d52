//! Aggregates that return arrays. They collect values in order or combine arrays element by
//! element.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::Accumulator;
use tidemark_types::SqlType;
use tidemark_types::double_array::{DoubleArray, DoubleArrays, check_elements};

use super::native::NativeAggregate;
use crate::array::array_functions::{Combine, greatest, min_of, total};
use crate::array::array_select::combined;
use crate::array::arrays::{build_arrays, failed};
use crate::column::internal;
use crate::resolve::ResolvedAggregate;

/// Resolves `array_agg(number)`, `array_agg(array)` and `array_elem_…(array)`.
pub(super) fn resolve(name: &str, distinct: bool, types: &[SqlType]) -> Option<ResolvedAggregate> {
    let [only] = types else { return None };
    match (name, *only) {
        ("array_agg", SqlType::DoubleArray(1)) if !distinct => Some(gather(*only, false)),
        ("array_agg", number) if super::shape::is_number(number) || number == SqlType::Null => {
            Some(gather(SqlType::Double, distinct))
        }
        ("array_agg", SqlType::DoubleArray(_)) if distinct => None,
        ("array_agg", text) if text.is_text() || text == SqlType::Boolean => {
            let one = if distinct { super::text::listed_once() } else { super::text::listed() };
            Some(super::shape::ordered(one, vec![SqlType::String], SqlType::String))
        }
        ("array_agg", _) => None,
        (name, SqlType::DoubleArray(dimensions)) => Some(by_position(name, dimensions)),
        _ => None,
    }
}

fn gather(from: SqlType, distinct: bool) -> ResolvedAggregate {
    let returns = SqlType::DoubleArray(1);
    let scalars = from == SqlType::Double;
    let udaf = NativeAggregate {
        name: "array_agg",
        variant: format!("{}{}", from.name(), if distinct { ",distinct" } else { "" }),
        returns,
        state: vec![returns.arrow_type()],
        one: Arc::new(move || Box::new(Gathered { scalars, distinct, values: Vec::new() })),
        many: None,
    }
    .udaf();
    super::shape::ordered(udaf, vec![from], returns)
}

fn by_position(name: &str, dimensions: u8) -> ResolvedAggregate {
    let (name, combine, is_mean): (&'static str, Combine, bool) = match name {
        "array_elem_min" => ("array_elem_min", min_of, false),
        "array_elem_max" => ("array_elem_max", greatest, false),
        "array_elem_avg" => ("array_elem_avg", total, true),
        _ => ("array_elem_sum", total, false),
    };
    let returns = SqlType::DoubleArray(dimensions);
    let udaf = NativeAggregate {
        name,
        variant: returns.name(),
        returns,
        state: vec![returns.arrow_type(); 2],
        one: Arc::new(move || {
            Box::new(ByPosition { dimensions, combine, is_mean, values: None, counts: None })
        }),
        many: None,
    }
    .udaf();
    super::shape::unordered(udaf, vec![returns], returns)
}

/// An owned array, as its shape and elements.
type Owned = (Vec<i32>, Vec<f64>);

fn arrays_of(column: &ArrayRef) -> Result<DoubleArrays<'_>> {
    DoubleArrays::new(column.as_ref()).ok_or_else(|| internal("not an array"))
}

/// Converts a single array to a scalar value; `None` becomes null.
fn scalar(dimensions: u8, array: Option<&Owned>) -> Result<ScalarValue> {
    let column = build_arrays(1, dimensions, |_, out| {
        match array {
            Some((shape, values)) => out.push(shape, values.iter().copied()).map_err(failed)?,
            None => out.push_null(),
        }
        Ok(())
    })?;
    ScalarValue::try_from_array(&column, 0)
}

#[derive(Debug)]
struct Gathered {
    /// Whether the rows are numbers rather than arrays. Null numbers become elements.
    scalars: bool,
    /// Whether the numbers are deduplicated and sorted, with nulls last.
    distinct: bool,
    values: Vec<f64>,
}

impl Gathered {
    fn join(&mut self, arrays: &ArrayRef) -> Result<()> {
        let arrays = arrays_of(arrays)?;
        for array in (0..arrays.len()).filter_map(|row| arrays.get(row)) {
            self.values.extend_from_slice(array.values);
        }
        check_elements(self.values.len()).map_err(failed)
    }
}

impl Accumulator for Gathered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if !self.scalars {
            return self.join(&values[0]);
        }
        let numbers = cast(&values[0], &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>();
        self.values.extend(numbers.iter().map(|number| number.unwrap_or(f64::NAN)));
        check_elements(self.values.len()).map_err(failed)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut values = std::mem::take(&mut self.values);
        if self.distinct {
            values.sort_by(|a, b| a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(b)));
            values.dedup_by(|a, b| a == b || (a.is_nan() && b.is_nan()));
        }
        let found = (!values.is_empty()).then(|| (vec![values.len() as i32], values));
        scalar(1, found.as_ref())
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.join(&states[0])
    }
}

struct ByPosition {
    dimensions: u8,
    combine: Combine,
    is_mean: bool,
    /// The element-wise combination of all arrays read so far.
    values: Option<Owned>,
    /// Number of values at each position; used only for means.
    counts: Option<Owned>,
}

impl std::fmt::Debug for ByPosition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.values)
    }
}

/// Combines another array into the accumulated array.
fn take_in(into: &mut Option<Owned>, array: DoubleArray<'_>, combine: Combine) -> Result<()> {
    *into = Some(match into.as_ref() {
        None => (array.shape.to_vec(), array.values.to_vec()),
        Some((shape, values)) => {
            combined(&[DoubleArray { shape, values }, array], combine).map_err(failed)?
        }
    });
    Ok(())
}

impl Accumulator for ByPosition {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let arrays = arrays_of(&values[0])?;
        for array in (0..arrays.len()).filter_map(|row| arrays.get(row)) {
            take_in(&mut self.values, array, self.combine)?;
            if self.is_mean {
                let one = |value: &f64| if value.is_nan() { f64::NAN } else { 1.0 };
                let ones: Vec<f64> = array.values.iter().map(one).collect();
                let ones = DoubleArray { shape: array.shape, values: &ones };
                take_in(&mut self.counts, ones, total)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut found = self.values.clone();
        if let (Some((_, values)), Some((_, counts))) = (&mut found, &self.counts) {
            values.iter_mut().zip(counts).for_each(|(value, count)| *value /= count);
        }
        scalar(self.dimensions, found.as_ref())
    }

    fn size(&self) -> usize {
        let bytes =
            |array: &Option<Owned>| array.as_ref().map_or(0, |(_, values)| values.capacity());
        size_of_val(self) + (bytes(&self.values) + bytes(&self.counts)) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = scalar(self.dimensions, self.values.as_ref())?;
        Ok(vec![values, scalar(self.dimensions, self.counts.as_ref())?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (values, counts) = (arrays_of(&states[0])?, arrays_of(&states[1])?);
        for row in 0..values.len() {
            if let Some(array) = values.get(row) {
                take_in(&mut self.values, array, self.combine)?;
            }
            if let Some(array) = counts.get(row) {
                take_in(&mut self.counts, array, total)?;
            }
        }
        Ok(())
    }
}
