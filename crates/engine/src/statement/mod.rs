//! Statements: prepare, describe, execute. The module `run` implements one execution.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::record_batch::RecordBatch;
use parking_lot::Mutex;
use tidemark_ast::{Node, Tree};
use tidemark_border::{
    ExecuteOptions, Owner, Permission, PermissionRequest, SequenceValue, StatementContext,
    StatementDescription, StatementKind, Summary, TableChange,
};
use tidemark_catalog::RecordKind;
use tidemark_ingest::ParameterRows;
use tidemark_optimizer::PlanSize;
use tidemark_planner::{
    Access, BindContext, BindRequests, BoundInsert, BoundStatement, InsertSource, ParameterType,
    Planner, SequenceValues, Visibility,
};
use tidemark_storage::{Snapshot, TableId};
use tidemark_types::account::Account;
use tidemark_types::bounded::{Stop, Stoppable, with_stop};
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, Field, ParameterValue, failpoint, identifier,
};

use crate::apply;
use crate::database::{Database, from_json};
use crate::execution::cursor::Chunk;
use crate::execution::stream::ResultStream;
use crate::ingest::CopyTarget;
use crate::ingest::transaction::Transaction;
use crate::query::{CachedQuery, QuerySlot, ResultKey, has_computed_length, is_volatile};
use crate::runtime::cancel::{Deadline, StatementStop};
use crate::runtime::guard;
use crate::runtime::registry::Registration;
use crate::statement::options::{described, result_column};

mod explain;
mod options;
mod run;

/// Parameter values of one execution.
pub(crate) type Parameters = Vec<ParameterValue<'static>>;

/// Decoded parameter values of one execution.
struct Values {
    parameters: Parameters,
    /// The encoded values, if a result may be cached for them.
    bytes: Option<Vec<u8>>,
}

impl Values {
    fn read(bytes: &[u8]) -> EngineResult<Self> {
        let parameters = ParameterRows::read(bytes)?.into_single()?;
        Ok(Self { parameters, bytes: ResultKey::values(bytes) })
    }
}

/// A bound statement. The first binding determines its columns, parameters and accesses. Each
/// execution uses the newest snapshot, and reuses an earlier plan if that plan is still valid.
pub struct Statement {
    database: Arc<Database>,
    tree: Arc<Tree>,
    context: Arc<StatementContext>,
    shape: Shape,
    /// Tables that the statement names, with table id and schema version.
    tables: Vec<(String, Option<TableVersion>)>,
    /// Whether the statement's description depends on nothing but these tables.
    is_stable: bool,
    slot: Arc<QuerySlot>,
    /// Whether the statement's execution time depends on nothing but the tables it reads.
    may_be_small: bool,
    /// Whether the last execution took less time than waking a worker takes.
    was_small: AtomicBool,
    /// Number of rows that this plan reads.
    rows: AtomicUsize,
    /// Bound rows of an INSERT, used by its first execution.
    insert: Mutex<Option<BoundInsert>>,
    transaction: Option<Arc<Transaction>>,
}

/// Maximum number of syntax tree nodes in a small statement.
const SMALL_NODES: usize = 256;

/// Table id and schema version; for a view, 0 and a hash of its record.
type TableVersion = (TableId, u64);

/// A statement's properties that are described to clients.
#[derive(Debug)]
struct Shape {
    kind: StatementKind,
    command: String,
    columns: Vec<Field>,
    timestamp: Option<usize>,
    parameters: Vec<ParameterType>,
    accesses: Vec<Access>,
    notice: Option<String>,
    /// Questions whose answers are needed before the statement can be bound.
    questions: BindRequests,
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
            questions: match bound {
                BoundStatement::Asking(asks) => asks.clone(),
                _ => BindRequests::default(),
            },
        }
    }
}

/// A binding, and whether executions on the same snapshot can reuse it.
struct Binding {
    bound: BoundStatement,
    is_stable: bool,
}

/// Result of [`Statement::execute`].
#[derive(Default)]
pub struct ExecuteReply {
    /// The first rows.
    pub chunk: Option<Chunk>,
    /// The result's totals, if `chunk` contains all rows.
    pub summary: Option<Summary>,
    /// The remaining rows, if any.
    pub stream: Option<ResultStream>,
    /// Sequence values that the INSERT assigned to the rows.
    pub sequence_values: Vec<SequenceValue>,
    /// For a change feed, the change that the rows belong to.
    pub change: Option<TableChange>,
    /// The epoch within which every identical request gets the same reply, if such an epoch exists.
    pub valid_epoch: Option<u64>,
}

impl Statement {
    /// Binds a statement. `tree` is the JSON of a [`Tree`], and `context` is the JSON of a
    /// [`StatementContext`].
    pub fn prepare(
        database: &Arc<Database>,
        tree: &[u8],
        context: &[u8],
        transaction: Option<Arc<Transaction>>,
    ) -> EngineResult<Self> {
        failpoint::hit("engine.prepare")?;
        // Binding evaluates constants, so its memory is charged to an account.
        let account = Account::new(database.memory.query_limit(), || None);
        let _entered = account.enter();
        let tree = Tree::from_json(tree)
            .map_err(|error| EngineError::internal(format!("malformed statement tree: {error}")))?;
        let tree = Arc::new(tree);
        let context: StatementContext = from_json(context, "statement context")?;
        let snapshot = database.snapshot()?;
        database.queries.advance(snapshot.epoch());
        let context = Arc::new(context);
        let deadline = Deadline::of(context.timeout_ms, context.elapsed_ms);
        let query_id = context.query_id.as_ref().and_then(|id| id.parse().ok());
        let registration =
            query_id.map(|id| database.registry.register(Some(id), &context, None)).transpose()?;
        let token = registration.as_ref().map(|known| known.token.clone()).unwrap_or_default();
        let stop: Arc<dyn Stop> = Arc::new(StatementStop { token, deadline });
        let Binding { bound, is_stable } =
            with_stop(&stop, || bind(database, &tree, &context, &snapshot, None))?;
        let shape = Shape::of(&bound);
        let may_be_small = is_small(&tree, &bound)?;
        let tables = shape.accesses.iter();
        let tables = tables.map(|access| (access.table.clone(), version(&snapshot, &access.table)));
        let statement = Self {
            database: Arc::clone(database),
            tables: tables.collect(),
            is_stable,
            tree,
            context,
            shape,
            slot: Arc::default(),
            may_be_small,
            was_small: AtomicBool::default(),
            rows: AtomicUsize::new(usize::MAX),
            insert: Mutex::default(),
            transaction,
        };
        match bound {
            bound if is_stable && statement.shape.parameters.is_empty() => {
                statement.cache_binding(snapshot.epoch(), bound)?;
            }
            BoundStatement::Insert(insert) => insert.sequence_values.release(),
            _ => {}
        }
        Ok(statement)
    }

    /// Caches the binding for the first execution, if the statement allows this.
    fn cache_binding(&self, epoch: u64, bound: BoundStatement) -> EngineResult<()> {
        match bound {
            BoundStatement::Query(query) if !is_volatile(&query.plan)? => {
                self.cache_query(epoch, CachedQuery::Bound(query));
            }
            BoundStatement::Insert(insert) if matches!(insert.source, InsertSource::Batch(_)) => {
                *self.insert.lock() = Some(insert);
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the bound INSERT for the first execution, if its table is unchanged.
    fn take_insert(&self, snapshot: &Snapshot) -> Option<BoundInsert> {
        let insert = self.insert.lock().take()?;
        let schema = insert.table.schema();
        (version(snapshot, &schema.name) == Some((schema.id, schema.version))).then_some(insert)
    }

    /// Returns the newest epoch if preparing the statement again would certainly yield the same
    /// description. This is the case if the description depends only on tables, and these are
    /// unchanged.
    pub fn current_epoch(&self) -> Option<u64> {
        let snapshot = self.database.check_open().and_then(|()| self.database.snapshot()).ok()?;
        let is_current = self.is_stable
            && self.tables.iter().all(|(name, known)| version(&snapshot, name) == *known);
        is_current.then(|| snapshot.epoch())
    }

    /// Whether the next execution will probably finish before a worker could be woken. In that case
    /// a caller may poll it once on its own thread.
    pub fn is_immediate(&self) -> bool {
        self.was_small.load(Ordering::Relaxed)
    }

    /// Returns the statement's kind, columns, parameters and accesses.
    pub fn describe(&self) -> StatementDescription {
        let shape = &self.shape;
        StatementDescription {
            kind: shape.kind,
            command: shape.command.clone(),
            columns: shape.columns.iter().map(result_column).collect(),
            timestamp: shape.timestamp.map_or(-1, |index| index as i64),
            parameters: shape.parameters.iter().map(|of| of.name()).collect(),
            accesses: shape
                .accesses
                .iter()
                .map(|access| described(access, self.designated(access)))
                .collect(),
            notice: shape.notice.clone(),
            permission_requests: shape
                .questions
                .accesses
                .iter()
                .map(|access| self.permission_request(access))
                .collect(),
            texts: shape.questions.texts.clone(),
        }
    }

    fn permission_request(&self, access: &Access) -> PermissionRequest {
        PermissionRequest { key: access.key(), access: described(access, self.designated(access)) }
    }

    /// Returns the table's designated timestamp when some of the table's columns are accessed,
    /// because some permissions include the timestamp. Returns `None` for users without
    /// restrictions, and for views, which are read with their owner's permissions.
    fn designated(&self, access: &Access) -> Option<String> {
        if access.columns.is_empty()
            || (self.context.visibility.is_none() && access.owner.is_none())
        {
            return None;
        }
        let table = self.database.snapshot().ok()?.table(&access.table)?;
        let schema = table.schema();
        schema.timestamp.map(|index| schema.columns[index].name.clone())
    }

    /// Returns the statement's database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Registers an execution, which can then be cancelled.
    pub fn register(&self, options: &ExecuteOptions) -> EngineResult<Registration> {
        let ExecuteOptions { query_id, text, .. } = options;
        self.database.registry.register(*query_id, &self.context, text.clone())
    }

    /// Executes the statement. The reply contains the first chunk and a stream with the remaining
    /// rows. On the database's own runtime the statement runs inline; on any other it runs as a
    /// task on the database's runtime. `parameters` is a single row of [`ParameterRows`].
    pub async fn execute(
        self: &Arc<Self>,
        mut registration: Registration,
        parameters: &[u8],
        options: ExecuteOptions,
    ) -> EngineResult<ExecuteReply> {
        self.database.check_open()?;
        let values = Values::read(parameters)?;
        let statement = Arc::clone(self);
        registration.end_at(Deadline::of(options.timeout_ms, options.elapsed_ms));
        let (token, deadline) = (registration.token.clone(), registration.deadline);
        let query = Arc::clone(&registration.work);
        let work = Box::pin(statement.run(registration, values, options));
        let work = Box::pin(guard::catch_async("execute", query.of(work)));
        let work = Stoppable::new(Arc::new(StatementStop { token, deadline }), work);
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

    /// Executes an INSERT for many parameter rows in one commit. The rows are encoded as described
    /// for [`ParameterRows`].
    pub async fn execute_batch(
        self: &Arc<Self>,
        parameter_rows: Vec<u8>,
    ) -> EngineResult<ExecuteReply> {
        self.database.check_open()?;
        let statement = Arc::clone(self);
        let work = async move {
            failpoint::hit("engine.execute_batch")?;
            statement.run_batch(&ParameterRows::read(&parameter_rows)?).await
        };
        let task = self.database.handle().spawn(guard::catch_async("execute_batch", work));
        task.await.map_err(|error| EngineError::internal(error.to_string()))?
    }

    /// Binds the INSERT for a COPY, with a parameter for each value. Returns it together with its
    /// transaction block.
    pub fn for_copy(&self) -> EngineResult<CopyTarget> {
        let insert = self.insert_of_parameters(&self.snapshot()?)?;
        match &insert.source {
            InsertSource::Template(template) if !template.is_computed() => {
                Ok(CopyTarget { insert, block: self.transaction.clone() })
            }
            _ => Err(EngineError::internal("COPY requires an INSERT without expressions")),
        }
    }

    async fn run_batch(&self, rows: &ParameterRows<'_>) -> EngineResult<ExecuteReply> {
        let snapshot = self.snapshot()?;
        let insert = self.insert_of_parameters(&snapshot)?;
        let InsertSource::Template(template) = &insert.source else {
            return Err(EngineError::internal("parameter rows without an INSERT template"));
        };
        let (batches, values) = if template.is_computed() {
            self.computed_rows(&snapshot, rows)?
        } else {
            (vec![template.rows(rows.iter())?], insert.sequence_values.clone())
        };
        let summary = apply::insert_batches(&self.database, &insert, batches, self.txn()).await?;
        let (summary, values) = (Some(summary), values.list());
        Ok(ExecuteReply { summary, sequence_values: values, ..ExecuteReply::default() })
    }

    /// Binds the statement, which must be an INSERT … VALUES with parameters.
    fn insert_of_parameters(&self, snapshot: &Arc<Snapshot>) -> EngineResult<BoundInsert> {
        let refused = |message| Err(EngineError::new(ErrorCode::NotSupported, message));
        let BoundStatement::Insert(insert) = self.bind(snapshot, None)?.bound else {
            return refused("only INSERT … VALUES can be executed in batches");
        };
        let InsertSource::Template(template) = &insert.source else {
            return refused("only INSERT … VALUES with parameters can be executed in batches");
        };
        if template.resolves() {
            return refused("INSERT … ON CONFLICT cannot be executed in batches");
        }
        Ok(insert)
    }

    /// Returns the rows of an INSERT with expressions over parameters, and the last row's sequence
    /// values. The INSERT is bound once per parameter row.
    fn computed_rows(
        &self,
        snapshot: &Arc<Snapshot>,
        rows: &ParameterRows<'_>,
    ) -> EngineResult<(Vec<RecordBatch>, SequenceValues)> {
        let mut last = SequenceValues::default();
        let bound = rows.iter().map(|row| {
            let values = row.iter().cloned().map(ParameterValue::into_owned).collect();
            match self.bind(snapshot, Some(values))?.bound {
                BoundStatement::Insert(BoundInsert {
                    source: InsertSource::Batch(batch),
                    sequence_values: drawn,
                    ..
                }) => {
                    last = drawn;
                    Ok(batch)
                }
                _ => Err(EngineError::internal("INSERT without the values of its parameters")),
            }
        });
        let batches = bound.collect::<EngineResult<_>>()?;
        Ok((batches, last))
    }

    fn bind(&self, snapshot: &Arc<Snapshot>, values: Option<Parameters>) -> EngineResult<Binding> {
        bind(&self.database, &self.tree, &self.context, snapshot, values)
    }

    fn txn(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }

    /// Returns the newest snapshot. If the statement reads rows, the snapshot includes the
    /// transaction block's rows.
    fn snapshot(&self) -> EngineResult<Arc<Snapshot>> {
        let Shape { kind, accesses, .. } = &self.shape;
        let writes_alone = *kind == StatementKind::Insert
            && accesses.iter().all(|access| access.permission == Permission::Insert);
        match self.txn().filter(|_| !writes_alone) {
            Some(transaction) => transaction.snapshot(&self.database),
            None => self.database.snapshot(),
        }
    }
}

/// Whether a statement remains small as long as its tables are small, so that it may run on the
/// caller's thread and stack. This excludes views, which may change; PIVOT, where a query may
/// produce any number of columns; and strings whose length depends on a number.
fn is_small(tree: &Tree, bound: &BoundStatement) -> EngineResult<bool> {
    let has_pivot = |node: &Node| matches!(node, Node::Select(select) if select.pivot.is_some());
    if tree.nodes.len() > SMALL_NODES
        || bound.accesses().iter().any(|access| access.view.is_some())
        || tree.nodes.iter().any(has_pivot)
    {
        return Ok(false);
    }
    let Some(plan) = bound.plan() else { return Ok(true) };
    Ok(!PlanSize::of(plan)?.is_large() && !has_computed_length(plan)?)
}

/// Binds a syntax tree to a snapshot in a statement's context.
fn bind(
    database: &Database,
    tree: &Tree,
    setting: &StatementContext,
    snapshot: &Arc<Snapshot>,
    values: Option<Parameters>,
) -> EngineResult<Binding> {
    let mut context = bind_context(database, setting)?;
    context.parameter_values = values;
    let bound = Planner::bind(tree, snapshot, &context)?;
    Ok(Binding { bound, is_stable: !context.is_volatile.load(Ordering::Relaxed) })
}

fn bind_context(database: &Database, setting: &StatementContext) -> EngineResult<BindContext> {
    let mut context = database.bind_context(&setting.user);
    setting.identity().clone_into(&mut context.identity);
    let owner = setting.owner.clone();
    context.owner = owner.map(|Owner { name, id }| tidemark_catalog::Owner { name, id });
    context.parameter_types = declared_types(setting)?;
    context.read_only = setting.read_only;
    context.visibility = setting.visibility.clone().map(Visibility);
    context.lists = setting.lists.clone();
    context.numbers = setting.numbers.clone();
    context.answers.clone_from(&setting.answers);
    context.texts = setting.texts.clone();
    Ok(context)
}

fn declared_types(setting: &StatementContext) -> EngineResult<Vec<Option<ParameterType>>> {
    let declared = setting.parameter_types.as_deref().unwrap_or_default();
    let parse = |name: &Option<String>| {
        let Some(name) = name else { return Ok(None) };
        let unknown = || {
            let message = format!("unknown parameter type '{name}'");
            EngineError::new(ErrorCode::InvalidValue, message)
        };
        ParameterType::parse(name).map(Some).ok_or_else(unknown)
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

fn closed() -> EngineError {
    EngineError::new(ErrorCode::Closed, "the database is closed")
}
