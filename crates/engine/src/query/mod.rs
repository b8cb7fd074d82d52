//! What is cached of a query from one execution to the next: a ladder of its binding, its plan and
//! the results of that plan.
//!
//! A statement is one text of one user, whose queries differ in the values of parameters alone;
//! sessions share it. All of its rungs are true for the snapshot they were made from. A cached plan
//! pins that snapshot's files, so the first statement that sees a newer snapshot drops everything
//! that is older, of all statements.

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

pub(crate) use plan::{CachedPlan, OtherValues, PlannedQuery, is_as_long_as_said, is_volatile};
pub(crate) use results::{Asked, CachedResult};

use results::CachedBytes;

/// How often what is cached for older snapshots is looked for.
const FORGET_EVERY: Duration = Duration::from_millis(500);

/// How far a query came.
#[derive(Debug, Clone)]
pub(crate) enum CachedQuery {
    Bound(Box<BoundQuery>),
    /// Planned, with the results that are cached.
    Planned(Arc<CachedPlan>),
}

/// A statement's place in the cache.
#[derive(Debug, Default)]
pub(crate) struct QuerySlot {
    cached: Mutex<Option<(u64, CachedQuery)>>,
}

impl QuerySlot {
    /// What is cached for this epoch.
    pub(crate) fn get(&self, epoch: u64) -> Option<CachedQuery> {
        match &*self.cached.lock() {
            Some((cached_for, query)) if *cached_for == epoch => Some(query.clone()),
            _ => None,
        }
    }
}

/// The cache of a database.
#[derive(Debug, Default)]
pub(crate) struct QueryCache {
    /// The newest epoch any statement has seen.
    epoch: AtomicU64,
    /// The places with something in them.
    slots: Mutex<Vec<Weak<QuerySlot>>>,
    results: CachedBytes,
}

impl QueryCache {
    /// An empty cache, whose contents are dropped in time.
    pub(crate) fn start(runtime: &Handle, storage: &Arc<Storage>) -> Arc<Self> {
        let cache = Arc::<Self>::default();
        runtime.spawn(forget_old(Arc::downgrade(&cache), Arc::downgrade(storage)));
        cache
    }

    /// Drops what is cached for older snapshots.
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

    /// Caches it, unless a newer snapshot is about already.
    pub(crate) fn keep(&self, slot: &Arc<QuerySlot>, epoch: u64, query: CachedQuery) {
        let mut slots = self.slots.lock();
        if self.epoch.load(Ordering::Acquire) > epoch {
            return;
        }
        let before = slot.cached.lock().replace((epoch, query));
        // Known already when something was cached for the same epoch.
        if before.is_none_or(|(cached_for, _)| cached_for < epoch) {
            slots.push(Arc::downgrade(slot));
        }
    }
}

/// Drops plans for older snapshots where no statement comes that would: they keep files of what was
/// dropped. Ends with the database.
async fn forget_old(cache: Weak<QueryCache>, storage: Weak<Storage>) {
    let mut times = tokio::time::interval(FORGET_EVERY);
    loop {
        times.tick().await;
        let (Some(cache), Some(storage)) = (cache.upgrade(), storage.upgrade()) else { return };
        cache.advance(storage.snapshot().epoch());
    }
}
