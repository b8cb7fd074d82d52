//! An open database: storage, execution runtime, registry, metrics.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use datafusion::execution::SessionState;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use parking_lot::{Mutex, RwLock};
use tidemark_operators::{SessionOptions, session_state};
use tidemark_planner::{BindContext, ExternalSources};
use tidemark_storage::{
    Change, CommitMode, Snapshot, Storage, StorageOptions, TableSnapshot, Verify,
};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};
use tidemark_vfs::{FileSystem, RealVfs, Vfs};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::errors::from_datafusion;
use crate::external::EngineSources;
use crate::log::{self, Level};
use crate::maintenance::restore_if_asked;
use crate::metrics::Metrics;
use crate::options::{ActiveQuery, OpenOptions, TableColumn, TableMetadata};
use crate::plans::KeptPlans;
use crate::registry::{QueryRegistry, now_micros};

/// Directory below the root that `read_parquet` may read by default.
const IMPORT_DIRECTORY: &str = "import";
/// Directory below the root for spilled rows.
const SPILL_DIRECTORY: &str = "tmp";
/// Time a query waits for its turn.
const QUEUE_WAIT: Duration = Duration::from_secs(10);
/// Files open at once, and maps, below which an operator is warned.
const FEW_FILES: u64 = 4_096;
const FEW_MAPS: u64 = 65_530;
/// Fewest queries that may run at once.
const MIN_CONCURRENT_QUERIES: usize = 4;
/// Stack of a worker: plans are deep futures, and 2 MiB is little for them in long chains.
const WORKER_STACK_BYTES: usize = 8 * 1024 * 1024;

/// An open database. Dropping the last reference closes it.
pub struct Database {
    pub(crate) storage: Arc<Storage>,
    pub(crate) state: SessionState,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) plans: KeptPlans,
    pub(crate) sources: Arc<dyn ExternalSources>,
    settings: RwLock<Arc<Vec<[String; 4]>>>,
    turns: Semaphore,
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
    closed: AtomicBool,
}

impl Database {
    /// Opens the root, recovering what a crash left. Blocks.
    pub fn open(options: &OpenOptions) -> EngineResult<Arc<Self>> {
        failpoint::arm_from_environment()?;
        let workers = options.workers.unwrap_or_else(default_workers).max(1);
        let vfs = RealVfs::new(&options.root).map_err(|error| {
            let root = options.root.display();
            EngineError::io(format_args!("cannot use the root directory {root}"), &error)
        })?;
        restore_if_asked(&vfs)?;
        let storage_options = StorageOptions {
            commit_mode: parse_commit_mode(options.commit_mode.as_deref().unwrap_or("sync"))?,
            ttl_by_clock: options.ttl_by_clock.unwrap_or(true),
            keep_generations: options.keep_generations.unwrap_or(2),
            verify: parse_verify(options.verify.as_deref().unwrap_or("first"))?,
            disk_watermark_bytes: options.disk_watermark_bytes,
            disk_reserve_bytes: options.disk_reserve_bytes.unwrap_or(64 << 20),
            ..StorageOptions::default()
        };
        check_machine(&vfs)?;
        let spill_limit = options.spill_limit_bytes.unwrap_or_else(|| default_spill_limit(&vfs));
        let storage = Storage::open(Arc::new(vfs), storage_options)?;
        report_damage(&storage);
        let import_root = import_root(options)?;
        let spill_root = directory(&options.root.join(SPILL_DIRECTORY))?;
        let memory_limit = options.memory_limit_bytes.unwrap_or_else(default_memory_limit);
        let state = session_state(&SessionOptions {
            target_partitions: workers,
            runtime: runtime_environment(memory_limit, spill_root, spill_limit)?,
        });
        let runtime = build_runtime(workers)?;
        let registry = Arc::new(QueryRegistry::default());
        let handle = runtime.handle().clone();
        let sources = Arc::new(EngineSources::new(
            import_root,
            Arc::clone(&registry),
            state.clone(),
            handle.clone(),
        ));
        let concurrent = options.max_concurrent_queries.unwrap_or(2 * workers);
        log::write(Level::Info, "engine", "opened", serde_json::json!({ "workers": workers }));
        Ok(Arc::new(Self {
            storage,
            state,
            sources,
            registry,
            plans: KeptPlans::default(),
            metrics: Arc::default(),
            settings: RwLock::default(),
            turns: Semaphore::new(concurrent.max(MIN_CONCURRENT_QUERIES)),
            handle,
            runtime: Mutex::new(Some(runtime)),
            closed: AtomicBool::new(false),
        }))
    }

    /// The table with this name, letter case ignored.
    pub fn table_metadata(&self, name: &str) -> EngineResult<Option<TableMetadata>> {
        failpoint::hit("engine.table_metadata")?;
        let snapshot = self.snapshot()?;
        Ok(snapshot.table(name).map(|table| describe_table(&table)))
    }

    /// Stops a query; false when none has this id. Lock-free but for the registry's short lock.
    pub fn cancel_query(&self, id: u64) -> bool {
        self.registry.cancel(id)
    }

    /// The running queries, oldest first.
    pub fn active_queries(&self) -> Vec<ActiveQuery> {
        self.registry.list()
    }

    /// Counters and gauges by name, and the damaged tables.
    pub fn metrics(&self) -> serde_json::Value {
        let damages = self.storage.snapshot().damages();
        let numbers = self.metrics.to_json(self.registry.len(), damages.len());
        serde_json::json!({ "numbers": numbers, "damages": damages })
    }

    /// Effective configuration for SHOW PARAMETERS, as a JSON list of
    /// `[key, environment variable, value, source]`.
    pub fn set_parameters(&self, list: &[u8]) -> EngineResult<()> {
        failpoint::hit("engine.set_parameters")?;
        *self.settings.write() = Arc::new(from_json(list, "parameters")?);
        Ok(())
    }

    /// Durable records of one kind, as a JSON list of `[key, value]`. A value is base64 text.
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

    /// Refuses new work, stops what runs, checkpoints, releases the root. Blocks.
    pub fn close(&self) -> EngineResult<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.registry.cancel_all();
        let runtime = self.runtime.lock().take();
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(Duration::from_secs(3));
        }
        self.storage.close()?;
        log::write(Level::Info, "engine", "closed", serde_json::json!({}));
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

    /// Waits for a turn to run a query that reads tables.
    pub(crate) async fn wait_for_turn(&self) -> EngineResult<SemaphorePermit<'_>> {
        let waiting = tokio::time::timeout(QUEUE_WAIT, self.turns.acquire()).await;
        let closed = || EngineError::new(ErrorCode::Closed, "the database is closed");
        match waiting {
            Ok(permit) => permit.map_err(|_| closed()),
            Err(_) => Err(EngineError::new(
                ErrorCode::ResourceLimit,
                format!("too many queries: waited {} s for a turn", QUEUE_WAIT.as_secs()),
            )
            .with_hint("retry later, or raise the limit of concurrent queries")),
        }
    }

    /// What the binder is told beside tree and snapshot.
    pub(crate) fn bind_context(&self, user: &str) -> BindContext {
        BindContext {
            user: user.to_owned(),
            now_micros: now_micros(),
            settings: Arc::clone(&self.settings.read()),
            external: Some(Arc::clone(&self.sources)),
            ..BindContext::default()
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
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

/// Decodes a JSON argument of the border.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &str,
) -> EngineResult<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::internal(format!("malformed {what}: {error}")))
}

fn parse_commit_mode(name: &str) -> EngineResult<CommitMode> {
    Ok(match name {
        "sync" | "adaptive" => CommitMode::Sync,
        "async" => CommitMode::Async,
        "nosync" => CommitMode::NoSync,
        other => {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                format!("invalid commit mode '{other}', expected sync, async, nosync or adaptive"),
            ));
        }
    })
}

fn parse_verify(name: &str) -> EngineResult<Verify> {
    Ok(match name {
        "open" => Verify::Open,
        "first" => Verify::First,
        "off" => Verify::Off,
        other => {
            return Err(EngineError::new(
                ErrorCode::InvalidValue,
                format!("invalid verification '{other}', expected open, first or off"),
            ));
        }
    })
}

fn import_root(options: &OpenOptions) -> EngineResult<PathBuf> {
    match &options.import_root {
        Some(path) => directory(&options.root.join(path)),
        None => directory(&options.root.join(IMPORT_DIRECTORY)),
    }
}

fn directory(path: &Path) -> EngineResult<PathBuf> {
    std::fs::create_dir_all(path)
        .and_then(|()| path.canonicalize())
        .map_err(|error| EngineError::io(format_args!("cannot use {}", path.display()), &error))
}

/// One memory pool for all queries, shared fairly among those that can spill.
fn runtime_environment(
    limit_bytes: u64,
    spill_root: PathBuf,
    spill_limit_bytes: u64,
) -> EngineResult<Arc<RuntimeEnv>> {
    let limit = usize::try_from(limit_bytes).unwrap_or(usize::MAX);
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![spill_root]))
        .with_max_temp_directory_size(spill_limit_bytes);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(limit)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .map_err(from_datafusion)
}

/// A quarter of what is free.
fn default_spill_limit(vfs: &RealVfs) -> u64 {
    const FALLBACK_BYTES: u64 = 10 << 30;
    vfs.space().map_or(FALLBACK_BYTES, |space| space.free / 4)
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

fn build_runtime(workers: usize) -> EngineResult<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("tidemark-worker")
        .thread_stack_size(WORKER_STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| EngineError::io("cannot start worker threads", &error))
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Half of the machine's memory.
fn default_memory_limit() -> u64 {
    const FALLBACK_BYTES: u64 = 1 << 30;
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return FALLBACK_BYTES };
    let total_kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    total_kib.map_or(FALLBACK_BYTES, |kib| kib * 1024 / 2)
}
