//! What the catalog tells of live views: `live_views()`, SHOW CREATE.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, TimestampMicrosecondArray};
use tidemark_ast::Name;
use tidemark_border::Permission;
use tidemark_catalog::{LiveStart, LiveView, MaterializedState, MaterializedView};
use tidemark_storage::{TableSchema, TableSnapshot};
use tidemark_types::{EngineResult, SqlType, TimestampUnit};

use crate::LiveProgress;
use crate::binder::Binder;
use crate::binder::catalog::catalog_rows::{LiteralColumn, texts};
use crate::binder::state::scope::Relation;

/// A live view with its table and what it shows.
struct Known {
    table: Arc<TableSnapshot>,
    view: MaterializedView,
    live: LiveView,
    state: MaterializedState,
    progress: LiveProgress,
    /// Why its refreshes fail at the moment.
    failure: Option<String>,
    /// The latest transaction that touched the base.
    last: u64,
}

impl Known {
    /// The transaction of the base that is shown.
    fn processed(&self) -> Option<i64> {
        self.state.position.map(|position| position.min(self.last) as i64)
    }

    fn is_seeding(&self) -> bool {
        self.state.position.is_none() || self.state.seed_target.is_some()
    }

    fn status(&self) -> &'static str {
        match &self.state.invalid {
            Some(_) => "invalid",
            None if self.failure.is_some() => "invalid",
            None if self.is_seeding() => "seeding",
            None => "active",
        }
    }

    /// The first instant shown, microseconds.
    fn bound(&self) -> Option<i64> {
        let nanos = self.table.schema().timestamp_column().map(|column| column.sql_type);
        match self.live.start {
            LiveStart::Beginning => None,
            LiveStart::Now(at) | LiveStart::At(at) if nanos == Some(SqlType::TimestampNs) => {
                Some(at.div_euclid(1_000))
            }
            LiveStart::Now(at) | LiveStart::At(at) => Some(at),
        }
    }
}

/// Views whose properties become columns.
#[derive(Clone, Copy)]
struct LiveList<'v>(&'v [Known]);

impl<'a> LiveList<'_> {
    fn texts(self, name: &'a str, of: impl Fn(&Known) -> Option<String>) -> LiteralColumn<'a> {
        (name, SqlType::String, texts(self.0.iter().map(of)))
    }

    fn longs(self, name: &'a str, of: impl Fn(&Known) -> Option<i64>) -> LiteralColumn<'a> {
        (name, SqlType::Long, Arc::new(self.0.iter().map(of).collect::<Int64Array>()))
    }

    fn times(self, name: &'a str, of: impl Fn(&Known) -> Option<i64>) -> LiteralColumn<'a> {
        let times = self.0.iter().map(of).collect::<TimestampMicrosecondArray>();
        (name, SqlType::Timestamp, Arc::new(times))
    }
}

impl Binder<'_> {
    /// The live views that the user sees, by name.
    fn known_live_views(&self) -> Vec<Known> {
        let external = self.context.external();
        let known = |table: Arc<TableSnapshot>| {
            let id = table.schema().id;
            let live = LiveView::of(self.snapshot, id)?;
            let view = MaterializedView::of(self.snapshot, id)?;
            let progress = external.as_ref().map(|external| external.live_progress(id));
            let progress = progress.unwrap_or_default();
            let failure = external.as_ref().and_then(|external| external.refresh_failure(id));
            let last = self.snapshot.touched(view.base).map_or(0, |touched| touched.last);
            let state = MaterializedState::shown(self.snapshot, id);
            Some(Known { table, view, live, state, progress, failure, last })
        };
        self.listed_tables().into_iter().filter_map(known).collect()
    }

    /// `live_views()`.
    pub(crate) fn live_views_rows(&mut self) -> EngineResult<Relation> {
        let known = self.known_live_views();
        let list = LiveList(&known);
        let mut columns = self.described_live(list);
        columns.extend(followed(list, self.context.now_micros));
        columns.extend(checkpoints(list));
        columns.extend(repairs(list));
        self.literal_rows(columns)
    }

    fn described_live<'a>(&self, list: LiveList<'_>) -> Vec<LiteralColumn<'a>> {
        let base = |one: &Known| {
            let name = &one.view.base_name;
            let sees = self.visibility().is_none_or(|visibility| visibility.sees(name));
            sees.then(|| name.clone())
        };
        let is_read = |one: &Known| self.reads_whole(&one.table.schema().name);
        let query = |one: &Known| is_read(one).then(|| one.view.query.clone());
        let reason = |one: &Known| {
            let why = (one.state.invalid.as_deref(), one.failure.as_deref());
            self.shown_reason(&one.table.schema().name, &one.view, why)
        };
        let directory = |one: &Known| format!("{}~{}", one.table.schema().name, one.view.table);
        vec![
            list.texts("view_name", |one| Some(one.table.schema().name.clone())),
            list.texts("view_table_dir_name", |one| Some(directory(one))),
            list.texts("base_table_name", base),
            list.texts("view_sql", query),
            list.texts("view_status", |one| Some(one.status().to_owned())),
            list.texts("invalidation_reason", reason),
            list.longs("flush_every_interval", |one| Some(i64::from(one.live.flush_every.count))),
            list.texts("flush_every_interval_unit", |one| {
                Some(one.live.flush_every.unit.word().to_owned())
            }),
            list.longs("in_memory_interval", |one| Some(i64::from(one.live.in_memory.count))),
            list.texts("in_memory_interval_unit", |one| {
                Some(one.live.in_memory.unit.word().to_owned())
            }),
        ]
    }

    /// SHOW CREATE LIVE VIEW.
    pub(crate) fn show_create_live(&mut self, name: &Name) -> EngineResult<Relation> {
        let (table, view, live) = self.live_view(name, Permission::Select)?;
        self.note_whole(&table.schema().name);
        let ddl = self.create_live_text(table.schema(), &view, &live);
        self.literal_rows(vec![("ddl", SqlType::Varchar, texts([Some(ddl)]))])
    }

    /// The statements that make the live views again.
    pub(crate) fn live_statements(&mut self) -> Vec<String> {
        let mut statements = Vec::new();
        for one in self.known_live_views() {
            if self.reads_whole(&one.table.schema().name) {
                self.note_whole(&one.table.schema().name);
                statements.push(self.create_live_text(one.table.schema(), &one.view, &one.live));
            }
        }
        statements
    }

    /// CREATE LIVE VIEW as it would be written.
    fn create_live_text(
        &self,
        schema: &TableSchema,
        view: &MaterializedView,
        live: &LiveView,
    ) -> String {
        let quoted = |name: &str| format!("'{}'", name.replace('\'', "''"));
        let (name, unit) = (quoted(&schema.name), schema.partition_by.name());
        let nanos = schema.timestamp_column().map(|column| column.sql_type);
        let start = match live.start {
            LiveStart::Now(_) => "NOW".to_owned(),
            LiveStart::Beginning => "BEGINNING".to_owned(),
            LiveStart::At(at) => {
                let is_nanos = nanos == Some(SqlType::TimestampNs);
                let of = if is_nanos { TimestampUnit::Nanos } else { TimestampUnit::Micros };
                quoted(&tidemark_types::timestamp::iso_text(at, of))
            }
        };
        let mut text = format!(
            "CREATE LIVE VIEW {name} FLUSH EVERY {} IN MEMORY {} PARTITION BY {unit} START FROM \
             {start} AS (\n{}\n)",
            live.flush_every, live.in_memory, view.query
        );
        if self.visibility().is_some() && !view.owner.name.is_empty() {
            let _ = write!(text, " OWNED BY {}", quoted(&view.owner.name));
        }
        text.push(';');
        text
    }
}

fn followed<'a>(list: LiveList<'_>, now_micros: i64) -> Vec<LiteralColumn<'a>> {
    let lag = |one: &Known| {
        let since = one.state.finished_micros?;
        Some(now_micros.saturating_sub(since).max(0))
    };
    let behind = |one: &Known| {
        let processed = one.processed().unwrap_or(0);
        Some((one.last as i64).saturating_sub(processed))
    };
    vec![
        list.longs("in_mem_bytes", |one| Some(one.progress.kept_bytes)),
        list.longs("in_mem_rows", |_| Some(0)),
        list.longs("o3_rejected_count", |_| Some(0)),
        list.longs("below_lower_bound_count", |_| Some(0)),
        list.longs("lag_seqtxn", behind),
        list.longs("lag_micros", lag),
        list.longs("last_processed_seqtxn", Known::processed),
        list.longs("applied_watermark", Known::processed),
        list.longs("lv_consumed_seqtxn", Known::processed),
        list.times("view_lower_bound_timestamp", Known::bound),
        list.longs("writer_stall_micros", |one| Some(one.progress.stalled_micros)),
        list.longs("seed_target_seqtxn", |one| {
            let target = one.state.seed_target.unwrap_or(one.last);
            (one.state.invalid.is_none() && one.is_seeding()).then_some(target as i64)
        }),
        list.longs("o3_resume_replay_rows", |one| Some(one.progress.resumed_rows)),
        list.longs("o3_boundary_replay_rows", |one| Some(one.progress.repaired_rows)),
        list.longs("o3_replay_scan_rows", |_| Some(0)),
    ]
}

/// Checkpoints of functions' state: those in memory, none on the disk.
fn checkpoints<'a>(list: LiveList<'_>) -> Vec<LiteralColumn<'a>> {
    let count = list.0.len();
    let nulls = || Arc::new(Int64Array::new_null(count)) as ArrayRef;
    let zeros = || Arc::new(Int64Array::from(vec![0; count])) as ArrayRef;
    let mut columns: Vec<LiteralColumn<'a>> = vec![
        ("checkpoint_timeline_generation", SqlType::Long, nulls()),
        list.longs("checkpoint_timeline_entries", |one| Some(one.progress.kept_states)),
        ("checkpoint_timeline_normalized_base_seqtxn", SqlType::Long, nulls()),
    ];
    for name in [
        "checkpoint_timeline_logical_bytes",
        "checkpoint_timeline_physical_bytes",
        "checkpoint_timeline_shared_bytes",
    ] {
        columns.push((name, SqlType::Long, zeros()));
    }
    let ratio = Arc::new(Float64Array::new_null(count));
    columns.push(("checkpoint_timeline_sharing_ratio", SqlType::Double, ratio));
    for name in [
        "checkpoint_timeline_row_position_delta_bytes",
        "checkpoint_data_segment_count",
        "checkpoint_obsolete_segment_bytes",
    ] {
        columns.push((name, SqlType::Long, zeros()));
    }
    for name in [
        "checkpoint_oldest_pinned_generation",
        "checkpoint_gc_lag_generations",
        "checkpoint_last_write_micros",
        "checkpoint_last_restore_micros",
        "checkpoint_last_write_new_bytes",
        "checkpoint_last_lookup_depth",
    ] {
        columns.push((name, SqlType::Long, nulls()));
    }
    columns
}

/// What late rows made necessary.
fn repairs<'a>(list: LiveList<'_>) -> Vec<LiteralColumn<'a>> {
    let of = |one: &Known| one.progress.repair.clone();
    let under_way: BooleanArray = list.0.iter().map(|one| Some(of(one).is_under_way)).collect();
    let zero = |name| list.longs(name, |_| Some(0));
    let times = |name, at: fn(&crate::LiveRepair) -> Option<i64>| {
        list.times(name, move |one| at(&one.progress.repair))
    };
    vec![
        ("checkpoint_repair_in_progress", SqlType::Boolean, Arc::new(under_way)),
        times("checkpoint_repair_correction_timestamp", |repair| repair.first_micros),
        times("checkpoint_repair_low_timestamp", |repair| repair.low_micros),
        times("checkpoint_repair_high_timestamp", |repair| repair.high_micros),
        zero("checkpoint_repair_roots_versioned"),
        zero("checkpoint_repair_new_bytes"),
        list.longs("checkpoint_repair_resumes", |one| Some(one.progress.resumes)),
        list.longs("checkpoint_repair_failures", |one| Some(one.progress.failures)),
        list.texts("checkpoint_repair_plan", |one| of(one).plan.map(str::to_owned)),
        list.texts("checkpoint_repair_last_disposition", |one| {
            of(one).disposition.map(str::to_owned)
        }),
        list.texts("checkpoint_repair_last_denial", |one| of(one).denial.map(str::to_owned)),
    ]
}
