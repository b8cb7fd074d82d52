//! Aggregates that return the value from one particular row: the first row, the last row, or the
//! row with an extreme key.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use tidemark_types::SqlType;

use super::native::NativeAggregate;

/// Resolves `first`, `last` and their `_not_null` variants. Rows arrive in order.
pub(super) fn edge(name: &str, sql_type: SqlType) -> Arc<AggregateUDF> {
    let (name, last, skips_nulls) = match name {
        "first" => ("first", false, false),
        "last" => ("last", true, false),
        "first_not_null" | "any_value" => ("first_not_null", false, true),
        _ => ("last_not_null", true, true),
    };
    let data_type = sql_type.arrow_type();
    NativeAggregate {
        name,
        variant: sql_type.name(),
        returns: sql_type,
        state: vec![data_type.clone(), DataType::Boolean],
        one: Arc::new(move || {
            Box::new(Edge { last, skips_nulls, value: None, data_type: data_type.clone() })
        }),
        many: None,
    }
    .udaf()
}

/// Resolves `arg_min` and `arg_max`. Rows with a null key are skipped.
pub(super) fn argument_of_extreme(name: &str, value: SqlType, key: SqlType) -> Arc<AggregateUDF> {
    let (name, required) = match name {
        "arg_min" | "min_by" => ("arg_min", Ordering::Less),
        _ => ("arg_max", Ordering::Greater),
    };
    let (value_type, key_type) = (value.arrow_type(), key.arrow_type());
    NativeAggregate {
        name,
        variant: format!("{},{}", value.name(), key.name()),
        returns: value,
        state: vec![value_type.clone(), key_type.clone()],
        one: Arc::new(move || {
            Box::new(Extreme {
                better: required,
                best: None,
                value_type: value_type.clone(),
                key_type: key_type.clone(),
            })
        }),
        many: None,
    }
    .udaf()
}

#[derive(Debug)]
struct Edge {
    last: bool,
    skips_nulls: bool,
    value: Option<ScalarValue>,
    data_type: DataType,
}

impl Edge {
    /// Returns the row that determines the result for this batch.
    fn row_of(&self, values: &ArrayRef) -> Option<usize> {
        let mut rows = 0..values.len();
        let counts = |row: &usize| !self.skips_nulls || values.is_valid(*row);
        if self.last { rows.rfind(counts) } else { rows.find(counts) }
    }
}

impl Accumulator for Edge {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if self.value.is_some() && !self.last {
            return Ok(());
        }
        if let Some(row) = self.row_of(&values[0]) {
            self.value = Some(ScalarValue::try_from_array(&values[0], row)?);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.value {
            Some(value) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.data_type),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.as_ref().map_or(0, ScalarValue::size)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let is_set = ScalarValue::from(self.value.is_some());
        Ok(vec![self.evaluate()?, is_set])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let is_set = states[1].as_boolean();
        for row in (0..is_set.len()).filter(|row| is_set.value(*row)) {
            if self.value.is_none() || self.last {
                self.value = Some(ScalarValue::try_from_array(&states[0], row)?);
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Extreme {
    better: Ordering,
    /// Value and key of the best row found so far.
    best: Option<(ScalarValue, ScalarValue)>,
    value_type: DataType,
    key_type: DataType,
}

impl Accumulator for Extreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for row in (0..values[1].len()).filter(|row| values[1].is_valid(*row)) {
            let key = ScalarValue::try_from_array(&values[1], row)?;
            let better = match &self.best {
                None => true,
                Some((_, best)) => key.partial_cmp(best) == Some(self.better),
            };
            if better {
                self.best = Some((ScalarValue::try_from_array(&values[0], row)?, key));
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match &self.best {
            Some((value, _)) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.value_type),
        }
    }

    fn size(&self) -> usize {
        let bytes = self.best.as_ref().map_or(0, |(value, key)| value.size() + key.size());
        size_of_val(self) + bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        match &self.best {
            Some((value, key)) => Ok(vec![value.clone(), key.clone()]),
            None => Ok(vec![
                ScalarValue::try_from(&self.value_type)?,
                ScalarValue::try_from(&self.key_type)?,
            ]),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}
