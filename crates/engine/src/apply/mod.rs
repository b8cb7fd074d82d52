//! Executes statements that modify the database: INSERT, CREATE TABLE, DROP and similar.

pub(crate) mod maintenance;
pub(crate) mod rewrite;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use tidemark_border::Summary;
use tidemark_catalog::{IncrementalState, IncrementalView, View, set_table_type};
use tidemark_operators::cell_bytes;
use tidemark_planner::{
    BoundCreateTable, BoundFormat, BoundInsert, BoundSchemaChange, BoundStatement,
    IncrementalAction, InsertSource, Returning,
};
use tidemark_storage::{BulkTarget, Change, CommitReceipt, TableSchema};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::Database;
use crate::database::physical::physical_plan;
use crate::execution::check_faults;
use crate::execution::source::BatchSource;
use crate::ingest::stage::{stage_all, write_all};
use crate::ingest::transaction::Transaction;
use crate::ingest::writer::Writer;
use crate::runtime::cancel::CancelToken;
use crate::runtime::guard;
use crate::runtime::registry::Registration;

/// Maximum size in bytes of the rows that an INSERT with RETURNING holds in memory.
const MAX_RETURNED_BYTES: usize = 256 << 20;

/// Applies a bound statement and returns the number of rows written.
pub(crate) async fn apply(
    database: &Arc<Database>,
    bound: BoundStatement,
    transaction: Option<&Transaction>,
    query: &Registration,
) -> EngineResult<u64> {
    match bound {
        BoundStatement::Insert(insert) => self::insert(database, insert, transaction, query).await,
        BoundStatement::CreateTable(create) => create_table(database, create, query).await,
        BoundStatement::SchemaChange(change) => {
            let changes = schema_changes(&change);
            if !changes.is_empty() {
                commit(database, changes, &query.token).await?;
            }
            if change.restart_identity {
                restart_numbers(database, &change);
            }
            for format in change.formats {
                convert(database, format, &query.token).await?;
            }
            if change.squash {
                squash(database).await?;
            }
            Ok(0)
        }
        BoundStatement::Update(_) | BoundStatement::Delete(_) => {
            Err(EngineError::internal("UPDATE or DELETE without holding the table's write lock"))
        }
        BoundStatement::ViewChange(view) => {
            if let Some(change) = view.change {
                commit(database, vec![change], &query.token).await?;
            }
            Ok(0)
        }
        BoundStatement::Incremental(bound) => {
            apply_materialized(database, bound.action, &query.token).await
        }
        BoundStatement::Maintenance(maintenance) => {
            let database = Arc::clone(database);
            let work = move || maintenance::run(&database, &maintenance);
            guard::run_blocking("maintenance", work).await.map(|()| 0)
        }
        BoundStatement::CancelQuery { id, at, of } => {
            if database.cancel_query_of(id, of.as_deref()) {
                Ok(0)
            } else {
                Err(EngineError::new(
                    ErrorCode::InvalidValue,
                    format!("query to cancel not found [id={id}]"),
                )
                .at(at))
            }
        }
        BoundStatement::Session { .. } | BoundStatement::Empty => Ok(0),
        // The answers to the binder's questions refer to an older schema, so the statement is
        // planned again.
        BoundStatement::Asking(_) => Err(EngineError::new(
            ErrorCode::Replan,
            "the schema changed since the statement was prepared",
        )),
        BoundStatement::Query(_) | BoundStatement::Explain(_) => {
            Err(EngineError::internal("expected a change, found a query"))
        }
    }
}

/// Applies a statement to a materialized or live view.
async fn apply_materialized(
    database: &Arc<Database>,
    action: IncrementalAction,
    token: &CancelToken,
) -> EngineResult<u64> {
    match action {
        IncrementalAction::Create(created) => {
            let (schema, view) = *created;
            let changes = |view| made_view(database, (schema.clone(), view));
            commit_view(database, view, changes, token).await?;
        }
        IncrementalAction::Redefine(view) => {
            commit_view(database, *view, |view| Ok(vec![view.put()?]), token).await?;
        }
        IncrementalAction::Change(changes) => {
            commit(database, changes, token).await?;
        }
        IncrementalAction::Nothing => {}
    }
    Ok(0)
}

/// Inserts the given batches in a single commit.
pub(crate) async fn insert_batches(
    database: &Arc<Database>,
    insert: &BoundInsert,
    batches: Vec<RecordBatch>,
    transaction: Option<&Transaction>,
) -> EngineResult<Summary> {
    let started = std::time::Instant::now();
    let token = CancelToken::default();
    let rows_affected = append_all(database, insert, batches, transaction, &token).await?;
    Ok(Summary {
        rows_affected,
        execute_nanos: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        ..Summary::default()
    })
}

async fn insert(
    database: &Arc<Database>,
    insert: BoundInsert,
    transaction: Option<&Transaction>,
    query: &Registration,
) -> EngineResult<u64> {
    match &insert.source {
        InsertSource::Batch(batch) => {
            append_all(database, &insert, vec![batch.clone()], transaction, &query.token).await
        }
        InsertSource::Template(_) => Err(EngineError::new(
            ErrorCode::InvalidValue,
            "the statement's parameter values are missing",
        )),
        InsertSource::Plan(plan) => {
            insert_select(database, &insert, plan, transaction, query).await
        }
    }
}

/// Executes an INSERT with RETURNING and returns the RETURNING results.
pub(crate) async fn insert_returning(
    database: &Arc<Database>,
    insert: &BoundInsert,
    returning: &Returning,
    transaction: Option<&Transaction>,
    query: &Registration,
) -> EngineResult<Vec<RecordBatch>> {
    let batches = match &insert.source {
        InsertSource::Batch(batch) => vec![batch.clone()],
        InsertSource::Template(_) => {
            return Err(EngineError::internal("INSERT without the values of its parameters"));
        }
        InsertSource::Plan(plan) => {
            let faults = tidemark_vfs::faults();
            let plan = physical_plan(database, plan).await?;
            let _turn = database.admit(plan.as_ref(), query).await?;
            let mut source = BatchSource::start(&plan, &database.task_context(query)?)?;
            let (mut batches, mut bytes) = (Vec::new(), 0);
            while let Some(batch) = source.next().await? {
                bytes += batch.get_array_memory_size().max(cell_bytes(&batch));
                if bytes > MAX_RETURNED_BYTES {
                    let message = format!(
                        "RETURNING result is too large: at most {} MiB of rows are allowed",
                        MAX_RETURNED_BYTES >> 20
                    );
                    return Err(EngineError::new(ErrorCode::ResourceLimit, message));
                }
                batches.push(batch);
            }
            check_faults(faults)?;
            batches
        }
    };
    // Evaluated before the commit so that an expression error leaves no rows behind.
    let answers = batches.iter().map(|batch| returning.rows(batch));
    let answers = answers.collect::<EngineResult<Vec<_>>>()?;
    append_all(database, insert, batches, transaction, &query.token).await?;
    Ok(answers)
}

async fn insert_select(
    database: &Arc<Database>,
    insert: &BoundInsert,
    plan: &LogicalPlan,
    transaction: Option<&Transaction>,
    query: &Registration,
) -> EngineResult<u64> {
    let faults = tidemark_vfs::faults();
    let plan = physical_plan(database, plan).await?;
    let _turn = database.admit(plan.as_ref(), query).await?;
    let source = BatchSource::start(&plan, &database.task_context(query)?)?;
    let mut writer = Writer::new(database);
    let table = writer.table(insert.table.schema());
    write_all(writer, table, source, transaction, (&query.token, faults)).await
}

/// Appends all rows in a single commit. Inside a transaction block the rows join the block's
/// commit.
async fn append_all(
    database: &Arc<Database>,
    insert: &BoundInsert,
    batches: Vec<RecordBatch>,
    transaction: Option<&Transaction>,
    token: &CancelToken,
) -> EngineResult<u64> {
    let mut writer = Writer::new(database);
    let table = writer.table(insert.table.schema());
    batches.into_iter().try_for_each(|batch| writer.buffer(table, batch))?;
    writer.finish(transaction, token).await
}

async fn create_table(
    database: &Arc<Database>,
    create: BoundCreateTable,
    query: &Registration,
) -> EngineResult<u64> {
    let Some(schema) = create.schema else { return Ok(0) };
    let Some(plan) = create.source else {
        commit(database, vec![Change::CreateTable(schema)], &query.token).await?;
        return Ok(0);
    };
    let faults = tidemark_vfs::faults();
    let plan = physical_plan(database, &plan).await?;
    let _turn = database.admit(plan.as_ref(), query).await?;
    let source = BatchSource::start(&plan, &database.task_context(query)?)?;
    let database = Arc::clone(database);
    let (writer, table) = guard::run_blocking("create_table", move || {
        let mut writer = Writer::new(&database);
        let (table, _) = writer.staged(BulkTarget::Create(schema))?;
        Ok((writer, table))
    })
    .await?;
    stage_all(writer, table, source, (&query.token, faults)).await
}

/// Commits a view's definition. If the view waits for the next commit to its base, the definition
/// records the last transaction before that commit. If the base changes before the definition is
/// committed, the commit is retried.
async fn commit_view(
    database: &Arc<Database>,
    view: IncrementalView,
    changes: impl Fn(IncrementalView) -> EngineResult<Vec<Change>>,
    token: &CancelToken,
) -> EngineResult<()> {
    let base = view.base;
    if !view.waits_for_commit() {
        return commit(database, changes(view)?, token).await.map(|_| ());
    }
    if database.snapshot()?.touched_record(base).is_none() {
        commit(database, vec![Change::Watch { table: base, through: 0 }], token).await?;
    }
    loop {
        if let Some(error) = token.why_stopped() {
            return Err(error);
        }
        let snapshot = database.snapshot()?;
        let view = IncrementalView { made_after: snapshot.lsn(), ..view.clone() };
        let mut all = changes(view)?;
        all.push(Change::expect_untouched(&snapshot, base));
        match commit(database, all, token).await {
            Err(error) if error.code == ErrorCode::Replan => {
                // A retry can succeed only if the base has changed.
                let now = database.snapshot()?;
                if now.touched_record(base) == snapshot.touched_record(base) {
                    return Err(error);
                }
            }
            outcome => return outcome.map(|_| ()),
        }
    }
}

/// Returns the changes that create a materialized or live view and its empty table.
fn made_view(
    database: &Database,
    (schema, view): (TableSchema, IncrementalView),
) -> EngineResult<Vec<Change>> {
    let id = database.storage.reserve_table_id();
    let mut changes = vec![
        Change::CreateTable(TableSchema { id, ..schema }),
        IncrementalView { table: id, ..view.clone() }.put()?,
        IncrementalState::default().put(id)?,
        Change::Watch { table: view.base, through: 0 },
    ];
    if let Some(live) = view.live {
        changes.push(live.put(id)?);
    }
    Ok(changes)
}

/// Restarts the sequence values of truncated tables.
fn restart_numbers(database: &Database, change: &BoundSchemaChange) {
    for schema in change.truncate.iter().map(|table| table.schema()) {
        for column in schema.columns.iter().filter(|column| column.default.is_some()) {
            let last = database.sources.last_number(schema.identity(), column.identity());
            last.store(0, Ordering::Release);
        }
    }
}

fn schema_changes(change: &BoundSchemaChange) -> Vec<Change> {
    let drops = change.drop.iter().map(|table| Change::DropTable(table.schema().id));
    let views = change.drop_views.iter().map(|view| View::delete(view));
    let truncates = change.truncate.iter().map(|table| Change::Truncate(table.schema().id));
    let partitions = change.partitions.iter().map(|partitions| Change::Partitions {
        table: partitions.table.schema().id,
        action: partitions.action,
        floors: partitions.floors.clone(),
    });
    let replaces = change.replace.iter().cloned().map(Change::ReplaceSchema);
    let types = change.table_types.iter().map(|(table, wal)| set_table_type(*table, *wal));
    let records = change.records.iter().cloned();
    let changes = drops.chain(views).chain(records).chain(truncates).chain(partitions);
    changes.chain(replaces).chain(types).collect()
}

/// Converts partitions to the requested file format.
async fn convert(
    database: &Arc<Database>,
    format: BoundFormat,
    token: &CancelToken,
) -> EngineResult<()> {
    let token = token.clone();
    let storage = Arc::clone(&database.storage);
    let work = move || {
        failpoint::hit("engine.convert")?;
        let table = format.table.schema().id;
        token.settle(|| storage.convert_partitions(table, &format.floors, format.to))
    };
    guard::run_blocking("convert", work).await
}

/// Merges split partitions by running a checkpoint.
async fn squash(database: &Arc<Database>) -> EngineResult<()> {
    let storage = Arc::clone(&database.storage);
    guard::run_blocking("squash", move || storage.checkpoint()).await
}

/// Commits on a blocking thread, because writing the log may sync the disk.
async fn commit(
    database: &Arc<Database>,
    changes: Vec<Change>,
    token: &CancelToken,
) -> EngineResult<CommitReceipt> {
    let token = token.clone();
    let storage = Arc::clone(&database.storage);
    guard::run_blocking("commit", move || {
        failpoint::hit("engine.commit")?;
        token.settle(|| storage.commit(changes))
    })
    .await
}
