//! CREATE, ALTER, REFRESH and DROP MATERIALIZED VIEW. A refresh itself is the engine's: it asks for
//! the rows with [`rows`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::logical_expr::LogicalPlan;
use tidemark_ast::{
    Fill, MaterialClauses, Name, Node, NodeId, RefreshMode, SampleAlign, Span, Tree, ViewAction,
};
use tidemark_border::Permission;
use tidemark_catalog::{
    LiveView, MaterializedState, MaterializedView, Owner, RefreshRequest, RefreshTrigger,
    ViewSource,
};
use tidemark_operators::BucketSpec;
use tidemark_storage::{Change, ColumnSchema, Snapshot, TableId, TableSchema, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, identifier};

use crate::binder::clauses::query::Clauses;
use crate::binder::state::scope::Relation;
use crate::binder::statements::create_table::{check_table_name, index_capacity};
use crate::binder::statements::materialized_policy::{
    apply_policy, partitioning, usual_partitioning,
};
use crate::binder::statements::materialized_shape::{self, Shape};
use crate::binder::statements::ttl::parse_ttl;
use crate::binder::{Binder, error, notice};
use crate::{BindContext, BoundMaterialized, BoundStatement, MaterializedAction};

/// CREATE MATERIALIZED VIEW, as the tree has it.
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a Name,
    pub(crate) query: NodeId,
    pub(crate) text: &'a str,
    pub(crate) if_not_exists: bool,
    pub(crate) clauses: &'a MaterialClauses,
}

/// The rows of a materialized view as its query has them now.
#[derive(Debug, Clone)]
pub struct MaterializedRows {
    /// All rows, in the types and order of the view's table.
    pub plan: LogicalPlan,
    /// How time is cut.
    pub buckets: BucketSpec,
    /// Whether rows of one bucket depend on those of others.
    pub is_whole: bool,
    /// The base, as the plan reads it.
    pub base: Arc<TableSnapshot>,
    /// What the query names.
    pub sources: BTreeMap<u32, ViewSource>,
}

/// The rows of a view's query. `by_names` binds it as if it were made now: what it named may be
/// gone, and have come again.
pub(crate) fn rows(
    view: &MaterializedView,
    snapshot: &Arc<Snapshot>,
    context: &BindContext,
    by_names: bool,
) -> EngineResult<MaterializedRows> {
    let tree: Tree = serde_json::from_str(&view.tree).map_err(|_| {
        EngineError::new(ErrorCode::NotSupported, "the view was made by another version")
    })?;
    let table = snapshot.table_by_id(view.table);
    let table = table.ok_or_else(|| EngineError::internal("a view without its table"))?;
    let mut binder = Binder::new(&tree, snapshot, context, &Clauses);
    binder.beneath_view = true;
    let sources = if by_names { binder.sources_of(&tree) } else { view.sources.clone() };
    refuse_cycle(view, &sources, snapshot)?;
    binder.view_sources = Some(Arc::new(sources.clone()));
    let found = binder.query(tree.root)?;
    let base =
        if by_names { snapshot.table(&view.base_name) } else { snapshot.table_by_id(view.base) };
    let base = base.ok_or_else(|| {
        let message = format!("base table does not exist [table={}]", view.base_name);
        EngineError::new(ErrorCode::TableNotFound, message)
    })?;
    let shape = Shape::of(&found.plan, base.schema().id)?;
    if found.columns.len() != table.schema().columns.len() {
        let message = "the columns of the query are others than those of the view";
        return Err(EngineError::new(ErrorCode::TypeMismatch, message));
    }
    let plan = binder.conformed_source(found, table.schema())?;
    let Shape { buckets, is_whole, .. } = shape;
    Ok(MaterializedRows { plan, buckets, is_whole, base, sources })
}

/// Refuses a query that reads the view's own rows, through other materialized views: each refresh
/// would cause the next one, for ever.
fn refuse_cycle(
    view: &MaterializedView,
    sources: &BTreeMap<u32, ViewSource>,
    snapshot: &Snapshot,
) -> EngineResult<()> {
    let tables = |sources: &BTreeMap<u32, ViewSource>| -> Vec<TableId> {
        let id = |source: &ViewSource| match source {
            ViewSource::Table { id, .. } => Some(*id),
            ViewSource::View { .. } => None,
        };
        sources.values().filter_map(id).collect()
    };
    let mut waiting = tables(sources);
    let mut seen = BTreeSet::new();
    while let Some(table) = waiting.pop() {
        if table == view.table {
            let name = snapshot.table_by_id(table).map(|table| table.schema().name.clone());
            let name = name.unwrap_or_default();
            let message = format!("circular dependency detected [view={name}]");
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        }
        if seen.insert(table)
            && let Some(next) = MaterializedView::of(snapshot, table)
        {
            waiting.extend(tables(&next.sources));
        }
    }
    Ok(())
}

impl Binder<'_> {
    /// Binds CREATE MATERIALIZED VIEW.
    pub(crate) fn create_materialized(
        mut self,
        given: &Definition<'_>,
    ) -> EngineResult<BoundStatement> {
        let name = given.name;
        check_table_name(name)?;
        self.note_change("", Permission::CreateMaterializedView);
        if let Some(known) = self.snapshot.table(&name.text) {
            let is_view = MaterializedView::is(self.snapshot, known.schema().id);
            if given.if_not_exists && is_view {
                return Ok(self.materialized(MaterializedAction::Nothing, CREATE));
            }
            let what = if is_view { "materialized view" } else { "table" };
            let message = format!("{what} already exists [name={}]", name.text);
            return Err(error::at(ErrorCode::TableExists, message, name.span));
        }
        if self.view(&name.text).is_some() {
            let message = format!("view already exists [name={}]", name.text);
            return Err(error::at(ErrorCode::TableExists, message, name.span));
        }
        let found = self.deterministic_query(given.query)?;
        let part = self.part(given.query);
        let sources = self.sources_of(&part);
        let base = self.base_of(given, &sources)?;
        self.refuse_clauses(given.query, &base.schema().name)?;
        let at = self.tree.span(given.query);
        let shape = Shape::of(&found.plan, base.schema().id)
            .map_err(|failure| failure.at(error::span(at)))?;
        let mut schema = self.table_of(given, &found, &shape)?;
        let of_base = base.schema().partition_by;
        let is_open = given.clauses.partition_by.is_none() && of_base != PartitionBy::None;
        if is_open && shape.is_of_rows() {
            schema.partition_by = of_base;
        }
        let mut view = self.definition(given, &part, sources, &base)?;
        if let Some(expire) = &given.clauses.expire {
            let timestamp = schema.timestamp_column();
            let timestamp =
                timestamp.map(|column| Name { text: column.name.clone(), ..name.clone() });
            let (query, alias) = (given.query, Some(name.clone()));
            let rows = Node::Derived { query, alias, timestamp, lateral: false };
            view.expire = Some(self.expire_policy(expire, &schema, (rows, query + 1))?);
        }
        let action = MaterializedAction::Create(Box::new((schema, view, None)));
        Ok(self.materialized(action, CREATE))
    }

    fn definition(
        &self,
        given: &Definition<'_>,
        part: &Tree,
        sources: BTreeMap<u32, ViewSource>,
        base: &TableSnapshot,
    ) -> EngineResult<MaterializedView> {
        let MaterialClauses {
            base: _,
            refresh,
            // Those of its table: see `table_of`, and `create_materialized`.
            timestamp: _,
            partition_by: _,
            ttl: _,
            expire: _,
            volume: _,
            owner,
        } = given.clauses;
        let owner = owner.as_ref().map_or(&self.context.user, |owner| &owner.text);
        let owner = self.context.owner.clone().unwrap_or(Owner { name: owner.clone(), id: None });
        let tree = serde_json::to_string(part)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        let mut view = MaterializedView {
            table: 0,
            query: given.text.to_owned(),
            tree,
            sources,
            owner,
            base: base.schema().id,
            base_name: base.schema().name.clone(),
            trigger: RefreshTrigger::Immediate,
            deferred: false,
            made_after: self.snapshot.lsn(),
            start_micros: self.context.now_micros,
            has_start: false,
            time_zone: None,
            period: None,
            limit_hours_or_months: 0,
            expire: None,
        };
        if let Some(policy) = refresh {
            apply_policy(&mut view, policy, self.context.now_micros)?;
        }
        Ok(view)
    }

    /// The rows of a query that depends on nothing but tables.
    fn deterministic_query(&mut self, query: NodeId) -> EngineResult<Relation> {
        let was_volatile = self.context.is_volatile.swap(false, Ordering::Relaxed);
        let found = self.query(query);
        let is_volatile = self.context.is_volatile.load(Ordering::Relaxed);
        self.context.is_volatile.store(was_volatile || is_volatile, Ordering::Relaxed);
        let found = found?;
        let at = self.tree.span(query);
        let refuse = |message: &str| Err(error::at(ErrorCode::NotSupported, message, at));
        if is_volatile || materialized_shape::is_random(&found.plan)? {
            return refuse(
                "a materialized view reads tables alone: no clock, no random values, no files and \
                 no settings",
            );
        }
        if !self.parameters.types().is_empty() {
            return refuse("bind variables are not allowed in a materialized view");
        }
        Ok(found)
    }

    /// The table whose changes the view follows.
    fn base_of(
        &self,
        given: &Definition<'_>,
        sources: &BTreeMap<u32, ViewSource>,
    ) -> EngineResult<Arc<TableSnapshot>> {
        let at = self.tree.span(given.query);
        let mut tables: Vec<TableId> = Vec::new();
        for source in sources.values() {
            match source {
                ViewSource::Table { id, .. } if LiveView::is(self.snapshot, *id) => {
                    let message = "a materialized view reads tables, not live views";
                    return Err(error::at(ErrorCode::NotSupported, message, at));
                }
                ViewSource::Table { id, .. } if tables.contains(id) => {}
                ViewSource::Table { id, .. } => tables.push(*id),
                ViewSource::View { name, .. } => {
                    let message = format!("a materialized view reads tables, not views: {name}");
                    return Err(error::at(ErrorCode::NotSupported, message, at));
                }
            }
        }
        let base = match (&given.clauses.base, tables.as_slice()) {
            (Some(name), _) => {
                let found = self.snapshot.table(&name.text);
                let found = found.ok_or_else(|| {
                    let message = format!("base table does not exist [table={}]", name.text);
                    error::at(ErrorCode::TableNotFound, message, name.span)
                })?;
                if !tables.contains(&found.schema().id) {
                    let message = format!("the query does not read the base table: {}", name.text);
                    return Err(error::at(ErrorCode::NotSupported, message, name.span));
                }
                Some(found)
            }
            (None, [table]) => self.snapshot.table_by_id(*table),
            (None, []) => {
                let message = "query is not supported for materialized views: it reads no table";
                return Err(error::at(ErrorCode::NotSupported, message, at));
            }
            (None, _) => {
                let message = "the query reads several tables: name the base table by WITH BASE";
                return Err(error::at(ErrorCode::NotSupported, message, given.name.span));
            }
        };
        base.ok_or_else(|| EngineError::internal("a base that is gone"))
    }

    /// Refuses clauses of SAMPLE BY whose rows depend on more than their own bucket.
    fn refuse_clauses(&self, query: NodeId, base: &str) -> EngineResult<()> {
        let part = self.part(query);
        for node in &part.nodes {
            let Node::Select(select) = node else { continue };
            let Some(sample_by) = &select.sample_by else { continue };
            let refuse = |what: &str, at: Span| {
                let message =
                    format!("{what} on base table is not supported for materialized views: {base}");
                Err(error::at(ErrorCode::NotSupported, message, at))
            };
            if let Some(fill) =
                sample_by.fill.iter().find(|fill| !matches!(fill, Fill::None { .. }))
            {
                return refuse("FILL", self.fill_span(fill));
            }
            if let Some(bound) = sample_by.from.or(sample_by.to) {
                return refuse("FROM-TO", self.tree.span(bound));
            }
            if matches!(sample_by.align, Some(SampleAlign::FirstObservation)) {
                // The clause follows the step.
                let start = self.tree.span(sample_by.interval).end + 1;
                let at = Span { start, end: sample_by.span.end.max(start) };
                return refuse("ALIGN TO FIRST OBSERVATION", at);
            }
        }
        Ok(())
    }

    /// The view's own table.
    fn table_of(
        &mut self,
        given: &Definition<'_>,
        found: &Relation,
        shape: &Shape,
    ) -> EngineResult<TableSchema> {
        let clauses = given.clauses;
        let at = self.tree.span(given.query);
        let mut columns = Vec::with_capacity(found.columns.len());
        for (number, column) in (1_u32..).zip(&found.columns) {
            let sql_type =
                if column.sql_type == SqlType::Null { SqlType::String } else { column.sql_type };
            if !sql_type.is_storable() {
                let (name, of) = (&column.name, sql_type.name());
                let message = format!("unsupported column type [column={name}, type={of}]");
                return Err(error::at(ErrorCode::TypeMismatch, message, at));
            }
            if columns.iter().any(|one: &ColumnSchema| identifier::same(&one.name, &column.name)) {
                let message = format!("Duplicate column [name={}]", column.name);
                return Err(error::at(ErrorCode::DuplicateColumn, message, at));
            }
            columns.push(ColumnSchema {
                id: number,
                ..ColumnSchema::new(column.name.clone(), sql_type)
            });
        }
        let mut schema = TableSchema::new(given.name.text.clone(), columns)
            .with_defaults(self.context.table_defaults);
        let buckets = shape.bucket_columns(&found.plan)?;
        let is_bucket = |index: usize| buckets.contains(&index);
        schema.timestamp = match &clauses.timestamp {
            Some(name) => {
                let index = schema.column_index(&name.text);
                Some(index.filter(|index| is_bucket(*index)).ok_or_else(|| {
                    let message = format!(
                        "the timestamp of a materialized view is the time of its buckets, found \
                         '{}'",
                        name.text
                    );
                    error::at(ErrorCode::InvalidValue, message, name.span)
                })?)
            }
            None => buckets.first().copied(),
        };
        if schema.timestamp.is_none() {
            let message = "the query of a materialized view selects the time of its buckets";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        schema.partition_by = match &clauses.partition_by {
            Some(unit) => partitioning(unit)?,
            None => usual_partitioning(&shape.buckets),
        };
        schema.wal = true;
        if let Some(ttl) = &clauses.ttl {
            schema.ttl_hours_or_months = parse_ttl(ttl, schema.partition_by)?;
        }
        if clauses.volume.is_some() {
            self.notices.push(notice::VOLUME);
        }
        Ok(schema)
    }

    /// Binds ALTER MATERIALIZED VIEW.
    pub(crate) fn alter_materialized(
        mut self,
        name: &Name,
        action: &ViewAction,
    ) -> EngineResult<BoundStatement> {
        let (table, mut view) = self.known_view(name, Permission::AlterMaterializedView)?;
        let mut schema = TableSchema::clone(table.schema());
        let changes = match action {
            ViewAction::SetRefresh { refresh } => {
                apply_policy(&mut view, refresh, self.context.now_micros)?;
                let action = MaterializedAction::Redefine(Box::new(view));
                return Ok(self.materialized(action, ALTER));
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
                let index = Self::symbol_of(&schema, column)?;
                let found = &mut schema.columns[index];
                if found.indexed {
                    let message = format!("index already exists [column={}]", column.text);
                    return Err(error::at(ErrorCode::InvalidValue, message, column.span));
                }
                found.indexed = true;
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
                let index = Self::symbol_of(&schema, column)?;
                if !schema.columns[index].indexed {
                    let message = format!("index does not exist [column={}]", column.text);
                    return Err(error::at(ErrorCode::InvalidValue, message, column.span));
                }
                schema.columns[index].indexed = false;
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
        Ok(self.materialized(MaterializedAction::Change(changes), ALTER))
    }

    /// The position of a symbol column.
    fn symbol_of(schema: &TableSchema, column: &Name) -> EngineResult<usize> {
        let index = schema.column_index(&column.text);
        let index = index.ok_or_else(|| {
            let message = format!("column does not exist [column={}]", column.text);
            error::at(ErrorCode::ColumnNotFound, message, column.span)
        })?;
        if schema.columns[index].sql_type != SqlType::Symbol {
            let message = format!("column is not a symbol [column={}]", column.text);
            return Err(error::at(ErrorCode::TypeMismatch, message, column.span));
        }
        Ok(index)
    }

    /// Binds REFRESH MATERIALIZED VIEW: the wish is recorded, the engine does it.
    pub(crate) fn refresh_materialized(
        mut self,
        name: &Name,
        mode: &RefreshMode,
    ) -> EngineResult<BoundStatement> {
        let (table, view) = self.known_view(name, Permission::RefreshMaterializedView)?;
        self.note_refresh(&view, name);
        let id = table.schema().id;
        let state = MaterializedState::of(self.snapshot, id);
        let request = match mode {
            RefreshMode::Full => self.full_request(&view, name)?,
            RefreshMode::Default | RefreshMode::Incremental => {
                if let Some(reason) = &state.invalid {
                    let message = format!("materialized view is invalid: {reason}");
                    return Err(error::at(ErrorCode::NotSupported, message, name.span)
                        .with_hint("REFRESH MATERIALIZED VIEW … FULL computes it anew"));
                }
                RefreshRequest::Incremental
            }
            RefreshMode::Range { from, to } => {
                let column = table.schema().timestamp_column();
                let unit = column.map_or(SqlType::Timestamp, |column| column.sql_type);
                let mut bound = |id| -> EngineResult<i64> {
                    let found = self.instant(id, unit, "Invalid date")?;
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
        let expected = MaterializedState::expect(self.snapshot, id);
        let requests = state.requests + 1;
        let wanted = MaterializedState { request: Some(request), requests, ..state };
        let changes = vec![expected, wanted.put(id)?];
        Ok(self.materialized(MaterializedAction::Change(changes), "REFRESH MATERIALIZED VIEW"))
    }

    /// Notes what a refresh of a materialized or live view reads, by the rights of its owner. A
    /// query that cannot be bound notes nothing: the refresh itself reports why.
    pub(crate) fn note_refresh(&mut self, view: &MaterializedView, name: &Name) {
        let Ok(tree) = serde_json::from_str::<Tree>(&view.tree) else { return };
        let outer = std::mem::take(&mut self.accesses);
        let bound = self.within(&tree, |inner| {
            inner.beneath_view = true;
            inner.view_sources = Some(Arc::new(view.sources.clone()));
            inner.query(tree.root)
        });
        let reads = std::mem::replace(&mut self.accesses, outer).list();
        for access in reads.into_iter().filter(|_| bound.is_ok()) {
            self.accesses.note(access.through(&name.text, &view.owner));
        }
    }

    /// How a view is computed as a whole. Where what its query named is gone it is bound to what
    /// has the names now: the user and the owner must have the right to read it.
    fn full_request(
        &mut self,
        view: &MaterializedView,
        name: &Name,
    ) -> EngineResult<RefreshRequest> {
        if rows(view, self.snapshot, self.context, false).is_ok() {
            return Ok(RefreshRequest::Full);
        }
        let tree: Tree = serde_json::from_str(&view.tree).map_err(|_| {
            EngineError::new(ErrorCode::NotSupported, "the view was made by another version")
        })?;
        let outer = std::mem::take(&mut self.accesses);
        let bound = self.within(&tree, |inner| inner.query(tree.root).map(|_| ()));
        let reads = std::mem::replace(&mut self.accesses, outer).list();
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

    /// The table of the view that DROP names; nothing where there is none and that is no mistake.
    pub(crate) fn dropped_materialized(
        &mut self,
        name: &Name,
        if_exists: bool,
    ) -> EngineResult<Option<Arc<TableSnapshot>>> {
        match self.known_view(name, Permission::DropMaterializedView) {
            Ok((table, _)) => Ok(Some(table)),
            Err(failure)
                if if_exists
                    && failure.code == ErrorCode::TableNotFound
                    && self.snapshot.table(&name.text).is_none() =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    /// A materialized view that a statement changes.
    fn known_view(
        &mut self,
        name: &Name,
        permission: Permission,
    ) -> EngineResult<(Arc<TableSnapshot>, MaterializedView)> {
        let found = self.materialized_view(name, permission);
        self.note_change(&name.text, permission);
        found
    }

    fn materialized(self, action: MaterializedAction, command: &'static str) -> BoundStatement {
        let (accesses, notice) = (self.accesses.list(), self.notice());
        BoundStatement::Materialized(BoundMaterialized { action, command, notice, accesses })
    }
}

const CREATE: &str = "CREATE MATERIALIZED VIEW";
const ALTER: &str = "ALTER MATERIALIZED VIEW";
