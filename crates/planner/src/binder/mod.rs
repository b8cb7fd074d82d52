//! The binder, by concern: sources and scopes, expressions, the clauses of a query in the order
//! they are applied, and statements that are no queries.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use tidemark_ast::{BackupStatement, Name, NamedWindow, Node, NodeId, OptionValue, Tree};
use tidemark_border::Permission;
use tidemark_operators::PlanSize;
use tidemark_storage::Snapshot;
use tidemark_types::{EngineError, EngineResult, ErrorCode, Field, SqlType};

use crate::visibility::{Visibility, denied};
use crate::{
    Access, BindContext, BoundExplain, BoundMaintenance, BoundQuery, BoundStatement,
    MaintenanceAction,
};

mod accesses;
mod catalog;
mod clauses;
mod error;
pub(crate) mod expressions;
mod names;
mod notice;
pub(crate) mod parameters;
mod sources;
pub(crate) mod statements;
mod unsupported;
mod work;

use accesses::Accesses;
use expressions::conditions::ParameterUses;
use parameters::Parameters;

/// Binds statements.
pub struct Planner;

impl Planner {
    /// Binds a statement against a snapshot.
    ///
    /// Errors carry the span of the token that caused them.
    pub fn bind(
        tree: &Tree,
        snapshot: &Arc<Snapshot>,
        context: &BindContext,
    ) -> EngineResult<BoundStatement> {
        let binder = Binder::new(tree, snapshot, context);
        let accesses = binder.accesses.clone();
        let statement = binder.statement(tree.root);
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
}

/// Mistakes in statements on tables that the user sees in part: one that comes after a column that
/// is not for the user is reported as the refusal it would have been, and a column that does not
/// exist looks like one that is not for the user.
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
            column.as_str() != WHOLE
                && !visibility.sees_column(&access.table, column, is_designated)
        };
        if let Some(column) = access.columns.iter().find(is_unseen) {
            let refused = denied(access.permission, &format!("{}({column})", access.table));
            return EngineError { span: failure.span, ..refused };
        }
    }
    let column = failure.message.strip_prefix(error::INVALID_COLUMN);
    let partly = accesses.iter().filter(own).find(|access| !visibility.sees_whole(&access.table));
    match (failure.code, column, partly) {
        (ErrorCode::ColumnNotFound, Some(column), Some(Access { table, .. })) => {
            let column = column.rsplit('.').next().unwrap_or_default();
            let refused = denied(Permission::Select, &format!("{table}({column})"));
            EngineError { span: failure.span, ..refused }
        }
        _ => failure,
    }
}

/// A common table expression in scope: bound anew wherever it is named.
#[derive(Debug, Clone)]
pub(crate) struct CommonTable {
    name: String,
    columns: Vec<Name>,
    query: NodeId,
    /// Whether it may name itself.
    recursive: bool,
    /// What its name means inside of itself.
    last_rows: Option<sources::recursive::LastRows>,
}

/// Represents all columns of a table where it is read as a whole; no column has this name.
const WHOLE: &str = "*";

/// One statement's binding in progress.
pub(crate) struct Binder<'a> {
    pub(crate) tree: &'a Tree,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) context: &'a BindContext,
    pub(crate) parameters: Parameters,
    pub(crate) parameter_uses: ParameterUses,
    pub(crate) accesses: Accesses,
    /// Common table expressions in scope, innermost last.
    pub(crate) common_tables: Vec<CommonTable>,
    /// Values of `@name`, innermost last.
    pub(crate) variables: Vec<HashMap<String, NodeId>>,
    /// Windows that SELECT blocks name, innermost last.
    pub(crate) named_windows: Vec<NamedWindow>,
    /// Rows around the sub-query that is being bound, innermost last.
    pub(crate) outer: Vec<expressions::subquery::OuterRows>,
    /// Names of the aggregates met whose result depends on the order of rows.
    pub(crate) ordered_aggregates: HashSet<String>,
    /// What random functions draw their numbers from, once `long_sequence` gave seeds.
    pub(crate) seed: Option<u64>,
    /// Whether the statement is explained, not run.
    pub(crate) explaining: bool,
    /// An error of a source that gives way to errors of the select list.
    pub(crate) deferred: Option<EngineError>,
    /// Views whose queries are being bound, the innermost last, by their folded names.
    pub(crate) views: Vec<String>,
    /// Whether a view's query is being bound: its names are not the user's.
    pub(crate) beneath_view: bool,
    /// What the names of that query mean; without it they mean what has the name now.
    pub(crate) view_sources: Option<statements::view_sources::ViewSources>,
    /// What the statement asks for and has no effect here.
    pub(crate) notices: Vec<&'static str>,
    /// What the select list that is being bound takes apart.
    pub(crate) list_rows: Option<sources::list_rows::ListRows>,
    /// Relations named so far; plans refer to each by a name of its own.
    relations: usize,
    /// Sources bound so far, without those of views.
    sources: usize,
    /// What binding took so far.
    work: work::Work,
    /// Views bound so far, as they are for statements that override none of their variables.
    bound_views: HashMap<String, statements::view::BoundView>,
}

impl<'a> Binder<'a> {
    fn new(tree: &'a Tree, snapshot: &'a Arc<Snapshot>, context: &'a BindContext) -> Self {
        Self {
            tree,
            snapshot,
            context,
            parameters: Parameters::new(context),
            parameter_uses: ParameterUses::default(),
            accesses: Accesses::default(),
            common_tables: Vec::new(),
            variables: Vec::new(),
            named_windows: Vec::new(),
            outer: Vec::new(),
            ordered_aggregates: HashSet::new(),
            seed: None,
            explaining: false,
            deferred: None,
            views: Vec::new(),
            beneath_view: false,
            view_sources: None,
            notices: Vec::new(),
            list_rows: None,
            relations: 0,
            sources: 0,
            work: work::Work::default(),
            bound_views: HashMap::new(),
        }
    }

    /// A name no other relation of this statement has.
    pub(crate) fn relation_name(&mut self) -> String {
        self.relations += 1;
        format!("r{}", self.relations)
    }

    /// A node that must be there.
    pub(crate) fn node(&self, id: NodeId) -> EngineResult<&'a Node> {
        self.tree.get(id).ok_or_else(|| EngineError::internal(format!("no node {id} in the tree")))
    }

    fn statement(mut self, id: NodeId) -> EngineResult<BoundStatement> {
        let node = self.node(id)?;
        match node {
            Node::Query { .. } | Node::Select(_) | Node::SetOperation { .. } => {
                self.query_statement(id, "SELECT")
            }
            Node::Values { .. } => self.query_statement(id, "SELECT"),
            Node::Show { .. } => self.query_statement(id, "SHOW"),
            Node::Explain { stage, analyze, statement } => {
                let stage = *stage;
                let tree = match stage {
                    tidemark_ast::ExplainStage::Ast => catalog::show::tree_lines(self.tree)?,
                    _ => Vec::new(),
                };
                self.explaining = true;
                let statement = Box::new(self.statement(*statement)?);
                let analyze = *analyze;
                Ok(BoundStatement::Explain(BoundExplain { stage, analyze, statement, tree }))
            }
            Node::Insert(insert) => self.insert(insert),
            Node::CreateTable(create) => self.create_table(create),
            Node::Drop { .. }
            | Node::DropAllTables
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
            Node::CreateView {
                what,
                name,
                query,
                query_text,
                if_not_exists,
                or_replace,
                options,
                ..
            } => self.define_view(&statements::view::Definition {
                what: *what,
                name,
                query: *query,
                text: query_text,
                if_not_exists: *if_not_exists,
                or_replace: *or_replace,
                alter: options.iter().any(|option| option.name.text == "ALTER"),
                owner: owner_of(options),
            }),
            Node::CompileView { view } => self.compile_view(view),
            _ => unsupported::statement(self.tree, id, node),
        }
    }

    /// Fails if a source had an error.
    pub(crate) fn report_deferred(&mut self) -> EngineResult<()> {
        self.deferred.take().map_or(Ok(()), Err)
    }

    fn query_statement(
        mut self,
        id: NodeId,
        command: &'static str,
    ) -> EngineResult<BoundStatement> {
        let relation = self.query(id)?;
        self.report_deferred()?;
        let columns: Vec<Field> = statements::view::fields(&relation);
        let conditions = self.parameter_uses.conditions_alone().filter(|_| self.sources == 1);
        Ok(BoundStatement::Query(BoundQuery {
            // To clients the designated timestamp says how the rows are ordered.
            timestamp: relation.timestamp.filter(|_| !relation.is_unordered()),
            plan: relation.plan,
            columns,
            parameters: self.parameters.types(),
            conditions,
            accesses: self.accesses.list(),
            command,
        }))
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
        match value.and_then(|value| expressions::constant::as_i64(&value)) {
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

    /// What of the catalog the user sees; `None`: everything.
    pub(crate) fn visibility(&self) -> Option<&'a Visibility> {
        self.context.visibility.as_ref()
    }

    /// Refuses a name on which the user has no right, be it there or not.
    pub(crate) fn must_see(&self, name: &Name, permission: Permission) -> EngineResult<()> {
        let sees = self.visibility().is_none_or(|visibility| visibility.sees(&name.text));
        if sees || self.beneath_view {
            return Ok(());
        }
        Err(denied(permission, &name.text).at(error::span(name.span)))
    }

    /// Notes that all of a table or view is read, whatever columns it has.
    pub(crate) fn note_whole(&mut self, table: &str) {
        self.note_read(table, vec![WHOLE.to_owned()]);
    }

    /// Notes that a table is read.
    pub(crate) fn note_read(&mut self, table: &str, columns: Vec<String>) {
        self.accesses.note(Access { columns, ..Access::new(table, Permission::Select) });
    }
}

/// OWNED BY.
fn owner_of(options: &[OptionValue]) -> Option<&str> {
    let owned = options.iter().find(|option| option.name.text.eq_ignore_ascii_case("OWNED"))?;
    owned.value.as_ref().map(|owner| owner.text.as_str())
}

/// Session words are taken as they come; the tag's word is the first, or both of two-word verbs.
fn session(words: &[String]) -> BoundStatement {
    let first = words.first().map(|word| word.to_ascii_uppercase()).unwrap_or_default();
    let command = match first.as_str() {
        "START" => "BEGIN".to_owned(),
        "END" => "COMMIT".to_owned(),
        "ABORT" => "ROLLBACK".to_owned(),
        "DISCARD" => "DISCARD ALL".to_owned(),
        _ => first,
    };
    BoundStatement::Session { words: words.to_vec(), command }
}

/// An expression with the SQL type the binder gave it.
#[derive(Debug, Clone)]
pub(crate) struct Typed {
    pub(crate) expr: datafusion::logical_expr::Expr,
    pub(crate) sql_type: SqlType,
    /// Its value, when it is known while binding.
    pub(crate) constant: Option<datafusion::common::ScalarValue>,
    /// The parameter it is, while its type is still open.
    pub(crate) parameter: Option<u32>,
}
