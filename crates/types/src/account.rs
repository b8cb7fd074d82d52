//! Tracks a query's memory and decides whether the query may continue. Code checks this wherever
//! memory grows or time passes.
//!
//! The allocator counts bytes per thread. Code that works for a query enters the query's account on
//! its thread; until it leaves, all allocations and frees are charged to the query. No registration
//! is needed, so none can be forgotten. Code only checks before large allocations
//! ([`check_allocation`]) and periodically while it works ([`check`]).
//!
//! Memory that one query allocates and another query frees shifts both accounts. A query is
//! therefore never reported to use more than all queries together.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::{EngineError, EngineResult, ErrorCode};

/// Number of bytes that a thread counts locally before updating the global count.
const REPORT_BYTES: i64 = 64 << 10;
/// Number of bytes that a query may always use. This is enough for a small query while large
/// queries use all other memory.
const FREE_BYTES: i64 = 4 << 20;
/// A query may exceed its limit by a margin: the limit divided by this number, or `MIN_MARGIN` if
/// that is more. The margin covers batches in flight that no operator registers.
const MARGIN_DIVISOR: usize = 4;
const MIN_MARGIN: usize = 32 << 20;
/// If a query's peak exceeded the process limit divided by this number, threads release their freed
/// memory when the query ends. The allocator caches freed memory per thread.
const LARGE_PEAK_DIVISOR: i64 = 16;
/// Percentage of the process limit up to which queries can allocate memory.
const QUERIES_PERCENT: i64 = 90;
/// How long a task works before it yields.
const SLICE: Duration = Duration::from_millis(5);

/// Number of bytes that all threads use, as last reported by each thread.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// Maximum number of bytes that all threads may use: the process limit minus the process's other
/// memory.
static CEILING: AtomicI64 = AtomicI64::new(i64::MAX);
/// The process's memory limit, in bytes.
static PROCESS_LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);
/// How many times threads have been requested to release freed memory.
static RELEASE_REQUESTS: AtomicU64 = AtomicU64::new(0);

struct Counter {
    /// Number of allocated bytes minus number of freed bytes.
    net: Cell<i64>,
    /// The part of `net` that is already counted in [`LIVE`].
    reported: Cell<i64>,
}

thread_local! {
    // The counter has no destructor, so the allocator can use it at any time.
    static COUNTER: Counter = const { Counter { net: Cell::new(0), reported: Cell::new(0) } };
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
    /// The last request counted in [`RELEASE_REQUESTS`] that this thread has complied with.
    static LAST_RELEASE: Cell<u64> = const { Cell::new(0) };
}

/// Records that this thread allocated `bytes`, or freed them if negative. Called by the allocator,
/// so it must not allocate.
pub fn note_allocation(bytes: i64) {
    COUNTER.with(|counter| {
        let net = counter.net.get().wrapping_add(bytes);
        counter.net.set(net);
        let unreported = net.wrapping_sub(counter.reported.get());
        if unreported.abs() > REPORT_BYTES {
            LIVE.fetch_add(unreported, Ordering::Relaxed);
            counter.reported.set(net);
        }
    });
}

fn net() -> i64 {
    COUNTER.with(|counter| counter.net.get())
}

/// Sets the process's memory limit and its resident size, excluding mapped files. From then on,
/// queries cannot use more than the difference.
pub fn set_process_limit(limit: u64, resident: u64) {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let (limit, resident) = (signed(limit), signed(resident));
    PROCESS_LIMIT.store(limit, Ordering::Relaxed);
    let left = queries_limit(limit).saturating_sub(resident);
    CEILING.store(LIVE.load(Ordering::Relaxed).saturating_add(left), Ordering::Relaxed);
}

/// Returns the memory limit for all queries together. The rest of the process limit is reserved for
/// memory that is not charged to queries: SQL text, results in flight, writes.
fn queries_limit(limit: i64) -> i64 {
    limit / 100 * QUERIES_PERCENT
}

/// Returns the error that ends a query, if the query must stop.
type Stop = Box<dyn Fn() -> Option<EngineError> + Send + Sync>;

/// A single query's account.
pub struct Account {
    used: AtomicI64,
    /// Highest number of bytes that any check has observed.
    peak: AtomicI64,
    limit: i64,
    /// The configured limit.
    limit_bytes: usize,
    /// The first error returned by a check, which ends the query.
    refused: OnceLock<EngineError>,
    stop: Stop,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Account({} of {} bytes)", self.used_bytes(), self.limit_bytes)
    }
}

impl Account {
    /// Creates an account of `query.memory.limit` bytes. `stop` returns the error that ends the
    /// query, if the query must stop.
    pub fn new(
        limit_bytes: usize,
        stop: impl Fn() -> Option<EngineError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let margin = (limit_bytes / MARGIN_DIVISOR).max(MIN_MARGIN);
        Arc::new(Self {
            used: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            limit: i64::try_from(limit_bytes.saturating_add(margin)).unwrap_or(i64::MAX),
            limit_bytes,
            refused: OnceLock::new(),
            stop: Box::new(stop),
        })
    }

    /// Returns the number of bytes that the query uses.
    pub fn used_bytes(&self) -> usize {
        let used = self.used.load(Ordering::Relaxed).min(LIVE.load(Ordering::Relaxed));
        usize::try_from(used).unwrap_or(0)
    }

    /// Removes a result's `bytes` from the account, because the result's reader accounts for them
    /// from now on.
    pub fn hand_over(&self, bytes: usize) {
        self.used.fetch_sub(i64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
    }

    /// Charges this thread's work to the account until the guard is dropped.
    pub fn enter(self: &Arc<Self>) -> Entered {
        let own = Current { account: Arc::clone(self), mark: net(), since: Instant::now() };
        let before = CURRENT.with_borrow_mut(|current| {
            if let Some(current) = current {
                current.settle();
            }
            current.replace(own)
        });
        Entered { before, on_this_thread: PhantomData }
    }

    fn refuse(&self, error: EngineError) -> EngineError {
        self.refused.get_or_init(|| error).clone()
    }

    /// Fails if `bytes` more bytes would exceed a limit.
    fn check_limits(&self, bytes: usize) -> EngineResult<()> {
        if let Some(error) = self.refused.get() {
            return Err(error.clone());
        }
        if let Some(error) = (self.stop)() {
            return Err(self.refuse(error));
        }
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let live = LIVE.load(Ordering::Relaxed);
        let required = self.used.load(Ordering::Relaxed).min(live).saturating_add(more);
        if required > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(required, Ordering::Relaxed);
        }
        if required > self.limit {
            return Err(self.refuse(self.too_much(bytes)));
        }
        let is_low = live.saturating_add(more) > CEILING.load(Ordering::Relaxed);
        if is_low && required > FREE_BYTES {
            return Err(self.refuse(Self::nothing_left(required > live / 2)));
        }
        Ok(())
    }

    fn too_much(&self, bytes: usize) -> EngineError {
        let (used, limit) = (mib(self.used_bytes()), mib(self.limit_bytes));
        let wants = match bytes {
            0 => "no memory is left;".to_owned(),
            bytes => format!("{} MiB more were requested;", mib(bytes)),
        };
        let message = format!(
            "out of memory for queries: {wants} the query is using {used} of {limit} MiB \
             [query.memory.limit={limit}M]"
        );
        EngineError::new(ErrorCode::OutOfMemory, message)
            .with_hint("raise query.memory.limit, or make the query read fewer or shorter values")
    }

    fn nothing_left(is_largest: bool) -> EngineError {
        let limit = PROCESS_LIMIT.load(Ordering::Relaxed);
        let ceiling = CEILING.load(Ordering::Relaxed);
        let left = ceiling.saturating_sub(LIVE.load(Ordering::Relaxed));
        let resident = queries_limit(limit).saturating_sub(left);
        let (resident, limit) = (resident.max(0) >> 20, limit >> 20);
        let why = if is_largest { "stopped as the largest query" } else { "memory is low" };
        EngineError::new(
            ErrorCode::OutOfMemory,
            format!("{why}: the server is using {resident} of {limit} MiB"),
        )
        .with_hint("make the query read fewer rows or groups, or retry later; see memory.limit")
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if *self.peak.get_mut() > PROCESS_LIMIT.load(Ordering::Relaxed) / LARGE_PEAK_DIVISOR {
            request_release();
        }
    }
}

/// Returns how many times threads have been requested to release the freed memory that they cache.
pub fn release_requests() -> u64 {
    RELEASE_REQUESTS.load(Ordering::Relaxed)
}

/// Requests that every thread return its cached freed memory to the system.
pub fn request_release() {
    RELEASE_REQUESTS.fetch_add(1, Ordering::Relaxed);
}

/// Whether threads have been requested to release memory since this thread last released memory.
pub fn must_release() -> bool {
    let requests = release_requests();
    LAST_RELEASE.replace(requests) != requests
}

/// Returns the number of bytes that all threads use.
pub fn live_bytes() -> u64 {
    u64::try_from(LIVE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Converts to mebibytes, rounded up.
fn mib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

struct Current {
    account: Arc<Account>,
    /// The thread's net allocated bytes when they were last charged to the account.
    mark: i64,
    since: Instant,
}

impl Current {
    fn settle(&mut self) {
        let now = net();
        self.account.used.fetch_add(now.wrapping_sub(self.mark), Ordering::Relaxed);
        self.mark = now;
    }
}

/// A guard. As long as it exists, the thread works for an account.
#[must_use]
pub struct Entered {
    before: Option<Current>,
    /// The guard belongs to the thread that entered.
    on_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let ended = CURRENT.try_with(|current| {
            let ended = current.replace(self.before.take());
            if let Some(before) = current.borrow_mut().as_mut() {
                before.mark = net();
            }
            ended
        });
        if let Ok(Some(mut ended)) = ended {
            ended.settle();
        }
    }
}

/// Fails if this thread's query must stop: it was cancelled, has exceeded its deadline, or uses too
/// much memory.
pub fn check() -> EngineResult<()> {
    check_allocation(0)
}

/// Like [`check`], but called before `bytes` are allocated. Also fails if these bytes would exceed
/// a limit.
pub fn check_allocation(bytes: usize) -> EngineResult<()> {
    let requests = CURRENT.try_with(|current| {
        let mut current = current.borrow_mut();
        let Some(own) = current.as_mut() else { return Ok(()) };
        own.settle();
        own.account.check_limits(bytes)
    });
    requests.unwrap_or(Ok(()))
}

/// Whether this thread's current task has used up its time slice.
pub fn is_slice_over() -> bool {
    let over = |own: &Current| own.since.elapsed() >= SLICE;
    CURRENT.try_with(|current| current.borrow().as_ref().is_some_and(over)).unwrap_or(false)
}

/// Starts a new slice. A thread that waits for other work within its task calls this at each poll.
/// Otherwise, the task's slice would count as used up during the whole wait.
pub fn begin_slice() {
    let begin = |own: &mut Current| own.since = Instant::now();
    let _ = CURRENT.try_with(|current| current.borrow_mut().as_mut().map(begin));
}

/// Returns the time at which the current slice of this thread's task started. If two calls return
/// the same value, the task ran without interruption in between.
pub fn slice_start() -> Option<Instant> {
    CURRENT.try_with(|current| current.borrow().as_ref().map(|own| own.since)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread's counts are not visible to other threads, and the global counts include every
    /// thread.
    #[test]
    fn allocations_of_a_thread_are_charged_to_its_account() {
        let account = Account::new(1 << 20, || None);
        {
            let _entered = account.enter();
            note_allocation(20 << 20);
            assert!(check_allocation(1 << 20).is_ok(), "within the margin");
            note_allocation(14 << 20);
            let error = check().unwrap_err();
            assert!(error.message.contains("[query.memory.limit=1M]"), "{error}");
            note_allocation(-(34 << 20));
            assert!(check().is_err(), "a query that exceeded its limit must stop");
        }
        assert!(check().is_ok(), "without a query there is no limit");
        assert_eq!(account.used_bytes(), 0);
    }

    #[test]
    fn allocations_in_an_inner_scope_are_charged_to_the_inner_account() {
        let (outer, inner) = (Account::new(1 << 30, || None), Account::new(1 << 30, || None));
        let entered = outer.enter();
        note_allocation(5 << 20);
        {
            let _entered = inner.enter();
            note_allocation(7 << 20);
        }
        note_allocation(1 << 20);
        drop(entered);
        assert_eq!(outer.used.load(Ordering::Relaxed), 6 << 20);
        assert_eq!(inner.used.load(Ordering::Relaxed), 7 << 20);
        inner.hand_over(7 << 20);
        assert_eq!(inner.used_bytes(), 0);
        note_allocation(-(13 << 20));
    }

    #[test]
    fn the_memory_check_reports_a_timeout_after_the_deadline() {
        let late = || Some(EngineError::new(ErrorCode::Timeout, "late"));
        let account = Account::new(1 << 20, late);
        let _entered = account.enter();
        assert_eq!(check().unwrap_err().code, ErrorCode::Timeout);
    }
}
