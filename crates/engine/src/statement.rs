//! The life of a statement: prepare, describe, execute.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::array::StringViewArray;
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use tidemark_ast::Tree;
use tidemark_catalog::RecordKind;
use tidemark_operators::{is_immediate, rows_read};
use tidemark_planner::{
    Access, BoundInsert, BoundQuery, BoundStatement, InsertSource, ParameterType, Planner,
    StatementKind,
};
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType, failpoint, identifier};
use tidemark_wire::{RowEncoder, RowFormat};
use tokio::task::yield_now;

use crate::admission::Turn;
use crate::cancel::Deadline;
use crate::database::{Database, from_json};
use crate::errors::from_datafusion;
use crate::execution::cursor::{Chunk, Cursor, Running};
use crate::execution::source::BatchSource;
use crate::execution::stream::ResultStream;
use crate::execution::window::RowWindow;
use crate::execution::yielding::let_joins_yield;
use crate::explain;
use crate::guard;
use crate::options::{
    AccessDescription, ExecuteOptions, ResultColumn, StatementContext, StatementDescription,
    Summary,
};
use crate::parameter_rows::ParameterRows;
use crate::plans::{Kept, PlanSlot, PlannedQuery, ReadyQuery, is_volatile};
use crate::registry::Registration;
use crate::rewrite;
use crate::transaction::Transaction;
use crate::write;

/// Parameter values as text in the parameter's own type.
pub type ParameterValues = Vec<Option<String>>;

/// A bound statement. What it does is known from its first binding; each execution runs against
/// the newest snapshot, with the plan of an earlier one where that is still true.
pub struct Statement {
    database: Arc<Database>,
    tree: Arc<Tree>,
    context: Arc<StatementContext>,
    shape: Shape,
    /// The tables it names, with their identifier and their definition's version.
    tables: Vec<(String, Option<TableVersion>)>,
    /// Whether its description depends on those tables alone.
    steady: bool,
    slot: Arc<PlanSlot>,
    /// Whether its plan of last time was done before a worker could have been woken for it.
    was_small: AtomicBool,
    /// The rows of an INSERT as they were bound, for its first execution.
    insert: Mutex<Option<BoundInsert>>,
    transaction: Option<Arc<Transaction>>,
}

/// A table's identifier and its definition's version; 0 and a hash of the record for a view.
type TableVersion = (TableId, u64);

/// What a client is told about a statement.
#[derive(Debug)]
struct Shape {
    kind: StatementKind,
    command: String,
    columns: Vec<Field>,
    timestamp: Option<usize>,
    parameters: Vec<ParameterType>,
    accesses: Vec<Access>,
    notice: Option<String>,
}

impl Shape {
    fn of(bound: &BoundStatement) -> Self {
        Self {
            kind: bound.kind(),
            command: bound.command().to_owned(),
            columns: bound.columns(),
            timestamp: bound.timestamp(),
            parameters: bound.parameters().to_vec(),
            accesses: bound.accesses().to_vec(),
            notice: bound.notice().map(str::to_owned),
        }
    }
}

/// A binding, and whether it holds as long as its snapshot is the newest.
struct Binding {
    bound: BoundStatement,
    steady: bool,
}

/// How often rows are looked for again when others came in between.
const MOST_ATTEMPTS: usize = 8;

/// Rows a small statement looks at, at the most: read and encoded in less than a millisecond.
const SMALL_ROWS: usize = 1024;

/// Bytes of a small statement's answer, at the most: few rows may have long cells.
const SMALL_BYTES: usize = 64 * 1024;

/// Nodes of a small statement's tree, at the most. It runs on the stack of whoever calls, and
/// without views, whose text is not in the tree, it is no deeper than this.
const SMALL_NODES: usize = 256;

/// The answer of [`Statement::execute`].
pub struct ExecuteReply {
    /// The first rows.
    pub chunk: Option<Chunk>,
    /// Totals, when everything is in `chunk`.
    pub summary: Option<Summary>,
    /// The rest.
    pub stream: Option<ResultStream>,
    /// The epoch as long as which everybody who asks the same gets the same answer.
    pub kept_for: Option<u64>,
}

impl Statement {
    /// Binds a statement. `tree` is the JSON of a [`Tree`], `context` of a [`StatementContext`].
    pub fn prepare(
        database: &Arc<Database>,
        tree: &[u8],
        context: &[u8],
        transaction: Option<Arc<Transaction>>,
    ) -> EngineResult<Self> {
        failpoint::hit("engine.prepare")?;
        let tree = Tree::from_json(tree)
            .map_err(|error| EngineError::internal(format!("malformed statement tree: {error}")))?;
        let tree = Arc::new(tree);
        let context: StatementContext = from_json(context, "statement context")?;
        let snapshot = database.snapshot()?;
        database.plans.advance(snapshot.epoch());
        let Binding { bound, steady } = bind(database, &tree, &context, &snapshot, None)?;
        let shape = Shape::of(&bound);
        let tables = shape.accesses.iter();
        let tables = tables.map(|access| (access.table.clone(), version(&snapshot, &access.table)));
        let statement = Self {
            database: Arc::clone(database),
            tables: tables.collect(),
            steady,
            tree,
            context: Arc::new(context),
            shape,
            slot: Arc::default(),
            was_small: AtomicBool::default(),
            insert: Mutex::default(),
            transaction,
        };
        if steady && statement.shape.parameters.is_empty() {
            statement.keep_bound(snapshot.epoch(), bound)?;
        }
        Ok(statement)
    }

    /// Keeps what does not have to be bound again by the first execution.
    fn keep_bound(&self, epoch: u64, bound: BoundStatement) -> EngineResult<()> {
        match bound {
            BoundStatement::Query(query) if !is_volatile(&query.plan)? => {
                self.keep(epoch, Kept::Bound(Box::new(query)));
            }
            BoundStatement::Insert(insert) if matches!(insert.source, InsertSource::Batch(_)) => {
                *self.insert.lock() = Some(insert);
            }
            _ => {}
        }
        Ok(())
    }

    /// The bound INSERT of the first execution, while its table is as it was.
    fn take_insert(&self, snapshot: &Snapshot) -> Option<BoundInsert> {
        let insert = self.insert.lock().take()?;
        let schema = insert.table.schema();
        (version(snapshot, &schema.name) == Some((schema.id, schema.version))).then_some(insert)
    }

    /// The newest epoch, if preparing it anew would surely give the same description: it depends
    /// on tables alone, and those are as they were.
    pub fn current_epoch(&self) -> Option<u64> {
        let snapshot = self.database.check_open().and_then(|()| self.database.snapshot()).ok()?;
        let is_current = self.steady
            && self.tables.iter().all(|(name, known)| version(&snapshot, name) == *known);
        is_current.then(|| snapshot.epoch())
    }

    /// Whether its next execution is likely to be over before a worker could be woken for it. A
    /// caller may then poll it once where it stands.
    pub fn is_immediate(&self) -> bool {
        if self.was_small.load(Ordering::Relaxed) {
            return true;
        }
        let snapshot = self.database.snapshot();
        snapshot.is_ok_and(|snapshot| self.slot.has_rows(snapshot.epoch()))
    }

    /// Kind, columns, parameters and accesses.
    pub fn describe(&self) -> StatementDescription {
        let shape = &self.shape;
        StatementDescription {
            kind: kind_name(shape.kind),
            command: shape.command.clone(),
            columns: shape
                .columns
                .iter()
                .map(|field| ResultColumn::new(&field.name, field.sql_type))
                .collect(),
            timestamp: shape.timestamp.map_or(-1, |index| index as i64),
            parameters: shape.parameters.iter().map(|of| of.name()).collect(),
            accesses: shape
                .accesses
                .iter()
                .map(|access| AccessDescription {
                    table: access.table.clone(),
                    columns: access.columns.clone(),
                    permission: access.permission.to_owned(),
                    view: access.view.clone(),
                    owner: access.owner.clone(),
                    timestamp: self.designated(access),
                })
                .collect(),
            notice: shape.notice.clone(),
        }
    }

    /// The designated timestamp of a table that is read in part: some rights come along with it.
    /// Whoever sees everything needs none; a view is read with the rights of somebody else.
    fn designated(&self, access: &Access) -> Option<String> {
        if access.columns.is_empty() || (self.context.sight.is_none() && access.owner.is_none()) {
            return None;
        }
        let table = self.database.snapshot().ok()?.table(&access.table)?;
        let schema = table.schema();
        schema.timestamp.map(|index| schema.columns[index].name.clone())
    }

    /// The database this statement belongs to.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Enters an execution among those that run: from now on it can be cancelled.
    pub fn register(&self, query_id: Option<u64>) -> EngineResult<Registration> {
        self.database.registry.register(query_id, &self.context)
    }

    /// Runs the statement: the first chunk in the reply, the rest in its stream. Called on the
    /// database's own runtime it runs right there, else as a task of that runtime.
    pub async fn execute(
        self: &Arc<Self>,
        registration: Registration,
        parameters: ParameterValues,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        self.database.check_open()?;
        let statement = Arc::clone(self);
        let work = async move { statement.run(registration, parameters, options).await };
        let work = Box::pin(guard::catch_async("execute", work));
        let result = if self.database.is_current() {
            work.await
        } else {
            match self.database.handle().spawn(work).await {
                Ok(result) => result,
                Err(error) if error.is_cancelled() => Err(closed()),
                Err(error) => Err(EngineError::internal(error.to_string())),
            }
        };
        self.database.metrics.statements.add(1);
        if result.is_err() {
            self.database.metrics.failures.add(1);
        }
        result
    }

    /// Runs an INSERT once for many parameter rows, in one commit. The rows are as Bind messages
    /// have them: [`ParameterRows`].
    pub async fn execute_batch(self: &Arc<Self>, parameter_rows: Vec<u8>) -> EngineResult<Summary> {
        self.database.check_open()?;
        let statement = Arc::clone(self);
        let work = async move {
            failpoint::hit("engine.execute_batch")?;
            let snapshot = statement.snapshot()?;
            let BoundStatement::Insert(insert) = statement.bind(&snapshot, None)?.bound else {
                return Err(EngineError::new(
                    ErrorCode::NotSupported,
                    "only INSERT … VALUES runs in batches",
                ));
            };
            let rows = ParameterRows::read(&parameter_rows)?;
            write::insert_batch(&statement.database, &insert, &rows, statement.txn()).await
        };
        let task = self.database.handle().spawn(guard::catch_async("execute_batch", work));
        task.await.map_err(|error| EngineError::internal(error.to_string()))?
    }

    async fn run(
        self: Arc<Self>,
        mut registration: Registration,
        parameters: ParameterValues,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        failpoint::hit("engine.execute")?;
        registration.deadline = Deadline::after(options.timeout_ms);
        let snapshot = self.snapshot()?;
        registration.hold(&snapshot);
        let epoch = snapshot.epoch();
        self.database.plans.advance(epoch);
        if parameters.is_empty()
            && let Some(kept) = self.slot.get(epoch)?
        {
            return self.run_query(kept, Some(epoch), options, registration).await;
        }
        let kept = if parameters.is_empty() { self.take_insert(&snapshot) } else { None };
        if let Some(transaction) = self.txn() {
            transaction.refuse_changes(&self.shape.command, &self.shape.accesses, &snapshot)?;
        }
        let Binding { bound, steady } = match kept {
            Some(insert) => Binding { bound: BoundStatement::Insert(insert), steady: false },
            None => self.bind_again(&snapshot, parameters.clone())?,
        };
        drop(snapshot);
        if let Some(table) = rewrite::target(&bound) {
            let plan = rewrite::plan(&bound)?;
            return self.run_rewrite(table, plan, parameters, registration).await;
        }
        match bound {
            BoundStatement::Query(query) => {
                let keep_for = (steady && query.parameters.is_empty()).then_some(epoch);
                let query = Kept::Bound(Box::new(query));
                self.run_query(query, keep_for, options, registration).await
            }
            BoundStatement::Explain(explain) => {
                let lines = explain::lines(&self.database, &explain, &registration);
                let lines = registration.until_stopped(lines).await?;
                let source = BatchSource::Ready(vec![text_batch(lines)?].into_iter());
                let running = Running { registration, turn: Turn::free() };
                self.start(source, &self.shape.columns, None, options, running).await
            }
            BoundStatement::Insert(insert @ BoundInsert { returning: Some(_), .. }) => {
                self.run_returning(insert, options, registration).await
            }
            other => self.run_write(other, registration).await,
        }
    }

    async fn run_query(
        &self,
        query: Kept,
        keep_for: Option<u64>,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let ready = match query {
            Kept::Ready(ready) => ready,
            Kept::Bound(query) => {
                let work = self.plan(*query, keep_for, &registration);
                registration.until_stopped(work).await?
            }
        };
        let query = match ready {
            ReadyQuery::Plan(query) => query,
            ReadyQuery::Rows(rows) => {
                let source = BatchSource::Ready(rows.batches.clone().into_iter());
                let running = Running { registration, turn: Turn::free() };
                let reply =
                    self.start(source, &rows.columns, rows.timestamp, options, running).await?;
                let kept_for = keep_for.filter(|_| self.transaction.is_none());
                return Ok(ExecuteReply { kept_for, ..reply });
            }
        };
        let turn = self.database.turn(query.plan.as_ref());
        let turn = registration.until_stopped(turn).await?;
        let context = self.database.task_context(&registration)?;
        let source = BatchSource::start(&query.plan, &context)?;
        let running = Running { registration, turn };
        self.start(source, &query.columns, query.timestamp, options, running).await
    }

    /// Plans a query, and keeps the plan, or its few rows, where it may run again.
    async fn plan(
        &self,
        query: BoundQuery,
        keep_for: Option<u64>,
        registration: &Registration,
    ) -> EngineResult<ReadyQuery> {
        let plan = physical_plan(&self.database, &query.plan).await?;
        self.leave_unless_small(plan.as_ref()).await;
        let BoundQuery { columns, timestamp, plan: logical, .. } = query;
        let planned = PlannedQuery { plan, columns, timestamp };
        let Some(epoch) = keep_for else { return Ok(ReadyQuery::Plan(planned)) };
        if is_volatile(&logical)? {
            return Ok(ReadyQuery::Plan(planned));
        }
        if is_immediate(planned.plan.as_ref()) {
            let context = self.database.task_context(registration)?;
            if let Some(rows) = planned.few_rows(&context).await? {
                let rows = ReadyQuery::Rows(Arc::new(rows));
                self.keep(epoch, Kept::Ready(rows.clone()));
                return Ok(rows);
            }
        }
        let running = planned.to_execute()?;
        self.keep(epoch, Kept::Ready(ReadyQuery::Plan(planned)));
        Ok(ReadyQuery::Plan(running))
    }

    /// Goes on as a task of the runtime when it stands where a small statement may, and is none
    /// this time.
    async fn leave_unless_small(&self, plan: &dyn ExecutionPlan) {
        let is_simple = self.transaction.is_none()
            && self.tree.nodes.len() <= SMALL_NODES
            && self.shape.accesses.iter().all(|access| access.view.is_none());
        let is_small = is_simple && rows_read(plan).is_some_and(|rows| rows <= SMALL_ROWS);
        if self.was_small.swap(is_small, Ordering::Relaxed) && !is_small {
            yield_now().await;
        }
    }

    fn keep(&self, epoch: u64, what: Kept) {
        // What a block of inserts sees is its own.
        if self.transaction.is_none() {
            self.database.plans.keep(&self.slot, epoch, what);
        }
    }

    /// Encodes the first chunk and decides whether a stream is needed.
    async fn start(
        &self,
        source: BatchSource,
        columns: &[Field],
        timestamp: Option<usize>,
        options: ExecuteOptions,
        running: Running,
    ) -> EngineResult<ExecuteReply> {
        let format = options.rows.into_format()?;
        let is_arrow = matches!(format, RowFormat::Arrow);
        let encoder = RowEncoder::new(columns, timestamp, format)?;
        let window = RowWindow::new(options.skip, options.take, options.count_all);
        let mut cursor = Cursor::new(source, window, options.last, encoder, is_arrow, running);
        let chunk = cursor.produce(options.first_chunk_rows).await?;
        self.database.metrics.rows_returned.add(chunk.rows);
        if chunk.bytes.len() > SMALL_BYTES {
            self.was_small.store(false, Ordering::Relaxed);
        }
        let summary = cursor.is_finished().then(|| cursor.summary());
        let handle = self.database.handle().clone();
        let stream = match (summary, options.first_chunk_rows) {
            (Some(_), _) => None,
            (None, None) => Some(ResultStream::pumped(cursor, handle)),
            (None, Some(_)) => Some(ResultStream::on_demand(cursor, handle)),
        };
        let chunk = (!chunk.bytes.is_empty()).then_some(chunk);
        Ok(ExecuteReply { chunk, summary, stream, kept_for: None })
    }

    /// Runs an INSERT that answers its rows.
    async fn run_returning(
        &self,
        insert: BoundInsert,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let Some(returning) = &insert.returning else {
            return Err(EngineError::internal("an INSERT that answers nothing"));
        };
        let query = &registration;
        let work = write::insert_returning(&self.database, &insert, returning, self.txn(), query);
        let answers = registration.until_stopped(work).await?;
        let source = BatchSource::Ready(answers.into_iter());
        let running = Running { registration, turn: Turn::free() };
        self.start(source, &returning.columns, None, options, running).await
    }

    async fn run_write(
        &self,
        bound: BoundStatement,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let started = Instant::now();
        let work = write::apply(&self.database, bound, self.txn(), &registration);
        let rows_affected = registration.until_stopped(work).await?;
        Ok(written(rows_affected, started))
    }

    /// Runs a statement that gives rows new cells. The table's other writers wait meanwhile, so
    /// it is bound once more after they have stopped.
    async fn run_rewrite(
        &self,
        table: TableId,
        plan: Option<&LogicalPlan>,
        parameters: ParameterValues,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let started = Instant::now();
        let work = async {
            // Before the hold: whoever has a turn may wait for the hold, never the other way round.
            let turn = match plan {
                Some(plan) => {
                    let plan = physical_plan(&self.database, plan).await?;
                    self.database.turn(plan.as_ref()).await?
                }
                None => Turn::free(),
            };
            let hold = rewrite::hold(&self.database, table).await?;
            let mut attempts = 0;
            loop {
                attempts += 1;
                let snapshot = self.snapshot()?;
                let bound = self.bind_again(&snapshot, parameters.clone())?.bound;
                if rewrite::target(&bound) != Some(table) {
                    return Err(replan());
                }
                match rewrite::apply(&self.database, bound, &hold, &registration).await {
                    // A commit that was under way when the hold began came in between.
                    Err(error) if error.code == ErrorCode::Replan && attempts < MOST_ATTEMPTS => {}
                    outcome => {
                        drop(turn);
                        return outcome;
                    }
                }
            }
        };
        let rows_affected = registration.until_stopped(work).await?;
        Ok(written(rows_affected, started))
    }

    /// Binds to this snapshot, which must not change what the statement was described as.
    fn bind_again(
        &self,
        snapshot: &Arc<Snapshot>,
        parameters: ParameterValues,
    ) -> EngineResult<Binding> {
        let binding = self.bind(snapshot, Some(parameters))?;
        if !covers(&self.shape.accesses, binding.bound.accesses())
            || binding.bound.columns() != self.shape.columns
        {
            return Err(replan());
        }
        Ok(binding)
    }

    fn bind(
        &self,
        snapshot: &Arc<Snapshot>,
        values: Option<ParameterValues>,
    ) -> EngineResult<Binding> {
        bind(&self.database, &self.tree, &self.context, snapshot, values)
    }

    fn txn(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }

    /// The newest snapshot; with the rows of its block, where the statement reads.
    fn snapshot(&self) -> EngineResult<Arc<Snapshot>> {
        let Shape { kind, accesses, .. } = &self.shape;
        let writes_alone = *kind == StatementKind::Insert
            && accesses.iter().all(|access| access.permission == "INSERT");
        match self.txn().filter(|_| !writes_alone) {
            Some(transaction) => transaction.snapshot(&self.database),
            None => self.database.snapshot(),
        }
    }
}

/// Binds a tree to a snapshot, in a statement's setting.
fn bind(
    database: &Database,
    tree: &Tree,
    setting: &StatementContext,
    snapshot: &Arc<Snapshot>,
    values: Option<ParameterValues>,
) -> EngineResult<Binding> {
    let mut context = database.bind_context(&setting.user);
    context.parameter_types = declared_types(setting)?;
    context.parameter_values = values;
    context.read_only = setting.read_only;
    context.sight.clone_from(&setting.sight);
    context.lists = Arc::clone(&setting.lists);
    let bound = Planner::bind(tree, snapshot, &context)?;
    Ok(Binding { bound, steady: !context.momentary.load(Ordering::Relaxed) })
}

fn declared_types(setting: &StatementContext) -> EngineResult<Vec<Option<SqlType>>> {
    let declared = setting.parameter_types.as_deref().unwrap_or_default();
    let parse = |name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        let unknown = || {
            let message = format!("unknown parameter type '{name}'");
            EngineError::new(ErrorCode::InvalidValue, message)
        };
        SqlType::parse(name, &[], 0).map(Some).ok_or_else(unknown)
    };
    declared.iter().map(parse).collect()
}

fn version(snapshot: &Snapshot, table: &str) -> Option<TableVersion> {
    if let Some(table) = snapshot.table(table) {
        return Some((table.schema().id, table.schema().version));
    }
    let record = snapshot.record(RecordKind::View.name(), &identifier::fold(table))?;
    let mut hasher = DefaultHasher::new();
    record.hash(&mut hasher);
    Some((0, hasher.finish()))
}

/// The reply of a statement that wrote.
fn written(rows_affected: u64, started: Instant) -> ExecuteReply {
    let summary = Summary {
        rows_affected,
        execute_nanos: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        ..Summary::default()
    };
    ExecuteReply { chunk: None, summary: Some(summary), stream: None, kept_for: None }
}

fn replan() -> EngineError {
    EngineError::new(ErrorCode::Replan, "the tables changed since the statement was prepared")
}

/// Optimises and plans.
pub(crate) async fn physical_plan(
    database: &Database,
    plan: &LogicalPlan,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    failpoint::hit("engine.plan")?;
    let plan = database.session.physical_plan(plan).await;
    let_joins_yield(plan.map_err(from_datafusion)?)
}

/// Whether rights checked for `described` are enough for `bound`. Parameter values may turn a
/// filter into a time range, so the order of columns says nothing.
fn covers(described: &[Access], bound: &[Access]) -> bool {
    bound.iter().all(|access| {
        described.iter().any(|known| {
            known.table == access.table
                && known.permission == access.permission
                && known.view == access.view
                && known.owner == access.owner
                && access.columns.iter().all(|column| known.columns.contains(column))
                && (known.columns.is_empty() || !access.columns.is_empty())
        })
    })
}

fn closed() -> EngineError {
    EngineError::new(ErrorCode::Closed, "the database is closed")
}

fn text_batch(lines: Vec<String>) -> EngineResult<RecordBatch> {
    let column = Arc::new(StringViewArray::from_iter_values(lines));
    RecordBatch::try_from_iter([("QUERY PLAN", column as _)])
        .map_err(|error| EngineError::internal(error.to_string()))
}

fn kind_name(kind: StatementKind) -> &'static str {
    match kind {
        StatementKind::Select => "select",
        StatementKind::Insert => "insert",
        StatementKind::Update => "update",
        StatementKind::Ddl => "ddl",
        StatementKind::Session => "session",
        StatementKind::Empty => "empty",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(columns: &[&str], permission: &'static str) -> Access {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Access { columns, ..Access::new("t", permission) }
    }

    #[test]
    fn rights_cover_what_a_later_binding_reads() {
        let described = [access(&["s", "ts"], "SELECT"), access(&[], "INSERT")];
        assert!(covers(&described, &[access(&["ts", "s"], "SELECT")]));
        assert!(covers(&described, &[access(&[], "INSERT"), access(&["ts"], "SELECT")]));
        assert!(!covers(&described, &[access(&["price"], "SELECT")]));
        assert!(!covers(&described, &[access(&[], "SELECT")]), "the whole table is more");
        assert!(!covers(&described, &[access(&[], "DROP TABLE")]));
    }
}
