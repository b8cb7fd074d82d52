//! Adapter for using Tidemark's aggregates in a `DataFusion` plan.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility,
};
use tidemark_types::{SqlType, account};

use crate::column::stopped;

/// Creates the state for one group.
pub(crate) type MakeOne = Arc<dyn Fn() -> Box<dyn Accumulator> + Send + Sync>;
/// Creates the states for many groups.
pub(crate) type MakeMany = Arc<dyn Fn() -> Box<dyn GroupsAccumulator> + Send + Sync>;

/// An aggregate together with the types and constants it was resolved for.
pub(crate) struct NativeAggregate {
    /// The name by which operators recognise the aggregate.
    pub(crate) name: &'static str,
    /// Types and constants, which distinguish aggregates with the same name.
    pub(crate) variant: String,
    pub(crate) returns: SqlType,
    /// Arrow types of the intermediate state.
    pub(crate) state: Vec<DataType>,
    pub(crate) one: MakeOne,
    /// Creates the states for many groups; `None` if only [`NativeAggregate::one`] exists.
    pub(crate) many: Option<MakeMany>,
}

impl NativeAggregate {
    pub(crate) fn udaf(self) -> Arc<AggregateUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::from(Wrapped { inner: self, signature }))
    }
}

/// Whether an aggregate's FILTER accepts a row.
pub(super) fn is_selected(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

struct Wrapped {
    inner: NativeAggregate,
    signature: Signature,
}

impl std::fmt::Debug for Wrapped {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}<{}>", self.inner.name, self.inner.variant)
    }
}

impl PartialEq for Wrapped {
    fn eq(&self, other: &Self) -> bool {
        let key = |wrapped: &Self| {
            (wrapped.inner.name, wrapped.inner.variant.clone(), wrapped.inner.returns)
        };
        key(self) == key(other)
    }
}

impl Eq for Wrapped {}

impl Hash for Wrapped {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.inner.name.hash(hasher);
        self.inner.variant.hash(hasher);
    }
}

impl AggregateUDFImpl for Wrapped {
    fn name(&self) -> &str {
        self.inner.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.inner.returns.arrow_type())
    }

    /// The binder has already cast every argument to the type the aggregate reads.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Checked((self.inner.one)())))
    }

    /// Used for window frames with a moving start, where rows leave the frame.
    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Replayed { one: Arc::clone(&self.inner.one), columns: Vec::new() }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let field = |(index, data_type): (usize, &DataType)| {
            Arc::new(Field::new(format!("{}[{index}]", args.name), data_type.clone(), true))
        };
        Ok(self.inner.state.iter().enumerate().map(field).collect())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        self.inner.many.is_some()
    }

    fn create_groups_accumulator(
        &self,
        _: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if let Some(many) = &self.inner.many {
            Ok(many())
        } else {
            datafusion::common::internal_err!("{} has no grouped state", self.inner.name)
        }
    }
}

/// A group's state that checks the query's deadline and cancellation at each step.
#[derive(Debug)]
struct Checked(Box<dyn Accumulator>);

impl Accumulator for Checked {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        account::check().map_err(stopped)?;
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        account::check().map_err(stopped)?;
        self.0.evaluate()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        account::check().map_err(stopped)?;
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        account::check().map_err(stopped)?;
        self.0.merge_batch(states)
    }
}

/// The rows in a window frame. They are aggregated again for each result because a state cannot
/// retract rows.
struct Replayed {
    one: MakeOne,
    columns: Vec<ArrayRef>,
}

impl std::fmt::Debug for Replayed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Replayed({} columns)", self.columns.len())
    }
}

impl Replayed {
    fn replay(&self) -> Result<Box<dyn Accumulator>> {
        account::check().map_err(stopped)?;
        let mut state = (self.one)();
        if !self.columns.is_empty() {
            state.update_batch(&self.columns)?;
        }
        Ok(state)
    }
}

impl Accumulator for Replayed {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if self.columns.is_empty() {
            self.columns = values.to_vec();
            return Ok(());
        }
        for (column, more) in self.columns.iter_mut().zip(values) {
            *column = concat(&[column.as_ref(), more.as_ref()])?;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (column, removed) in self.columns.iter_mut().zip(values) {
            *column = column.slice(removed.len(), column.len() - removed.len());
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.replay()?.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.columns.iter().map(Array::get_array_memory_size);
        size_of_val(self) + columns.sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.replay()?.state()
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        datafusion::common::internal_err!("window frames cannot be merged")
    }
}
