//! An aggregate that returns the value with a given rank, for any ordered type.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_comparator};
use arrow::compute::{SortOptions, concat, is_not_null};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion_expr::{Accumulator, AggregateUDF};
use tidemark_types::{SqlType, account};

use super::native::NativeAggregate;
use crate::column::stopped;

/// Maps the number of values to the 0-based rank of the value to return; `None` if no value is
/// returned.
pub(super) type Choose = Arc<dyn Fn(usize) -> Option<usize> + Send + Sync>;

/// Builds the aggregate that returns the value at the rank that `choose` selects. `variant`
/// identifies the aggregate's constants. Returns `None` for unordered types.
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
                arrays: Vec::new(),
                choose: Arc::clone(&choose),
            })
        }),
        many: None,
    };
    Some(aggregate.udaf())
}

/// The non-null values of one group.
struct Sorted {
    data_type: DataType,
    arrays: Vec<ArrayRef>,
    choose: Choose,
}

impl std::fmt::Debug for Sorted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} parts", self.arrays.len())
    }
}

impl Sorted {
    /// Concatenates all values into one column.
    fn all(&self) -> Result<ArrayRef> {
        account::check_allocation(self.size()).map_err(stopped)?;
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        match arrays.as_slice() {
            [] => Ok(arrow::array::new_empty_array(&self.data_type)),
            arrays => Ok(concat(arrays)?),
        }
    }
}

impl Accumulator for Sorted {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        account::check().map_err(stopped)?;
        let mut there = arrow::compute::filter(&values[0], &is_not_null(&values[0])?)?;
        if let Some(texts) = there.as_string_view_opt() {
            // Copies only this group's strings rather than keeping the buffers of the whole batch
            // alive.
            there = Arc::new(texts.gc());
        }
        if !there.is_empty() {
            self.arrays.push(there);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = self.all()?;
        let Some(rank) = (self.choose)(all.len()) else {
            return ScalarValue::try_from(&self.data_type);
        };
        ScalarValue::try_from_array(&all, row_of_rank(&all, rank)?)
    }

    fn size(&self) -> usize {
        let bytes = |array: &ArrayRef| array.get_array_memory_size() + size_of::<ArrayRef>();
        size_of_val(self) + self.arrays.iter().map(bytes).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let list = arrow::array::ListArray::new(
            Arc::new(arrow::datatypes::Field::new_list_field(self.data_type.clone(), true)),
            arrow::buffer::OffsetBuffer::from_lengths([self.arrays.iter().map(Array::len).sum()]),
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

/// Number of comparisons between checks of the query's deadline and cancellation.
const COMPARISONS_BETWEEN_CHECKS: usize = 1 << 16;

/// Returns the row of the value with this 0-based rank.
///
/// Arrow's sort cannot be cancelled, so this function uses a quickselect that checks the deadline
/// as it runs. Its pivots are pseudo-random, so it takes linear time on average regardless of the
/// row order.
fn row_of_rank(values: &ArrayRef, rank: usize) -> Result<usize> {
    account::check_allocation(values.len() * size_of::<u32>()).map_err(stopped)?;
    let compare = make_comparator(values, values, SortOptions::default())?;
    let mut rows: Vec<u32> = (0..values.len() as u32).collect();
    let (mut low, mut high) = (0, rows.len());
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut comparisons = 0;
    loop {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let pivot = rows[low + (random % (high - low) as u64) as usize] as usize;
        let (mut less, mut at, mut greater) = (low, low, high);
        while at < greater {
            comparisons += 1;
            if comparisons % COMPARISONS_BETWEEN_CHECKS == 0 {
                account::check().map_err(stopped)?;
            }
            match compare(rows[at] as usize, pivot) {
                Ordering::Less => {
                    rows.swap(less, at);
                    less += 1;
                    at += 1;
                }
                Ordering::Equal => at += 1,
                Ordering::Greater => {
                    greater -= 1;
                    rows.swap(at, greater);
                }
            }
        }
        match rank {
            _ if rank < less => high = less,
            _ if rank < greater => return Ok(pivot),
            _ => low = greater,
        }
    }
}
