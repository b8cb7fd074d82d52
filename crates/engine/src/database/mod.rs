//! An open database: storage, execution runtime, registry, metrics.

pub(crate) mod followers;
pub(crate) mod physical;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use datafusion::catalog::Session;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::RwLock;
use tidemark_border::{self as border, Observed, Setting, TableColumn, TableMetadata};
use tidemark_operators::rows_read;
use tidemark_optimizer::PlanSession;
use tidemark_planner::{AnsweringViews, BindContext, ExternalSources, LiveSettings};
use tidemark_storage::{Change, Damage, Snapshot, Storage, TableDefaults, TableSnapshot};
use tidemark_types::{EngineError, EngineResult, ErrorCode, failpoint};

use crate::database::followers::Followers;
use crate::jobs::Scheduled;
use crate::query::QueryCache;
use crate::runtime::admission::{Admission, Admitted, CHEAP_ROWS};
use crate::runtime::log::{self, Level};
use crate::runtime::metrics::{Gauges, Metrics};
use crate::runtime::open_handoffs::Handoffs;
use crate::runtime::pool::SharedPool;
use crate::runtime::registry::{QueryRegistry, Registration, now_micros};
use crate::runtime::resident::ResidentGuard;
use crate::runtime::spill::query_disk;
use crate::runtime::workers::Workers;

/// Default time limit for closing a database.
pub const CLOSE_TIME: Duration = Duration::from_secs(3);

/// An open database. Dropping the last reference closes it.
pub struct Database {
    pub(crate) storage: Arc<Storage>,
    /// Client connections that the engine currently serves itself.
    pub(crate) handoffs: Handoffs,
    pub(crate) session: Arc<PlanSession>,
    pub(crate) registry: Arc<QueryRegistry>,
    pub(crate) metrics: Arc<Metrics>,
    /// Memory used by all columnar protocol connections, in bytes.
    pub(crate) columnar_bytes: Arc<AtomicU64>,
    pub(crate) queries: Arc<QueryCache>,
    /// Kinds of background jobs. A single loop starts the jobs of all kinds.
    pub(crate) scheduled: Vec<Arc<dyn Scheduled<Self>>>,
    /// Views that can answer queries on their base tables; `None` if this feature is disabled.
    pub(crate) answering: Option<Arc<AnsweringViews>>,
    /// State shared by change feeds.
    pub(crate) followers: Followers,
    pub(crate) sources: Arc<dyn ExternalSources>,
    /// Maximum length of an imported line, in bytes.
    pub(crate) max_line_bytes: usize,
    pub(crate) settings: RwLock<Arc<Vec<Setting>>>,
    pub(crate) table_defaults: TableDefaults,
    pub(crate) live: LiveSettings,
    pub(crate) admission: Arc<Admission>,
    pub(crate) memory: Arc<SharedPool>,
    pub(crate) resident: Arc<ResidentGuard>,
    /// Directory for spill files.
    pub(crate) spill_root: PathBuf,
    pub(crate) workers: Workers,
    pub(crate) closed: AtomicBool,
}

impl Database {
    /// Returns the metadata of the table with this name, ignoring case.
    pub fn table_metadata(&self, name: &str) -> EngineResult<Option<TableMetadata>> {
        failpoint::hit("engine.table_metadata")?;
        let snapshot = self.snapshot()?;
        Ok(snapshot.table(name).map(|table| describe_table(&table)))
    }

    /// Cancels a query or revokes a handoff; returns false for an unknown id. With `gently`, the
    /// handoff's running statement may finish first. Holds locks only briefly.
    pub fn cancel_query(&self, id: u64, gently: bool) -> bool {
        self.handoffs.revoke(id, gently) || self.cancel_query_of(id, None)
    }

    /// Like [`Self::cancel_query`], but only if the query belongs to this user.
    pub(crate) fn cancel_query_of(&self, id: u64, of: Option<&str>) -> bool {
        self.registry.cancel(id, of)
    }

    /// Returns counters and gauges by name, the damaged tables, and the running queries ordered by
    /// start time.
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

    /// Sets the effective configuration for SHOW PARAMETERS from a JSON list of [`Setting`].
    pub fn set_parameters(&self, list: &[u8]) -> EngineResult<()> {
        failpoint::hit("engine.set_parameters")?;
        *self.settings.write() = Arc::new(from_json(list, "parameters")?);
        Ok(())
    }

    /// Returns the durable records of one kind with their keys.
    pub fn load_records(&self, kind: &str) -> EngineResult<Vec<(String, Vec<u8>)>> {
        failpoint::hit("engine.load_records")?;
        let snapshot = self.snapshot()?;
        let records = snapshot.records(kind);
        Ok(records.map(|(key, value)| (key.to_owned(), value.to_vec())).collect())
    }

    /// Commits records; a value of `None` deletes the record. Blocks until the records are durable
    /// and returns the new epoch.
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

    /// Rejects new work, stops running work, writes a checkpoint and releases the root. `within` is
    /// an approximate time limit. Blocks.
    ///
    /// Succeeds if all acknowledged commits are as durable as promised, with or without a
    /// checkpoint. A checkpoint that would take too long is abandoned, because the log already
    /// contains its rows.
    pub fn close(&self, within: Duration) -> EngineResult<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let began = Instant::now();
        self.handoffs.recall_all();
        self.registry.cancel_all();
        self.workers.stop(within / 2);
        let checkpointed = self.storage.close_within(within.saturating_sub(began.elapsed()));
        // Even queries that did not end within the time limit no longer read their spill files, so
        // all of these files are removed.
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

    /// Returns the current state of all tables.
    pub(crate) fn snapshot(&self) -> EngineResult<Arc<Snapshot>> {
        self.check_open()?;
        Ok(self.storage.snapshot())
    }

    /// Whether the calling thread belongs to this database's own runtime.
    pub(crate) fn is_current(&self) -> bool {
        self.workers.is_current()
    }

    /// Returns the runtime for planning and workers.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.workers.handle()
    }

    /// Waits for a scheduling slot for the plan. Cheap plans run without waiting.
    pub(crate) async fn admit(
        &self,
        plan: &dyn ExecutionPlan,
        query: &Registration,
    ) -> EngineResult<Admitted> {
        match rows_read(plan) {
            Some(rows) if rows <= CHEAP_ROWS => Ok(Admitted::free()),
            _ => {
                query.work.set_heavy();
                self.admission.admit(query.user()).await
            }
        }
    }

    /// Returns a plan's task context, with the query's own memory pool and spill files.
    pub(crate) fn task_context(&self, query: &Registration) -> EngineResult<Arc<TaskContext>> {
        self.own_context(query).map(Arc::new)
    }

    /// Like [`Self::task_context`], but returns a context that can still be modified.
    pub(crate) fn own_context(&self, query: &Registration) -> EngineResult<TaskContext> {
        let shared = RuntimeEnv::clone(self.session.runtime_env());
        let disk_manager = query_disk(&shared.disk_manager, &query.token, query.deadline)?;
        let memory_pool = Arc::clone(&query.memory) as _;
        let runtime = RuntimeEnv { memory_pool, disk_manager, ..shared };
        Ok(TaskContext::from(self.session.as_ref() as &dyn Session).with_runtime(Arc::new(runtime)))
    }

    /// Returns the binder's inputs other than the syntax tree and the snapshot.
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

/// Returns a table's description for `tableMetadata`.
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

/// Converts a damage report to its border type.
pub(crate) fn damage_report(damage: Damage) -> border::Damage {
    border::Damage { table: damage.table, what: damage.what }
}

/// Decodes JSON from the caller. Malformed JSON is reported as the caller's error.
pub fn given<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> EngineResult<T> {
    serde_json::from_slice(bytes).map_err(|error| {
        EngineError::new(ErrorCode::InvalidValue, format!("malformed {what}: {error}"))
    })
}

/// Decodes JSON produced by the database itself. Malformed JSON is an internal error.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    bytes: &[u8],
    what: &str,
) -> EngineResult<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| EngineError::internal(format!("malformed {what}: {error}")))
}

/// Removes a directory's contents.
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
