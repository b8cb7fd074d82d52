//! CREATE, ALTER and DROP LIVE VIEW. A live view is a materialized view whose query has a row for
//! each row of its base; the engine asks for the rows with [`rows`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, ident, lit};
use tidemark_ast::{LiveClauses, LiveStart as WrittenStart, Name, NodeId, Tree};
use tidemark_border::Permission;
use tidemark_catalog::{
    LiveInterval, LiveStart, LiveView, MaterializedState, MaterializedView, Owner, RefreshTrigger,
    UsedColumn, ViewSource,
};
use tidemark_storage::{ColumnSchema, Snapshot, TableId, TableSchema, TableSnapshot, TimeRange};
use tidemark_types::timestamp::parse_fields;
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, TimestampUnit, identifier,
};

use crate::binder::clauses::query::Clauses;
use crate::binder::state::relation;
use crate::binder::state::scope::Relation;
use crate::binder::statements::create_table::check_table_name;
use crate::binder::statements::live_shape::{
    LiveReach, changing_call, reach, refuse_time_filter, simple_select,
};
use crate::binder::statements::materialized_policy::partitioning;
use crate::binder::statements::materialized_shape;
use crate::binder::{Binder, error};
use crate::{BindContext, BoundMaterialized, BoundStatement, MaterializedAction};

/// The least FLUSH EVERY.
const LEAST_FLUSH_MICROS: i64 = 100_000;

/// CREATE LIVE VIEW, as the tree has it.
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a Name,
    pub(crate) query: NodeId,
    pub(crate) text: &'a str,
    pub(crate) if_not_exists: bool,
    pub(crate) clauses: &'a LiveClauses,
}

/// The rows of a live view as its query has them now.
#[derive(Debug, Clone)]
pub struct LiveRows {
    /// All rows, in the types and order of the view's table.
    pub plan: LogicalPlan,
    /// How far rows of the base reach.
    pub reach: LiveReach,
    /// The base, as the plan reads it.
    pub base: Arc<TableSnapshot>,
    /// What the query names.
    pub sources: BTreeMap<u32, ViewSource>,
    /// The view's designated timestamp.
    time: (String, SqlType),
}

impl LiveRows {
    /// Those of its rows that lie within ranges of time, computed from the base's rows in others.
    pub fn within(&self, read: &[TimeRange], shown: &[TimeRange]) -> EngineResult<LogicalPlan> {
        let base = self.base.schema().id;
        let plan = materialized_shape::restricted(self.plan.clone(), base, read)?;
        if read == shown {
            return Ok(plan);
        }
        let (name, sql_type) = &self.time;
        let instant = |at: i64| match sql_type {
            SqlType::TimestampNs => lit(ScalarValue::TimestampNanosecond(Some(at), None)),
            _ => lit(ScalarValue::TimestampMicrosecond(Some(at), None)),
        };
        let is_in = |range: &TimeRange| {
            let begins = ident(name).gt_eq(instant(range.lo));
            if range.hi == i64::MAX {
                begins
            } else {
                begins.and(ident(name).lt(instant(range.hi)))
            }
        };
        match shown.iter().map(is_in).reduce(Expr::or) {
            Some(predicate) => relation::filter(plan, predicate),
            None => relation::filter(plan, lit(false)),
        }
    }
}

/// The rows of a view's query. `by_names` binds it as if it were made now.
pub(crate) fn rows(
    view: &MaterializedView,
    snapshot: &Arc<Snapshot>,
    context: &BindContext,
    by_names: bool,
) -> EngineResult<LiveRows> {
    let tree: Tree = serde_json::from_str(&view.tree).map_err(|_| {
        EngineError::new(ErrorCode::NotSupported, "the view was made by another version")
    })?;
    let table = snapshot.table_by_id(view.table);
    let table = table.ok_or_else(|| EngineError::internal("a view without its table"))?;
    let mut binder = Binder::new(&tree, snapshot, context, &Clauses);
    binder.beneath_view = true;
    let sources = if by_names { binder.sources_of(&tree) } else { view.sources.clone() };
    binder.view_sources = Some(Arc::new(sources.clone()));
    let found = binder.query(tree.root)?;
    let base = snapshot.table_by_id(view.base).ok_or_else(|| {
        let message = format!("base table does not exist [table={}]", view.base_name);
        EngineError::new(ErrorCode::TableNotFound, message)
    })?;
    let reach = reach(&found.plan, view.base, &tree)?;
    let schema = table.schema();
    let kept = found.columns.iter().zip(&schema.columns);
    let is_same = found.columns.len() == schema.columns.len()
        && kept.clone().all(|(now, then)| stored(now.sql_type) == then.sql_type);
    if !is_same {
        let message = "the columns of the query are others than those of the view";
        return Err(EngineError::new(ErrorCode::TypeMismatch, message));
    }
    let time = schema.timestamp_column().map(|column| (column.name.clone(), column.sql_type));
    let time = time.ok_or_else(|| EngineError::internal("a live view without a timestamp"))?;
    let plan = binder.conformed_source(found, schema)?;
    Ok(LiveRows { plan, reach, base, sources, time })
}

fn stored(sql_type: SqlType) -> SqlType {
    if sql_type == SqlType::Null { SqlType::String } else { sql_type }
}

impl Binder<'_> {
    /// Binds CREATE LIVE VIEW.
    pub(crate) fn create_live(mut self, given: &Definition<'_>) -> EngineResult<BoundStatement> {
        let name = given.name;
        check_table_name(name)?;
        self.note_change("", Permission::CreateLiveView);
        let taken = |message: String| Err(error::at(ErrorCode::TableExists, message, name.span));
        if let Some(known) = self.snapshot.table(&name.text) {
            if !LiveView::is(self.snapshot, known.schema().id) {
                return taken("table or view with the requested name already exists".to_owned());
            }
            if given.if_not_exists {
                return Ok(self.live(MaterializedAction::Nothing, CREATE));
            }
            return taken(format!("live view already exists [view={}]", name.text));
        }
        if self.view(&name.text).is_some() {
            return taken("table or view with the requested name already exists".to_owned());
        }
        if !self.context.live.is_enabled {
            return Err(error::at(ErrorCode::NotSupported, "live views are disabled", name.span));
        }
        let (flush_every, in_memory) = self.intervals(given.clauses)?;
        let part = self.part(given.query);
        let (select, source) = simple_select(&part, given.query)?;
        let base = self.base_of_live(source)?;
        let time = base.schema().timestamp_column();
        let time = time.ok_or_else(|| {
            let message = "live view base table must have a designated timestamp";
            error::at(ErrorCode::NotSupported, message, source.span)
        })?;
        refuse_time_filter(&part, select, &time.name)?;
        let start = self.start(given.clauses, time.sql_type)?;
        let found = self.repeatable_query(given.query, &part)?;
        let used = self.used_columns(&base);
        reach(&found.plan, base.schema().id, &part)?;
        let schema = self.table_of_live(given, &found, &base)?;
        let sources = self.sources_of(&part);
        let owner = given.clauses.owner.as_ref().map_or(&self.context.user, |owner| &owner.text);
        let owner = self.context.owner.clone().unwrap_or(Owner { name: owner.clone(), id: None });
        let tree = serde_json::to_string(&part)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        let view = MaterializedView {
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
        let live = LiveView { flush_every, in_memory, start, columns: used };
        let action = MaterializedAction::Create(Box::new((schema, view, Some(live))));
        Ok(self.live(action, CREATE))
    }

    fn intervals(&self, clauses: &LiveClauses) -> EngineResult<(LiveInterval, LiveInterval)> {
        let most = self.context.live.longest_micros;
        let invalid = |message: String, name: &Name| {
            Err(error::at(ErrorCode::InvalidValue, message, name.span))
        };
        let read = |name: &Name| {
            LiveInterval::parse(&name.text).ok_or_else(|| {
                let message = format!(
                    "invalid interval: {}, expected a number and ms, s, m, h or d",
                    name.text
                );
                error::at(ErrorCode::InvalidValue, message, name.span)
            })
        };
        let LiveClauses { flush_every: flush, in_memory, partition_by: _, start: _, owner: _ } =
            clauses;
        let flush_every = read(flush)?;
        if flush_every.micros() < LEAST_FLUSH_MICROS {
            let message = "live view FLUSH EVERY must be at least 100ms";
            return invalid(message.to_owned(), flush);
        }
        if flush_every.micros() > most {
            let message = format!("live view FLUSH EVERY must be at most {}", shown_micros(most));
            return invalid(message, flush);
        }
        let Some(written) = in_memory else { return Ok((flush_every, flush_every)) };
        let in_memory = read(written)?;
        if in_memory.micros() < flush_every.micros() {
            let message =
                format!("live view IN MEMORY must be at least FLUSH EVERY: {flush_every}");
            return invalid(message, written);
        }
        if in_memory.micros() > most {
            let message = format!("live view IN MEMORY must be at most {}", shown_micros(most));
            return invalid(message, written);
        }
        Ok((flush_every, in_memory))
    }

    /// The table that the query names.
    fn base_of_live(&self, name: &Name) -> EngineResult<Arc<TableSnapshot>> {
        self.must_see(name, Permission::Select)?;
        let refuse =
            |message: &str| Err(error::at(ErrorCode::NotSupported, message.to_owned(), name.span));
        let Some(base) = self.snapshot.table(&name.text) else {
            return match self.view(&name.text) {
                Some(_) => refuse("base table must be a WAL table, found a view"),
                None => Err(error::no_table(name)),
            };
        };
        if LiveView::is(self.snapshot, base.schema().id) {
            return refuse("live views are not allowed as base tables in V1");
        }
        if base.schema().timestamp.is_some() && !base.schema().wal {
            return refuse("base table must be a WAL table");
        }
        Ok(base)
    }

    fn start(&self, clauses: &LiveClauses, unit: SqlType) -> EngineResult<LiveStart> {
        let unit = match unit {
            SqlType::TimestampNs => TimestampUnit::Nanos,
            _ => TimestampUnit::Micros,
        };
        match &clauses.start {
            WrittenStart::Beginning => Ok(LiveStart::Beginning),
            WrittenStart::Now => {
                let now = self.context.now_micros;
                Ok(LiveStart::Now(TimestampUnit::Micros.convert(now, unit).unwrap_or(i64::MAX)))
            }
            WrittenStart::At { instant } => {
                let at = parse_fields(&instant.text).and_then(|parsed| parsed.start(unit));
                at.map(LiveStart::At).ok_or_else(|| {
                    let message = format!("invalid START FROM timestamp: {}", instant.text);
                    error::at(ErrorCode::InvalidValue, message, instant.span)
                })
            }
        }
    }

    /// The rows of a query that another execution over the same rows would repeat.
    fn repeatable_query(&mut self, query: NodeId, part: &Tree) -> EngineResult<Relation> {
        let was_volatile = self.context.is_volatile.swap(false, Ordering::Relaxed);
        let found = self.query(query);
        let is_volatile = self.context.is_volatile.load(Ordering::Relaxed);
        self.context.is_volatile.store(was_volatile || is_volatile, Ordering::Relaxed);
        let found = found?;
        if is_volatile || materialized_shape::is_random(&found.plan)? {
            let message = "non-deterministic function cannot be used in live view";
            return Err(error::at(ErrorCode::NotSupported, message, changing_call(part, query)));
        }
        if !self.parameters.types().is_empty() {
            let message = "bind variables are not allowed in a live view";
            return Err(error::at(ErrorCode::NotSupported, message, self.tree.span(query)));
        }
        Ok(found)
    }

    /// The columns of the base that are read so far.
    fn used_columns(&self, base: &TableSnapshot) -> Vec<UsedColumn> {
        let schema = base.schema();
        let accesses = self.accesses.list();
        let of_base = |name: &str| {
            accesses.iter().any(|access| {
                identifier::same(&access.table, &schema.name)
                    && access.columns.iter().any(|column| identifier::same(column, name))
            })
        };
        let is_used = |(index, column): &(usize, &ColumnSchema)| {
            schema.timestamp == Some(*index) || of_base(&column.name)
        };
        let used = schema.columns.iter().enumerate().filter(is_used);
        used.map(|(_, column)| UsedColumn::new(&column.name, column.sql_type)).collect()
    }

    /// The view's own table.
    fn table_of_live(
        &mut self,
        given: &Definition<'_>,
        found: &Relation,
        base: &TableSnapshot,
    ) -> EngineResult<TableSchema> {
        let at = self.tree.span(given.query);
        let mut columns = Vec::with_capacity(found.columns.len());
        for (number, column) in (1_u32..).zip(&found.columns) {
            let sql_type = stored(column.sql_type);
            if !sql_type.is_storable() {
                let (name, of) = (&column.name, sql_type.name());
                let message = format!("unsupported column type [column={name}, type={of}]");
                return Err(error::at(ErrorCode::TypeMismatch, message, at));
            }
            if columns.iter().any(|one: &ColumnSchema| identifier::same(&one.name, &column.name)) {
                let message = format!("Duplicate column [name={}]", column.name);
                return Err(error::at(ErrorCode::DuplicateColumn, message, at));
            }
            let column = ColumnSchema::new(column.name.clone(), sql_type);
            columns.push(ColumnSchema { id: number, ..column });
        }
        let mut schema = TableSchema::new(given.name.text.clone(), columns)
            .with_defaults(self.context.table_defaults);
        let designated = base.schema().timestamp_column().map(|column| column.name.as_str());
        let is_designated = |index: &usize| {
            designated.is_some_and(|name| identifier::same(name, &found.columns[*index].name))
        };
        schema.timestamp = found.timestamp.filter(is_designated);
        if schema.timestamp.is_none() {
            let name = designated.unwrap_or_default();
            let message = format!(
                "live view select must have the designated timestamp of the base table: {name}"
            );
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        schema.partition_by = match &given.clauses.partition_by {
            Some(unit) => partitioning(unit).map_err(|failure| EngineError {
                message: failure.message.replace("materialized", "live"),
                ..failure
            })?,
            None if base.schema().partition_by == PartitionBy::None => PartitionBy::Day,
            None => base.schema().partition_by,
        };
        schema.wal = true;
        Ok(schema)
    }

    /// Binds ALTER LIVE VIEW.
    pub(crate) fn alter_live(mut self, name: &Name, suspend: bool) -> EngineResult<BoundStatement> {
        let found = self.live_view(name, Permission::ResumeWal);
        self.note_change(&name.text, Permission::ResumeWal);
        let (table, view, _) = found?;
        if !suspend {
            self.note_refresh(&view, name);
        }
        let id = table.schema().id;
        let state = MaterializedState::of(self.snapshot, id);
        let expected = MaterializedState::expect(self.snapshot, id);
        let state = MaterializedState { suspended: suspend, ..state };
        let changes = vec![expected, state.put(id)?];
        Ok(self.live(MaterializedAction::Change(changes), "ALTER LIVE VIEW"))
    }

    /// The table of the view that DROP names; nothing where there is none and that is no mistake.
    pub(crate) fn dropped_live(
        &mut self,
        name: &Name,
        if_exists: bool,
    ) -> EngineResult<Option<Arc<TableSnapshot>>> {
        let found = self.live_view(name, Permission::DropLiveView);
        self.note_change(&name.text, Permission::DropLiveView);
        match found {
            Ok((table, ..)) => Ok(Some(table)),
            Err(failure)
                if if_exists
                    && failure.code == ErrorCode::TableNotFound
                    && self.snapshot.table(&name.text).is_none()
                    && self.view(&name.text).is_none() =>
            {
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }

    fn live(self, action: MaterializedAction, command: &'static str) -> BoundStatement {
        let (accesses, notice) = (self.accesses.list(), self.notice());
        BoundStatement::Materialized(BoundMaterialized { action, command, notice, accesses })
    }
}

const CREATE: &str = "CREATE LIVE VIEW";

/// A length of time in its largest whole unit.
fn shown_micros(micros: i64) -> String {
    let units = [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| micros % unit == 0 && micros >= *unit);
    whole.map_or_else(|| format!("{micros} µs"), |(name, unit)| format!("{}{name}", micros / unit))
}

/// Why a view that stopped following does not fit its base again; `None` where it does.
#[must_use]
pub(crate) fn misfit(
    view: &MaterializedView,
    live: &LiveView,
    snapshot: &Snapshot,
) -> Option<Misfit> {
    let name = &view.base_name;
    let Some(base) = snapshot.table_by_id(view.base) else {
        let is_taken = snapshot.table(name).is_some();
        return Some(if is_taken {
            Misfit::Differs(format!(
                "another table has the name of the base table now [table={name}]"
            ))
        } else {
            Misfit::Missing
        });
    };
    let schema = base.schema();
    if !identifier::same(&schema.name, name) {
        let differs = || {
            format!("the base table was renamed, and another one has its name now [table={name}]")
        };
        let is_other = another(snapshot, name, view.base);
        return Some(if is_other { Misfit::Differs(differs()) } else { Misfit::Missing });
    }
    let mut found = None;
    for used in &live.columns {
        let column =
            schema.columns.iter().find(|column| identifier::same(&column.name, &used.name));
        let Some(column) = column else { return Some(Misfit::Missing) };
        let (now, then) = (column.sql_type.name(), &used.type_name);
        if now != *then && found.is_none() {
            found = Some(Misfit::Differs(format!(
                "column is of another type now [column={}, type={now}, expected={then}]",
                used.name
            )));
        }
    }
    found
}

fn another(snapshot: &Snapshot, name: &str, than: TableId) -> bool {
    snapshot.table(name).is_some_and(|table| table.schema().id != than)
}

/// Why a view does not fit its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// Something it reads is not there.
    Missing,
    /// Something has its name and is another one.
    Differs(String),
}
