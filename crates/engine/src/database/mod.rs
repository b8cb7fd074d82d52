//! An open database: storage, execution runtime, registry, metrics.

pub(crate) mod followers;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::catalog::Session;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::{Mutex, RwLock};
use tidemark_border::{self as border, Observed, OpenOptions, Setting, TableColumn, TableMetadata};
use tidemark_catalog::due_table_types;
use tidemark_ingest::MOST_LINE_BYTES;
use tidemark_operators::rows_read;
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_planner::{AnsweringViews, BindContext, ExternalSources, LiveSettings, Planner};
use tidemark_storage::{
    Change, CommitMode, Damage, Snapshot, Storage, StorageOptions, TableDefaults, TableSnapshot,
    Verify,
};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tidemark_vfs::{FileSystem, RealVfs, Vfs};
use tokio::runtime::{Builder, Runtime};

use crate::database::followers::Followers;
use crate::external::EngineSources;
use crate::files::text_table::TextTables;
use crate::jobs::policies::Policies;
use crate::jobs::{Jobs, Scheduled};
use crate::open::restore::restore_if_asked;
use crate::plans::{self, KeptPlans};
use crate::runtime::admission::{Admission, AdmissionLimits, CHEAP_ROWS, Turn};
use crate::runtime::handoffs::Loans;
use crate::runtime::lanes::Lanes;
use crate::runtime::log::{self, Level};
use crate::runtime::metrics::{Gauges, Metrics};
use crate::runtime::pool::SharedPool;
use crate::runtime::registry::{QueryRegistry, Registration, now_micros};
use crate::runtime::resident::{self, ResidentGuard, machine_memory};
use crate::runtime::spill::{query_disk, runtime_environment};
use crate::runtime::work::{self, follow_tasks};
use crate::views::cleanup_jobs::Cleanup;
use crate::views::progress::Refresher;

/// Of the memory, the latest changes of followed tables take one part in so many.
const RECENT_CHANGES_SHARE: u64 = 64;
/// The same of what views hold between their refreshes, and the most of it.
const VIEW_STATE_SHARE: u64 = 32;
const VIEW_STATE_BYTES: usize = 256 << 20;

/// Directory below the root that `read_parquet` may read by default.
const IMPORT_DIRECTORY: &str = "import";
/// That of COPY … TO.
const EXPORT_DIRECTORY: &str = "export";
/// Directory below the root for spilled rows.
const SPILL_DIRECTORY: &str = "tmp";
/// Time a statement waits for its turn by default, milliseconds.
const QUEUE_WAIT_MS: u64 = 10_000;
/// Statements that wait for a turn, at most, by default.
const QUEUE_LIMIT: usize = 256;
/// A query's share of the pool by default: one part in so many.
const QUERY_SHARE: u64 = 4;
/// Files open at once, and maps, below which an operator is warned.
const FEW_FILES: u64 = 4_096;
const FEW_MAPS: u64 = 65_530;
/// Rows that only memory and the log hold take one part in so many of the memory by default.
const UNWRITTEN_SHARE: u64 = 8;
/// Fewest queries that run at once by default.
const MIN_CONCURRENT_QUERIES: usize = 4;
/// Stack of a worker. Operators poll their inputs, so a query takes a frame for each of those that
/// stand within each other: enough for the deepest plan that the limit of its size allows. Only
/// pages that are used take memory.
pub(crate) const WORKER_STACK_BYTES: usize = 64 * 1024 * 1024;

/// How long closing takes, at most, where nothing else is said.
pub const CLOSE_TIME: Duration = Duration::from_secs(3);

/// An open database. Dropping the last reference closes it.
pub struct Database {
    pub(crate) storage: Arc<Storage>,
    /// Connections that are answered here.
    pub(crate) loans: Loans,
    pub(crate) session: Arc<PlanSession>,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) metrics: Arc<Metrics>,
    /// What the connections of the columnar protocol hold, in bytes.
    pub(crate) columns_held: Arc<AtomicU64>,
    pub(crate) plans: Arc<KeptPlans>,
    /// Work in the background that one loop begins.
    pub(crate) scheduled: Vec<Arc<dyn Scheduled<Self>>>,
    /// The views that answer queries over their bases; none where that is switched off.
    answering: Option<Arc<AnsweringViews>>,
    /// What feeds of changes have in common.
    pub(crate) followers: Followers,
    pub(crate) sources: Arc<dyn ExternalSources>,
    /// Bytes of one line of an import, at most.
    pub(crate) most_line_bytes: usize,
    settings: RwLock<Arc<Vec<Setting>>>,
    pub(crate) table_defaults: TableDefaults,
    pub(crate) live: LiveSettings,
    admission: Arc<Admission>,
    pub(crate) memory: Arc<SharedPool>,
    resident: Arc<ResidentGuard>,
    /// Where queries spill to.
    spill_root: PathBuf,
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    closed: AtomicBool,
}

/// What keeps views current, and the counters of the database, of which it counts some.
fn refresher(options: &OpenOptions, workers: usize, total: u64) -> (Arc<Refresher>, Arc<Metrics>) {
    let metrics = Arc::default();
    let follows = (options.refresh_views.unwrap_or(true), live_settings(options).is_enabled);
    let most_bytes = options.view_state_bytes.unwrap_or_else(|| {
        let share = usize::try_from(total / VIEW_STATE_SHARE).unwrap_or(usize::MAX);
        share.min(VIEW_STATE_BYTES)
    });
    (Refresher::new(follows, workers, most_bytes, &metrics), metrics)
}

/// Of the process's memory the part that columns of Parquet partitions may take, decoded.
const DECODED_SHARE: u64 = 16;

/// The guard of the process's memory, which watches the queries and the rows held.
fn watched_memory(
    runtime: &Runtime,
    total: u64,
    (registry, storage): (&Arc<QueryRegistry>, &Arc<Storage>),
) -> Arc<ResidentGuard> {
    let resident = ResidentGuard::new(total);
    storage.set_decoded_bytes(total / DECODED_SHARE);
    let (queries, rows) = (Arc::downgrade(registry), Arc::downgrade(storage));
    runtime.spawn(resident::watch(Arc::clone(&resident), queries, rows));
    resident
}

impl Database {
    /// Opens the root, recovering what a crash left. Blocks. Views do not follow their tables yet.
    pub(crate) fn open_root(options: &OpenOptions) -> EngineResult<Arc<Self>> {
        failpoint::arm_from_environment()?;
        let workers = options.workers.unwrap_or_else(default_workers).max(1);
        let vfs = root_directory(&options.root)?;
        restore_if_asked(&vfs)?;
        check_machine(&vfs)?;
        let spill_limit = options.spill_limit_bytes.unwrap_or_else(|| default_spill_limit(&vfs));
        let total = options.process_memory_bytes.unwrap_or_else(machine_memory);
        let storage = Storage::open(Arc::new(vfs), storage_options(options, total))?;
        prepare_tables(&storage);
        let memory = query_memory(options, total);
        follow_tasks();
        let registry = Arc::new(QueryRegistry::new(Arc::clone(&memory), Lanes::new(workers)));
        let spill_root = spill_directory(&options.root)?;
        let session = Arc::new(PlanSession::new(&SessionOptions {
            target_partitions: workers,
            runtime: runtime_environment(&memory, spill_root.clone(), spill_limit)?,
            query_memory_bytes: memory.query_limit(),
            scan_part_rows: options.scan_part_rows,
            optional_rules: options.optional_rules.unwrap_or(true),
        }));
        let runtime = build_runtime(workers)?;
        let handle = runtime.handle().clone();
        let (refresher, metrics) = refresher(options, workers, total);
        let policies = Policies::new(&storage, handle.clone(), options.policy_check_ms);
        let scheduled: Vec<Arc<dyn Scheduled<Self>>> =
            vec![Arc::clone(&refresher) as _, policies, Arc::<Cleanup>::default()];
        let sources = EngineSources {
            refresher,
            jobs: Jobs::new(&storage, &scheduled),
            root: options.root.clone(),
            import_root: import_root(options)?,
            export_root: export_root(options),
            registry: Arc::clone(&registry),
            storage: Arc::clone(&storage),
            memory: Arc::clone(&memory),
            session: Arc::clone(&session),
            handle: handle.clone(),
            numbers: Mutex::default(),
            texts: TextTables::default(),
            most_line_bytes: options.max_line_bytes.unwrap_or(MOST_LINE_BYTES),
        };
        let resident = watched_memory(&runtime, total, (&registry, &storage));
        let admission = Admission::new(admission_limits(options, workers), Arc::clone(&resident));
        log::write(Level::Info, "engine", "opened", serde_json::json!({ "workers": workers }));
        Ok(Arc::new(Self {
            plans: plans::kept(&runtime, &storage),
            storage,
            loans: Loans::default(),
            session,
            sources: Arc::new(sources),
            registry,
            metrics,
            columns_held: Arc::default(),
            most_line_bytes: options.max_line_bytes.unwrap_or(MOST_LINE_BYTES),
            settings: RwLock::default(),
            table_defaults: table_defaults(options),
            live: live_settings(options),
            admission,
            memory,
            resident,
            spill_root,
            handle,
            runtime: Mutex::new(Some(runtime)),
            closed: AtomicBool::new(false),
            scheduled,
            answering: options.answers_from_views.unwrap_or(true).then(Arc::default),
            followers: Followers::new(options.followed_for_ms),
        }))
    }

    /// The table with this name, letter case ignored.
    pub fn table_metadata(&self, name: &str) -> EngineResult<Option<TableMetadata>> {
        failpoint::hit("engine.table_metadata")?;
        let snapshot = self.snapshot()?;
        Ok(snapshot.table(name).map(|table| describe_table(&table)))
    }

    /// Stops a query, or ends a loan; false when none has this id. `gently`: what runs in a loan
    /// may end first. Lock-free but for short locks.
    pub fn cancel_query(&self, id: u64, gently: bool) -> bool {
        self.loans.recall(id, gently) || self.cancel_query_of(id, None)
    }

    /// The same, if it is this user's.
    pub(crate) fn cancel_query_of(&self, id: u64, of: Option<&str>) -> bool {
        self.registry.cancel(id, of)
    }

    /// Counters and gauges by name, the damaged tables, and the running queries, oldest first.
    pub fn observe(&self) -> Observed {
        let damages = self.storage.snapshot().damages();
        let numbers = self.metrics.to_json(&Gauges {
            running_queries: self.registry.len(),
            waiting_queries: self.admission.waiting(),
            query_memory_bytes: self.memory.used(),
            query_memory_limit_bytes: self.memory.limit(),
            spilled_bytes: self.session.runtime_env().disk_manager.used_disk_space(),
            resident_bytes: self.resident.resident(),
            unwritten_bytes: self.storage.unwritten_bytes(),
            checkpointed_rows: self.storage.folded_rows(),
            damaged_tables: damages.len(),
        });
        let damages = damages.into_iter().map(damage_report).collect();
        Observed { numbers, damages, queries: self.registry.list() }
    }

    /// Effective configuration for SHOW PARAMETERS, as a JSON list of [`Setting`].
    pub fn set_parameters(&self, list: &[u8]) -> EngineResult<()> {
        failpoint::hit("engine.set_parameters")?;
        *self.settings.write() = Arc::new(from_json(list, "parameters")?);
        Ok(())
    }

    /// Durable records of one kind, each with its key.
    pub fn load_records(&self, kind: &str) -> EngineResult<Vec<(String, Vec<u8>)>> {
        failpoint::hit("engine.load_records")?;
        let snapshot = self.snapshot()?;
        let records = snapshot.records(kind);
        Ok(records.map(|(key, value)| (key.to_owned(), value.to_vec())).collect())
    }

    /// Commits records; `None` deletes. Blocks until durable; answers the new epoch.
    pub fn commit_records(
        &self,
        kind: &str,
        changes: Vec<(String, Option<Vec<u8>>)>,
    ) -> EngineResult<u64> {
        failpoint::hit("engine.commit_records")?;
        self.check_open()?;
        let change = |(key, value)| match value {
            Some(value) => Change::PutRecord { kind: kind.to_owned(), key, value },
            None => Change::DeleteRecord { kind: kind.to_owned(), key },
        };
        let receipt = self.storage.commit(changes.into_iter().map(change).collect())?;
        Ok(receipt.epoch)
    }

    /// Refuses new work, stops what runs, checkpoints, releases the root, within about so much
    /// time. Blocks. It ends well where everything acknowledged is as durable as it was promised,
    /// with or without a checkpoint: one that would take too long is given up, since the log holds
    /// its rows.
    pub fn close(&self, within: Duration) -> EngineResult<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let began = Instant::now();
        self.loans.recall_all();
        self.registry.cancel_all();
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            if self.is_current() {
                // The last reference was that of a task, which cannot wait for its own end.
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(within / 2);
            }
        }
        let checkpointed = self.storage.close_within(within.saturating_sub(began.elapsed()));
        // Includes the files of a query that did not end in time: nothing reads them any more.
        if let Err(error) = clear(&self.spill_root) {
            log::write(
                Level::Warn,
                "engine",
                "spilled_files_stay",
                serde_json::json!({
                    "message": error.to_string(),
                }),
            );
        }
        let fields = serde_json::json!({
            "checkpoint": checkpointed?, "milliseconds": began.elapsed().as_millis() as u64,
        });
        log::write(Level::Info, "engine", "closed", fields);
        Ok(())
    }

    pub(crate) fn check_open(&self) -> EngineResult<()> {
        if self.closed.load(Ordering::Acquire) {
            return Err(EngineError::new(ErrorCode::Closed, "the database is closed"));
        }
        Ok(())
    }

    /// The present state of every table.
    pub(crate) fn snapshot(&self) -> EngineResult<Arc<Snapshot>> {
        self.check_open()?;
        Ok(self.storage.snapshot())
    }

    /// Whether the caller runs on this database's own runtime.
    pub(crate) fn is_current(&self) -> bool {
        let current = tokio::runtime::Handle::try_current();
        current.is_ok_and(|current| current.id() == self.handle.id())
    }

    /// The runtime that plans and workers run on.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        &self.handle
    }

    /// Waits until the plan may run; cheap ones may at once.
    pub(crate) async fn turn(
        &self,
        plan: &dyn ExecutionPlan,
        query: &Registration,
    ) -> EngineResult<Turn> {
        match rows_read(plan) {
            Some(rows) if rows <= CHEAP_ROWS => Ok(Turn::free()),
            _ => {
                query.work.set_heavy();
                self.admission.admit(query.user()).await
            }
        }
    }

    /// What a plan runs in, with a query's own memory and files.
    pub(crate) fn task_context(&self, query: &Registration) -> EngineResult<Arc<TaskContext>> {
        self.own_context(query).map(Arc::new)
    }

    /// The same, to be changed before it is shared.
    pub(crate) fn own_context(&self, query: &Registration) -> EngineResult<TaskContext> {
        let shared = RuntimeEnv::clone(self.session.runtime_env());
        let disk_manager = query_disk(&shared.disk_manager, &query.token, query.deadline)?;
        let memory_pool = Arc::clone(&query.memory) as _;
        let runtime = RuntimeEnv { memory_pool, disk_manager, ..shared };
        Ok(TaskContext::from(self.session.as_ref() as &dyn Session).with_runtime(Arc::new(runtime)))
    }

    /// What the binder receives beside tree and snapshot.
    pub(crate) fn bind_context(&self, user: &str) -> BindContext {
        BindContext {
            user: user.to_owned(),
            now_micros: now_micros(),
            settings: Arc::clone(&self.settings.read()),
            table_defaults: self.table_defaults,
            live: self.live,
            answering: self.answering.clone(),
            external: Some(Arc::clone(&self.sources)),
            ..BindContext::default()
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.close(CLOSE_TIME) {
            let fields = serde_json::json!({ "message": error.message });
            log::write(Level::Error, "engine", "close_failed", fields);
        }
    }
}

/// A table as `tableMetadata` shows it.
pub(crate) fn describe_table(table: &TableSnapshot) -> TableMetadata {
    let schema = table.schema();
    let columns = schema.columns.iter().enumerate().map(|(index, column)| TableColumn {
        name: column.name.clone(),
        type_name: column.sql_type.name(),
        designated: schema.timestamp == Some(index),
    });
    TableMetadata {
        name: schema.name.clone(),
        columns: columns.collect(),
        partition_by: schema.partition_by.name(),
        timestamp: schema.timestamp.map(|index| schema.columns[index].name.clone()),
    }
}

/// A damage as it crosses the border.
pub(crate) fn damage_report(damage: Damage) -> border::Damage {
    border::Damage { table: damage.table, what: damage.what }
}

/// Decodes what a caller of the library chose: a mistake in it is the caller's.
pub fn given<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> EngineResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        EngineError::new(ErrorCode::InvalidValue, format!("malformed {what}: {error}"))
    })
}

/// Decodes what our own code made: a mistake in it is a defect.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &str,
) -> EngineResult<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::internal(format!("malformed {what}: {error}")))
}

fn commit_mode(of: border::CommitMode) -> CommitMode {
    match of {
        border::CommitMode::Sync | border::CommitMode::Adaptive => CommitMode::Sync,
        border::CommitMode::Async => CommitMode::Async,
        border::CommitMode::NoSync => CommitMode::NoSync,
    }
}

fn verify(of: border::Verify) -> Verify {
    match of {
        border::Verify::Open => Verify::Open,
        border::Verify::First => Verify::First,
        border::Verify::Off => Verify::Off,
    }
}

fn import_root(options: &OpenOptions) -> EngineResult<PathBuf> {
    match &options.import_root {
        Some(path) => directory(&options.root.join(path)),
        None => directory(&options.root.join(IMPORT_DIRECTORY)),
    }
}

fn export_root(options: &OpenOptions) -> PathBuf {
    options.root.join(options.export_root.as_deref().unwrap_or(Path::new(EXPORT_DIRECTORY)))
}

fn directory(path: &Path) -> EngineResult<PathBuf> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| EngineError::io(format_args!("cannot use {}", path.display()), &error))
}

/// Removes all that is in a directory.
fn clear(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        } else {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what queries of a crashed process spilled: no other process uses a locked root.
fn spill_directory(root: &Path) -> EngineResult<PathBuf> {
    let spill = root.join(SPILL_DIRECTORY);
    match std::fs::remove_dir_all(&spill) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EngineError::io(format_args!("cannot clear {}", spill.display()), &error))
        }
        _ => directory(&spill),
    }
}

fn storage_options(options: &OpenOptions, total: u64) -> StorageOptions {
    let defaults = StorageOptions::default();
    StorageOptions {
        commit_mode: commit_mode(options.commit_mode.unwrap_or_default()),
        ttl_by_clock: options.ttl_by_clock.unwrap_or(true),
        keep_generations: options.keep_generations.unwrap_or(2),
        verify: verify(options.verify.unwrap_or_default()),
        disk_watermark_bytes: options.disk_watermark_bytes,
        disk_reserve_bytes: options.disk_reserve_bytes.unwrap_or(64 << 20),
        unwritten_limit_bytes: options.unwritten_limit_bytes.unwrap_or(total / UNWRITTEN_SHARE),
        max_tables: options.max_tables.unwrap_or(defaults.max_tables),
        max_partitions: options.max_partitions.unwrap_or(defaults.max_partitions),
        max_columns: options.max_columns.unwrap_or(defaults.max_columns),
        max_cell_bytes: options.max_cell_bytes.unwrap_or(defaults.max_cell_bytes),
        max_array_elements: options.max_array_elements.unwrap_or(defaults.max_array_elements),
        recent_changes_bytes: options.recent_changes_bytes.unwrap_or_else(|| {
            let share = usize::try_from(total / RECENT_CHANGES_SHARE).unwrap_or(usize::MAX);
            share.min(defaults.recent_changes_bytes)
        }),
        ..defaults
    }
}

/// Half of the memory for all queries, a quarter of that for each, where nothing else is said.
fn query_memory(options: &OpenOptions, total: u64) -> Arc<SharedPool> {
    let pool = options.memory_limit_bytes.unwrap_or(total / 2);
    let query = options.query_memory_limit_bytes.unwrap_or(pool / QUERY_SHARE);
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    SharedPool::new(bytes(pool), bytes(query))
}

fn admission_limits(options: &OpenOptions, workers: usize) -> AdmissionLimits {
    let running = options
        .max_concurrent_queries
        .map_or_else(|| (2 * workers).max(MIN_CONCURRENT_QUERIES), |running| running.max(1));
    AdmissionLimits {
        running,
        queue: options.max_waiting_queries.unwrap_or(QUEUE_LIMIT),
        wait: Duration::from_millis(options.queue_wait_ms.unwrap_or(QUEUE_WAIT_MS)),
    }
}

fn table_defaults(options: &OpenOptions) -> TableDefaults {
    let usual = TableDefaults::default();
    TableDefaults {
        max_uncommitted_rows: options.max_uncommitted_rows.unwrap_or(usual.max_uncommitted_rows),
        o3_max_lag_micros: options
            .o3_max_lag_ms
            .map_or(usual.o3_max_lag_micros, |ms| ms.saturating_mul(1000)),
    }
}

fn live_settings(options: &OpenOptions) -> LiveSettings {
    let usual = LiveSettings::default();
    LiveSettings {
        is_enabled: options.live_views.unwrap_or(usual.is_enabled),
        longest_micros: options.live_view_memory_micros.unwrap_or(usual.longest_micros),
    }
}

/// A quarter of what is free.
fn default_spill_limit(vfs: &RealVfs) -> u64 {
    const FALLBACK_BYTES: u64 = 10 << 30;
    vfs.space().map_or(FALLBACK_BYTES, |space| space.free / 4)
}

fn root_directory(root: &Path) -> EngineResult<RealVfs> {
    RealVfs::new(root).map_err(|error| {
        let root = root.display();
        EngineError::io(format_args!("cannot use the root directory {root}"), &error)
    })
}

/// Refuses a root whose file system keeps no promises, and warns of what will hurt later.
fn check_machine(vfs: &RealVfs) -> EngineResult<()> {
    let root = vfs.root().display();
    let warn = |event: &'static str, notice: String| {
        log::write(Level::Warn, "engine", event, serde_json::json!({ "notice": notice }));
    };
    match vfs.file_system().map_err(|error| EngineError::io(&root, &error))? {
        FileSystem::Local => {}
        FileSystem::Network(name) => {
            let message = format!(
                "the root '{root}' is on a network file system ({name}), which does not keep \
                 what it acknowledges"
            );
            return Err(EngineError::new(ErrorCode::NotSupported, message)
                .with_hint("use a directory on a local disk"));
        }
        FileSystem::Layered(name) => {
            let notice = format!("the root '{root}' is on {name}: what it promises depends on it");
            warn("file_system", notice);
        }
    }
    let limits = tidemark_vfs::limits();
    if limits.open_files < FEW_FILES {
        let files = limits.open_files;
        warn("limits", format!("only {files} files may be open at once: raise ulimit -n"));
    }
    if limits.maps < FEW_MAPS {
        let maps = limits.maps;
        warn("limits", format!("vm.max_map_count is {maps}: raise it for many partitions"));
    }
    Ok(())
}

/// What a start does to tables and views before they are used.
fn prepare_tables(storage: &Storage) {
    report_damage(storage);
    set_table_types(storage);
    settle_views(storage);
}

/// What SET TYPE asked for before this start. A disk that refuses it now is asked again at the
/// next one.
fn set_table_types(storage: &Storage) {
    let due = due_table_types(&storage.snapshot());
    if due.is_empty() {
        return;
    }
    if let Err(error) = storage.commit(due) {
        let fields = serde_json::json!({ "message": error.message });
        log::write(Level::Warn, "engine", "table_types", fields);
    }
}

/// Binds views that an older version made to what they name. A disk that refuses it now is asked
/// again at the next start; the names count until then.
fn settle_views(storage: &Storage) {
    let context = BindContext { now_micros: now_micros(), ..BindContext::default() };
    let settle = || -> EngineResult<()> {
        loop {
            let due = Planner::settle_views(&storage.snapshot(), &context)?;
            if due.is_empty() {
                return Ok(());
            }
            storage.commit(due)?;
        }
    };
    if let Err(error) = settle() {
        let fields = serde_json::json!({ "message": error.message });
        log::write(Level::Warn, "engine", "views", fields);
    }
}

fn report_damage(storage: &Storage) {
    let error = |event: &'static str, what: &str| {
        log::write(Level::Error, "engine", event, serde_json::json!({ "what": what }));
    };
    for what in storage.repairs() {
        error("damage_at_start", what);
    }
    for damage in storage.snapshot().damages() {
        error("damaged_table", &format!("{}: {}", damage.table, damage.what));
    }
}

/// Threads that poll tasks: as many as there are lanes, and one that polls the tasks which ask for
/// a lane meanwhile. Without it they wait in the queue of the runtime, which knows no users.
pub(crate) fn build_runtime(workers: usize) -> EngineResult<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers.saturating_add(1))
        .thread_name("tidemark-worker")
        .on_thread_park(work::give_back)
        .thread_stack_size(WORKER_STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| EngineError::io("cannot start worker threads", &error))
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
