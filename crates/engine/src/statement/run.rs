//! One execution of a statement: binding to the newest snapshot, planning, running.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow::array::StringViewArray;
use arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_border::{ExecuteOptions, Summary};
use tidemark_operators::{Test, ends_early, has_values, is_immediate, rows_read};
use tidemark_planner::{
    Access, BoundExplain, BoundInsert, BoundQuery, BoundStatement, Conditions, Planner,
};
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, ParameterValue, failpoint};
use tidemark_wire::{RowEncoder, RowFormat};
use tokio::task::yield_now;

use crate::apply;
use crate::apply::rewrite::{self, Rewritten};
use crate::database::physical::physical_plan;
use crate::execution::cursor::{Chunk, Cursor, Running};
use crate::execution::source::BatchSource;
use crate::execution::stream::ResultStream;
use crate::execution::window::RowWindow;
use crate::query::{
    CachedPlan, CachedQuery, CachedResult, OtherValues, PlannedQuery, ResultKey, is_volatile,
};
use crate::runtime::admission::Admitted;
use crate::runtime::registry::Registration;
use crate::statement::explain;
use crate::statement::options::row_format;

use super::{Binding, ExecuteReply, Parameters, Statement, Values, bind_context};

/// Maximum number of attempts to find the rows when other commits intervene.
const MAX_ATTEMPTS: usize = 8;

/// Number of rows in each encoded batch of a RETURNING result.
const ROWS_OF_ANSWER: usize = 8 * 1024;

/// Maximum number of rows that a small statement reads. Reading and encoding this many rows takes
/// less than a millisecond.
const SMALL_ROWS: usize = 1024;

/// Maximum number of rows that a small statement reads if its last execution took at most
/// [`QUICK`]. Such a statement only counts or sums rows, for example.
const QUICK_ROWS: usize = 16 * 1024;
const QUICK: Duration = Duration::from_micros(500);

/// Maximum execution time of a small statement. The time is limited because a statement that reads
/// few rows may still multiply them or compute for a long time.
const LONG: Duration = Duration::from_millis(5);

/// Maximum size in bytes of a constant result. The size is limited because the caller caches the
/// result.
const MAX_CONSTANT_BYTES: usize = 16 * 1024;

/// Maximum size in bytes of a small statement's result. The size is limited because even a few rows
/// may have long cells.
const SMALL_BYTES: usize = 64 * 1024;

impl Statement {
    pub(super) async fn run(
        self: Arc<Self>,
        mut registration: Registration,
        Values { parameters, bytes: values }: Values,
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        failpoint::hit("engine.execute")?;
        if options.changes.is_some() {
            // The future is boxed, because inlining it would enlarge the future of every query.
            return Box::pin(self.run_change(registration, parameters, options)).await;
        }
        let snapshot = self.snapshot()?;
        registration.pin(&snapshot);
        let epoch = snapshot.epoch();
        self.database.queries.advance(epoch);
        match self.slot.get(epoch) {
            Some(CachedQuery::Bound(query)) if parameters.is_empty() => {
                return self.run_bound(*query, Some(epoch), options, registration).await;
            }
            Some(CachedQuery::Planned(plan)) if plan.values.is_some() || parameters.is_empty() => {
                let key = values.filter(|_| self.caches_results(&plan));
                let key = key.map(|values| ResultKey::new(values, &options));
                if let Some(result) = key.as_ref().and_then(|key| plan.results.get(key)) {
                    return Ok(self.cached(result, &plan));
                }
                if let Some((query, is_stable)) = self.plan_for(&plan, &snapshot, &parameters)? {
                    let key = key.filter(|_| is_stable);
                    return self.run_planned(query, &plan, key, options, registration).await;
                }
            }
            _ => {}
        }
        let prepared = if parameters.is_empty() { self.take_insert(&snapshot) } else { None };
        if let Some(transaction) = self.txn() {
            transaction.refuse_changes(&self.shape.command, &self.shape.accesses, &snapshot)?;
        }
        let Binding { bound, is_stable } = match prepared {
            Some(insert) => Binding { bound: BoundStatement::Insert(insert), is_stable: false },
            None => self.bind_again(&snapshot, parameters.clone())?,
        };
        drop(snapshot);
        if let Some(table) = rewrite::target(&bound) {
            let plan = rewrite::plan(&bound)?;
            // The future is boxed, because inlining it would enlarge the future of every query.
            let rewrite = self.run_rewrite(table, plan, parameters, options, registration);
            return Box::pin(rewrite).await;
        }
        match bound {
            BoundStatement::Query(query) => {
                let is_kept = query.parameters.is_empty() || query.conditions.is_some();
                let keep_for = (is_stable && is_kept).then_some(epoch);
                self.run_bound(*query, keep_for, options, registration).await
            }
            BoundStatement::Explain(explain) => self.explain(explain, options, registration).await,
            BoundStatement::Insert(insert @ BoundInsert { returning: Some(_), .. }) => {
                let drawn = insert.sequence_values.clone();
                let reply = self.run_returning(insert, options, registration).await?;
                Ok(ExecuteReply { sequence_values: drawn.list(), ..reply })
            }
            BoundStatement::Insert(insert) => {
                let drawn = insert.sequence_values.clone();
                let reply = self.run_write(BoundStatement::Insert(insert), registration).await?;
                Ok(ExecuteReply { sequence_values: drawn.list(), ..reply })
            }
            other => self.run_write(other, registration).await,
        }
    }

    /// Whether caching the plan's results is worth the memory. It is not if the query has no
    /// parameters and spends most of its time on execution rather than setup.
    fn caches_results(&self, plan: &CachedPlan) -> bool {
        let is_small = || plan.constant_in().is_some() || self.was_small.load(Ordering::Relaxed);
        plan.values.is_some() || is_small()
    }

    /// Plans and runs a bound query. `keep_for` is the epoch for which the plan may be cached.
    pub(crate) async fn run_bound(
        &self,
        query: BoundQuery,
        keep_for: Option<u64>,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let query = registration.until_stopped(self.plan(query, keep_for)).await?;
        self.run_query(query, options, registration).await
    }

    async fn run_query(
        &self,
        PlannedQuery { plan, columns, timestamp, constant_in }: PlannedQuery,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let turn = self.database.admit(plan.as_ref(), &registration);
        let turn = registration.until_stopped(turn).await?;
        let context = self.database.task_context(&registration)?;
        let source = BatchSource::start(&plan, &context)?;
        let running = Running { registration, admitted: turn };
        let reply = self.start(source, &columns, timestamp, options, running).await?;
        let bytes = reply.chunk.as_ref().map_or(0, |chunk| chunk.bytes.len());
        let kept_for = constant_in.filter(|_| bytes <= MAX_CONSTANT_BYTES);
        Ok(ExecuteReply { valid_epoch: kept_for, ..reply })
    }

    /// Returns a cached plan adapted to these values, if they affect only the WHERE clause. Also
    /// returns whether the plan selects the same rows until the next commit.
    fn plan_for(
        &self,
        plan: &CachedPlan,
        snapshot: &Arc<Snapshot>,
        parameters: &Parameters,
    ) -> EngineResult<Option<(PlannedQuery, bool)>> {
        let Some(OtherValues { conditions, named }) = &plan.values else {
            return Ok(Some((plan.to_execute()?, true)));
        };
        let session = &self.database.session;
        if let Some(texts) = named.placeholders(parameters.len()) {
            named.store(&self.tree, self.test_of(plan, conditions, snapshot, &texts)?, texts)?;
        }
        let test = named.of(parameters)?;
        if let Some(test) = &test
            && !conditions.are_in_time()
        {
            let query = plan.reading(session, &[], Some(Test::Lowered(test)))?;
            return Ok(query.map(|query| (query, true)));
        }
        let mut context = bind_context(&self.database, &self.context)?;
        context.parameter_values = Some(parameters.clone());
        if let Some(test) = &test {
            let ranges = Planner::condition_ranges(conditions, &self.tree, snapshot, &context)?;
            let Some(ranges) = ranges else { return Ok(None) };
            let query = plan.reading(session, &ranges, Some(Test::Lowered(test)))?;
            return Ok(query.map(|query| (query, !context.is_volatile.load(Ordering::Relaxed))));
        }
        let rows = Planner::restriction(conditions, &self.tree, snapshot, &context)?;
        let Some(rows) = rows else { return Ok(None) };
        let predicate = rows.predicate.as_ref().map(Test::Named);
        let query = plan.reading(session, &rows.ranges, predicate)?;
        Ok(query.map(|query| (query, !context.is_volatile.load(Ordering::Relaxed))))
    }

    /// Binds and lowers the predicate of a cached plan, except for the time ranges, with
    /// placeholder strings as values. Also returns how many times parameters occur in the result.
    fn test_of(
        &self,
        plan: &CachedPlan,
        conditions: &Conditions,
        snapshot: &Arc<Snapshot>,
        texts: &[String],
    ) -> EngineResult<Option<(Arc<dyn PhysicalExpr>, usize)>> {
        let mut context = bind_context(&self.database, &self.context)?;
        let values = texts.iter().map(|text| ParameterValue::Text(text.clone().into()));
        context.parameter_values = Some(values.collect());
        // If binding fails with placeholders, the predicate cannot be reused.
        let bound =
            Planner::condition_test(conditions, &self.tree, snapshot, &context).ok().flatten();
        let bound = bound.filter(|_| !context.is_volatile.load(Ordering::Relaxed));
        Ok(bound.and_then(|(test, met)| {
            let test = self.database.session.lowered(plan.plan(), &test).ok().flatten();
            test.map(|test| (test, met))
        }))
    }

    async fn explain(
        &self,
        explain: BoundExplain,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let lines = explain::lines(&self.database, &explain, &registration);
        let lines = registration.until_stopped(lines).await?;
        let source = BatchSource::Ready(vec![text_batch(lines)?].into_iter());
        let running = Running { registration, admitted: Admitted::free() };
        self.start(source, &self.shape.columns, None, options, running).await
    }

    /// Runs a cached plan and caches its result under the key `key`.
    async fn run_planned(
        &self,
        query: PlannedQuery,
        plan: &CachedPlan,
        key: Option<ResultKey>,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        self.yield_unless_small(query.plan.as_ref()).await;
        let reply = self.run_query(query, options, registration).await?;
        if let (Some(key), Some(summary), None) = (key, reply.summary, &reply.stream) {
            let rows = reply.chunk.as_ref().map_or((&[][..], 0), |rows| (&rows.bytes, rows.rows));
            plan.results.put(key, rows, summary);
        }
        Ok(reply)
    }

    /// Returns the reply for a cached result.
    fn cached(&self, result: CachedResult, plan: &CachedPlan) -> ExecuteReply {
        let CachedResult { bytes, rows, mut summary } = result;
        self.database.metrics.rows_returned.add(rows);
        self.database.metrics.cached_results.add(1);
        self.was_small.store(self.is_simple(), Ordering::Relaxed);
        summary.execute_nanos = 0;
        let chunk = (!bytes.is_empty()).then_some(Chunk { bytes, rows });
        let (summary, kept_for) = (Some(summary), plan.constant_in());
        ExecuteReply { chunk, summary, valid_epoch: kept_for, ..ExecuteReply::default() }
    }

    /// Plans a query, and caches the plan if the query may run again.
    async fn plan(&self, query: BoundQuery, keep_for: Option<u64>) -> EngineResult<PlannedQuery> {
        let plan = physical_plan(&self.database, &query.plan).await?;
        self.yield_unless_small(plan.as_ref()).await;
        let BoundQuery { columns, timestamp, plan: logical, conditions, .. } = query;
        // Inside a transaction block the query reads the block's own rows, so its plan is not
        // shared.
        let keep_for = keep_for.filter(|_| self.transaction.is_none());
        let keep_for = match keep_for {
            Some(epoch) if !is_volatile(&logical)? && !has_values(&plan) => Some(epoch),
            _ => None,
        };
        let constant_in = keep_for.filter(|_| conditions.is_none() && is_immediate(plan.as_ref()));
        let query = PlannedQuery { plan, columns, timestamp, constant_in };
        let Some(epoch) = keep_for else { return Ok(query) };
        let plan = CachedPlan::new(query, conditions, &self.database.queries);
        let Some(running) = plan.for_same_values(&self.database.session)? else {
            return Ok(plan.query);
        };
        self.cache_query(epoch, CachedQuery::Planned(Arc::new(plan)));
        Ok(running)
    }

    /// Moves the execution to a runtime task if the statement was polled on the caller's thread as
    /// a small statement but its plan is not small.
    async fn yield_unless_small(&self, plan: &dyn ExecutionPlan) {
        let rows = rows_read(plan).unwrap_or(usize::MAX);
        // The last execution time is a better estimate than the maximum number of rows that might
        // be read.
        let rows = if ends_early(plan) { rows.min(QUICK_ROWS) } else { rows };
        self.rows.store(rows, Ordering::Relaxed);
        let is_small = self.is_simple() && rows <= QUICK_ROWS;
        if !is_small && self.was_small.swap(false, Ordering::Relaxed) {
            yield_now().await;
        }
    }

    fn is_simple(&self) -> bool {
        self.transaction.is_none() && self.may_be_small
    }

    /// Decides from execution time and result size whether the statement counts as small next time.
    /// A stopped or failed execution never counts as small.
    fn learn(&self, took: Duration, bytes: usize) {
        let rows = self.rows.load(Ordering::Relaxed);
        let quick = if rows <= SMALL_ROWS { LONG } else { QUICK };
        let is_small =
            self.is_simple() && rows <= QUICK_ROWS && bytes <= SMALL_BYTES && took <= quick;
        self.was_small.store(is_small, Ordering::Relaxed);
    }

    pub(super) fn cache_query(&self, epoch: u64, query: CachedQuery) {
        // Inside a transaction block the query reads the block's own rows, so neither plan nor
        // results are shared.
        if self.transaction.is_none() {
            self.database.queries.insert(&self.slot, epoch, query);
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
        let format = row_format(options.rows)?;
        let is_arrow = matches!(format, RowFormat::Arrow);
        let encoder = RowEncoder::new(columns, timestamp, format)?;
        let window = RowWindow::new(options.skip, options.take, options.count_all);
        let mut cursor = Cursor::new(source, window, options.last, encoder, is_arrow, running);
        let started = Instant::now();
        self.was_small.store(false, Ordering::Relaxed);
        let chunk = cursor.produce(options.first_chunk_rows).await?;
        self.database.metrics.rows_returned.add(chunk.rows);
        self.learn(started.elapsed(), chunk.bytes.len());
        let summary = cursor.is_finished().then(|| cursor.summary());
        let handle = self.database.handle().clone();
        let stream = match (summary, options.first_chunk_rows) {
            (Some(_), _) => None,
            (None, None) => Some(ResultStream::pumped(cursor, handle)),
            (None, Some(_)) => Some(ResultStream::on_demand(cursor, handle)),
        };
        let chunk = (!chunk.bytes.is_empty()).then_some(chunk);
        Ok(ExecuteReply { chunk, summary, stream, ..ExecuteReply::default() })
    }

    /// Runs an INSERT with RETURNING.
    async fn run_returning(
        &self,
        insert: BoundInsert,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let Some(returning) = &insert.returning else {
            return Err(EngineError::internal("INSERT without RETURNING"));
        };
        let query = &registration;
        let work = apply::insert_returning(&self.database, &insert, returning, self.txn(), query);
        let answers = registration.until_stopped(work).await?;
        let source = BatchSource::Ready(answers.into_iter());
        let running = Running { registration, admitted: Admitted::free() };
        self.start(source, &returning.columns, None, options, running).await
    }

    async fn run_write(
        &self,
        bound: BoundStatement,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let started = Instant::now();
        let work = apply::apply(&self.database, bound, self.txn(), &registration);
        let rows_affected = registration.until_stopped(work).await?;
        Ok(written(rows_affected, started))
    }

    /// Runs a statement that changes cells of existing rows. It first blocks the table's other
    /// writers and is bound again after they have stopped.
    async fn run_rewrite(
        &self,
        table: TableId,
        plan: Option<&LogicalPlan>,
        parameters: Parameters,
        options: ExecuteOptions,
        registration: Registration,
    ) -> EngineResult<ExecuteReply> {
        let started = Instant::now();
        let work = async {
            // The slot is acquired before the table's writers are blocked. A statement with a slot
            // may wait for the writers, but a statement that blocks them never waits for a slot.
            let turn = match plan {
                Some(plan) => {
                    let plan = physical_plan(&self.database, plan).await?;
                    self.database.admit(plan.as_ref(), &registration).await?
                }
                None => Admitted::free(),
            };
            let hold = rewrite::lock_writes(&self.database, table).await?;
            let mut attempts = 0;
            loop {
                attempts += 1;
                let snapshot = self.snapshot()?;
                let bound = self.bind_again(&snapshot, parameters.clone())?.bound;
                if rewrite::target(&bound) != Some(table) {
                    return Err(replan());
                }
                match rewrite::apply(&self.database, bound, &hold, &registration).await {
                    // A commit that was already in progress when the writers were blocked may have
                    // changed the table.
                    Err(error) if error.code == ErrorCode::Replan && attempts < MAX_ATTEMPTS => {}
                    outcome => {
                        drop(turn);
                        return outcome;
                    }
                }
            }
        };
        let work = Box::pin(registration.until_stopped(work));
        let Rewritten { rows, answer } = work.await?;
        let Some(answer) = answer else { return Ok(written(rows, started)) };
        let (all, rows) = (answer.num_rows(), ROWS_OF_ANSWER);
        let slices = (0..all).step_by(rows).map(|at| answer.slice(at, rows.min(all - at)));
        let source = BatchSource::Ready(slices.collect::<Vec<_>>().into_iter());
        let running = Running { registration, admitted: Admitted::free() };
        self.start(source, &self.shape.columns, None, options, running).await
    }

    /// Like `bind_again`, but for a change feed. Also returns whether the binding remains valid
    /// while the table's definition is unchanged.
    pub(crate) fn bound_again(
        &self,
        snapshot: &Arc<Snapshot>,
        parameters: Parameters,
    ) -> EngineResult<(BoundStatement, bool)> {
        let Binding { bound, is_stable } = self.bind_again(snapshot, parameters)?;
        Ok((bound, is_stable))
    }

    /// Binds the statement to this snapshot. Fails if the result does not match the statement's
    /// description.
    fn bind_again(
        &self,
        snapshot: &Arc<Snapshot>,
        parameters: Parameters,
    ) -> EngineResult<Binding> {
        let binding = self.bind(snapshot, Some(parameters))?;
        if !covers(&self.shape.accesses, binding.bound.accesses())
            || !reads_as(&binding.bound.columns(), &self.shape.columns)
        {
            return Err(replan());
        }
        Ok(binding)
    }
}

/// Returns the reply for a statement that wrote rows.
fn written(rows_affected: u64, started: Instant) -> ExecuteReply {
    let summary = Summary {
        rows_affected,
        execute_nanos: u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
        ..Summary::default()
    };
    ExecuteReply { summary: Some(summary), ..ExecuteReply::default() }
}

/// Whether rows with the columns `columns` match the described columns.
fn reads_as(columns: &[Field], described: &[Field]) -> bool {
    columns.len() == described.len()
        && columns.iter().zip(described).all(|(one, other)| one.reads_as(other))
}

fn replan() -> EngineError {
    let message = "the schema changed since the statement was prepared, or the type of a column \
                   depends on a parameter that must be a constant";
    EngineError::new(ErrorCode::Replan, message)
}

/// Whether the permissions checked for `described` are sufficient for `bound`. The columns may be
/// in a different order, because parameter values may turn a filter into a time range.
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

fn text_batch(lines: Vec<String>) -> EngineResult<RecordBatch> {
    let column = Arc::new(StringViewArray::from_iter_values(lines));
    RecordBatch::try_from_iter([("QUERY PLAN", column as _)])
        .map_err(|error| EngineError::internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use tidemark_border::Permission;

    use super::*;

    fn access(columns: &[&str], permission: Permission) -> Access {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Access { columns, ..Access::new("t", permission) }
    }

    #[test]
    fn permissions_are_rechecked_if_a_later_binding_needs_additional_permissions() {
        let described = [access(&["s", "ts"], Permission::Select), access(&[], Permission::Insert)];
        assert!(covers(&described, &[access(&["ts", "s"], Permission::Select)]));
        assert!(covers(
            &described,
            &[access(&[], Permission::Insert), access(&["ts"], Permission::Select)]
        ));
        assert!(!covers(&described, &[access(&["price"], Permission::Select)]));
        let all_columns = access(&[], Permission::Select);
        assert!(!covers(&described, &[all_columns]), "the entire table needs more permissions");
        assert!(!covers(&described, &[access(&[], Permission::DropTable)]));
    }
}
