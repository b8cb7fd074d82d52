//! The life of a statement: prepare, describe, execute.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::StringViewArray;
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use tidemark_ast::Tree;
use tidemark_planner::{
    Access, BoundQuery, BoundStatement, ExternalSources, Planner, StatementKind,
};
use tidemark_storage::Snapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, failpoint};
use tidemark_wire::{RowEncoder, RowFormat};

use crate::cancel::{Deadline, until_stopped};
use crate::database::{Database, from_json};
use crate::errors::from_datafusion;
use crate::execution::cursor::{Chunk, Cursor};
use crate::execution::source::BatchSource;
use crate::execution::stream::ResultStream;
use crate::execution::window::RowWindow;
use crate::execution::yielding::let_joins_yield;
use crate::explain;
use crate::external::WatchedSources;
use crate::guard;
use crate::options::{
    AccessDescription, ExecuteOptions, ResultColumn, StatementContext, StatementDescription,
    Summary,
};
use crate::registry::Registration;
use crate::transaction::Transaction;
use crate::write;

/// Parameter values as text in the parameter's own type.
pub type ParameterValues = Vec<Option<String>>;

/// A bound statement. It is bound again at each execution, against the newest snapshot and with
/// the parameters' values; its description is that of the first binding. An execution that
/// follows at once, with no commit in between, runs the first binding itself.
pub struct Statement {
    database: Arc<Database>,
    tree: Arc<Tree>,
    context: StatementContext,
    described: BoundStatement,
    /// When and at which epoch `described` was bound, if it may run as it is, once.
    fresh: Mutex<Option<(Instant, u64)>>,
    transaction: Option<Arc<Transaction>>,
}

/// How long after binding `now()` may still mean the instant of binding.
const FRESH_FOR: Duration = Duration::from_millis(20);

/// The answer of [`Statement::execute`].
pub struct ExecuteReply {
    /// For cancelling.
    pub query_id: u64,
    /// The first rows.
    pub chunk: Option<Chunk>,
    /// Totals, when everything is in `chunk`.
    pub summary: Option<Summary>,
    /// The rest.
    pub stream: Option<ResultStream>,
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
        let tree: Arc<Tree> = Arc::new(from_json(tree, "statement tree")?);
        let context: StatementContext = from_json(context, "statement context")?;
        let mut statement = Self {
            database: Arc::clone(database),
            tree,
            context,
            described: BoundStatement::Empty,
            fresh: Mutex::new(None),
            transaction,
        };
        let bound_at = Instant::now();
        let snapshot = database.snapshot()?;
        let watched = Arc::new(WatchedSources::new(Arc::clone(&database.sources)));
        statement.described = statement.bind(&snapshot, None, Arc::clone(&watched) as _)?;
        let query = matches!(&statement.described, BoundStatement::Query(query)
            if query.parameters.is_empty());
        if query && !watched.was_asked() {
            statement.fresh = Mutex::new(Some((bound_at, snapshot.epoch())));
        }
        Ok(statement)
    }

    /// Kind, columns, parameters and accesses.
    pub fn describe(&self) -> StatementDescription {
        let bound = &self.described;
        let columns = bound.columns();
        StatementDescription {
            kind: kind_name(bound.kind()),
            command: bound.command().to_owned(),
            columns: columns
                .iter()
                .map(|field| ResultColumn::new(&field.name, field.sql_type))
                .collect(),
            timestamp: bound.timestamp().map_or(-1, |index| index as i64),
            parameters: bound.parameters().iter().map(|sql_type| sql_type.name()).collect(),
            accesses: bound
                .accesses()
                .iter()
                .map(|access| AccessDescription {
                    table: access.table.clone(),
                    columns: access.columns.clone(),
                    permission: access.permission.to_owned(),
                })
                .collect(),
        }
    }

    /// The database this statement belongs to.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Runs the statement: the first chunk in the reply, the rest in its stream. Called on the
    /// database's own runtime it runs right there, else as a task of that runtime.
    pub async fn execute(
        self: &Arc<Self>,
        parameters: ParameterValues,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        self.database.check_open()?;
        let statement = Arc::clone(self);
        let work = async move { statement.run(parameters, options).await };
        let work = guard::catch_async("execute", work);
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

    /// Runs an INSERT once for many parameter rows, in one commit.
    pub async fn execute_batch(
        self: &Arc<Self>,
        parameter_rows: Vec<ParameterValues>,
    ) -> EngineResult<Summary> {
        self.database.check_open()?;
        let statement = Arc::clone(self);
        let work = async move {
            failpoint::hit("engine.execute_batch")?;
            let BoundStatement::Insert(_) = &statement.described else {
                return Err(EngineError::new(
                    ErrorCode::NotSupported,
                    "only INSERT … VALUES runs in batches",
                ));
            };
            let snapshot = statement.database.snapshot()?;
            let sources = Arc::clone(&statement.database.sources);
            let BoundStatement::Insert(insert) = statement.bind(&snapshot, None, sources)? else {
                return Err(replan());
            };
            write::insert_batch(&statement.database, &insert, parameter_rows, statement.txn()).await
        };
        let task = self.database.handle().spawn(guard::catch_async("execute_batch", work));
        task.await.map_err(|error| EngineError::internal(error.to_string()))?
    }

    async fn run(
        self: Arc<Self>,
        parameters: ParameterValues,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        failpoint::hit("engine.execute")?;
        let registration = self.database.registry.register(&self.context.user, &self.context.text);
        let deadline = Deadline::after(options.timeout_ms);
        let snapshot = self.database.snapshot()?;
        let bound = match self.take_fresh(snapshot.epoch()) {
            Some(bound) => bound,
            None => self.bind_again(&snapshot, parameters)?,
        };
        match bound {
            BoundStatement::Query(query) => {
                self.run_query(query, options, deadline, registration).await
            }
            BoundStatement::Explain(explain) => {
                let lines = explain::lines(&self.database.state, &explain).await?;
                let source = BatchSource::Ready(vec![text_batch(lines)?].into_iter());
                let columns = self.described.columns();
                self.start(source, &columns, None, options, deadline, registration).await
            }
            other => self.run_write(other, deadline, registration).await,
        }
    }

    async fn run_query(
        &self,
        query: BoundQuery,
        options: ExecuteOptions,
        deadline: Deadline,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let token = registration.token.clone();
        let reads_tables = !query.accesses.is_empty();
        // Queries without tables (SELECT 1, SHOW) never wait behind heavy ones.
        let permit = if reads_tables {
            Some(until_stopped(&token, deadline, self.database.wait_for_turn()).await?)
        } else {
            None
        };
        let work = physical_plan(&self.database, &query.plan);
        let plan = until_stopped(&token, deadline, work).await?;
        let source = BatchSource::start(&plan, &self.database.state.task_ctx())?;
        let reply = self
            .start(source, &query.columns, query.timestamp, options, deadline, registration)
            .await;
        drop(permit);
        reply
    }

    /// Encodes the first chunk and decides whether a stream is needed.
    async fn start(
        &self,
        source: BatchSource,
        columns: &[tidemark_types::Field],
        timestamp: Option<usize>,
        options: ExecuteOptions,
        deadline: Deadline,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let format = options.rows.into_format()?;
        let is_arrow = matches!(format, RowFormat::Arrow);
        let encoder = RowEncoder::new(columns, timestamp, format)?;
        let window = RowWindow::new(options.skip, options.take, options.count_all);
        let mut cursor =
            Cursor::new(source, window, options.last, encoder, is_arrow, deadline, registration);
        let query_id = cursor.query_id();
        let chunk = cursor.produce(options.first_chunk_rows).await?;
        self.database.metrics.rows_returned.add(chunk.rows);
        let summary = cursor.is_finished().then(|| cursor.summary());
        let handle = self.database.handle().clone();
        let stream = match (summary, options.first_chunk_rows) {
            (Some(_), _) => None,
            (None, None) => Some(ResultStream::pumped(cursor, handle)),
            (None, Some(_)) => Some(ResultStream::on_demand(cursor, handle)),
        };
        let chunk = (!chunk.bytes.is_empty()).then_some(chunk);
        Ok(ExecuteReply { query_id, chunk, summary, stream })
    }

    async fn run_write(
        &self,
        bound: BoundStatement,
        deadline: Deadline,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let started = Instant::now();
        let work = write::apply(&self.database, bound, self.txn());
        let rows_affected = until_stopped(&registration.token, deadline, work).await?;
        let summary = Summary {
            rows_affected,
            execute_nanos: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
            ..Summary::default()
        };
        Ok(ExecuteReply {
            query_id: registration.id,
            chunk: None,
            summary: Some(summary),
            stream: None,
        })
    }

    /// The first binding, if it is as good as a new one.
    fn take_fresh(&self, epoch: u64) -> Option<BoundStatement> {
        let (bound_at, bound_epoch) = self.fresh.lock().take()?;
        let is_fresh = bound_epoch == epoch && bound_at.elapsed() < FRESH_FOR;
        is_fresh.then(|| self.described.clone())
    }

    /// Binds to this snapshot, which must not change what the statement was described as.
    fn bind_again(
        &self,
        snapshot: &Arc<Snapshot>,
        parameters: ParameterValues,
    ) -> EngineResult<BoundStatement> {
        let sources = Arc::clone(&self.database.sources);
        let bound = self.bind(snapshot, Some(parameters), sources)?;
        if !covers(self.described.accesses(), bound.accesses())
            || bound.columns() != self.described.columns()
        {
            return Err(replan());
        }
        Ok(bound)
    }

    fn bind(
        &self,
        snapshot: &Arc<Snapshot>,
        values: Option<ParameterValues>,
        sources: Arc<dyn ExternalSources>,
    ) -> EngineResult<BoundStatement> {
        let mut context = self.database.bind_context(&self.context.user);
        context.external = Some(sources);
        context.parameter_types = self.declared_types()?;
        context.parameter_values = values;
        context.read_only = self.context.read_only;
        Planner::bind(&self.tree, snapshot, &context)
    }

    fn declared_types(&self) -> EngineResult<Vec<Option<SqlType>>> {
        let declared = self.context.parameter_types.as_deref().unwrap_or_default();
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

    fn txn(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }
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
    let plan = database.state.create_physical_plan(plan).await.map_err(from_datafusion)?;
    let_joins_yield(plan)
}

/// Whether rights checked for `described` are enough for `bound`. Parameter values may turn a
/// filter into a time range, so the order of columns says nothing.
fn covers(described: &[Access], bound: &[Access]) -> bool {
    bound.iter().all(|access| {
        described.iter().any(|known| {
            known.table == access.table
                && known.permission == access.permission
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
        Access { table: "t".to_owned(), columns, permission }
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
