//! An aggregate that sorts its values, whatever their type, and gives one of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{concat, is_not_null, sort_to_indices};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use tidemark_types::{SqlType, account};

use super::native::NativeAggregate;
use crate::column::stopped;

/// The rank from 0 of the value that is given, out of so many; `None` for no value.
pub(super) type Choose = Arc<dyn Fn(usize) -> Option<usize> + Send + Sync>;

/// The value whose rank `choose` names; `variant` tells its constants. `None` for a type without an
/// order.
pub(super) fn chosen(of: SqlType, variant: &str, choose: Choose) -> Option<Arc<AggregateUDF>> {
    let data_type = of.arrow_type();
    let has_order = data_type.is_primitive()
        || matches!(
            data_type,
            DataType::Utf8View | DataType::Boolean | DataType::FixedSizeBinary(_)
        );
    if !has_order || of == SqlType::Period {
        return None;
    }
    let aggregate = NativeAggregate {
        name: "percentile_disc",
        variant: format!("{variant},{}", of.name()),
        returns: of,
        state: vec![DataType::new_list(data_type.clone(), true)],
        one: Arc::new(move || {
            Box::new(Sorted {
                data_type: data_type.clone(),
                parts: Vec::new(),
                choose: Arc::clone(&choose),
            })
        }),
        many: None,
    };
    Some(aggregate.udaf())
}

/// The values of one group, without nulls.
struct Sorted {
    data_type: DataType,
    parts: Vec<ArrayRef>,
    choose: Choose,
}

impl std::fmt::Debug for Sorted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} parts", self.parts.len())
    }
}

impl Sorted {
    /// All values as one column.
    fn all(&self) -> Result<ArrayRef> {
        account::room(self.size()).map_err(stopped)?;
        let parts: Vec<&dyn Array> = self.parts.iter().map(AsRef::as_ref).collect();
        match parts.as_slice() {
            [] => Ok(arrow::array::new_empty_array(&self.data_type)),
            parts => Ok(concat(parts)?),
        }
    }
}

impl Accumulator for Sorted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        account::check().map_err(stopped)?;
        let mut there = arrow::compute::filter(&values[0], &is_not_null(&values[0])?)?;
        if let Some(texts) = there.as_string_view_opt() {
            // The texts of this group alone, not all that the batch has.
            there = Arc::new(texts.gc());
        }
        if !there.is_empty() {
            self.parts.push(there);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = self.all()?;
        let Some(rank) = (self.choose)(all.len()) else {
            return ScalarValue::try_from(&self.data_type);
        };
        let order = sort_to_indices(&all, None, Some(rank + 1))?;
        ScalarValue::try_from_array(&all, order.value(rank) as usize)
    }

    fn size(&self) -> usize {
        let held = |part: &ArrayRef| part.get_array_memory_size() + size_of::<ArrayRef>();
        size_of_val(self) + self.parts.iter().map(held).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = arrow::array::ListArray::new(
            Arc::new(arrow::datatypes::Field::new_list_field(self.data_type.clone(), true)),
            arrow::buffer::OffsetBuffer::from_lengths([self.parts.iter().map(Array::len).sum()]),
            self.all()?,
            None,
        );
        Ok(vec![ScalarValue::List(Arc::new(list))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }
}
