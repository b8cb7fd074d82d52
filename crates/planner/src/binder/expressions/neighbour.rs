//! `lag` and `lead` with IGNORE NULLS over whole partitions, in any row order. `DataFusion`'s
//! versions lose values when they look ahead past nulls.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use datafusion::arrow::compute::interleave;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::WindowUDF;
use tidemark_types::account;

use crate::binder::expressions::partition_kernel::{PartitionKernel, over_partitions};

/// Number of rows between cancellation checks.
const ROWS_BETWEEN_CHECKS: usize = 16 * 1024;

/// Returns the value of a preceding or following row. The distance counts only rows with a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Neighbour {
    is_ahead: bool,
    returns: DataType,
}

/// `lead` or `lag` over values of this type, skipping nulls.
pub(crate) fn not_null_neighbour(is_ahead: bool, returns: DataType) -> Arc<WindowUDF> {
    over_partitions(Neighbour { is_ahead, returns })
}

impl PartitionKernel for Neighbour {
    /// The arguments: the value, the distance counted in rows with a value, and the default if no
    /// such row exists.
    const ARGUMENTS: usize = 3;

    fn name(&self) -> &'static str {
        if self.is_ahead { "lead" } else { "lag" }
    }

    fn returns(&self) -> DataType {
        self.returns.clone()
    }

    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let (values, defaults) = (&arguments[0], &arguments[2]);
        let distances = arguments[1].as_primitive::<Int64Type>();
        let nulls = values.logical_nulls();
        let is_known = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let known: Vec<usize> = (0..rows).filter(|row| is_known(*row)).collect();
        let mut before = 0;
        let mut indices = Vec::with_capacity(rows);
        for row in 0..rows {
            if row.is_multiple_of(ROWS_BETWEEN_CHECKS) {
                account::check().map_err(|error| DataFusionError::External(Box::new(error)))?;
            }
            let distance = if distances.is_valid(row) { distances.value(row) } else { 1 };
            let distance = if self.is_ahead { distance } else { distance.saturating_neg() };
            let through = before + usize::from(is_known(row));
            let target = match distance {
                0 => Some(row),
                1.. => index_at(through, distance - 1).and_then(|at| known.get(at)).copied(),
                _ => index_at(before, distance).and_then(|at| known.get(at)).copied(),
            };
            indices.push(target.map_or((1, row), |target| (0, target)));
            before = through;
        }
        Ok(interleave(&[values.as_ref(), defaults.as_ref()], &indices)?)
    }
}

/// Adds a distance to an index; `None` if the result is negative.
fn index_at(index: usize, distance: i64) -> Option<usize> {
    usize::try_from(i64::try_from(index).ok()?.checked_add(distance)?).ok()
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn lag_and_lead_distances_count_only_non_null_rows() {
        let cells = [Some(1), None, Some(2), None, None, Some(3), Some(4), None];
        let values: ArrayRef = Arc::new(Int64Array::from(cells.to_vec()));
        let defaults: ArrayRef = Arc::new(Int64Array::from(vec![-1; cells.len()]));
        for is_ahead in [true, false] {
            for distance in -4..=9_i64 {
                let distances: ArrayRef = Arc::new(Int64Array::from(vec![distance; cells.len()]));
                let kernel = Neighbour { is_ahead, returns: DataType::Int64 };
                let arguments = [Arc::clone(&values), distances, Arc::clone(&defaults)];
                let found = kernel.evaluate(&arguments, cells.len()).unwrap();
                let found: Vec<Option<i64>> = found.as_primitive::<Int64Type>().iter().collect();
                let forward = if is_ahead { distance } else { -distance };
                let expected = (0..cells.len()).map(|row| {
                    let count = (forward.unsigned_abs() as usize).wrapping_sub(1);
                    match forward {
                        0 => cells[row],
                        1.. => {
                            let mut ahead = cells[row + 1..].iter().copied().flatten();
                            Some(ahead.nth(count).unwrap_or(-1))
                        }
                        _ => {
                            let mut behind = cells[..row].iter().rev().copied().flatten();
                            Some(behind.nth(count).unwrap_or(-1))
                        }
                    }
                });
                let expected: Vec<Option<i64>> = expected.collect();
                assert_eq!(found, expected, "{is_ahead} {distance}");
            }
        }
    }
}
