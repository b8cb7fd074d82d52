//! The binder's entry points, for statements and for other requests.

use std::sync::Arc;

use datafusion::logical_expr::{Expr, LogicalPlan};
use tidemark_ast::{
    BackupStatement, ExplainStage, Name, Node, NodeId, OptionValue, Tree, ViewKind,
};
use tidemark_border::Permission;
use tidemark_catalog::IncrementalView;
use tidemark_optimizer::PlanSize;
use tidemark_storage::{Change, Snapshot, TableId, TableSchema, TableSnapshot, TimeRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field};

use crate::binder::catalog::show;
use crate::binder::catalog::source_column::note_sources;
use crate::binder::catalog::view::fields;
use crate::binder::clauses::query::Clauses;
use crate::binder::expressions::constant;
use crate::binder::expressions::restriction::Restriction;
use crate::binder::notice::EXTENSION;
use crate::binder::state::binder::{ALL_COLUMNS, Binder};
use crate::binder::state::conditions::Conditions;
use crate::binder::state::scope::TimeOrder;
use crate::binder::statements::defaults::Defaults;
use crate::binder::statements::incremental::buckets::restricted;
use crate::binder::statements::incremental::create::{Definition, WrittenClauses};
use crate::binder::statements::incremental::misfit::{Misfit, misfit};
use crate::binder::statements::incremental::{self, IncrementalRows, ViewShape};
use crate::binder::statements::{expire_rows, followed, view, view_sources};
use crate::binder::{error, unsupported};
use crate::visibility::denied;
use crate::{
    Access, BindContext, BoundExplain, BoundMaintenance, BoundQuery, BoundStatement,
    MaintenanceAction,
};

/// Binds statements.
pub struct Planner;

impl Planner {
    /// Binds a statement against a snapshot.
    ///
    /// Errors carry the span of the token that causes them.
    pub fn bind(
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<BoundStatement> {
        let binder = Binder::new(tree, snapshot, context, &Clauses);
        let accesses = binder.accesses.clone();
        let statement = binder.statement(tree.root);
        if let Some(requests) = context.pending_requests() {
            return Ok(BoundStatement::Asking(requests));
        }
        let statement =
            statement.map_err(|failure| hidden(failure, &accesses.list(), snapshot, context))?;
        if let Some(plan) = statement.plan() {
            PlanSize::of(plan)?;
        }
        if context.read_only && statement.writes() {
            return Err(EngineError::new(
                ErrorCode::ReadOnly,
                "Write permission denied: the session is read-only",
            ));
        }
        Ok(statement)
    }

    /// Binds conditions from the same tree and snapshot again, with the parameter values in
    /// `context`. Returns `None` if the conditions may require a different plan. In that case, bind
    /// the statement with [`Planner::bind`].
    pub fn restriction(
        conditions: &Conditions,
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Option<Restriction>> {
        Binder::new(tree, snapshot, context, &Clauses).restriction(conditions)
    }

    /// Returns the time ranges to which a WHERE clause's conditions restrict the rows. Call this
    /// only if no other condition can become a time range for any parameter values.
    pub fn condition_ranges(
        conditions: &Conditions,
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Option<Vec<TimeRange>>> {
        Binder::new(tree, snapshot, context, &Clauses).condition_ranges(conditions)
    }

    /// Binds the conditions that are not time ranges. Returns their conjunction and the number of
    /// parameter uses in it; `None` if the conjunction is constant.
    pub fn condition_test(
        conditions: &Conditions,
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Option<(Expr, usize)>> {
        Binder::new(tree, snapshot, context, &Clauses).condition_test(conditions)
    }

    /// Default values for the table's columns that are not in `given`.
    pub fn defaults(
        schema: &TableSchema,
        given: &[usize],
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Defaults> {
        let nothing = Tree::default();
        Binder::new(&nothing, snapshot, context, &Clauses).defaults(schema, given)
    }

    /// Plans the rows of a materialized or live view's query over a snapshot. With `by_names`,
    /// names are resolved again as for a new view, because a table may have been dropped and
    /// created again.
    pub fn view_rows<S: ViewShape>(
        view: &IncrementalView,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
        by_names: bool,
    ) -> EngineResult<IncrementalRows<S>> {
        incremental::rows(view, snapshot, context, by_names)
    }

    /// The earliest timestamp that a view with EXPIRE ROWS shows, in the view's timestamp unit;
    /// `None` if hidden rows may become visible again.
    pub fn shown_since(
        view: &IncrementalView,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Option<i64>> {
        expire_rows::shown_since(view, snapshot, context)
    }

    /// The reason why a live view no longer matches its base table; `None` if the view matches.
    pub fn live_misfit(view: &IncrementalView, snapshot: &Snapshot) -> Option<Misfit> {
        misfit(view, snapshot)
    }

    /// Restricts the plan's scan of one table to time ranges. The ranges are sorted, disjoint and
    /// in the table's unit.
    pub fn within_times(
        plan: LogicalPlan,
        table: TableId,
        ranges: &[TimeRange],
    ) -> EngineResult<LogicalPlan> {
        restricted(plan, table, ranges)
    }

    /// The table whose changes a query follows. The query must return the table's rows unchanged,
    /// possibly filtered and with fewer columns; other queries are rejected.
    pub fn followed_table(plan: &LogicalPlan) -> EngineResult<TableId> {
        followed::table_of(plan)
    }

    /// Returns the same plan over `table`, which has the same definition but different rows. If
    /// `ranges` is not empty, the plan is restricted to these sorted, disjoint time ranges.
    pub fn over_rows(
        plan: LogicalPlan,
        table: &Arc<TableSnapshot>,
        ranges: &[TimeRange],
    ) -> EngineResult<LogicalPlan> {
        followed::over(plan, table, ranges)
    }

    /// Binds views created by an older version to the objects that their names currently refer to,
    /// and returns the changes to commit. The first call may only assign IDs to views, so commit
    /// and call again until no changes are returned.
    pub fn settle_views(
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<Vec<Change>> {
        view_sources::settle_views(snapshot, context)
    }
}

/// Hides error details in statements on tables that the user sees only partially. If the statement
/// accessed a forbidden column, any error becomes access denied. An unknown column is reported like
/// a forbidden one.
fn hidden(
    failure: EngineError,
    accesses: &[Access],
    snapshot: &Snapshot,
    context: &BindContext,
) -> EngineError {
    let Some(visibility) = context.visibility.as_ref() else { return failure };
    if failure.code == ErrorCode::AccessDenied {
        return failure;
    }
    let own = |access: &&Access| access.view.is_none() && !access.table.is_empty();
    for access in accesses.iter().filter(own) {
        let table = snapshot.table(&access.table);
        let designated = table.as_ref().and_then(|table| table.schema().timestamp_column());
        let is_unseen = |column: &&String| {
            let is_designated = designated.is_some_and(|known| known.name == **column);
            column.as_str() != ALL_COLUMNS
                && !visibility.sees_column(&access.table, column, is_designated)
        };
        if let Some(column) = access.columns.iter().find(is_unseen) {
            let refused = denied(access.permission, &format!("{}({column})", access.table));
            return EngineError { span: failure.span, ..refused };
        }
    }
    let column = failure.message.strip_prefix(error::INVALID_COLUMN);
    let partly = accesses.iter().filter(own).find(|access| !visibility.sees_all(&access.table));
    match (failure.code, column, partly) {
        (ErrorCode::ColumnNotFound, Some(column), Some(Access { table, .. })) => {
            let column = column.rsplit('.').next().unwrap_or_default();
            let refused = denied(Permission::Select, &format!("{table}({column})"));
            EngineError { span: failure.span, ..refused }
        }
        _ => failure,
    }
}

impl Binder<'_> {
    fn statement(mut self, id: NodeId) -> EngineResult<BoundStatement> {
        let node = self.node(id)?;
        match node {
            Node::Query { .. } | Node::Select(_) | Node::SetOperation { .. } => {
                self.query_statement(id, "SELECT")
            }
            Node::Values { .. } => self.query_statement(id, "SELECT"),
            Node::Show { .. } => self.query_statement(id, "SHOW"),
            Node::Explain { stage, analyze, statement } => {
                self.explained(*stage, *analyze, *statement)
            }
            Node::Insert(insert) => self.insert(insert),
            Node::CreateTable(create) => self.create_table(create),
            Node::Drop { .. }
            | Node::DropAllTables
            | Node::DropIndex { .. }
            | Node::Truncate { .. }
            | Node::Rename { .. }
            | Node::AlterTable { .. } => self.schema_change(node),
            Node::Session { words } => Ok(session(words)),
            Node::Backup {
                backup: BackupStatement::CheckpointCreate | BackupStatement::SnapshotPrepare,
            } => self.maintenance(MaintenanceAction::CheckpointCreate, None),
            Node::Backup {
                backup: BackupStatement::CheckpointRelease | BackupStatement::SnapshotComplete,
            } => self.maintenance(MaintenanceAction::CheckpointRelease, None),
            Node::Check { table } => self.maintenance(MaintenanceAction::Check, table.as_ref()),
            Node::Recover { table, skip } => {
                let action = if *skip {
                    MaintenanceAction::SkipDamage
                } else {
                    MaintenanceAction::ShowLosses
                };
                self.maintenance(action, Some(table))
            }
            Node::CancelQuery { id } => self.cancel_query(*id),
            Node::Empty => Ok(BoundStatement::Empty),
            Node::Update(update) => self.update(update),
            Node::Delete(delete) => self.delete(delete),
            Node::CreateView { .. } => self.create_view(node),
            Node::AlterView { view, action } => self.alter_materialized(view, action),
            Node::AlterLiveView { view, suspend } => self.alter_live(view, *suspend),
            Node::RefreshView { view, mode } => self.refresh_materialized(view, mode),
            Node::CompileView { view } => self.compile_view(view),
            _ => unsupported::statement(self.tree, id, node),
        }
    }

    /// Binds CREATE and ALTER VIEW, CREATE MATERIALIZED VIEW and CREATE LIVE VIEW.
    fn create_view(self, node: &Node) -> EngineResult<BoundStatement> {
        let Node::CreateView { name, query, query_text, if_not_exists, .. } = node else {
            return Err(EngineError::internal("expected a view"));
        };
        let (query, text, if_not_exists) = (*query, query_text.as_str(), *if_not_exists);
        match node {
            Node::CreateView {
                what: ViewKind::MaterializedView, material: Some(clauses), ..
            } => {
                let clauses = WrittenClauses::Materialized(clauses);
                self.create_incremental(&Definition { name, query, text, if_not_exists, clauses })
            }
            Node::CreateView { live: Some(clauses), .. } => {
                let clauses = WrittenClauses::Live(clauses);
                self.create_incremental(&Definition { name, query, text, if_not_exists, clauses })
            }
            Node::CreateView { or_replace, options, .. } => self.define_view(&view::Definition {
                name,
                query,
                text,
                if_not_exists,
                or_replace: *or_replace,
                alter: options.iter().any(|option| option.name.text == "ALTER"),
                owner: owner_of(options),
                temporary: options.iter().any(is_temporary),
            }),
            _ => Err(EngineError::internal("expected a view")),
        }
    }

    fn explained(
        mut self,
        stage: ExplainStage,
        analyze: bool,
        id: NodeId,
    ) -> EngineResult<BoundStatement> {
        let tree = match stage {
            ExplainStage::Ast => show::tree_lines(self.tree)?,
            _ => Vec::new(),
        };
        self.explaining = true;
        let statement = Box::new(self.statement(id)?);
        let mut accesses = statement.accesses().to_vec();
        if stage != ExplainStage::Ast {
            // EXPLAIN reveals the tables that views read, and their row counts.
            let inner = statement.accesses().iter().filter(|access| access.view.is_some());
            accesses.extend(inner.cloned().map(Access::directly));
        }
        Ok(BoundStatement::Explain(BoundExplain { stage, analyze, statement, tree, accesses }))
    }

    fn query_statement(
        mut self,
        id: NodeId,
        command: &'static str,
    ) -> EngineResult<BoundStatement> {
        let relation = self.query(id)?.restored()?;
        self.report_deferred()?;
        let mut columns: Vec<Field> = fields(&relation);
        // If values are given, the statement has already been described.
        if self.context.parameter_values.is_none() {
            note_sources(&relation, &mut columns);
        }
        let (plan, is_answered) = self.answered(relation.plan)?;
        let conditions = self.parameter_uses.sole_conditions();
        let conditions = conditions.filter(|_| self.sources == 1 && !is_answered);
        Ok(BoundStatement::Query(Box::new(BoundQuery {
            // Clients interpret the designated timestamp as the row order.
            timestamp: relation.timestamp.filter(|_| relation.order != TimeOrder::Unknown),
            plan,
            columns,
            parameters: self.parameters.types(),
            conditions,
            accesses: self.accesses.list(),
            command,
        })))
    }

    fn maintenance(
        &mut self,
        action: MaintenanceAction,
        table: Option<&Name>,
    ) -> EngineResult<BoundStatement> {
        let permission = match action {
            MaintenanceAction::CheckpointCreate
            | MaintenanceAction::CheckpointRelease
            | MaintenanceAction::Check => Permission::Snapshot,
            MaintenanceAction::ShowLosses | MaintenanceAction::SkipDamage => {
                Permission::SystemAdmin
            }
        };
        let table = table.map(|name| self.writable_table(name, permission)).transpose()?;
        let accesses = vec![Access::new("", permission)];
        Ok(BoundStatement::Maintenance(BoundMaintenance { action, table, accesses }))
    }

    fn cancel_query(&mut self, id: NodeId) -> EngineResult<BoundStatement> {
        let value = self.constant(id)?;
        match value.and_then(|value| constant::as_i64(&value)) {
            Some(query) if query >= 0 => {
                let of = self.context.only_queries_of().map(str::to_owned);
                let at = error::span(self.tree.span(id));
                Ok(BoundStatement::CancelQuery { id: query as u64, at, of })
            }
            _ => Err(error::at(
                ErrorCode::InvalidValue,
                "non-negative integer literal expected as query id",
                self.tree.span(id),
            )),
        }
    }
}

/// Whether the option is TEMP or TEMPORARY.
fn is_temporary(option: &OptionValue) -> bool {
    let name = &option.name.text;
    name.eq_ignore_ascii_case("temp") || name.eq_ignore_ascii_case("temporary")
}

fn owner_of(options: &[OptionValue]) -> Option<&str> {
    let owned = options.iter().find(|option| option.name.text.eq_ignore_ascii_case("OWNED"))?;
    owned.value.as_ref().map(|owner| owner.text.as_str())
}

/// Accepts a session statement without binding it. The command tag is the statement's first word in
/// upper case, with a few exceptions: the tag of START is BEGIN.
fn session(words: &[String]) -> BoundStatement {
    let first = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let command = match first.as_str() {
        "START" => "BEGIN".to_owned(),
        "END" => "COMMIT".to_owned(),
        "ABORT" => "ROLLBACK".to_owned(),
        "DISCARD" => "DISCARD ALL".to_owned(),
        "CREATE" => format!("CREATE {}", words.get(1).map_or("", String::as_str)),
        _ => first,
    };
    let notice = words.get(1).is_some_and(|word| word == "EXTENSION").then_some(EXTENSION);
    BoundStatement::Session { words: words.to_vec(), command, notice }
}
