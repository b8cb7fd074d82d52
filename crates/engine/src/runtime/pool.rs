//! Memory of running queries and of rows waiting for COMMIT: one shared pool, with limits per user
//! and per query.
//!
//! The pool counts the memory that operators register. An operator that can spill does so when its
//! query or all queries together have reached their limit. An operator that cannot spill fails its
//! query with an error that reports the usage and the limits. Within a query, the spilling
//! operators evenly share the memory that the other operators leave free. They leave a reserve for
//! the operator that merges their sorted runs, because that operator cannot spill.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::Mutex;
use tidemark_operators::MEMORY;

/// A query's memory limit divided by this number is the reserve that spilling operators leave for
/// the other operators.
const FREE_MEMORY_DIVISOR: usize = 8;
/// The pool's size divided by this number is the memory that one user's queries leave for other
/// users.
const OTHER_USERS_DIVISOR: usize = 4;

/// The memory pool for all queries.
#[derive(Debug)]
pub(crate) struct SharedPool {
    limit: usize,
    query_limit: usize,
    used: AtomicUsize,
    /// Memory use of each user with queries, in bytes.
    users: Mutex<HashMap<String, Weak<AtomicUsize>>>,
}

impl SharedPool {
    /// Creates a pool of `limit` bytes with at most `query_limit` per query.
    pub(crate) fn new(limit: usize, query_limit: usize) -> Arc<Self> {
        let query_limit = query_limit.min(limit);
        Arc::new(Self { limit, query_limit, used: AtomicUsize::new(0), users: Mutex::default() })
    }

    /// Returns a pool for a user's new query.
    pub(crate) fn query(self: &Arc<Self>, user: &str) -> Arc<QueryPool> {
        let mut users = self.users.lock();
        let user = users.get(user).and_then(Weak::upgrade).unwrap_or_else(|| {
            users.retain(|_, used| used.strong_count() > 0);
            let used = Arc::default();
            users.insert(user.to_owned(), Arc::downgrade(&used));
            used
        });
        Arc::new(QueryPool { shared: Arc::clone(self), user, state: Mutex::default() })
    }

    /// Maximum memory for all of one user's queries, in bytes.
    fn user_limit(&self) -> usize {
        (self.limit - self.limit / OTHER_USERS_DIVISOR).max(self.query_limit)
    }

    /// Bytes used by all queries.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Maximum memory in bytes for all queries.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Maximum memory in bytes for one query.
    pub(crate) fn query_limit(&self) -> usize {
        self.query_limit
    }

    /// Reserves `bytes`; returns false if the limit would be exceeded.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Releases reserved bytes.
    pub(crate) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The memory pool of one query.
#[derive(Debug)]
pub(crate) struct QueryPool {
    shared: Arc<SharedPool>,
    /// Bytes used by all queries of the same user.
    user: Arc<AtomicUsize>,
    state: Mutex<Usage>,
}

#[derive(Debug, Default)]
struct Usage {
    /// Number of operators that can spill.
    spilling: usize,
    /// Bytes used by operators that can spill.
    spillable: usize,
    /// Bytes used by operators that cannot spill.
    fixed: usize,
}

impl Usage {
    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if consumer.can_spill() { &mut self.spillable } else { &mut self.fixed }
    }
}

impl QueryPool {
    /// Whether the query's limit allows an operator to reserve `additional` more bytes.
    fn is_within_limit(
        &self,
        usage: &Usage,
        reservation: &MemoryReservation,
        additional: usize,
    ) -> bool {
        let left = self.shared.query_limit.saturating_sub(usage.fixed);
        if reservation.consumer().can_spill() {
            let shared = left.saturating_sub(self.shared.query_limit / FREE_MEMORY_DIVISOR);
            reservation.size().saturating_add(additional) <= shared / usage.spilling.max(1)
        } else {
            additional <= left.saturating_sub(usage.spillable)
        }
    }

    /// Reserves `bytes` within the user's and the pool's limits; returns false if either limit
    /// would be exceeded.
    fn take(&self, bytes: usize) -> bool {
        let limit = self.shared.user_limit();
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        if self.user.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return false;
        }
        let reserved = self.shared.take(bytes);
        if !reserved {
            self.user.fetch_sub(bytes, Ordering::Relaxed);
        }
        reserved
    }

    fn exhausted(&self, additional: usize) -> DataFusionError {
        let (used, limit) = (mib(self.shared.used()), mib(self.shared.limit));
        let (own, max) = (mib(self.reserved()), mib(self.shared.query_limit));
        let users = mib(self.user.load(Ordering::Relaxed));
        let users_most = mib(self.shared.user_limit());
        let required = mib(additional);
        DataFusionError::ResourcesExhausted(format!(
            "{MEMORY}: {required} MiB more were requested; the query is using {own} of {max} MiB \
             [query.memory.limit={max}M], its user {users} of {users_most} MiB, all \
             queries {used} of {limit} MiB"
        ))
    }
}

impl fmt::Display for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query ({} of {} MiB)", mib(self.reserved()), mib(self.shared.query_limit))
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &'static str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.state.lock().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.state.lock().spilling -= usize::from(consumer.can_spill());
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.state.lock().of(reservation.consumer()) += additional;
        self.user.fetch_add(additional, Ordering::Relaxed);
        self.shared.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        *self.state.lock().of(reservation.consumer()) -= shrink;
        self.user.fetch_sub(shrink, Ordering::Relaxed);
        self.shared.release(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        {
            let mut usage = self.state.lock();
            if self.is_within_limit(&usage, reservation, additional) && self.take(additional) {
                *usage.of(reservation.consumer()) += additional;
                return Ok(());
            }
        }
        Err(self.exhausted(additional))
    }

    fn reserved(&self) -> usize {
        let usage = self.state.lock();
        usage.spillable + usage.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.shared.query_limit)
    }
}

/// Converts bytes to MiB, rounding up so that no request is shown as 0.
fn mib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(pool: &Arc<QueryPool>, name: &str, spills: bool) -> MemoryReservation {
        let pool: Arc<dyn MemoryPool> = Arc::clone(pool) as _;
        MemoryConsumer::new(name).with_can_spill(spills).register(&pool)
    }

    #[test]
    fn query_and_pool_limits_are_enforced() {
        let shared = SharedPool::new(100 << 20, 60 << 20);
        let (one, two) = (shared.query("a"), shared.query("b"));
        let first = reservation(&one, "join", false);
        let error = first.try_grow(61 << 20).unwrap_err().to_string();
        assert!(
            error.contains("61 MiB more were requested; the query is using 0 of 60 MiB"),
            "{error}"
        );
        first.try_grow(60 << 20).unwrap();
        let second = reservation(&two, "join", false);
        let error = second.try_grow(41 << 20).unwrap_err().to_string();
        assert!(error.contains("all queries 60 of 100 MiB"), "{error}");
        second.try_grow(40 << 20).unwrap();
        assert_eq!(shared.used(), 100 << 20);
        drop(first);
        second.try_grow(20 << 20).unwrap();
        drop(second);
        assert_eq!(shared.used(), 0);
    }

    #[test]
    fn one_user_cannot_use_the_entire_pool() {
        let shared = SharedPool::new(160, 80);
        let (one, two) = (shared.query("a"), shared.query("a"));
        let first = reservation(&one, "join", false);
        first.try_grow(80).unwrap();
        let second = reservation(&two, "join", false);
        second.try_grow(40).unwrap();
        assert!(second.try_grow(1).is_err(), "the user's limit is reached");
        let other = reservation(&shared.query("b"), "join", false);
        other.try_grow(40).unwrap();
        drop((first, second));
        assert_eq!(one.user.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn spilling_operators_share_the_remaining_memory() {
        let shared = SharedPool::new(160, 160);
        let query = shared.query("a");
        let fixed = reservation(&query, "build", false);
        fixed.try_grow(40).unwrap();
        let (one, two) = (reservation(&query, "sort", true), reservation(&query, "sort", true));
        one.try_grow(50).unwrap();
        assert!(one.try_grow(1).is_err());
        two.try_grow(50).unwrap();
        drop(one);
        two.try_grow(50).unwrap();
        assert!(two.try_grow(1).is_err(), "a reserve remains for operators that cannot spill");
        fixed.try_grow(20).unwrap();
        assert!(fixed.try_grow(1).is_err(), "memory of spilling operators is not free");
        two.free();
        fixed.try_grow(100).unwrap();
    }
}
