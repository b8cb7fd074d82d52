//! Statements that give rows new cells: UPDATE, and ALTER COLUMN … TYPE.
//!
//! The rows are looked for while the table's other writers wait, and named by their places. One
//! commit then changes all of them, or none.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use tidemark_planner::BoundStatement;
use tidemark_storage::{Change, TableId, Update, WriteHold};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::Database;
use crate::execution::source::BatchSource;
use crate::guard;
use crate::maintenance::check_faults;
use crate::statement::physical_plan;
use crate::write::schema_changes;

/// New cells a statement may hold in memory, bytes.
const MOST_BYTES: usize = 2 << 30;

/// The table whose rows the statement gives new cells.
pub(crate) fn target(bound: &BoundStatement) -> Option<TableId> {
    match bound {
        BoundStatement::Update(update) => Some(update.table.schema().id),
        BoundStatement::SchemaChange(change) => {
            change.conversion.as_ref().map(|conversion| conversion.table.schema().id)
        }
        _ => None,
    }
}

/// Holds the table's other writers back. Waits for one of them off the workers.
pub(crate) async fn hold(database: &Arc<Database>, table: TableId) -> EngineResult<Arc<WriteHold>> {
    let storage = Arc::clone(&database.storage);
    guard::run_blocking("hold_writes", move || Ok(Arc::new(storage.hold_writes(table)))).await
}

/// Runs the statement; answers the rows changed.
pub(crate) async fn apply(
    database: &Arc<Database>,
    bound: BoundStatement,
    hold: &Arc<WriteHold>,
) -> EngineResult<u64> {
    let (base, columns, plan, mut changes) = match bound {
        BoundStatement::Update(update) => (update.table, update.columns, update.plan, Vec::new()),
        BoundStatement::SchemaChange(change) => {
            let changes = schema_changes(&change);
            let conversion = change.conversion;
            let conversion =
                conversion.ok_or_else(|| EngineError::internal("no column to convert"))?;
            (conversion.table, vec![conversion.column], conversion.plan, changes)
        }
        _ => return Err(EngineError::internal("a statement that changes no cells")),
    };
    // A conversion's cells are those of the definition that the same commit puts in place.
    let schema_version = base.schema().version + u64::from(!changes.is_empty());
    let (rows, values) = new_cells(database, &plan).await?;
    let count = rows.len() as u64;
    if !rows.is_empty() {
        let update = Update { base, schema_version, columns, rows, values };
        changes.push(Change::Update(update));
    }
    if !changes.is_empty() {
        let hold = Arc::clone(hold);
        let work = move || {
            failpoint::hit("engine.rewrite")?;
            hold.commit(changes)
        };
        guard::run_apart("rewrite", work).await?;
    }
    Ok(count)
}

/// Runs the plan: row identifiers, ascending and each once, and the new cells beside them.
async fn new_cells(
    database: &Arc<Database>,
    plan: &LogicalPlan,
) -> EngineResult<(Vec<i64>, Vec<ArrayRef>)> {
    let faults = tidemark_vfs::faults();
    let plan = physical_plan(database, plan).await?;
    let schema = plan.schema();
    let mut source = BatchSource::start(&plan, &database.state.task_ctx())?;
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = source.next().await? {
        bytes += batch.get_array_memory_size();
        if bytes > MOST_BYTES {
            return Err(EngineError::new(
                ErrorCode::ResourceLimit,
                format!("the statement changes more than {} MiB of cells", MOST_BYTES >> 20),
            )
            .with_hint("change fewer rows at a time, with WHERE on the designated timestamp"));
        }
        batches.push(batch);
    }
    let cells =
        guard::run_apart("new-cells", move || in_order(&concat(&schema, &batches)?)).await?;
    check_faults(faults)?;
    Ok(cells)
}

fn concat(
    schema: &arrow::datatypes::SchemaRef,
    batches: &[RecordBatch],
) -> EngineResult<RecordBatch> {
    concat_batches(schema, batches).map_err(|error| EngineError::internal(error.to_string()))
}

/// Sorts by row; of several cells for one row the first counts.
fn in_order(batch: &RecordBatch) -> EngineResult<(Vec<i64>, Vec<ArrayRef>)> {
    let found: &Int64Array = batch.column(0).as_primitive::<Int64Type>();
    let found = found.values();
    let columns = &batch.columns()[1..];
    if found.is_sorted_by(|a, b| a < b) {
        return Ok((found.to_vec(), columns.to_vec()));
    }
    let mut order: Vec<u64> = (0..found.len() as u64).collect();
    order.sort_by_key(|&index| found[index as usize]);
    order.dedup_by_key(|index| found[*index as usize]);
    let rows = order.iter().map(|&index| found[index as usize]).collect();
    let order = UInt64Array::from(order);
    let taken = columns.iter().map(|column| {
        take(column, &order, None).map_err(|error| EngineError::internal(error.to_string()))
    });
    Ok((rows, taken.collect::<EngineResult<_>>()?))
}
