//! Catalog rows about materialized and live views: `materialized_views()`, `live_views()`, SHOW
//! CREATE.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, Int32Array, Int64Array, TimestampMicrosecondArray};
use tidemark_ast::Name;
use tidemark_border::Permission;
use tidemark_catalog::{
    IncrementalState, IncrementalView, LiveInterval, LiveStart, LiveView, RefreshPeriod,
    RefreshTrigger, ViewForm,
};
use tidemark_storage::TableSnapshot;
use tidemark_types::timestamp::iso_text;
use tidemark_types::{EngineResult, SqlType, TimestampUnit};

use crate::binder::Binder;
use crate::binder::catalog::catalog_rows::{LiteralColumn, shown_ttl, texts};
use crate::binder::state::scope::Relation;
use crate::{ExternalSources, LiveRepair, ViewProgress};

/// A materialized or live view with its table and state.
struct Known {
    table: Arc<TableSnapshot>,
    view: IncrementalView,
    state: IncrementalState,
    progress: ViewProgress,
    /// The last transaction that changed the base table; `None` if changes to it are not tracked.
    last: Option<i64>,
}

impl Known {
    fn name(&self) -> String {
        self.table.schema().name.clone()
    }

    fn directory(&self) -> String {
        format!("{}~{}", self.table.schema().name, self.view.table)
    }

    fn is_seeding(&self) -> bool {
        self.state.position.is_none() || self.state.seed_target.is_some()
    }

    /// The base transaction up to which the view is current.
    fn shown(&self) -> Option<i64> {
        let position = self.state.position? as i64;
        Some(self.last.map_or(position, |last| position.min(last)))
    }

    fn status(&self) -> &'static str {
        let is_live = self.view.live.is_some();
        match (&self.state.invalid, &self.progress.failure) {
            (Some(_), _) => "invalid",
            (None, _) if !is_live && self.progress.is_refreshing => "refreshing",
            (None, Some(_)) => "invalid",
            (None, None) if !is_live => "valid",
            (None, None) if self.is_seeding() => "seeding",
            (None, None) => "active",
        }
    }

    /// The earliest timestamp that a live view includes, in microseconds.
    fn bound(&self) -> Option<i64> {
        match self.view.live.as_ref()?.start {
            LiveStart::Beginning => None,
            LiveStart::Now(at) | LiveStart::At(at) if self.unit() == TimestampUnit::Nanos => {
                Some(at.div_euclid(1_000))
            }
            LiveStart::Now(at) | LiveStart::At(at) => Some(at),
        }
    }

    /// Unit of the view's designated timestamp.
    fn unit(&self) -> TimestampUnit {
        let time = self.table.schema().timestamp_column();
        let is_nanos = time.is_some_and(|column| column.sql_type == SqlType::TimestampNs);
        if is_nanos { TimestampUnit::Nanos } else { TimestampUnit::Micros }
    }

    fn refresh_type(&self) -> &'static str {
        match self.view.trigger {
            RefreshTrigger::Immediate => "immediate",
            RefreshTrigger::Manual => "manual",
            RefreshTrigger::Every(_) => "timer",
        }
    }

    /// The view's CREATE statement. `shows_owner` adds the owner of a live view.
    fn create_text(&self, shows_owner: bool) -> String {
        match &self.view.live {
            None => self.create_materialized(),
            Some(live) => self.create_live(live, shows_owner),
        }
    }

    fn create_materialized(&self) -> String {
        let (schema, view) = (self.table.schema(), &self.view);
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
            let start = iso_text(view.start_micros, TimestampUnit::Micros);
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
        let _ =
            write!(text, " AS (\n{}\n) PARTITION BY {}", view.query, schema.partition_by.name());
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

    fn create_live(&self, live: &LiveView, shows_owner: bool) -> String {
        let (schema, view) = (self.table.schema(), &self.view);
        let start = match live.start {
            LiveStart::Now(_) => "NOW".to_owned(),
            LiveStart::Beginning => "BEGINNING".to_owned(),
            LiveStart::At(at) => quoted(&iso_text(at, self.unit())),
        };
        let mut text = format!(
            "CREATE LIVE VIEW {} FLUSH EVERY {} IN MEMORY {} PARTITION BY {} START FROM {start} AS \
             (\n{}\n)",
            quoted(&schema.name),
            live.flush_every,
            live.in_memory,
            schema.partition_by.name(),
            view.query
        );
        if shows_owner && !view.owner.name.is_empty() {
            let _ = write!(text, " OWNED BY {}", quoted(&view.owner.name));
        }
        text.push(';');
        text
    }
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\'', "''"))
}

type Column = LiteralColumn<'static>;

/// Builds columns from the properties of views.
#[derive(Clone, Copy)]
struct List<'v>(&'v [Known]);

impl List<'_> {
    fn texts(self, name: &'static str, of: impl Fn(&Known) -> Option<String>) -> Column {
        (name, SqlType::String, texts(self.0.iter().map(of)))
    }

    fn longs(self, name: &'static str, of: impl Fn(&Known) -> Option<i64>) -> Column {
        (name, SqlType::Long, Arc::new(self.0.iter().map(of).collect::<Int64Array>()))
    }

    fn times(self, name: &'static str, of: impl Fn(&Known) -> Option<i64>) -> Column {
        let times = self.0.iter().map(of).collect::<TimestampMicrosecondArray>();
        (name, SqlType::Timestamp, Arc::new(times))
    }

    fn ints(self, name: &'static str, of: impl Fn(&Known) -> i32) -> Column {
        (name, SqlType::Int, Arc::new(Int32Array::from_iter_values(self.0.iter().map(of))))
    }
}

impl Binder<'_> {
    /// Visible views of one kind, sorted by name.
    fn known_views(&self, form: ViewForm) -> Vec<Known> {
        let external = self.context.external();
        let known = |table: Arc<TableSnapshot>| {
            let view = IncrementalView::of(self.snapshot, table.schema().id)?;
            (view.form() == form).then(|| self.known_of(table, view, external.as_deref()))
        };
        self.listed_tables().into_iter().filter_map(known).collect()
    }

    fn known_of(
        &self,
        table: Arc<TableSnapshot>,
        view: IncrementalView,
        external: Option<&dyn ExternalSources>,
    ) -> Known {
        let id = view.table;
        Known {
            progress: external.map(|external| external.view_progress(id)).unwrap_or_default(),
            last: self.snapshot.touched(view.base).map(|touched| touched.last as i64),
            state: IncrementalState::shown(self.snapshot, id),
            table,
            view,
        }
    }

    /// Name of the base table, if it is visible to the user.
    fn visible_base(&self, one: &Known) -> Option<String> {
        let name = &one.view.base_name;
        let sees = self.visibility().is_none_or(|visibility| visibility.sees(name));
        sees.then(|| name.clone())
    }

    fn visible_query(&self, one: &Known) -> Option<String> {
        self.may_read_all(&one.table.schema().name).then(|| one.view.query.clone())
    }

    fn visible_reason(&self, one: &Known) -> Option<String> {
        let why = (one.state.invalid.as_deref(), one.progress.failure.as_deref());
        self.shown_reason(&one.table.schema().name, &one.view, why)
    }

    /// Returns the rows of `materialized_views()`.
    pub(crate) fn materialized_views_rows(&mut self) -> EngineResult<Relation> {
        let known = self.known_views(ViewForm::Materialized);
        let list = List(&known);
        let mut columns = vec![
            list.texts("view_name", |one| Some(one.name())),
            list.texts("refresh_type", |one| Some(one.refresh_type().to_owned())),
            list.texts("base_table_name", |one| self.visible_base(one)),
            list.times("last_refresh_start_timestamp", |one| one.state.started_micros),
            list.times("last_refresh_finish_timestamp", |one| one.state.finished_micros),
            list.texts("view_sql", |one| self.visible_query(one)),
            list.texts("view_table_dir_name", |one| Some(one.directory())),
            list.texts("invalidation_reason", |one| self.visible_reason(one)),
            list.texts("view_status", |one| Some(one.status().to_owned())),
            list.longs("refresh_base_table_txn", Known::shown),
            list.longs("base_table_txn", |one| one.last),
        ];
        columns.extend(limits_and_timers(list));
        self.literal_rows(columns)
    }

    /// Returns the rows of `live_views()`.
    pub(crate) fn live_views_rows(&mut self) -> EngineResult<Relation> {
        let mut known = self.known_views(ViewForm::Live);
        for one in &mut known {
            one.last = one.last.or(Some(0));
        }
        let list = List(&known);
        let flush = |one: &Known| Some(one.view.live.as_ref()?.flush_every);
        let memory = |one: &Known| Some(one.view.live.as_ref()?.in_memory);
        let count = |interval: LiveInterval| i64::from(interval.count);
        let word = |interval: LiveInterval| interval.unit.word().to_owned();
        let mut columns = vec![
            list.texts("view_name", |one| Some(one.name())),
            list.texts("view_table_dir_name", |one| Some(one.directory())),
            list.texts("base_table_name", |one| self.visible_base(one)),
            list.texts("view_sql", |one| self.visible_query(one)),
            list.texts("view_status", |one| Some(one.status().to_owned())),
            list.texts("invalidation_reason", |one| self.visible_reason(one)),
            list.longs("flush_every_interval", |one| flush(one).map(count)),
            list.texts("flush_every_interval_unit", |one| flush(one).map(word)),
            list.longs("in_memory_interval", |one| memory(one).map(count)),
            list.texts("in_memory_interval_unit", |one| memory(one).map(word)),
        ];
        columns.extend(followed(list, self.context.now_micros));
        columns.extend(checkpoints(list));
        columns.extend(repairs(list));
        self.literal_rows(columns)
    }

    /// Returns the rows of SHOW CREATE MATERIALIZED VIEW and SHOW CREATE LIVE VIEW.
    pub(crate) fn show_create_incremental(
        &mut self,
        name: &Name,
        form: ViewForm,
    ) -> EngineResult<Relation> {
        let (table, view) = self.incremental_view(name, form, Permission::Select)?;
        self.note_all_columns(&table.schema().name);
        let known = self.known_of(table, view, None);
        let ddl = known.create_text(self.visibility().is_some());
        self.literal_rows(vec![("ddl", SqlType::Varchar, texts([Some(ddl)]))])
    }

    /// The CREATE statements of all views of one kind, ordered so that each view comes after its
    /// base.
    pub(crate) fn incremental_statements(&mut self, form: ViewForm) -> Vec<String> {
        let shows_owner = self.visibility().is_some();
        let mut waiting = self.known_views(form);
        waiting.retain(|one| self.may_read_all(&one.table.schema().name));
        let mut statements = Vec::with_capacity(waiting.len());
        while !waiting.is_empty() {
            let is_waiting = |base: u64| waiting.iter().any(|other| other.view.table == base);
            let ready = waiting.iter().position(|one| !is_waiting(one.view.base)).unwrap_or(0);
            let one = waiting.remove(ready);
            self.note_all_columns(&one.table.schema().name);
            statements.push(one.create_text(shows_owner));
        }
        statements
    }
}

fn limits_and_timers(list: List<'_>) -> Vec<Column> {
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
        list.texts("timer_interval_unit", |one| timer(one).map(|every| every.word().to_owned())),
    ]
}

fn followed(list: List<'_>, now_micros: i64) -> Vec<Column> {
    let zero = |name| list.longs(name, |_| Some(0));
    let lag = |one: &Known| Some(now_micros.saturating_sub(one.state.finished_micros?).max(0));
    let behind = |one: &Known| Some(one.last?.saturating_sub(one.shown().unwrap_or(0)));
    vec![
        list.longs("in_mem_bytes", |one| Some(one.progress.state_bytes)),
        zero("in_mem_rows"),
        zero("o3_rejected_count"),
        zero("below_lower_bound_count"),
        list.longs("lag_seqtxn", behind),
        list.longs("lag_micros", lag),
        list.longs("last_processed_seqtxn", Known::shown),
        list.longs("applied_watermark", Known::shown),
        list.longs("lv_consumed_seqtxn", Known::shown),
        list.times("view_lower_bound_timestamp", Known::bound),
        list.longs("writer_stall_micros", |one| Some(one.progress.stalled_micros)),
        list.longs("seed_target_seqtxn", |one| {
            let target = one.state.seed_target.map_or(one.last, |target| Some(target as i64));
            target.filter(|_| one.state.invalid.is_none() && one.is_seeding())
        }),
        list.longs("o3_resume_replay_rows", |one| Some(one.progress.resumed_rows)),
        list.longs("o3_boundary_replay_rows", |one| Some(one.progress.repaired_rows)),
        zero("o3_replay_scan_rows"),
    ]
}

/// Builds the columns about checkpoints of function state. Checkpoints are kept in memory only and
/// are never written to disk.
fn checkpoints(list: List<'_>) -> Vec<Column> {
    let null = |name| list.longs(name, |_| None);
    let zero = |name| list.longs(name, |_| Some(0));
    let ratio = Arc::new(Float64Array::new_null(list.0.len()));
    vec![
        null("checkpoint_timeline_generation"),
        list.longs("checkpoint_timeline_entries", |one| Some(one.progress.saved_states)),
        null("checkpoint_timeline_normalized_base_seqtxn"),
        zero("checkpoint_timeline_logical_bytes"),
        zero("checkpoint_timeline_physical_bytes"),
        zero("checkpoint_timeline_shared_bytes"),
        ("checkpoint_timeline_sharing_ratio", SqlType::Double, ratio),
        zero("checkpoint_timeline_row_position_delta_bytes"),
        zero("checkpoint_data_segment_count"),
        zero("checkpoint_obsolete_segment_bytes"),
        null("checkpoint_oldest_pinned_generation"),
        null("checkpoint_gc_lag_generations"),
        null("checkpoint_last_write_micros"),
        null("checkpoint_last_restore_micros"),
        null("checkpoint_last_write_new_bytes"),
        null("checkpoint_last_lookup_depth"),
    ]
}

/// Builds the columns that describe repairs caused by late rows.
fn repairs(list: List<'_>) -> Vec<Column> {
    let under_way = list.0.iter().map(|one| Some(one.progress.repair.is_under_way));
    let under_way = Arc::new(under_way.collect::<BooleanArray>());
    let zero = |name| list.longs(name, |_| Some(0));
    let time = |name, at: fn(&LiveRepair) -> Option<i64>| {
        list.times(name, move |one| at(&one.progress.repair))
    };
    let word = |name, of: fn(&LiveRepair) -> Option<&'static str>| {
        list.texts(name, move |one| of(&one.progress.repair).map(str::to_owned))
    };
    vec![
        ("checkpoint_repair_in_progress", SqlType::Boolean, under_way),
        time("checkpoint_repair_correction_timestamp", |repair| repair.first_micros),
        time("checkpoint_repair_low_timestamp", |repair| repair.low_micros),
        time("checkpoint_repair_high_timestamp", |repair| repair.high_micros),
        zero("checkpoint_repair_roots_versioned"),
        zero("checkpoint_repair_new_bytes"),
        list.longs("checkpoint_repair_resumes", |one| Some(one.progress.resumes)),
        list.longs("checkpoint_repair_failures", |one| Some(one.progress.failures)),
        word("checkpoint_repair_plan", |repair| repair.plan),
        word("checkpoint_repair_last_disposition", |repair| repair.disposition),
        word("checkpoint_repair_last_denial", |repair| repair.denial),
    ]
}
