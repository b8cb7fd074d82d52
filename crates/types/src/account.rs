//! What a query holds in memory, and whether it may go on: asked wherever memory grows or time
//! passes.
//!
//! The allocator counts bytes by thread. Code that runs a query's work on a thread enters the
//! query's account there, and what the thread takes and gives back meanwhile is the query's.
//! Nothing has to be registered, so nothing can be forgotten; what is left to each piece of work is
//! to ask before it takes much ([`room`]) and now and then while it works ([`check`]).
//!
//! Memory that one query takes and another gives back shifts both accounts. A query is therefore
//! never said to hold more than all of them do.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::{EngineError, EngineResult, ErrorCode};

/// Bytes a thread counts by itself before all threads hear of them.
const REPORT_BYTES: i64 = 64 << 10;
/// Bytes a query may always hold: so much a small one needs while large ones hold all the rest.
const FREE_BYTES: i64 = 4 << 20;
/// Beyond its limit a query may hold one part in so many, and at least so much: batches under way,
/// which no operator registers.
const MARGIN_SHARE: usize = 4;
const MIN_MARGIN: usize = 32 << 20;
/// A query that held one part in so many of what the process may have leaves much behind: the
/// allocator keeps for each thread what was freed there.
const LARGE_SHARE: i64 = 16;
/// Percent of what the process may have, beyond which queries get nothing more.
const QUERIES_PERCENT: i64 = 90;
/// How long a task works before it lets others work.
const SLICE: Duration = Duration::from_millis(5);

/// Bytes that all threads hold, as far as they reported.
static LIVE: AtomicI64 = AtomicI64::new(0);
/// Bytes that all threads may hold: what the process may have, less what others in it have.
static CEILING: AtomicI64 = AtomicI64::new(i64::MAX);
/// Bytes the process may have.
static PROCESS_LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);
/// How often threads were asked to give back what they freed.
static ASKED: AtomicU64 = AtomicU64::new(0);

struct Counter {
    /// Bytes taken less bytes given back.
    net: Cell<i64>,
    /// The part of it that [`LIVE`] has.
    reported: Cell<i64>,
}

thread_local! {
    // Nothing in it has to be dropped, so that the allocator finds it at any time.
    static COUNTER: Counter = const { Counter { net: Cell::new(0), reported: Cell::new(0) } };
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
    /// The last of the requests that [`ASKED`] counts which this thread has followed.
    static GIVEN_BACK: Cell<u64> = const { Cell::new(0) };
}

/// Notes that this thread took so many bytes; less than none when it gave them back. For the
/// allocator: it takes no memory.
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

/// Says what the process may have and has, mapped files left out. From now on no query takes more
/// than is left.
pub fn set_process_limit(limit: u64, resident: u64) {
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let (limit, resident) = (signed(limit), signed(resident));
    PROCESS_LIMIT.store(limit, Ordering::Relaxed);
    let left = queries_limit(limit).saturating_sub(resident);
    CEILING.store(LIVE.load(Ordering::Relaxed).saturating_add(left), Ordering::Relaxed);
}

/// Where queries stop to grow. A part of what the process may have is left to what no query is
/// asked for: texts of statements, results on their way, writes.
fn queries_limit(limit: i64) -> i64 {
    limit / 100 * QUERIES_PERCENT
}

/// Tells why a query has to stop, when it has to.
type Stop = Box<dyn Fn() -> Option<EngineError> + Send + Sync>;

/// The account of one query.
pub struct Account {
    held: AtomicI64,
    /// The most it held when it was asked.
    peak: AtomicI64,
    limit: i64,
    /// The limit as it is set.
    limit_bytes: usize,
    /// The first refusal, which ends the query.
    refused: OnceLock<EngineError>,
    stop: Stop,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Account({} of {} bytes)", self.held(), self.limit_bytes)
    }
}

impl Account {
    /// An account of `query.memory.limit` bytes; `stop` says why the query has to end, when it has
    /// to.
    pub fn new(
        limit_bytes: usize,
        stop: impl Fn() -> Option<EngineError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let margin = (limit_bytes / MARGIN_SHARE).max(MIN_MARGIN);
        Arc::new(Self {
            held: AtomicI64::new(0),
            peak: AtomicI64::new(0),
            limit: i64::try_from(limit_bytes.saturating_add(margin)).unwrap_or(i64::MAX),
            limit_bytes,
            refused: OnceLock::new(),
            stop: Box::new(stop),
        })
    }

    /// Bytes that the query holds.
    pub fn held(&self) -> usize {
        let held = self.held.load(Ordering::Relaxed).min(LIVE.load(Ordering::Relaxed));
        usize::try_from(held).unwrap_or(0)
    }

    /// Says that so many bytes are others' from now on: those of an answer.
    pub fn hand_over(&self, bytes: usize) {
        self.held.fetch_sub(i64::try_from(bytes).unwrap_or(0), Ordering::Relaxed);
    }

    /// Makes this the account of what the thread does until the guard is dropped.
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

    /// Whether `bytes` more are too many.
    fn ask(&self, bytes: usize) -> EngineResult<()> {
        if let Some(error) = self.refused.get() {
            return Err(error.clone());
        }
        if let Some(error) = (self.stop)() {
            return Err(self.refuse(error));
        }
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let live = LIVE.load(Ordering::Relaxed);
        let wanted = self.held.load(Ordering::Relaxed).min(live).saturating_add(more);
        if wanted > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(wanted, Ordering::Relaxed);
        }
        if wanted > self.limit {
            return Err(self.refuse(self.too_much(bytes)));
        }
        let is_low = live.saturating_add(more) > CEILING.load(Ordering::Relaxed);
        if is_low && wanted > FREE_BYTES {
            return Err(self.refuse(Self::nothing_left(wanted > live / 2)));
        }
        Ok(())
    }

    fn too_much(&self, bytes: usize) -> EngineError {
        let (held, limit) = (mib(self.held()), mib(self.limit_bytes));
        let wants = match bytes {
            0 => "nothing more is left,".to_owned(),
            bytes => format!("it wants {} MiB more,", mib(bytes)),
        };
        let message = format!(
            "out of memory for queries: {wants} the query holds {held} of {limit} MiB \
             [query.memory.limit={limit}M]"
        );
        EngineError::new(ErrorCode::OutOfMemory, message)
            .with_hint("raise query.memory.limit, or let the query touch fewer or shorter values")
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
            format!("{why}: the server holds {resident} of {limit} MiB"),
        )
        .with_hint("let the query touch fewer rows or groups, or retry later; see memory.limit")
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if *self.peak.get_mut() > PROCESS_LIMIT.load(Ordering::Relaxed) / LARGE_SHARE {
            ask_to_give_back();
        }
    }
}

/// How often threads were asked to give back what they freed and keep.
pub fn times_asked() -> u64 {
    ASKED.load(Ordering::Relaxed)
}

/// Asks every thread to give the system back what it freed and keeps.
pub fn ask_to_give_back() {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// Whether this thread was asked to give back since it last did.
pub fn has_to_give_back() -> bool {
    let asked = times_asked();
    GIVEN_BACK.replace(asked) != asked
}

/// Bytes that all threads hold.
pub fn live_bytes() -> u64 {
    u64::try_from(LIVE.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Whole mebibytes, rounded up.
fn mib(bytes: usize) -> usize {
    bytes.div_ceil(1 << 20)
}

struct Current {
    account: Arc<Account>,
    /// What the thread had taken when the account was last settled.
    mark: i64,
    since: Instant,
}

impl Current {
    fn settle(&mut self) {
        let now = net();
        self.account.held.fetch_add(now.wrapping_sub(self.mark), Ordering::Relaxed);
        self.mark = now;
    }
}

/// As long as it lives, the thread works for an account.
#[must_use]
pub struct Entered {
    before: Option<Current>,
    /// It belongs to the thread that entered.
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

/// Fails when the query this thread works for has to stop: it was cancelled, is late, or holds
/// too much.
pub fn check() -> EngineResult<()> {
    room(0)
}

/// The same before so many bytes are taken, which must not be too many.
pub fn room(bytes: usize) -> EngineResult<()> {
    let asked = CURRENT.try_with(|current| {
        let mut current = current.borrow_mut();
        let Some(own) = current.as_mut() else { return Ok(()) };
        own.settle();
        own.account.ask(bytes)
    });
    asked.unwrap_or(Ok(()))
}

/// Whether the task that this thread works at has worked long enough for now.
pub fn is_slice_over() -> bool {
    let over = |own: &Current| own.since.elapsed() >= SLICE;
    CURRENT.try_with(|current| current.borrow().as_ref().is_some_and(over)).unwrap_or(false)
}

/// Begins a slice: for a thread that waits for other work within its task, at each look at it. The
/// task's first slice would be over for as long as the thread waits.
pub fn begin_slice() {
    let begin = |own: &mut Current| own.since = Instant::now();
    let _ = CURRENT.try_with(|current| current.borrow_mut().as_mut().map(begin));
}

/// When the task that this thread works at began to: what has the same answer happened in one go.
pub fn slice_start() -> Option<Instant> {
    CURRENT.try_with(|current| current.borrow().as_ref().map(|own| own.since)).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What one thread does is not seen by another, and the global counts are every thread's.
    #[test]
    fn an_account_has_what_its_threads_take() {
        let account = Account::new(1 << 20, || None);
        {
            let _entered = account.enter();
            note_allocation(20 << 20);
            assert!(room(1 << 20).is_ok(), "within the margin");
            note_allocation(14 << 20);
            let error = check().unwrap_err();
            assert!(error.message.contains("[query.memory.limit=1M]"), "{error}");
            note_allocation(-(34 << 20));
            assert!(check().is_err(), "the first refusal ends the query");
        }
        assert!(check().is_ok(), "no query, no limit");
        assert_eq!(account.held(), 0);
    }

    #[test]
    fn an_inner_account_takes_what_happens_inside() {
        let (outer, inner) = (Account::new(1 << 30, || None), Account::new(1 << 30, || None));
        let entered = outer.enter();
        note_allocation(5 << 20);
        {
            let _entered = inner.enter();
            note_allocation(7 << 20);
        }
        note_allocation(1 << 20);
        drop(entered);
        assert_eq!(outer.held.load(Ordering::Relaxed), 6 << 20);
        assert_eq!(inner.held.load(Ordering::Relaxed), 7 << 20);
        inner.hand_over(7 << 20);
        assert_eq!(inner.held(), 0);
        note_allocation(-(13 << 20));
    }

    #[test]
    fn a_query_that_has_to_stop_is_notified() {
        let late = || Some(EngineError::new(ErrorCode::Timeout, "late"));
        let account = Account::new(1 << 20, late);
        let _entered = account.enter();
        assert_eq!(check().unwrap_err().code, ErrorCode::Timeout);
    }
}
