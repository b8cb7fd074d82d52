//! How much a plan has to do, as far as that is known before it runs.

use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::union::UnionExec;

use crate::fill::exec::FillExec;
use crate::scan::exec::TableScanExec;
use crate::scan::filtered::FilteredScanExec;
use crate::unnest::exec::UnnestElementsExec;

/// Rows a plan looks at: those its scans read, multiplied where inputs are joined, since each row
/// may meet every other. `None` where nobody knows: files, sequences, rows made of one.
pub fn rows_read(plan: &dyn ExecutionPlan) -> Option<usize> {
    if let Some(rows) = rows_of_leaf(plan) {
        return Some(rows);
    }
    if plan.is::<FillExec>() || plan.is::<UnnestElementsExec>() {
        return None;
    }
    let inputs = plan.children();
    let mut rows = inputs.iter().map(|input| rows_read(input.as_ref()));
    let first = rows.next()??;
    let together = if plan.is::<UnionExec>() { usize::saturating_add } else { join };
    rows.try_fold(first, |all, rows| Some(together(all, rows?)))
}

/// A join with no rows reads those of its other side.
fn join(left: usize, right: usize) -> usize {
    left.max(1).saturating_mul(right.max(1))
}

fn rows_of_leaf(plan: &dyn ExecutionPlan) -> Option<usize> {
    if let Some(scan) = plan.downcast_ref::<TableScanExec>() {
        return Some(scan.row_count());
    }
    if let Some(scan) = plan.downcast_ref::<FilteredScanExec>() {
        return Some(scan.row_count());
    }
    if plan.is::<PlaceholderRowExec>() {
        return Some(1);
    }
    let source = plan.downcast_ref::<DataSourceExec>()?;
    let memory = source.data_source().downcast_ref::<MemorySourceConfig>()?;
    Some(memory.partitions().iter().flatten().map(arrow_array::RecordBatch::num_rows).sum())
}
