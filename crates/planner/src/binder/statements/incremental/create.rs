//! CREATE MATERIALIZED VIEW and CREATE LIVE VIEW.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidemark_ast::{
    Fill, LiveClauses, LiveStart as WrittenStart, MaterialClauses, Name, Node, NodeId, SampleAlign,
    Span, Tree,
};
use tidemark_border::Permission;
use tidemark_catalog::{
    IncrementalView, LiveInterval, LiveStart, LiveView, Owner, RefreshTrigger, UsedColumn,
    ViewForm, ViewSource,
};
use tidemark_storage::{ColumnSchema, TableId, TableSchema, TableSnapshot};
use tidemark_types::timestamp::parse_fields;
use tidemark_types::{
    EngineError, EngineResult, ErrorCode, PartitionBy, SqlType, TimestampUnit, identifier,
};

use crate::binder::state::scope::Relation;
use crate::binder::statements::create_table::check_table_name;
use crate::binder::statements::incremental::buckets::{Buckets, is_random};
use crate::binder::statements::incremental::policy::{
    apply_policy, partitioning, usual_partitioning,
};
use crate::binder::statements::incremental::reach::{
    LiveReach, changing_call, refuse_time_filter, simple_select,
};
use crate::binder::statements::incremental::{ViewShape, stored};
use crate::binder::statements::ttl::parse_ttl;
use crate::binder::{Binder, error, notice};
use crate::{BoundStatement, IncrementalAction};

/// Minimum interval for FLUSH EVERY.
const MIN_FLUSH_MICROS: i64 = 100_000;

/// CREATE MATERIALIZED VIEW or CREATE LIVE VIEW, as parsed.
pub(crate) struct Definition<'a> {
    pub(crate) name: &'a Name,
    pub(crate) query: NodeId,
    pub(crate) text: &'a str,
    pub(crate) if_not_exists: bool,
    pub(crate) clauses: WrittenClauses<'a>,
}

/// The clauses of one kind of view.
#[derive(Clone, Copy)]
pub(crate) enum WrittenClauses<'a> {
    Materialized(&'a MaterialClauses),
    Live(&'a LiveClauses),
}

impl Binder<'_> {
    /// Binds CREATE MATERIALIZED VIEW or CREATE LIVE VIEW.
    pub(crate) fn create_incremental(
        mut self,
        given: &Definition<'_>,
    ) -> EngineResult<BoundStatement> {
        let (form, command, permission) = match given.clauses {
            WrittenClauses::Materialized(_) => (
                ViewForm::Materialized,
                "CREATE MATERIALIZED VIEW",
                Permission::CreateMaterializedView,
            ),
            WrittenClauses::Live(_) => {
                (ViewForm::Live, "CREATE LIVE VIEW", Permission::CreateLiveView)
            }
        };
        check_table_name(given.name)?;
        self.note_change("", permission);
        if let Some((is_same, message)) = self.name_conflict(&given.name.text, form) {
            if is_same && given.if_not_exists {
                return Ok(self.view_statement(IncrementalAction::Nothing, command));
            }
            return Err(error::at(ErrorCode::TableExists, message, given.name.span));
        }
        let created = match given.clauses {
            WrittenClauses::Materialized(clauses) => self.new_materialized(given, clauses)?,
            WrittenClauses::Live(clauses) => self.new_live(given, clauses)?,
        };
        let action = IncrementalAction::Create(Box::new(created));
        Ok(self.view_statement(action, command))
    }

    /// If a name is in use, returns whether a view of this kind has it, and the error message.
    fn name_conflict(&self, name: &str, form: ViewForm) -> Option<(bool, String)> {
        let table = self.snapshot.table(name);
        if table.is_none() && self.view(name).is_none() {
            return None;
        }
        let of_table =
            |table: &Arc<TableSnapshot>| IncrementalView::form_of(self.snapshot, table.schema().id);
        let known = table.as_ref().and_then(of_table);
        Some(match (form, known) {
            (ViewForm::Materialized, Some(_)) => {
                (true, format!("materialized view already exists [name={name}]"))
            }
            (ViewForm::Materialized, None) => {
                let what = if table.is_some() { "table" } else { "view" };
                (false, format!("{what} already exists [name={name}]"))
            }
            (ViewForm::Live, Some(ViewForm::Live)) => {
                (true, format!("live view already exists [view={name}]"))
            }
            (ViewForm::Live, _) => {
                (false, "table or view with the requested name already exists".to_owned())
            }
        })
    }

    fn new_materialized(
        &mut self,
        given: &Definition<'_>,
        clauses: &MaterialClauses,
    ) -> EngineResult<(TableSchema, IncrementalView)> {
        let MaterialClauses {
            base: _,
            refresh,
            // These are handled in `bucket_table`.
            timestamp: _,
            partition_by: _,
            ttl: _,
            expire,
            volume: _,
            owner,
        } = clauses;
        let found = self.repeatable_query(given.query, ViewForm::Materialized)?;
        let subtree = self.subtree(given.query);
        let sources = self.sources_of(&subtree);
        let base = self.base_of(given, clauses.base.as_ref(), &sources)?;
        self.refuse_clauses(&subtree, &base.schema().name)?;
        let at = self.tree.span(given.query);
        let shape = Buckets::of(&found.plan, base.schema().id, &subtree)
            .map_err(|failure| failure.at(error::span(at)))?;
        let mut schema = self.bucket_table(given, clauses, (&found, &shape))?;
        let of_base = base.schema().partition_by;
        let is_open = clauses.partition_by.is_none() && of_base != PartitionBy::None;
        if is_open && shape.is_of_rows() {
            schema.partition_by = of_base;
        }
        let mut view = self.definition(given, (&subtree, sources), &base, owner.as_ref())?;
        if let Some(policy) = refresh {
            apply_policy(&mut view, policy, self.context.now_micros)?;
        }
        if let Some(expire) = expire {
            let timestamp = schema.timestamp_column().map(|column| column.name.clone());
            let timestamp = timestamp.map(|text| Name { text, ..given.name.clone() });
            let (query, alias) = (given.query, Some(given.name.clone()));
            let rows = Node::Derived { query, alias, timestamp, lateral: false };
            view.expire = Some(self.expire_policy(expire, &schema, (rows, query + 1))?);
        }
        Ok((schema, view))
    }

    fn new_live(
        &mut self,
        given: &Definition<'_>,
        clauses: &LiveClauses,
    ) -> EngineResult<(TableSchema, IncrementalView)> {
        if !self.context.live.is_enabled {
            let at = given.name.span;
            return Err(error::at(ErrorCode::NotSupported, "live views are disabled", at));
        }
        let (flush_every, in_memory) = self.intervals(clauses)?;
        let subtree = self.subtree(given.query);
        let (select, source) = simple_select(&subtree, given.query)?;
        let base = self.base_of_live(source)?;
        let time = base.schema().timestamp_column();
        let time = time.ok_or_else(|| {
            let message = "live view base table must have a designated timestamp";
            error::at(ErrorCode::NotSupported, message, source.span)
        })?;
        refuse_time_filter(&subtree, select, &time.name)?;
        let start = self.start(clauses, time.sql_type)?;
        let found = self.repeatable_query(given.query, ViewForm::Live)?;
        let columns = self.used_columns(&base);
        LiveReach::of(&found.plan, base.schema().id, &subtree)?;
        let schema = self.live_table(given, clauses, (&found, &base))?;
        let sources = self.sources_of(&subtree);
        let owner = clauses.owner.as_ref();
        let view = self.definition(given, (&subtree, sources), &base, owner)?;
        let live = LiveView { flush_every, in_memory, start, columns };
        Ok((schema, IncrementalView { live: Some(live), ..view }))
    }

    /// Returns the definition of a view that is refreshed after each change to its base table.
    fn definition(
        &self,
        given: &Definition<'_>,
        (subtree, sources): (&Tree, BTreeMap<u32, ViewSource>),
        base: &TableSnapshot,
        owner: Option<&Name>,
    ) -> EngineResult<IncrementalView> {
        let owner = owner.map_or(&self.context.user, |owner| &owner.text);
        let owner = self.context.owner.clone().unwrap_or(Owner { name: owner.clone(), id: None });
        let tree = serde_json::to_string(subtree)
            .map_err(|failure| EngineError::internal(failure.to_string()))?;
        Ok(IncrementalView {
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
            live: None,
        })
    }

    /// Binds a query that must return the same rows each time it runs over the same data.
    fn repeatable_query(&mut self, query: NodeId, form: ViewForm) -> EngineResult<Relation> {
        let was_volatile = self.context.is_volatile.swap(false, Ordering::Relaxed);
        let found = self.query(query);
        let is_volatile = self.context.is_volatile.load(Ordering::Relaxed);
        self.context.is_volatile.store(was_volatile || is_volatile, Ordering::Relaxed);
        let found = found?;
        let at = self.tree.span(query);
        let refuse = |message: &str, at| Err(error::at(ErrorCode::NotSupported, message, at));
        if is_volatile || is_random(&found.plan)? {
            return match form {
                ViewForm::Materialized => refuse(
                    "a materialized view can only read tables, not the clock, random values, \
                     files or settings",
                    at,
                ),
                ViewForm::Live => {
                    let subtree = self.subtree(query);
                    let message = "non-deterministic function cannot be used in live view";
                    refuse(message, changing_call(&subtree, query))
                }
            };
        }
        if !self.parameters.types().is_empty() {
            let message = format!("bind variables are not allowed in a {}", form.name());
            return refuse(&message, at);
        }
        Ok(found)
    }

    /// The view's table, with one column per query column.
    fn table_of(&self, given: &Definition<'_>, found: &Relation) -> EngineResult<TableSchema> {
        let at = self.tree.span(given.query);
        let mut columns: Vec<ColumnSchema> = Vec::with_capacity(found.columns.len());
        for (id, column) in (1_u32..).zip(&found.columns) {
            let (name, sql_type) = (&column.name, stored(column.sql_type));
            if !sql_type.is_storable() {
                let of = sql_type.name();
                let message = format!("unsupported column type [column={name}, type={of}]");
                return Err(error::at(ErrorCode::TypeMismatch, message, at));
            }
            if columns.iter().any(|one| identifier::same(&one.name, name)) {
                let message = format!("Duplicate column [name={name}]");
                return Err(error::at(ErrorCode::DuplicateColumn, message, at));
            }
            columns.push(ColumnSchema { id, ..ColumnSchema::new(name.clone(), sql_type) });
        }
        let schema = TableSchema::new(given.name.text.clone(), columns);
        Ok(TableSchema { wal: true, ..schema.with_defaults(self.context.table_defaults) })
    }

    /// The base table whose changes the view follows.
    fn base_of(
        &self,
        given: &Definition<'_>,
        base: Option<&Name>,
        sources: &BTreeMap<u32, ViewSource>,
    ) -> EngineResult<Arc<TableSnapshot>> {
        let at = self.tree.span(given.query);
        let is_live = |id| IncrementalView::form_of(self.snapshot, id) == Some(ViewForm::Live);
        let mut tables: Vec<TableId> = Vec::new();
        for source in sources.values() {
            match source {
                ViewSource::Table { id, .. } if is_live(*id) => {
                    let message = "a materialized view can only read tables, not live views";
                    return Err(error::at(ErrorCode::NotSupported, message, at));
                }
                ViewSource::Table { id, .. } if tables.contains(id) => {}
                ViewSource::Table { id, .. } => tables.push(*id),
                ViewSource::View { name, .. } => {
                    let message =
                        format!("a materialized view can only read tables, not views: {name}");
                    return Err(error::at(ErrorCode::NotSupported, message, at));
                }
            }
        }
        let base = match (base, tables.as_slice()) {
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
                let message =
                    "the query reads several tables: specify the base table with WITH BASE";
                return Err(error::at(ErrorCode::NotSupported, message, given.name.span));
            }
        };
        base.ok_or_else(|| EngineError::internal("the base table no longer exists"))
    }

    /// Rejects SAMPLE BY clauses that make rows depend on more than their own bucket.
    fn refuse_clauses(&self, subtree: &Tree, base: &str) -> EngineResult<()> {
        for node in &subtree.nodes {
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
                // The clause follows the sampling interval.
                let start = self.tree.span(sample_by.interval).end + 1;
                let at = Span { start, end: sample_by.span.end.max(start) };
                return refuse("ALIGN TO FIRST OBSERVATION", at);
            }
        }
        Ok(())
    }

    fn bucket_table(
        &mut self,
        given: &Definition<'_>,
        clauses: &MaterialClauses,
        (found, shape): (&Relation, &Buckets),
    ) -> EngineResult<TableSchema> {
        let at = self.tree.span(given.query);
        let mut schema = self.table_of(given, found)?;
        let buckets = shape.bucket_columns(&found.plan);
        let is_bucket = |index: usize| buckets.contains(&index);
        schema.timestamp = match &clauses.timestamp {
            Some(name) => {
                let index = schema.column_index(&name.text);
                Some(index.filter(|index| is_bucket(*index)).ok_or_else(|| {
                    let message = format!(
                        "the timestamp of a materialized view must be its bucket timestamp, found \
                         '{}'",
                        name.text
                    );
                    error::at(ErrorCode::InvalidValue, message, name.span)
                })?)
            }
            None => buckets.first().copied(),
        };
        if schema.timestamp.is_none() {
            let message = "the query of a materialized view must select its bucket timestamp";
            return Err(error::at(ErrorCode::NotSupported, message, at));
        }
        schema.partition_by = match &clauses.partition_by {
            Some(unit) => partitioning(unit, ViewForm::Materialized)?,
            None => usual_partitioning(&shape.spec),
        };
        if let Some(ttl) = &clauses.ttl {
            schema.ttl_hours_or_months = parse_ttl(ttl, schema.partition_by)?;
        }
        if clauses.volume.is_some() {
            self.notices.push(notice::VOLUME);
        }
        Ok(schema)
    }

    /// Parses FLUSH EVERY and IN MEMORY.
    fn intervals(&self, clauses: &LiveClauses) -> EngineResult<(LiveInterval, LiveInterval)> {
        let LiveClauses { flush_every: flush, in_memory, partition_by: _, start: _, owner: _ } =
            clauses;
        let flush = self.interval("FLUSH EVERY", flush, (MIN_FLUSH_MICROS, "100ms"))?;
        let Some(memory) = in_memory else { return Ok((flush, flush)) };
        let min = format!("FLUSH EVERY: {flush}");
        Ok((flush, self.interval("IN MEMORY", memory, (flush.micros(), &min))?))
    }

    fn interval(
        &self,
        clause: &str,
        name: &Name,
        (min, least_text): (i64, &str),
    ) -> EngineResult<LiveInterval> {
        let max = self.context.live.max_in_memory_micros;
        let invalid = |message: String| error::at(ErrorCode::InvalidValue, message, name.span);
        let found = LiveInterval::parse(&name.text).ok_or_else(|| {
            let text = &name.text;
            invalid(format!(
                "invalid interval '{text}': expected a number followed by ms, s, m, h or d"
            ))
        })?;
        let refuse = |bound: String| Err(invalid(format!("live view {clause} must be {bound}")));
        match found.micros() {
            micros if micros < min => refuse(format!("at least {least_text}")),
            micros if micros > max => refuse(format!("at most {}", shown_micros(max))),
            _ => Ok(found),
        }
    }

    /// The base table that the query reads.
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
        if IncrementalView::form_of(self.snapshot, base.schema().id) == Some(ViewForm::Live) {
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
            WrittenStart::At { instant: timestamp } => {
                let at = parse_fields(&timestamp.text).and_then(|parsed| parsed.start(unit));
                at.map(LiveStart::At).ok_or_else(|| {
                    let message = format!("invalid START FROM timestamp: {}", timestamp.text);
                    error::at(ErrorCode::InvalidValue, message, timestamp.span)
                })
            }
        }
    }

    /// The base table's columns that have been read so far.
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

    fn live_table(
        &self,
        given: &Definition<'_>,
        clauses: &LiveClauses,
        (found, base): (&Relation, &TableSnapshot),
    ) -> EngineResult<TableSchema> {
        let at = self.tree.span(given.query);
        let mut schema = self.table_of(given, found)?;
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
        schema.partition_by = match &clauses.partition_by {
            Some(unit) => partitioning(unit, ViewForm::Live)?,
            None if base.schema().partition_by == PartitionBy::None => PartitionBy::Day,
            None => base.schema().partition_by,
        };
        Ok(schema)
    }
}

/// Formats a duration in its largest whole unit.
fn shown_micros(micros: i64) -> String {
    let units = [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000)];
    let whole = units.into_iter().find(|(_, unit)| micros % unit == 0 && micros >= *unit);
    whole.map_or_else(|| format!("{micros} µs"), |(name, unit)| format!("{}{name}", micros / unit))
}
