//! Cache for repeated executions of a query: its binding, its plan, and the plan's results.
//!
//! A cached statement is one user's SQL text, shared across sessions. Its queries differ only in
//! parameter values. An entry is valid only for the snapshot it was made from, and a cached plan
//! pins that snapshot's files. The first statement that uses a newer snapshot therefore drops the
//! older entries of all statements.

mod plan;
mod results;
mod symbols;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_planner::BoundQuery;
use tidemark_storage::Storage;
use tokio::runtime::Handle;

pub(crate) use plan::{CachedPlan, OtherValues, PlannedQuery, has_computed_length, is_volatile};
pub(crate) use results::{CachedResult, ResultKey};

use results::CachedBytes;

/// Interval between checks for entries that belong to older snapshots.
const FORGET_EVERY: Duration = Duration::from_millis(500);

/// A query's cached state.
#[derive(Debug, Clone)]
pub(crate) enum CachedQuery {
    Bound(Box<BoundQuery>),
    /// A plan with its cached results.
    Planned(Arc<CachedPlan>),
}

/// A statement's cache entry.
#[derive(Debug, Default)]
pub(crate) struct QuerySlot {
    cached: Mutex<Option<(u64, CachedQuery)>>,
}

impl QuerySlot {
    /// Returns the entry if it belongs to this epoch.
    pub(crate) fn get(&self, epoch: u64) -> Option<CachedQuery> {
        match &*self.cached.lock() {
            Some((cached_for, query)) if *cached_for == epoch => Some(query.clone()),
            _ => None,
        }
    }
}

/// A database's query cache.
#[derive(Debug, Default)]
pub(crate) struct QueryCache {
    /// The newest epoch that any statement has used.
    epoch: AtomicU64,
    /// All slots that have an entry.
    slots: Mutex<Vec<Weak<QuerySlot>>>,
    results: CachedBytes,
}

impl QueryCache {
    /// Creates an empty cache, and starts a task that drops stale entries.
    pub(crate) fn start(runtime: &Handle, storage: &Arc<Storage>) -> Arc<Self> {
        let cache = Arc::<Self>::default();
        runtime.spawn(forget_old(Arc::downgrade(&cache), Arc::downgrade(storage)));
        cache
    }

    /// Drops entries that belong to older snapshots.
    pub(crate) fn advance(&self, epoch: u64) {
        if self.epoch.fetch_max(epoch, Ordering::AcqRel) >= epoch {
            return;
        }
        let stale = std::mem::take(&mut *self.slots.lock());
        for slot in stale.iter().filter_map(Weak::upgrade) {
            let older = slot.cached.lock().take_if(|(cached_for, _)| *cached_for < epoch);
            drop(older);
        }
    }

    /// Caches the query, unless a statement has already used a newer snapshot.
    pub(crate) fn insert(&self, slot: &Arc<QuerySlot>, epoch: u64, query: CachedQuery) {
        let mut slots = self.slots.lock();
        if self.epoch.load(Ordering::Acquire) > epoch {
            return;
        }
        let before = slot.cached.lock().replace((epoch, query));
        // The slot is already in the list if it had an entry for the same epoch.
        if before.is_none_or(|(cached_for, _)| cached_for < epoch) {
            slots.push(Arc::downgrade(slot));
        }
    }
}

/// Drops plans for older snapshots, even without a new statement, because the plans pin dropped
/// files. Ends when the database is closed.
async fn forget_old(cache: Weak<QueryCache>, storage: Weak<Storage>) {
    let mut times = tokio::time::interval(FORGET_EVERY);
    loop {
        times.tick().await;
        let (Some(cache), Some(storage)) = (cache.upgrade(), storage.upgrade()) else { return };
        cache.advance(storage.snapshot().epoch());
    }
}
