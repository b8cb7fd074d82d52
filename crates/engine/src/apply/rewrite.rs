//! Statements that change existing rows: UPDATE, DELETE, and ALTER COLUMN … TYPE.
//!
//! While the table's other writers wait, a plan finds the rows and identifies them by position. A
//! single commit then changes either all of these rows or none. It logs the new cells if there are
//! few; otherwise it adopts new segments.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Int64Type, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Column;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::cell_bytes;
use tidemark_planner::{BoundDelete, BoundStatement};
use tidemark_storage::{
    BulkUpdate, Change, Delete, TableId, TableSchema, TableSnapshot, TimeRange, Update, WriteLock,
};
use tidemark_types::{EngineError, EngineResult, ErrorCode, account, failpoint};
use tokio::sync::mpsc;

use crate::database::Database;
use crate::database::physical::physical_plan;
use crate::execution::check_faults;
use crate::execution::source::BatchSource;
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;
use crate::runtime::registry::Registration;
use tidemark_operators::from_datafusion;

/// Maximum size in bytes of the new cells that a statement holds in memory and logs. A statement
/// that exceeds this limit rewrites the partitions.
const MAX_LOGGED_BYTES: usize = 64 << 20;

/// Returns the table whose rows the statement changes.
pub(crate) fn target(bound: &BoundStatement) -> Option<TableId> {
    match bound {
        BoundStatement::Update(update) => Some(update.table.schema().id),
        BoundStatement::Delete(delete) => Some(delete.table.schema().id),
        BoundStatement::SchemaChange(change) => {
            change.conversion.as_ref().map(|conversion| conversion.table.schema().id)
        }
        _ => None,
    }
}

/// Blocks the table's other writers. If a writer is active, waits until it has finished, without
/// occupying a worker.
pub(crate) async fn lock_writes(
    database: &Arc<Database>,
    table: TableId,
) -> EngineResult<Arc<WriteLock>> {
    let storage = Arc::clone(&database.storage);
    guard::run_blocking("hold_writes", move || Ok(Arc::new(storage.lock_writes(table)))).await
}

/// Returns the plan that finds the rows; `None` if the statement deletes all rows.
pub(crate) fn plan(bound: &BoundStatement) -> EngineResult<Option<&LogicalPlan>> {
    match bound {
        BoundStatement::Update(update) => Ok(Some(&update.plan)),
        BoundStatement::Delete(delete) => Ok(delete.plan.as_ref()),
        BoundStatement::SchemaChange(change) => {
            let conversion = change.conversion.as_ref().ok_or_else(no_change)?;
            Ok(Some(&conversion.plan))
        }
        _ => Err(no_change()),
    }
}

fn no_change() -> EngineError {
    EngineError::internal("expected an UPDATE or DELETE")
}

/// Result of a statement that changed rows.
pub(crate) struct Rewritten {
    /// Number of rows changed.
    pub(crate) rows: u64,
    /// The RETURNING results, if any.
    pub(crate) answer: Option<RecordBatch>,
}

impl Rewritten {
    fn of(rows: u64) -> Self {
        Self { rows, answer: None }
    }
}

/// A statement that changes rows, and its inputs.
struct Rewrite<'a> {
    database: &'a Arc<Database>,
    lock: &'a Arc<WriteLock>,
    query: &'a Registration,
    plan: &'a LogicalPlan,
    base: Arc<TableSnapshot>,
    columns: Vec<usize>,
    /// Number of RETURNING columns, which follow the new-cell columns.
    returned: usize,
    /// The new table definition, if a column is converted.
    replace: Option<TableSchema>,
}

pub(crate) async fn apply(
    database: &Arc<Database>,
    bound: BoundStatement,
    hold: &Arc<WriteLock>,
    query: &Registration,
) -> EngineResult<Rewritten> {
    if let BoundStatement::Delete(delete) = bound {
        return self::delete(database, delete, hold, query).await;
    }
    let plan = &plan(&bound)?.ok_or_else(no_change)?.clone();
    let returned = bound.columns().len();
    let (base, columns, replace) = match bound {
        BoundStatement::Update(update) => (update.table, update.columns, None),
        BoundStatement::SchemaChange(change) => {
            let conversion = change.conversion.ok_or_else(no_change)?;
            (conversion.table, vec![conversion.column], change.replace.into_iter().next())
        }
        _ => return Err(no_change()),
    };
    Rewrite { database, lock: hold, query, plan, base, columns, returned, replace }.run().await
}

/// Deletes the rows.
async fn delete(
    database: &Arc<Database>,
    delete: BoundDelete,
    hold: &Arc<WriteLock>,
    query: &Registration,
) -> EngineResult<Rewritten> {
    let BoundDelete { table: base, plan, returning, .. } = delete;
    let Some(plan) = plan else {
        let (rows, table) = (base.row_count()?, base.schema().id);
        // Views apply deletions made by DELETE but ignore TRUNCATE.
        let is_watched = database.snapshot()?.touched(table).is_some();
        let ranges = vec![TimeRange { lo: i64::MIN, hi: i64::MAX }];
        let all = Change::Clear { table, ranges };
        let change = if is_watched { all } else { Change::Truncate(table) };
        commit(hold, vec![change], &query.token).await?;
        return Ok(Rewritten::of(rows));
    };
    if !returning.is_empty() {
        let columns = Vec::new();
        let (plan, returned, replace) = (&plan, returning.len(), None);
        let rewrite =
            Rewrite { database, lock: hold, query, plan, base, columns, returned, replace };
        return rewrite.run().await;
    }
    let plan = physical_plan(database, &plan).await?;
    let pool: Arc<dyn MemoryPool> = Arc::clone(&query.memory) as _;
    // Tracks the memory used by the row ids. The log stores the ids as ranges.
    let in_memory = MemoryConsumer::new("DELETE").register(&pool);
    let faults = tidemark_vfs::faults();
    let mut source = BatchSource::start(&plan, &database.task_context(query)?)?;
    let mut rows: Vec<i64> = Vec::new();
    while let Some(batch) = source.next().await? {
        in_memory.try_grow(batch.num_rows() * size_of::<i64>()).map_err(from_datafusion)?;
        rows.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
    }
    check_faults(faults)?;
    if !rows.is_sorted_by(|a, b| a < b) {
        let work = move || {
            rows.sort_unstable();
            rows.dedup();
            Ok(rows)
        };
        rows = guard::run_on_thread("rows", work).await?;
    }
    let count = rows.len() as u64;
    if count > 0 {
        commit(hold, vec![Change::Delete(Delete { base, rows })], &query.token).await?;
    }
    Ok(Rewritten::of(count))
}

async fn commit(
    hold: &Arc<WriteLock>,
    changes: Vec<Change>,
    token: &CancelToken,
) -> EngineResult<()> {
    let (hold, token) = (Arc::clone(hold), token.clone());
    let work = move || {
        failpoint::hit("engine.rewrite")?;
        token.settle(|| hold.commit(changes))
    };
    guard::run_on_thread("rewrite", work).await.map(drop)
}

/// The new cells found so far.
enum Found {
    /// All new cells.
    All(Vec<i64>, Vec<ArrayRef>),
    /// The first new cells and the source of the remaining cells. Together they exceed the memory
    /// limit.
    More(Vec<RecordBatch>, BatchSource),
}

impl Rewrite<'_> {
    async fn run(self) -> EngineResult<Rewritten> {
        let faults = tidemark_vfs::faults();
        let plan = physical_plan(self.database, self.plan).await?;
        match self.find(&plan).await? {
            Found::All(rows, mut values) => {
                check_faults(faults)?;
                let answer = self.answer(&plan, rows.len(), &mut values)?;
                let rows = self.commit(rows, values).await?;
                Ok(Rewritten { rows, answer })
            }
            Found::More(..) if self.returned > 0 => {
                let max = MAX_LOGGED_BYTES >> 20;
                let message =
                    format!("RETURNING result is too large: at most {max} MiB of rows are allowed");
                Err(EngineError::new(ErrorCode::ResourceLimit, message))
            }
            Found::More(in_memory, source) => {
                if let Some(count) = self.stream(in_memory, source, faults).await? {
                    return Ok(Rewritten::of(count));
                }
                // A join returned the rows out of order, so they are sorted. The sort may spill.
                let sorted = physical_plan(self.database, &by_row(self.plan)?).await?;
                let source = self.start(&sorted)?;
                let count = self.stream(Vec::new(), source, faults).await?;
                let count =
                    count.ok_or_else(|| EngineError::internal("sorted rows are out of order"));
                count.map(Rewritten::of)
            }
        }
    }

    /// Splits off the RETURNING columns, which are the last columns.
    fn answer(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        rows: usize,
        values: &mut Vec<ArrayRef>,
    ) -> EngineResult<Option<RecordBatch>> {
        if self.returned == 0 {
            return Ok(None);
        }
        let cells = values.len().saturating_sub(self.returned);
        let fields = plan.schema().fields()[1 + cells..].to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let columns = values.split_off(cells);
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
            .map(Some)
            .map_err(|error| EngineError::internal(error.to_string()))
    }

    fn start(&self, plan: &Arc<dyn ExecutionPlan>) -> EngineResult<BatchSource> {
        BatchSource::start(plan, &self.database.task_context(self.query)?)
    }

    /// Runs the plan. Returns distinct ascending row ids and their new cells.
    async fn find(&self, plan: &Arc<dyn ExecutionPlan>) -> EngineResult<Found> {
        let schema = plan.schema();
        let mut source = self.start(plan)?;
        let (mut batches, mut bytes) = (Vec::new(), 0);
        while let Some(batch) = source.next().await? {
            // Counts a string once per cell: cells that share a string in memory are logged
            // separately.
            bytes += batch.get_array_memory_size().max(cell_bytes(&batch));
            batches.push(batch);
            if bytes > MAX_LOGGED_BYTES {
                return Ok(Found::More(batches, source));
            }
        }
        let work = move || in_order(&concat(&schema, &batches)?);
        let (rows, values) = guard::run_on_thread("new-cells", work).await?;
        Ok(Found::All(rows, values))
    }

    /// Commits all cells in one log record.
    async fn commit(self, rows: Vec<i64>, values: Vec<ArrayRef>) -> EngineResult<u64> {
        // Converted cells have the types of the new definition, which the same commit applies.
        let schema_version = self.base.schema().version + u64::from(self.replace.is_some());
        let count = rows.len() as u64;
        let mut changes: Vec<Change> =
            self.replace.into_iter().map(Change::ReplaceSchema).collect();
        if !rows.is_empty() {
            let (base, columns) = (self.base, self.columns);
            changes.push(if columns.is_empty() {
                Change::Delete(Delete { base, rows })
            } else {
                Change::Update(Update { base, schema_version, columns, rows, values })
            });
        }
        if !changes.is_empty() {
            commit(self.lock, changes, &self.query.token).await?;
        }
        Ok(count)
    }

    /// Streams the cells into new segments. Either all of them become visible at the end, or none
    /// do. Returns the number of rows changed. Returns `None` without changing anything if the row
    /// ids do not ascend.
    async fn stream(
        &self,
        in_memory: Vec<RecordBatch>,
        mut source: BatchSource,
        faults: u64,
    ) -> EngineResult<Option<u64>> {
        let (sender, receiver) = mpsc::channel::<RecordBatch>(2);
        let (hold, token) = (Arc::clone(self.lock), self.query.token.clone());
        let (base, replace) = (Arc::clone(&self.base), self.replace.clone());
        let columns = self.columns.clone();
        let work = move || {
            failpoint::hit("engine.rewrite")?;
            let update = hold.begin_update(base, replace, columns)?;
            write_all(update, receiver, (&token, faults))
        };
        let writer = tokio::spawn(guard::run_on_thread("rewrite", work));
        let mut in_memory = in_memory.into_iter();
        let mut last = -1;
        loop {
            let batch = match in_memory.next() {
                Some(batch) => batch,
                None => match source.next().await? {
                    Some(batch) => batch,
                    // An empty batch marks the end.
                    None => RecordBatch::new_empty(Arc::new(Schema::empty())),
                },
            };
            if batch.num_rows() > 0 && !ascends(&batch, &mut last) {
                return Ok(None);
            }
            let is_end = batch.num_rows() == 0;
            // Sending fails only if the writer has failed. The writer's error is returned below.
            if sender.send(batch).await.is_err() || is_end {
                break;
            }
        }
        drop(sender);
        writer.await.map_err(|error| EngineError::internal(error.to_string()))?.map(Some)
    }
}

/// Whether a batch's row ids ascend and are at least `last`; duplicates are allowed.
fn ascends(batch: &RecordBatch, last: &mut i64) -> bool {
    let rows: &Int64Array = batch.column(0).as_primitive::<Int64Type>();
    let rows = rows.values();
    let goes_on = rows.first().is_some_and(|&first| first >= *last) && rows.is_sorted();
    *last = rows.last().copied().unwrap_or(*last);
    goes_on
}

/// Writes batches until an empty batch arrives. If the channel closes earlier, everything is
/// discarded.
fn write_all(
    mut update: BulkUpdate,
    mut batches: mpsc::Receiver<RecordBatch>,
    (token, faults): (&CancelToken, u64),
) -> EngineResult<u64> {
    let (mut count, mut last) = (0, None);
    while let Some(batch) = batches.blocking_recv() {
        if batch.num_rows() == 0 {
            check_faults(faults)?;
            let written = update.close()?;
            token.settle(|| written.commit())?;
            return Ok(count);
        }
        account::check_allocation(cell_bytes(&batch))?;
        let (mut rows, mut values) = in_order(&batch)?;
        if rows.first().copied() == last {
            // The previous batch ended with the same row; the cells in that batch take precedence
            // over these.
            rows.remove(0);
            values = values.iter().map(|cells| cells.slice(1, cells.len() - 1)).collect();
        }
        update.push(&rows, &values)?;
        count += rows.len() as u64;
        last = rows.last().copied().or(last);
    }
    Err(EngineError::new(ErrorCode::Cancelled, "cancelled by user"))
}

/// Sorts the plan by row id, its first column.
fn by_row(plan: &LogicalPlan) -> EngineResult<LogicalPlan> {
    let row = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let sorted = LogicalPlanBuilder::from(plan.clone()).sort([row.sort(true, false)]);
    sorted.and_then(LogicalPlanBuilder::build).map_err(from_datafusion)
}

fn concat(
    schema: &arrow::datatypes::SchemaRef,
    batches: &[RecordBatch],
) -> EngineResult<RecordBatch> {
    concat_batches(schema, batches).map_err(|error| EngineError::internal(error.to_string()))
}

/// Sorts by row id. If a row occurs several times, its first cells are used.
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
    let used = columns.iter().map(|column| {
        take(column, &order, None).map_err(|error| EngineError::internal(error.to_string()))
    });
    Ok((rows, used.collect::<EngineResult<_>>()?))
}
