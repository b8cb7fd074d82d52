//! The queries that run now.

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
use crate::runtime::lanes::Lanes;
use crate::runtime::pool::{QueryPool, SharedPool};
use crate::runtime::work::Work;

/// Bytes up to which what a query took is taken for its plan.
const PLAN_BYTES: usize = 4 << 20;

/// Every running query, by id.
#[derive(Debug)]
pub(crate) struct QueryRegistry {
    memory: Arc<SharedPool>,
    lanes: Arc<Lanes>,
    running: Mutex<BTreeMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    /// User and text, as the statement has them.
    of: Arc<StatementContext>,
    /// The text of this execution, where it is another one.
    text: Option<String>,
    started_micros: i64,
    token: CancelToken,
    memory: Arc<QueryPool>,
    work: Arc<Work>,
}

impl Entry {
    /// Bytes it holds: those its operators know of, or those it took where that is much. A query
    /// that waits for its turn holds its plan.
    fn held(&self) -> usize {
        let taken = Some(self.work.account.held()).filter(|taken| *taken > PLAN_BYTES);
        self.memory.reserved().max(taken.unwrap_or(0))
    }

    fn describe(&self, query_id: u64) -> ActiveQuery {
        let StatementContext { user, text, .. } = self.of.as_ref();
        let identity = self.of.identity().to_owned();
        let (user, text) = (user.clone(), self.text.as_ref().unwrap_or(text).clone());
        ActiveQuery { query_id, user, identity, text, started_micros: self.started_micros }
    }
}

/// A place in the registry, given back when dropped: an execution that can be cancelled, whether
/// it has begun or waits for its turn.
#[derive(Debug)]
pub struct Registration {
    registry: Arc<QueryRegistry>,
    /// The query's id.
    pub(crate) id: u64,
    /// The query's token.
    pub(crate) token: CancelToken,
    /// When the query has to be over.
    pub(crate) deadline: Deadline,
    /// The query's memory.
    pub(crate) memory: Arc<QueryPool>,
    /// What its tasks share.
    pub(crate) work: Arc<Work>,
    /// What the query reads, held as long as it runs, so that `snapshots()` shows it.
    snapshot: Option<Arc<Snapshot>>,
    /// Faults of mapped files before it began.
    pub(crate) faults: u64,
}

impl Registration {
    /// Runs `work` until it is done, or the query is stopped or late.
    pub(crate) async fn until_stopped<T>(
        &self,
        work: impl Future<Output = EngineResult<T>>,
    ) -> EngineResult<T> {
        until_stopped(&self.token, self.deadline, work).await
    }

    /// Whose query it is.
    pub(crate) fn user(&self) -> &str {
        self.work.user()
    }

    /// Says how long the query may run.
    pub(crate) fn end_at(&mut self, deadline: Deadline) {
        self.deadline = deadline;
        self.token.set_deadline(deadline);
    }

    /// Holds the snapshot that the query reads.
    pub(crate) fn hold(&mut self, snapshot: &Arc<Snapshot>) {
        self.snapshot = Some(Arc::clone(snapshot));
    }
}

impl QueryRegistry {
    /// No queries, which will share this memory and these lanes.
    pub(crate) fn new(memory: Arc<SharedPool>, lanes: Arc<Lanes>) -> Self {
        Self { memory, lanes, running: Mutex::default() }
    }

    /// Enters a query, under this identifier or a free one; `text`: what it runs for, where that is
    /// not the statement's own. Fails when another one runs under it.
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
        let work = Work::new(account, Arc::clone(&self.lanes), &of.user);
        let mut running = self.running.lock();
        let id = id.unwrap_or_else(|| running.last_key_value().map_or(1, |(last, _)| last + 1));
        let Vacant(place) = running.entry(id) else {
            return Err(EngineError::internal(format!("query {id} runs already")));
        };
        place.insert(Entry {
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

    /// Cancels a query; false when there is none with this id.
    pub(crate) fn cancel(&self, id: u64, of: Option<&str>) -> bool {
        let running = self.running.lock();
        let found = running.get(&id);
        let found = found.filter(|entry| of.is_none_or(|identity| entry.of.identity() == identity));
        found.map(|entry| entry.token.cancel()).is_some()
    }

    /// Stops the query that holds most memory, with this error; false when none holds any that
    /// is not stopped already.
    pub(crate) fn stop_largest(&self, why: EngineError) -> bool {
        let running = self.running.lock();
        let running = running.values().filter(|entry| !entry.token.is_cancelled());
        let held = running.map(|entry| (entry.held(), &entry.token));
        let largest = held.max_by_key(|(bytes, _)| *bytes);
        largest.is_some_and(|(bytes, token)| bytes > 0 && token.stop(why))
    }

    /// Cancels every query.
    pub(crate) fn cancel_all(&self) {
        self.running.lock().values().for_each(|entry| entry.token.cancel());
    }

    /// The running queries, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveQuery> {
        self.running.lock().iter().map(|(id, entry)| entry.describe(*id)).collect()
    }

    /// The same, each with whether it was cancelled.
    pub(crate) fn list_with_state(&self) -> Vec<(ActiveQuery, bool)> {
        let running = self.running.lock();
        let state = |(id, entry): (&u64, &Entry)| (entry.describe(*id), entry.token.is_cancelled());
        running.iter().map(state).collect()
    }

    /// How many run.
    pub(crate) fn len(&self) -> usize {
        self.running.lock().len()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.running.lock().remove(&self.id);
    }
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
