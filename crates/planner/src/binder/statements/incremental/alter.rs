//! ALTER, REFRESH and DROP of materialized and live views.

use std::sync::Arc;

use tidemark_ast::{Name, Node, RefreshMode, Span, Tree, ViewAction};
use tidemark_border::Permission;
use tidemark_catalog::{IncrementalState, IncrementalView, RefreshRequest, ViewForm};
use tidemark_storage::{Change, ColumnSchema, TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType};

use crate::binder::statements::create_table::index_capacity;
use crate::binder::statements::incremental::buckets::Buckets;
use crate::binder::statements::incremental::policy::apply_policy;
use crate::binder::statements::incremental::{refuse_cycle, rows, tree_of};
use crate::binder::statements::ttl::parse_ttl;
use crate::binder::{Binder, error, notice};
use crate::{Access, BoundIncremental, BoundStatement, IncrementalAction};

const ALTER: &str = "ALTER MATERIALIZED VIEW";

impl Binder<'_> {
    /// Binds ALTER MATERIALIZED VIEW.
    pub(crate) fn alter_materialized(
        mut self,
        name: &Name,
        action: &ViewAction,
    ) -> EngineResult<BoundStatement> {
        let (table, mut view) =
            self.known_view(name, ViewForm::Materialized, Permission::AlterMaterializedView)?;
        let mut schema = TableSchema::clone(table.schema());
        let changes = match action {
            ViewAction::SetRefresh { refresh } => {
                apply_policy(&mut view, refresh, self.context.now_micros)?;
                let action = IncrementalAction::Redefine(Box::new(view));
                return Ok(self.view_statement(action, ALTER));
            }
            ViewAction::SetRefreshLimit { limit } => {
                view.limit_hours_or_months =
                    parse_ttl(limit, PartitionBy::Hour).map_err(|failure| EngineError {
                        message: "invalid time unit".to_owned(),
                        ..failure
                    })?;
                vec![view.put()?]
            }
            ViewAction::SetTtl { ttl } => {
                schema.ttl_hours_or_months = parse_ttl(ttl, schema.partition_by)?;
                vec![Change::ReplaceSchema(schema)]
            }
            ViewAction::AddIndex { column, options } => {
                let found = indexed(&mut schema, column, true)?;
                for option in options {
                    if option.name.text.eq_ignore_ascii_case("type") {
                        self.notices.push(notice::INDEX);
                    }
                    let number = option.value.as_ref().map_or("", |value| value.text.as_str());
                    index_capacity(found, [option.name.text.as_str(), number].into_iter());
                }
                vec![Change::ReplaceSchema(schema)]
            }
            ViewAction::DropIndex { column } => {
                indexed(&mut schema, column, false)?;
                vec![Change::ReplaceSchema(schema)]
            }
            ViewAction::ResumeWal { from: _ } => {
                let message = format!("view is not suspended [view={}]", name.text);
                return Err(error::at(ErrorCode::InvalidValue, message, name.span));
            }
            ViewAction::SetExpire { expire } => {
                let own = Node::Table { name: name.clone(), alias: None, timestamp: None };
                view.expire = None;
                view.expire = Some(self.expire_policy(expire, table.schema(), (own, 0))?);
                vec![view.put()?]
            }
            ViewAction::DropExpire => {
                view.expire = None;
                vec![view.put()?]
            }
        };
        Ok(self.view_statement(IncrementalAction::Change(changes), ALTER))
    }

    /// Binds ALTER LIVE VIEW.
    pub(crate) fn alter_live(mut self, name: &Name, suspend: bool) -> EngineResult<BoundStatement> {
        let (table, view) = self.known_view(name, ViewForm::Live, Permission::ResumeWal)?;
        if !suspend {
            self.note_refresh(&view, name);
        }
        let state = IncrementalState::of(self.snapshot, table.schema().id);
        let state = IncrementalState { suspended: suspend, ..state };
        self.state_statement(&table, &state, "ALTER LIVE VIEW")
    }

    /// Binds REFRESH MATERIALIZED VIEW: records a request that the engine executes.
    pub(crate) fn refresh_materialized(
        mut self,
        name: &Name,
        mode: &RefreshMode,
    ) -> EngineResult<BoundStatement> {
        let (table, view) =
            self.known_view(name, ViewForm::Materialized, Permission::RefreshMaterializedView)?;
        self.note_refresh(&view, name);
        let id = table.schema().id;
        let state = IncrementalState::of(self.snapshot, id);
        let request = match mode {
            RefreshMode::Full => self.full_request(&view, name)?,
            RefreshMode::Default | RefreshMode::Incremental => {
                if let Some(reason) = &state.invalid {
                    let message = format!("materialized view is invalid: {reason}");
                    return Err(error::at(ErrorCode::NotSupported, message, name.span)
                        .with_hint("run REFRESH MATERIALIZED VIEW … FULL to rebuild it"));
                }
                RefreshRequest::Incremental
            }
            RefreshMode::Range { from, to } => {
                let column = table.schema().timestamp_column();
                let unit = column.map_or(SqlType::Timestamp, |column| column.sql_type);
                let mut bound = |id| -> EngineResult<i64> {
                    let found = self.timestamp(id, unit, "Invalid date")?;
                    let at = self.tree.span(id);
                    found.ok_or_else(|| {
                        error::at(ErrorCode::InvalidValue, "invalid timestamp range", at)
                    })
                };
                let (from_at, to_at) = (bound(*from)?, bound(*to)?);
                if from_at > to_at {
                    let message = "invalid timestamp range: FROM is after TO";
                    let at = self.tree.span(*from);
                    return Err(error::at(ErrorCode::InvalidValue, message, at));
                }
                RefreshRequest::Range(from_at, to_at)
            }
        };
        let requests = state.requests + 1;
        let required = IncrementalState { request: Some(request), requests, ..state };
        self.state_statement(&table, &required, "REFRESH MATERIALIZED VIEW")
    }

    /// Builds a statement that records a view's new state.
    fn state_statement(
        self,
        table: &TableSnapshot,
        state: &IncrementalState,
        command: &'static str,
    ) -> EngineResult<BoundStatement> {
        let id = table.schema().id;
        let changes = vec![IncrementalState::expect(self.snapshot, id), state.put(id)?];
        Ok(self.view_statement(IncrementalAction::Change(changes), command))
    }

    /// Records the reads that a refresh of the view makes with its owner's permissions. If the
    /// query cannot be bound, nothing is recorded, because the refresh itself reports the error.
    fn note_refresh(&mut self, view: &IncrementalView, name: &Name) {
        let Ok(tree) = tree_of(view) else { return };
        let (bound, reads) = self.reads_of(&tree, |inner| {
            inner.beneath_view = true;
            inner.view_sources = Some(Arc::new(view.sources.clone()));
        });
        for access in reads.into_iter().filter(|_| bound.is_ok()) {
            self.accesses.note(access.through(&name.text, &view.owner));
        }
    }

    /// Returns whether a query can be bound, and its accesses.
    fn reads_of(
        &mut self,
        tree: &Tree,
        prepare: impl FnOnce(&mut Binder<'_>),
    ) -> (EngineResult<()>, Vec<Access>) {
        let outer = std::mem::take(&mut self.accesses);
        let bound = self.within(tree, |inner| {
            prepare(inner);
            inner.query(tree.root).map(|_| ())
        });
        (bound, std::mem::replace(&mut self.accesses, outer).list())
    }

    /// Plans a full refresh. If objects in the view's query were dropped, the query is bound to the
    /// objects that now have their names. The user and the owner must be allowed to read these
    /// objects.
    fn full_request(
        &mut self,
        view: &IncrementalView,
        name: &Name,
    ) -> EngineResult<RefreshRequest> {
        if rows::<Buckets>(view, self.snapshot, self.context, false).is_ok() {
            return Ok(RefreshRequest::Full);
        }
        let tree = tree_of(view)?;
        let (bound, reads) = self.reads_of(&tree, |_| ());
        for access in reads {
            self.accesses.note(access.clone());
            self.accesses.note(access.through(&name.text, &view.owner));
        }
        bound.map_err(|failure| failure.at(error::span(Span::default())))?;
        let sources = self.sources_of(&tree);
        refuse_cycle(view, &sources, self.snapshot)
            .map_err(|failure| failure.at(error::span(name.span)))?;
        Ok(RefreshRequest::Rebuild)
    }

    /// The view's table in a DROP statement; `None` if it does not exist and IF EXISTS is given.
    pub(crate) fn dropped_incremental(
        &mut self,
        name: &Name,
        form: ViewForm,
        if_exists: bool,
    ) -> EngineResult<Option<Arc<TableSnapshot>>> {
        let permission = match form {
            ViewForm::Materialized => Permission::DropMaterializedView,
            ViewForm::Live => Permission::DropLiveView,
        };
        match self.known_view(name, form, permission) {
            Ok((table, _)) => Ok(Some(table)),
            Err(failure)
                if if_exists
                    && failure.code == ErrorCode::TableNotFound
                    && self.snapshot.table(&name.text).is_none()
                    && (form == ViewForm::Materialized || self.view(&name.text).is_none()) =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// The view that a statement changes.
    fn known_view(
        &mut self,
        name: &Name,
        form: ViewForm,
        permission: Permission,
    ) -> EngineResult<(Arc<TableSnapshot>, IncrementalView)> {
        let found = self.incremental_view(name, form, permission);
        self.note_change(&name.text, permission);
        found
    }

    pub(super) fn view_statement(
        self,
        action: IncrementalAction,
        command: &'static str,
    ) -> BoundStatement {
        let (accesses, notice) = (self.accesses.list(), self.notice());
        BoundStatement::Incremental(BoundIncremental { action, command, notice, accesses })
    }
}

/// Adds or removes a symbol column's index.
fn indexed<'s>(
    schema: &'s mut TableSchema,
    column: &Name,
    indexed: bool,
) -> EngineResult<&'s mut ColumnSchema> {
    let index = schema.column_index(&column.text);
    let index = index.ok_or_else(|| {
        let message = format!("column does not exist [column={}]", column.text);
        error::at(ErrorCode::ColumnNotFound, message, column.span)
    })?;
    let found = &mut schema.columns[index];
    if found.sql_type != SqlType::Symbol {
        let message = format!("column is not a symbol [column={}]", column.text);
        return Err(error::at(ErrorCode::TypeMismatch, message, column.span));
    }
    if found.indexed == indexed {
        let what = if indexed { "already exists" } else { "does not exist" };
        let message = format!("index {what} [column={}]", column.text);
        return Err(error::at(ErrorCode::InvalidValue, message, column.span));
    }
    found.indexed = indexed;
    Ok(found)
}
