//! Admission control: which statements run concurrently.
//!
//! A statement that reads many rows, or an unknown number of rows, needs a scheduling slot. If no
//! slot is free, the statement waits in a queue whose length and waiting time are limited. A cheap
//! statement needs no slot, so a point query never waits behind expensive queries. While a query
//! waits for its client to read rows, it releases its slot.
//!
//! Users share the slots: the next free slot is granted to the user with the fewest running
//! statements. A user without a running statement gets an extra slot, unless twice the normal
//! number of statements are running.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::runtime::resident::{Level, ResidentGuard};

/// Maximum number of rows that a cheap statement reads. This is one scan batch, which takes less
/// than a millisecond.
pub(crate) const CHEAP_ROWS: usize = 64 * 1024;
/// How often a statement that is waiting for memory checks the memory level.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of running statements, including extra slots, as a multiple of the normal limit.
const MAX_TIMES: usize = 2;

/// Limits for running and waiting statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionLimits {
    /// Maximum number of running statements.
    pub(crate) running: usize,
    /// Maximum number of waiting statements.
    pub(crate) queue: usize,
    /// Maximum time a statement waits.
    pub(crate) wait: Duration,
}

/// A database's scheduling slots.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<State>,
    limits: AdmissionLimits,
    memory: Arc<ResidentGuard>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Number of statements waiting for a slot or for memory.
    waiting: usize,
    /// Users who have a slot or are waiting for one.
    users: HashMap<Arc<str>, User>,
    slots_granted: u64,
}

#[derive(Debug, Default)]
struct User {
    running: usize,
    /// Sequence number of the slot most recently granted to this user.
    last: u64,
    queue: VecDeque<oneshot::Sender<Permit>>,
}

impl State {
    /// Whether a user with `running` running statements may start another statement.
    fn has_free_slot(&self, limit: usize, running: usize) -> bool {
        self.running < limit || (running == 0 && self.running < MAX_TIMES * limit)
    }

    fn forget_idle(&mut self, name: &Arc<str>) {
        let is_idle = |user: &User| user.running == 0 && user.queue.is_empty();
        if self.users.get(name).is_some_and(is_idle) {
            self.users.remove(name);
        }
    }
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits, memory: Arc<ResidentGuard>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), limits, memory })
    }

    /// Waits for a slot. Fails with `Busy` if too many statements are waiting or the wait takes too
    /// long. Fails with `OutOfMemory` if memory remains low for that long.
    pub(crate) async fn admit(self: &Arc<Self>, user: &str) -> EngineResult<Admitted> {
        let user: Arc<str> = user.into();
        let mut requested = None;
        if self.memory.level() == Level::Normal {
            let mut permit = self.request(&user);
            if let Ok(permit) = permit.try_recv() {
                return Ok(Admitted::new(permit));
            }
            requested = Some(permit);
        }
        let _place = self.queue()?;
        let end = Instant::now() + self.limits.wait;
        while self.memory.level() != Level::Normal {
            if Instant::now() >= end {
                return Err(self.memory.refusal());
            }
            sleep(MEMORY_POLL_INTERVAL).await;
        }
        let requested = requested.unwrap_or_else(|| self.request(&user));
        match tokio::time::timeout_at(end, requested).await {
            Ok(Ok(permit)) => Ok(Admitted::new(permit)),
            Ok(Err(_)) => Err(closed()),
            Err(_) => {
                let seconds = self.limits.wait.as_secs_f64();
                Err(self.busy(&format!("this query waited {seconds} s in the queue")))
            }
        }
    }

    /// Requests a slot. The receiver gets a permit as soon as a slot is granted.
    fn request(self: &Arc<Self>, user: &Arc<str>) -> oneshot::Receiver<Permit> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().users.entry(Arc::clone(user)).or_default().queue.push_back(sender);
        self.grant_slots();
        receiver
    }

    /// Grants the free slots. Users with the fewest running statements come first, and among these
    /// the user whose last grant is oldest.
    fn grant_slots(self: &Arc<Self>) {
        while let Some((sender, permit)) = self.next() {
            // If the statement is no longer waiting, this drops the permit and thereby releases the
            // slot.
            drop(sender.send(permit));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Permit>, Permit)> {
        let mut state = self.state.lock();
        let waiting = state.users.iter().filter(|(_, user)| !user.queue.is_empty());
        let (name, running) = waiting
            .min_by_key(|(_, user)| (user.running, user.last))
            .map(|(name, user)| (Arc::clone(name), user.running))?;
        if !state.has_free_slot(self.limits.running, running) {
            return None;
        }
        state.running += 1;
        state.slots_granted += 1;
        let given = state.slots_granted;
        let user = state.users.get_mut(&name)?;
        user.running += 1;
        user.last = given;
        let sender = user.queue.pop_front()?;
        Some((sender, Permit { admission: Arc::clone(self), user: name }))
    }

    /// Number of waiting statements.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    fn queue(&self) -> EngineResult<QueuePosition<'_>> {
        let mut state = self.state.lock();
        let waiting = state.waiting;
        if waiting >= self.limits.queue {
            return Err(self.busy(&format!("{waiting} are already waiting")));
        }
        state.waiting += 1;
        Ok(QueuePosition(self))
    }

    fn busy(&self, why: &str) -> EngineError {
        let message =
            format!("too many queries: at most {} run at once; {why}", self.limits.running);
        EngineError::new(ErrorCode::Busy, message)
            .with_hint("retry later; see query.concurrency, query.queue.limit and query.queue.wait")
    }
}

fn closed() -> EngineError {
    EngineError::new(ErrorCode::Closed, "the database is closed")
}

/// A waiting statement's position in the queue.
struct QueuePosition<'a>(&'a Admission);

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

/// A user's slot, released when dropped.
#[derive(Debug)]
struct Permit {
    admission: Arc<Admission>,
    user: Arc<str>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        {
            let mut state = self.admission.state.lock();
            state.running -= 1;
            if let Some(user) = state.users.get_mut(&self.user) {
                user.running -= 1;
                // Does not count statements that have stopped waiting.
                user.queue.retain(|sender| !sender.is_closed());
            }
            state.forget_idle(&self.user);
        }
        self.admission.grant_slots();
    }
}

/// A statement's admission. Dropping it releases the scheduling slot.
#[derive(Debug, Default)]
pub(crate) struct Admitted {
    permit: Option<Permit>,
    /// The admission control that granted the slot, and its user; `None` for statements that need
    /// no slot.
    of: Option<(Arc<Admission>, Arc<str>)>,
}

impl Admitted {
    fn new(permit: Permit) -> Self {
        let of = Some((Arc::clone(&permit.admission), Arc::clone(&permit.user)));
        Self { permit: Some(permit), of }
    }

    /// Returns the admission of a cheap statement, which needs no slot.
    pub(crate) fn free() -> Self {
        Self::default()
    }

    /// Releases the slot while the statement waits for its client to read rows.
    pub(crate) fn pause(&mut self) {
        self.permit = None;
    }

    /// Reacquires a slot. The wait has no time limit, because the statement already holds its other
    /// resources.
    pub(crate) async fn resume(&mut self) -> EngineResult<()> {
        if let Some((admission, user)) = &self.of
            && self.permit.is_none()
        {
            self.permit = Some(admission.request(user).await.map_err(|_| closed())?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(running: usize, queue: usize, wait_ms: u64) -> Arc<Admission> {
        let wait = Duration::from_millis(wait_ms);
        let memory = ResidentGuard::new(u64::MAX);
        Admission::new(AdmissionLimits { running, queue, wait }, memory)
    }

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    #[test]
    fn statements_over_the_limit_wait_and_are_rejected_after_a_timeout() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let turn = admission.admit("a").await.unwrap();
            let error = admission.admit("a").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Busy);
            assert_eq!(
                error.message,
                "too many queries: at most 1 run at once; this query waited 0.03 s in the queue"
            );
            assert!(error.retryable);
            assert_eq!(admission.waiting(), 0);
            drop(turn);
            admission.admit("a").await.unwrap();
        });
    }

    #[test]
    fn a_full_queue_rejects_immediately() {
        block_on(async {
            let admission = admission(1, 0, 60_000);
            let _turn = admission.admit("a").await.unwrap();
            let error = admission.admit("a").await.unwrap_err();
            assert_eq!(
                error.message,
                "too many queries: at most 1 run at once; 0 are already waiting"
            );
        });
    }

    #[test]
    fn other_statements_can_use_the_slot_of_a_paused_statement() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let mut first = admission.admit("a").await.unwrap();
            first.pause();
            let second = admission.admit("a").await.unwrap();
            assert!(tokio::time::timeout(MEMORY_POLL_INTERVAL, first.resume()).await.is_err());
            drop(second);
            first.resume().await.unwrap();
            assert!(admission.admit("a").await.is_err());
            let mut free = Admitted::free();
            free.pause();
            free.resume().await.unwrap();
        });
    }

    #[test]
    fn a_user_without_running_statements_gets_an_extra_slot() {
        block_on(async {
            let admission = admission(2, 8, 30);
            let _many =
                [admission.admit("many").await.unwrap(), admission.admit("many").await.unwrap()];
            assert!(admission.admit("many").await.is_err());
            let one = admission.admit("one").await.unwrap();
            assert!(admission.admit("one").await.is_err(), "each user gets only one extra slot");
            let _other = admission.admit("other").await.unwrap();
            assert!(admission.admit("third").await.is_err(), "twice the normal number run");
            drop(one);
            assert!(admission.admit("many").await.is_err());
            admission.admit("third").await.unwrap();
        });
    }

    #[test]
    fn freed_slots_go_to_waiting_users_and_no_user_entries_remain() {
        block_on(async {
            let admission = admission(1, 8, 60_000);
            let (many, own) = (admission.admit("many").await, admission.admit("own").await);
            let (first, second) =
                (admission.request(&"many".into()), admission.request(&"one".into()));
            drop((many, own));
            let (mut first, mut second) = (first, second);
            assert!(second.try_recv().is_ok() && first.try_recv().is_ok());
            let state = admission.state.lock();
            assert!(state.users.is_empty(), "no user entry remains");
        });
    }
}
