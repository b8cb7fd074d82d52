//! What the catalog tells of materialized views: `materialized_views()`, SHOW CREATE.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{Int32Array, Int64Array, TimestampMicrosecondArray};
use tidemark_ast::Name;
use tidemark_border::Permission;
use tidemark_catalog::{
    LiveView, MaterializedState, MaterializedView, RefreshPeriod, RefreshTrigger,
};
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineResult, SqlType, TimestampUnit};

use crate::binder::Binder;
use crate::binder::catalog::catalog_rows::{LiteralColumn, shown_ttl, texts};
use crate::binder::state::scope::Relation;

/// A view with its table and what it shows.
struct Known {
    table: Arc<TableSnapshot>,
    view: MaterializedView,
    state: MaterializedState,
    /// Why its refreshes fail at the moment.
    failure: Option<String>,
}

/// Views whose properties become columns.
#[derive(Clone, Copy)]
struct ViewList<'v>(&'v [Known]);

impl ViewList<'_> {
    fn texts(self, name: &str, of: impl Fn(&Known) -> Option<String>) -> LiteralColumn<'_> {
        (name, SqlType::String, texts(self.0.iter().map(of)))
    }

    fn longs(self, name: &str, of: impl Fn(&Known) -> Option<i64>) -> LiteralColumn<'_> {
        (name, SqlType::Long, Arc::new(self.0.iter().map(of).collect::<Int64Array>()))
    }

    fn times(self, name: &str, of: impl Fn(&Known) -> Option<i64>) -> LiteralColumn<'_> {
        let times = self.0.iter().map(of).collect::<TimestampMicrosecondArray>();
        (name, SqlType::Timestamp, Arc::new(times))
    }

    fn ints(self, name: &str, of: impl Fn(&Known) -> i32) -> LiteralColumn<'_> {
        (name, SqlType::Int, Arc::new(Int32Array::from_iter_values(self.0.iter().map(of))))
    }
}

impl Binder<'_> {
    /// The materialized views that the user sees, by name.
    fn known_views(&self) -> Vec<Known> {
        let external = self.context.external();
        let known = |table: Arc<TableSnapshot>| {
            let id = table.schema().id;
            if LiveView::is(self.snapshot, id) {
                return None;
            }
            let view = MaterializedView::of(self.snapshot, id)?;
            let state = MaterializedState::shown(self.snapshot, id);
            let failure = external.as_ref().and_then(|external| external.refresh_failure(id));
            Some(Known { table, view, state, failure })
        };
        self.listed_tables().into_iter().filter_map(known).collect()
    }

    /// The base's name, for who may know of it.
    fn seen_base(&self, one: &Known) -> Option<String> {
        let name = &one.view.base_name;
        let sees = self.visibility().is_none_or(|visibility| visibility.sees(name));
        sees.then(|| name.clone())
    }

    /// `materialized_views()`.
    pub(crate) fn materialized_views_rows(&mut self) -> EngineResult<Relation> {
        let known = self.known_views();
        let list = ViewList(&known);
        let mut columns = self.described_views(list);
        columns.extend(self.followed_bases(list));
        columns.extend(limits_and_timers(list));
        self.literal_rows(columns)
    }

    fn described_views<'a>(&self, list: ViewList<'_>) -> Vec<LiteralColumn<'a>> {
        let external = if list.0.is_empty() { None } else { self.context.external() };
        let is_refreshing = |one: &Known| {
            external.as_ref().is_some_and(|external| external.is_refreshing(one.view.table))
        };
        let is_read = |one: &Known| self.reads_whole(&one.table.schema().name);
        let query = |one: &Known| is_read(one).then(|| one.view.query.clone());
        let reason = |one: &Known| {
            let why = (one.state.invalid.as_deref(), one.failure.as_deref());
            self.shown_reason(&one.table.schema().name, &one.view, why)
        };
        let status = |one: &Known| match (&one.state.invalid, &one.failure) {
            (Some(_), _) => "invalid",
            (None, _) if is_refreshing(one) => "refreshing",
            (None, Some(_)) => "invalid",
            (None, None) => "valid",
        };
        let directory = |one: &Known| format!("{}~{}", one.table.schema().name, one.view.table);
        vec![
            list.texts("view_name", |one| Some(one.table.schema().name.clone())),
            list.texts("refresh_type", |one| Some(refresh_type(one).to_owned())),
            list.texts("base_table_name", |one| self.seen_base(one)),
            list.times("last_refresh_start_timestamp", |one| one.state.started_micros),
            list.times("last_refresh_finish_timestamp", |one| one.state.finished_micros),
            list.texts("view_sql", query),
            list.texts("view_table_dir_name", |one| Some(directory(one))),
            list.texts("invalidation_reason", reason),
            list.texts("view_status", |one| Some(status(one).to_owned())),
        ]
    }

    fn followed_bases<'a>(&self, list: ViewList<'_>) -> Vec<LiteralColumn<'a>> {
        let last = |one: &Known| Some(self.snapshot.touched(one.view.base)?.last as i64);
        let shown = |one: &Known| {
            let position = one.state.position? as i64;
            Some(last(one).map_or(position, |last| position.min(last)))
        };
        vec![list.longs("refresh_base_table_txn", shown), list.longs("base_table_txn", last)]
    }

    /// SHOW CREATE MATERIALIZED VIEW.
    pub(crate) fn show_create_materialized(&mut self, name: &Name) -> EngineResult<Relation> {
        let (table, view) = self.materialized_view(name, Permission::Select)?;
        self.note_whole(&table.schema().name);
        let ddl = create_text(table.schema(), &view);
        self.literal_rows(vec![("ddl", SqlType::Varchar, texts([Some(ddl)]))])
    }

    /// The statements that make the materialized views again, each after its base.
    pub(crate) fn materialized_statements(&mut self) -> Vec<String> {
        let mut waiting = self.known_views();
        waiting.retain(|one| self.reads_whole(&one.table.schema().name));
        let mut statements = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let is_waiting = |base: u64| waiting.iter().any(|other| other.view.table == base);
            let ready = waiting.iter().position(|one| !is_waiting(one.view.base)).unwrap_or(0);
            let one = waiting.remove(ready);
            self.note_whole(&one.table.schema().name);
            statements.push(create_text(one.table.schema(), &one.view));
        }
        statements
    }
}

fn limits_and_timers<'a>(list: ViewList<'_>) -> Vec<LiteralColumn<'a>> {
    let timer = |one: &Known| match one.view.trigger {
        RefreshTrigger::Every(every) => Some(every),
        RefreshTrigger::Immediate | RefreshTrigger::Manual => None,
    };
    let limit = |one: &Known| one.view.limit_hours_or_months;
    let limit_unit = |one: &Known| (limit(one) != 0).then(|| shown_ttl(limit(one)).1.to_owned());
    vec![
        list.ints("refresh_limit_value", |one| shown_ttl(limit(one)).0),
        list.texts("refresh_limit_unit", limit_unit),
        list.times("timer_start", |one| timer(one).map(|_| one.view.start_micros)),
        list.ints("timer_interval_value", |one| timer(one).map_or(0, |every| every.count as i32)),
        list.texts("timer_interval_unit", |one| {
            timer(one).map(|every| unit_name(every.unit).to_owned())
        }),
    ]
}

fn refresh_type(one: &Known) -> &'static str {
    match one.view.trigger {
        RefreshTrigger::Immediate => "immediate",
        RefreshTrigger::Manual => "manual",
        RefreshTrigger::Every(_) => "timer",
    }
}

fn unit_name(unit: char) -> &'static str {
    match unit {
        's' => "SECOND",
        'm' => "MINUTE",
        'h' => "HOUR",
        'd' => "DAY",
        'w' => "WEEK",
        'M' => "MONTH",
        _ => "YEAR",
    }
}

/// CREATE MATERIALIZED VIEW as it would be written.
fn create_text(schema: &TableSchema, view: &MaterializedView) -> String {
    let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let mut text = format!(
        "CREATE MATERIALIZED VIEW {} WITH BASE {} REFRESH",
        quoted(&schema.name),
        quoted(&view.base_name)
    );
    match view.trigger {
        RefreshTrigger::Immediate => text.push_str(" IMMEDIATE"),
        RefreshTrigger::Manual => text.push_str(" MANUAL"),
        RefreshTrigger::Every(every) => {
            let _ = write!(text, " EVERY {every}");
        }
    }
    if view.deferred {
        text.push_str(" DEFERRED");
    }
    if view.has_start {
        let start = tidemark_types::timestamp::iso_text(view.start_micros, TimestampUnit::Micros);
        let _ = write!(text, " START '{start}'");
    }
    if let Some(zone) = &view.time_zone {
        let _ = write!(text, " TIME ZONE {}", quoted(zone));
    }
    match &view.period {
        None => {}
        Some(RefreshPeriod::SampleByInterval) => text.push_str(" PERIOD (SAMPLE BY INTERVAL)"),
        Some(RefreshPeriod::Length { length, time_zone, delay }) => {
            let _ = write!(text, " PERIOD (LENGTH {length}");
            if let Some(zone) = time_zone {
                let _ = write!(text, " TIME ZONE {}", quoted(zone));
            }
            if let Some(delay) = delay {
                let _ = write!(text, " DELAY {delay}");
            }
            text.push(')');
        }
    }
    let _ = write!(text, " AS (\n{}\n) PARTITION BY {}", view.query, schema.partition_by.name());
    if schema.ttl_hours_or_months != 0 {
        let (value, unit) = shown_ttl(schema.ttl_hours_or_months);
        let _ = write!(text, " TTL {value} {unit}{}", if value == 1 { "" } else { "S" });
    }
    if let Some(expire) = &view.expire {
        let _ = write!(text, " EXPIRE ROWS {} CLEANUP EVERY {}", expire.text, expire.cleanup);
    }
    text.push(';');
    text
}
