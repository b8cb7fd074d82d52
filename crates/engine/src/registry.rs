//! The queries that run now.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry::Vacant;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use datafusion::execution::memory_pool::MemoryPool;
use parking_lot::Mutex;
use tidemark_storage::Snapshot;
use tidemark_types::{EngineError, EngineResult};

use crate::cancel::CancelToken;
use crate::options::ActiveQuery;
use crate::pool::{QueryPool, SharedPool};

/// Every running query, by id.
#[derive(Debug)]
pub(crate) struct QueryRegistry {
    memory: Arc<SharedPool>,
    running: Mutex<BTreeMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    description: ActiveQuery,
    token: CancelToken,
    memory: Arc<QueryPool>,
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
    /// The query's memory.
    pub(crate) memory: Arc<QueryPool>,
    /// What the query reads, held as long as it runs, so that `snapshots()` shows it.
    snapshot: Option<Arc<Snapshot>>,
    /// Faults of mapped files before it began.
    pub(crate) faults: u64,
}

impl Registration {
    /// Holds the snapshot that the query reads.
    pub(crate) fn hold(&mut self, snapshot: &Arc<Snapshot>) {
        self.snapshot = Some(Arc::clone(snapshot));
    }
}

impl QueryRegistry {
    /// No queries, which will share this memory.
    pub(crate) fn new(memory: Arc<SharedPool>) -> Self {
        Self { memory, running: Mutex::default() }
    }

    /// Enters a query, under this identifier or a free one. Fails when another one runs under it.
    pub(crate) fn register(
        self: &Arc<Self>,
        id: Option<u64>,
        user: &str,
        text: &str,
    ) -> EngineResult<Registration> {
        let token = CancelToken::default();
        let memory = self.memory.query();
        let mut running = self.running.lock();
        let id = id.unwrap_or_else(|| running.last_key_value().map_or(1, |(last, _)| last + 1));
        let Vacant(place) = running.entry(id) else {
            return Err(EngineError::internal(format!("query {id} runs already")));
        };
        let description = ActiveQuery {
            query_id: id,
            user: user.to_owned(),
            text: text.to_owned(),
            started_micros: now_micros(),
        };
        place.insert(Entry { description, token: token.clone(), memory: Arc::clone(&memory) });
        drop(running);
        let faults = tidemark_vfs::faults();
        Ok(Registration { registry: Arc::clone(self), id, token, memory, faults, snapshot: None })
    }

    /// Cancels a query; false when there is none with this id.
    pub(crate) fn cancel(&self, id: u64, of: Option<&str>) -> bool {
        let running = self.running.lock();
        let found = running.get(&id);
        let found = found.filter(|entry| of.is_none_or(|user| entry.description.user == user));
        found.map(|entry| entry.token.cancel()).is_some()
    }

    /// Stops the query that holds most memory, with this error; false when none holds any that
    /// is not stopped already.
    pub(crate) fn stop_largest(&self, why: EngineError) -> bool {
        let running = self.running.lock();
        let running = running.values().filter(|entry| !entry.token.is_cancelled());
        let held = running.map(|entry| (entry.memory.reserved(), &entry.token));
        let largest = held.max_by_key(|(bytes, _)| *bytes);
        largest.is_some_and(|(bytes, token)| bytes > 0 && token.stop(why))
    }

    /// Cancels every query.
    pub(crate) fn cancel_all(&self) {
        self.running.lock().values().for_each(|entry| entry.token.cancel());
    }

    /// The running queries, oldest first.
    pub(crate) fn list(&self) -> Vec<ActiveQuery> {
        self.running.lock().values().map(|entry| entry.description.clone()).collect()
    }

    /// The same, each with whether it was told to stop.
    pub(crate) fn list_with_state(&self) -> Vec<(ActiveQuery, bool)> {
        let running = self.running.lock();
        let entry = |entry: &Entry| (entry.description.clone(), entry.token.is_cancelled());
        running.values().map(entry).collect()
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
