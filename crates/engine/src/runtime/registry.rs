//! The running queries.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::Mutex;
use tidemark_border::{ActiveQuery, StatementContext};
use tidemark_storage::Snapshot;
use tidemark_types::account::Account;
use tidemark_types::{EngineError, EngineResult};

use crate::runtime::cancel::{CancelToken, Deadline, until_stopped};
use crate::runtime::pool::{QueryPool, SharedPool};
use crate::runtime::task_queue::TaskQueue;
use crate::runtime::work::Work;

/// A query that has allocated at most this many bytes is assumed to use memory only for its plan.
const PLAN_BYTES: usize = 4 << 20;

/// All running queries, by id.
#[derive(Debug)]
pub(crate) struct QueryRegistry {
    memory: Arc<SharedPool>,
    task_queue: Arc<TaskQueue>,
    running: Mutex<BTreeMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// The statement's user and SQL text.
    of: Arc<StatementContext>,
    /// The SQL text of this execution, if it differs from the statement's.
    text: Option<String>,
    started_micros: i64,
    token: CancelToken,
    memory: Arc<QueryPool>,
    work: Arc<Work>,
}

impl Entry {
    /// Returns the query's memory use in bytes: the bytes that its operators registered, or all
    /// allocated bytes if these exceed the assumed plan size. A query that waits for a scheduling
    /// slot uses memory for its plan.
    fn memory_bytes(&self) -> usize {
        let allocated =
            Some(self.work.account.used_bytes()).filter(|allocated| *allocated > PLAN_BYTES);
        self.memory.reserved().max(allocated.unwrap_or(0))
    }

    fn describe(&self, query_id: u64) -> ActiveQuery {
        let StatementContext { user, text, .. } = self.of.as_ref();
        let identity = self.of.identity().to_owned();
        let (user, text) = (user.clone(), self.text.as_ref().unwrap_or(text).clone());
        ActiveQuery { query_id, user, identity, text, started_micros: self.started_micros }
    }
}

/// A registry entry through which a running or waiting execution can be cancelled. Dropping the
/// registration removes the entry.
#[derive(Debug)]
pub struct Registration {
    registry: Arc<QueryRegistry>,
    /// The query's id.
    pub(crate) id: u64,
    /// The query's token.
    pub(crate) token: CancelToken,
    /// The query's deadline.
    pub(crate) deadline: Deadline,
    /// The query's memory pool.
    pub(crate) memory: Arc<QueryPool>,
    /// State shared by the query's tasks.
    pub(crate) work: Arc<Work>,
    /// The snapshot that the query reads. Held while the query runs, so that `snapshots()` lists
    /// it.
    snapshot: Option<Arc<Snapshot>>,
    /// Number of mapped-file faults when the query began.
    pub(crate) faults: u64,
}

impl Registration {
    /// Runs `work` until it completes, the query is stopped, or the query misses its deadline.
    pub(crate) async fn until_stopped<T>(
        &self,
        work: impl Future<Output = EngineResult<T>>,
    ) -> EngineResult<T> {
        until_stopped(&self.token, self.deadline, work).await
    }

    /// Returns the query's user.
    pub(crate) fn user(&self) -> &str {
        self.work.user()
    }

    /// Sets the query's deadline.
    pub(crate) fn end_at(&mut self, deadline: Deadline) {
        self.deadline = deadline;
        self.token.set_deadline(deadline);
    }

    /// Retains the snapshot that the query reads.
    pub(crate) fn pin(&mut self, snapshot: &Arc<Snapshot>) {
        self.snapshot = Some(Arc::clone(snapshot));
    }
}

impl QueryRegistry {
    /// Creates an empty registry. The queries in it share this memory pool and this task queue.
    pub(crate) fn new(memory: Arc<SharedPool>, queue: Arc<TaskQueue>) -> Self {
        Self { memory, task_queue: queue, running: Mutex::default() }
    }

    /// Registers a query under this id, or under a free id if none is given. `text` is the
    /// execution's SQL text, if it differs from the statement's. Fails if a running query has the
    /// same id.
    pub(crate) fn register(
        self: &Arc<Self>,
        id: Option<u64>,
        of: &Arc<StatementContext>,
        text: Option<String>,
    ) -> EngineResult<Registration> {
        let token = CancelToken::default();
        let memory = self.memory.query(&of.user);
        let stopped = token.clone();
        let account = Account::new(self.memory.query_limit(), move || stopped.why_stopped());
        let work = Work::new(account, Arc::clone(&self.task_queue), &of.user);
        let mut running = self.running.lock();
        let id = id.unwrap_or_else(|| running.last_key_value().map_or(1, |(last, _)| last + 1));
        let Vacant(entry) = running.entry(id) else {
            return Err(EngineError::internal(format!("query {id} is already running")));
        };
        entry.insert(Entry {
            of: Arc::clone(of),
            text,
            started_micros: now_micros(),
            token: token.clone(),
            memory: Arc::clone(&memory),
            work: Arc::clone(&work),
        });
        drop(running);
        let faults = tidemark_vfs::faults();
        let registry = Arc::clone(self);
        let deadline = Deadline::default();
        Ok(Registration { registry, id, token, deadline, memory, work, faults, snapshot: None })
    }

    /// Cancels a query; returns false for an unknown id.
    pub(crate) fn cancel(&self, id: u64, of: Option<&str>) -> bool {
        let running = self.running.lock();
        let found = running.get(&id);
        let found = found.filter(|entry| of.is_none_or(|identity| entry.of.identity() == identity));
        found.map(|entry| entry.token.cancel()).is_some()
    }

    /// Stops the query that uses the most memory, with this error. Returns false if no running
    /// query uses any memory.
    pub(crate) fn stop_biggest_query(&self, why: EngineError) -> bool {
        let running = self.running.lock();
        let running = running.values().filter(|entry| !entry.token.is_cancelled());
        let memory = running.map(|entry| (entry.memory_bytes(), &entry.token));
        let max = memory.max_by_key(|(bytes, _)| *bytes);
        max.is_some_and(|(bytes, token)| bytes > 0 && token.stop(why))
    }

    /// Cancels every query.
    pub(crate) fn cancel_all(&self) {
        self.running.lock().values().for_each(|entry| entry.token.cancel());
    }

    /// Returns the running queries, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveQuery> {
        self.running.lock().iter().map(|(id, entry)| entry.describe(*id)).collect()
    }

    /// Like [`Self::list`], but also returns whether each query was cancelled.
    pub(crate) fn list_with_state(&self) -> Vec<(ActiveQuery, bool)> {
        let running = self.running.lock();
        let state = |(id, entry): (&u64, &Entry)| (entry.describe(*id), entry.token.is_cancelled());
        running.iter().map(state).collect()
    }

    /// Number of running queries.
    pub(crate) fn len(&self) -> usize {
        self.running.lock().len()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.running.lock().remove(&self.id);
    }
}

/// Returns the current time in microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
