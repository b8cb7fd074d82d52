//! Plans that are done before a thread could be woken for them.

use datafusion::catalog::memory::{DataSourceExec, MemorySourceConfig};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// Rows that a projection computes in some microseconds.
const MOST_ROWS: usize = 64;

/// Whether a plan only projects a few rows that are in memory: `SELECT 1`, `SELECT count() FROM t`.
/// It reads no file, waits for nothing and yields nothing to wait for.
pub fn is_immediate(plan: &dyn ExecutionPlan) -> bool {
    if plan.is::<PlaceholderRowExec>() {
        return true;
    }
    if let Some(source) = plan.downcast_ref::<DataSourceExec>() {
        let memory = source.data_source().downcast_ref::<MemorySourceConfig>();
        let rows = |memory: &MemorySourceConfig| -> usize {
            memory.partitions().iter().flatten().map(arrow_array::RecordBatch::num_rows).sum()
        };
        return memory.is_some_and(|memory| rows(memory) <= MOST_ROWS);
    }
    let narrow = plan.is::<ProjectionExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>();
    narrow && plan.children().iter().all(|child| is_immediate(child.as_ref()))
}
