//! Storage policies, which convert old partitions to Parquet files. Partitions that a policy drops
//! are removed by the storage's own thread, together with partitions expired by TTL.
//!
//! The job converts one partition at a time. After each partition it rests for as long as the
//! conversion took, so queries and writers get at least half a core and half the disk bandwidth.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_storage::{PartitionFormat, Snapshot, Storage, TableId, TableSchema};
use tidemark_types::{EngineResult, failpoint};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::progress::JobProgress;
use super::{JobKind, JobReport, JobState, Scheduled};
use crate::runtime::guard;
use crate::runtime::log::{self, Level};

/// The job kind in `jobs()`.
const POLICY: &str = "policy";
/// Interval between scans of all tables for new policies.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// Default interval between partition checks for a table with a policy.
const CHECK_EVERY: Duration = Duration::from_mins(5);
/// Maximum rest period between two partitions.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The storage policies of an open database.
#[derive(Debug)]
pub(crate) struct Policies {
    storage: Weak<Storage>,
    handle: Handle,
    tables: Mutex<HashMap<TableId, Policed>>,
    last_scan: Mutex<Option<Instant>>,
    check_every: Duration,
    /// Allows the job to process only one table at a time.
    one_at_a_time: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Policed {
    job: JobProgress,
    /// The last examined schema version.
    version: u64,
}

impl Policies {
    /// Creates the policies, with `check_every_ms` between partition checks.
    pub(crate) fn new(
        storage: &Arc<Storage>,
        handle: Handle,
        check_every_ms: Option<u64>,
    ) -> Arc<Self> {
        Arc::new(Self {
            storage: Arc::downgrade(storage),
            handle,
            tables: Mutex::default(),
            last_scan: Mutex::default(),
            check_every: check_every_ms.map_or(CHECK_EVERY, Duration::from_millis),
            one_at_a_time: Arc::new(Semaphore::new(1)),
        })
    }

    /// Converts a table's due partitions to Parquet files. Stops at the first failure, because its
    /// cause (such as damage or a full disk) would also affect the other partitions.
    async fn run(&self, table: TableId) -> EngineResult<()> {
        while let Some(storage) = self.storage.upgrade() {
            let Some(found) = storage.snapshot().table_by_id(table) else { break };
            let next = storage.due_for_parquet(&found).first().copied();
            let Some(floor) = next.filter(|_| !self.is_paused(table)) else { break };
            let began = Instant::now();
            let convert = move || {
                failpoint::hit("engine.convert")?;
                storage.convert_partitions(table, &[floor], PartitionFormat::Parquet)
            };
            let outcome = guard::run_blocking("policy", convert).await;
            outcome.inspect_err(|error| note_failure(found.schema(), floor, &error.message))?;
            tokio::time::sleep(began.elapsed().min(MAX_PAUSE)).await;
        }
        Ok(())
    }

    fn is_paused(&self, table: TableId) -> bool {
        self.tables.lock().get(&table).is_some_and(|policed| policed.job.is_paused)
    }
}

fn note_failure(schema: &TableSchema, floor: i64, message: &str) {
    let fields = serde_json::json!({
        "table": schema.name,
        "partition": schema.partition_name(floor),
        "message": message,
    });
    log::write(Level::Warn, "engine", "policy_failed", fields);
}

/// Whether an active policy on the table converts partitions to Parquet files.
fn converts(schema: &TableSchema) -> bool {
    schema.policy.as_ref().is_some_and(|policy| policy.to_parquet != 0 && !policy.is_disabled)
}

impl JobKind for Policies {
    fn is(&self, kind: &str) -> bool {
        kind == POLICY
    }

    fn reports(&self, snapshot: &Snapshot) -> Vec<JobReport> {
        let tables = self.tables.lock();
        let report = |(id, policed): (&TableId, &Policed)| {
            let table = snapshot.table_by_id(*id)?;
            let mut report = policed.job.report(POLICY, table.schema().name.clone());
            if report.state == JobState::Waiting && !converts(table.schema()) {
                report.state = JobState::Paused;
            }
            Some(report)
        };
        tables.iter().filter_map(report).collect()
    }

    fn pause(&self, snapshot: &Snapshot, (_, name): (&str, &str), is_paused: bool) -> bool {
        let table = snapshot.table(name).filter(|table| table.schema().policy.is_some());
        let Some(table) = table else { return false };
        self.tables.lock().entry(table.schema().id).or_default().job.is_paused = is_paused;
        true
    }
}

impl<D> Scheduled<D> for Policies {
    fn begin_due(self: Arc<Self>, _: &Arc<D>, snapshot: &Arc<Snapshot>) {
        let mut looked = self.last_scan.lock();
        if looked.is_some_and(|looked| looked.elapsed() < SCAN_INTERVAL.min(self.check_every)) {
            return;
        }
        *looked = Some(Instant::now());
        drop(looked);
        let Some(storage) = self.storage.upgrade() else { return };
        let mut tables = self.tables.lock();
        let with_policy = |id: TableId| {
            let table = snapshot.table_by_id(id);
            table.is_some_and(|table| table.schema().policy.is_some())
        };
        tables.retain(|id, _| with_policy(*id));
        for table in snapshot.tables().filter(|table| table.schema().policy.is_some()) {
            let schema = table.schema();
            let policed = tables.entry(schema.id).or_default();
            if std::mem::replace(&mut policed.version, schema.version) != schema.version {
                policed.job.wake();
            }
            if !converts(schema) || !policed.job.may_begin() {
                continue;
            }
            if storage.due_for_parquet(table).is_empty() {
                policed.job.succeeded();
                policed.job.pause(self.check_every);
                continue;
            }
            let Ok(turn) = Arc::clone(&self.one_at_a_time).try_acquire_owned() else { break };
            policed.job.begin();
            let (policies, id) = (Arc::clone(&self), schema.id);
            self.handle.spawn(async move {
                let outcome = guard::catch_async("policy", policies.run(id)).await;
                if let Some(policed) = policies.tables.lock().get_mut(&id) {
                    policed.job.end();
                    match outcome {
                        Ok(()) => policed.job.succeeded(),
                        Err(error) => policed.job.failed(error),
                    }
                }
                drop(turn);
            });
        }
    }
}
