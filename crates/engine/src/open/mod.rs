//! Opens a database: first its root, then its components, then its background jobs.
//!
//! `settings` converts options into component settings; `root` prepares the directory and its
//! tables.

pub(crate) mod handles;
mod root;
mod settings;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidemark_border::OpenOptions;
use tidemark_ingest::MAX_LINE_BYTES;
use tidemark_optimizer::{PlanSession, SessionOptions};
use tidemark_storage::Storage;
use tidemark_types::{EngineResult, failpoint};

use crate::changes;
use crate::database::Database;
use crate::database::followers::Followers;
use crate::external::EngineSources;
use crate::files::text_table::TextTables;
use crate::jobs::policies::Policies;
use crate::jobs::{Jobs, Scheduled};
use crate::query::QueryCache;
use crate::runtime::admission::Admission;
use crate::runtime::log::{self, Level};
use crate::runtime::open_handoffs::Handoffs;
use crate::runtime::registry::QueryRegistry;
use crate::runtime::resident::{ResidentGuard, machine_memory};
use crate::runtime::spill::runtime_environment;
use crate::runtime::task_queue::TaskQueue;
use crate::runtime::work::follow_tasks;
use crate::runtime::workers::Workers;
use crate::views::cleanup_jobs::Cleanup;

/// Interval at which the loop starts due jobs.
const TICK: Duration = Duration::from_millis(10);
/// Process memory divided by this number is the limit for decoded columns of Parquet partitions.
const DECODED_COLUMNS_DIVISOR: u64 = 16;

impl Database {
    /// Opens the root, recovers from a crash, and starts background jobs. Blocks.
    pub fn open(options: &OpenOptions) -> EngineResult<Arc<Self>> {
        let database = Arc::new(assembled(options)?);
        database.handle().spawn(begin_due(Arc::downgrade(&database)));
        database.handle().spawn(changes::announce_commits(Arc::downgrade(&database)));
        Ok(database)
    }
}

/// Assembles the database from its components. View refreshes have not started yet.
fn assembled(options: &OpenOptions) -> EngineResult<Database> {
    failpoint::arm_from_environment()?;
    let count = options.workers.unwrap_or_else(settings::default_workers).max(1);
    let vfs = root::checked(&options.root)?;
    let spill_limit = options.spill_limit_bytes.unwrap_or_else(|| root::default_spill_limit(&vfs));
    let total = options.process_memory_bytes.unwrap_or_else(machine_memory);
    let storage = Storage::open(Arc::new(vfs), settings::storage_options(options, total))?;
    root::prepare_tables(&storage);
    let memory = settings::query_memory(options, total);
    follow_tasks();
    let registry = Arc::new(QueryRegistry::new(Arc::clone(&memory), TaskQueue::new(count)));
    let spill_root = root::spill_directory(&options.root)?;
    let session = Arc::new(PlanSession::new(&SessionOptions {
        target_partitions: count,
        runtime: runtime_environment(&memory, spill_root.clone(), spill_limit)?,
        query_memory_bytes: memory.query_limit(),
        scan_partition_rows: options.scan_partition_rows,
    }));
    let workers = Workers::start(count)?;
    let (refresher, metrics) = settings::refresher(options, count, total);
    let policies = Policies::new(&storage, workers.handle().clone(), options.policy_check_ms);
    let scheduled: Vec<Arc<dyn Scheduled<Database>>> =
        vec![Arc::clone(&refresher) as _, policies, Arc::<Cleanup>::default()];
    let most_line_bytes = options.max_line_bytes.unwrap_or(MAX_LINE_BYTES);
    let sources = EngineSources {
        refresher,
        jobs: Jobs::new(&storage, &scheduled),
        root: options.root.clone(),
        import_root: root::import_root(options)?,
        export_root: root::export_root(options),
        registry: Arc::clone(&registry),
        storage: Arc::clone(&storage),
        memory: Arc::clone(&memory),
        session: Arc::clone(&session),
        handle: workers.handle().clone(),
        numbers: Mutex::default(),
        texts: TextTables::default(),
        max_line_bytes: most_line_bytes,
    };
    storage.set_decoded_bytes(total / DECODED_COLUMNS_DIVISOR);
    let resident = ResidentGuard::watching(total, workers.handle(), (&registry, &storage));
    let limits = settings::admission_limits(options, count);
    let admission = Admission::new(limits, Arc::clone(&resident));
    log::write(Level::Info, "engine", "opened", serde_json::json!({ "workers": count }));
    Ok(Database {
        queries: QueryCache::start(workers.handle(), &storage),
        storage,
        handoffs: Handoffs::default(),
        session,
        sources: Arc::new(sources),
        registry,
        metrics,
        columnar_bytes: Arc::default(),
        max_line_bytes: most_line_bytes,
        settings: RwLock::default(),
        table_defaults: settings::table_defaults(options),
        live: settings::live_settings(options),
        admission,
        memory,
        resident,
        spill_root,
        workers,
        closed: AtomicBool::new(false),
        scheduled,
        answering: options.answers_from_views.unwrap_or(true).then(Arc::default),
        followers: Followers::new(options.followed_for_ms),
    })
}

/// Starts due jobs at regular intervals until the database is closed.
async fn begin_due(database: Weak<Database>) {
    let mut times = tokio::time::interval(TICK);
    times.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        let Some(database) = database.upgrade() else { return };
        let Ok(snapshot) = database.snapshot() else { return };
        for kind in &database.scheduled {
            Arc::clone(kind).begin_due(&database, &snapshot);
        }
    }
}
