//! Memory of running queries, and of rows that wait for COMMIT: one pool for all of them, of which
//! each user and each query gets at most a share.
//!
//! The pool counts what operators register. An operator that can spill gives way when its query
//! or all queries have no more; one that cannot fails its query with an error that names both
//! figures. Within a query those that can spill share evenly what the others leave, and leave a
//! part to these: what was sorted is merged by an operator that cannot spill.

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

/// Those that can spill leave one part in so many of their query's memory to the others.
const LEFT_SHARE: usize = 8;
/// A user's queries leave one part in so many of the pool to others'.
const OTHERS_SHARE: usize = 4;

/// Bytes that all queries hold.
#[derive(Debug)]
pub(crate) struct SharedPool {
    limit: usize,
    query_limit: usize,
    used: AtomicUsize,
    /// What the queries of each user hold, as long as there are any.
    users: Mutex<HashMap<String, Weak<AtomicUsize>>>,
}

impl SharedPool {
    /// A pool of `limit` bytes, of which one query gets at most `query_limit`.
    pub(crate) fn new(limit: usize, query_limit: usize) -> Arc<Self> {
        let query_limit = query_limit.min(limit);
        Arc::new(Self { limit, query_limit, used: AtomicUsize::new(0), users: Mutex::default() })
    }

    /// The pool of one more query of a user's.
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

    /// Bytes that the queries of one user may hold.
    fn user_limit(&self) -> usize {
        (self.limit - self.limit / OTHERS_SHARE).max(self.query_limit)
    }

    /// Bytes that all queries hold.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes that all queries may hold.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that one query may hold.
    pub(crate) fn query_limit(&self) -> usize {
        self.query_limit
    }

    /// Takes `bytes` unless that is too much.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that one query holds.
#[derive(Debug)]
pub(crate) struct QueryPool {
    shared: Arc<SharedPool>,
    /// What all queries of its user hold.
    user: Arc<AtomicUsize>,
    state: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Operators that can spill.
    spilling: usize,
    /// Bytes they hold.
    spillable: usize,
    /// Bytes that the others hold.
    fixed: usize,
}

impl Held {
    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        if consumer.can_spill() { &mut self.spillable } else { &mut self.fixed }
    }
}

impl QueryPool {
    /// Whether an operator may have `additional` bytes more within its query.
    fn has_room(&self, held: &Held, reservation: &MemoryReservation, additional: usize) -> bool {
        let left = self.shared.query_limit.saturating_sub(held.fixed);
        if reservation.consumer().can_spill() {
            let shared = left.saturating_sub(self.shared.query_limit / LEFT_SHARE);
            reservation.size().saturating_add(additional) <= shared / held.spilling.max(1)
        } else {
            additional <= left.saturating_sub(held.spillable)
        }
    }

    /// Takes `bytes` of the user's share and of the pool, unless that is too much.
    fn take(&self, bytes: usize) -> bool {
        let limit = self.shared.user_limit();
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        if self.user.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return false;
        }
        let taken = self.shared.take(bytes);
        if !taken {
            self.user.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn exhausted(&self, additional: usize) -> DataFusionError {
        let (used, limit) = (mib(self.shared.used()), mib(self.shared.limit));
        let (own, most) = (mib(self.reserved()), mib(self.shared.query_limit));
        let users = mib(self.user.load(Ordering::Relaxed));
        let users_most = mib(self.shared.user_limit());
        let wanted = mib(additional);
        DataFusionError::ResourcesExhausted(format!(
            "{MEMORY}: a step wants {wanted} MiB more, the query holds {own} of {most} MiB \
             [query.memory.limit={most}M], those of the user {users} of {users_most} MiB, all \
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
        self.shared.give(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        {
            let mut held = self.state.lock();
            if self.has_room(&held, reservation, additional) && self.take(additional) {
                *held.of(reservation.consumer()) += additional;
                return Ok(());
            }
        }
        Err(self.exhausted(additional))
    }

    fn reserved(&self) -> usize {
        let held = self.state.lock();
        held.spillable + held.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.shared.query_limit)
    }
}

/// Whole mebibytes, rounded up: what is wanted is never shown as 0.
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
    fn a_query_gets_its_share_and_all_queries_the_pool() {
        let shared = SharedPool::new(100 << 20, 60 << 20);
        let (one, two) = (shared.query("a"), shared.query("b"));
        let first = reservation(&one, "join", false);
        let error = first.try_grow(61 << 20).unwrap_err().to_string();
        assert!(error.contains("a step wants 61 MiB more, the query holds 0 of 60 MiB"), "{error}");
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
    fn a_user_leaves_a_part_to_others() {
        let shared = SharedPool::new(160, 80);
        let (one, two) = (shared.query("a"), shared.query("a"));
        let first = reservation(&one, "join", false);
        first.try_grow(80).unwrap();
        let second = reservation(&two, "join", false);
        second.try_grow(40).unwrap();
        assert!(second.try_grow(1).is_err(), "of the same user");
        let other = reservation(&shared.query("b"), "join", false);
        other.try_grow(40).unwrap();
        drop((first, second));
        assert_eq!(one.user.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn those_that_spill_share_what_the_others_leave() {
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
        assert!(two.try_grow(1).is_err(), "it leaves a part to those that cannot spill");
        fixed.try_grow(20).unwrap();
        assert!(fixed.try_grow(1).is_err(), "what they hold is not free");
        two.free();
        fixed.try_grow(100).unwrap();
    }
}
