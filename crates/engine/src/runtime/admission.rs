//! Which statements run at once.
//!
//! A statement that reads many rows, or an unknown number of rows, takes a turn; others wait for
//! one in a queue of bounded length and time. A statement known to be cheap takes none, so that a
//! point query never waits behind heavy ones. A query whose reader does not read gives its turn to
//! others meanwhile.
//!
//! Users share the turns: the next one goes to the user with the fewest running statements, and a
//! user without one has a turn beside the common ones, as long as no more than twice as many run.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult, ErrorCode};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use crate::runtime::resident::{Level, ResidentGuard};

/// Rows up to which a statement is cheap: one batch of a scan, less than a millisecond.
pub(crate) const CHEAP_ROWS: usize = 64 * 1024;
/// How often a statement that waits for memory looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// So many times the common turns run, counting those that users have beside them.
const MAX_TIMES: usize = 2;

/// How many run, and how many wait for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AdmissionLimits {
    /// Statements that run at once.
    pub(crate) running: usize,
    /// Statements that wait, at most.
    pub(crate) queue: usize,
    /// How long one waits.
    pub(crate) wait: Duration,
}

/// The turns of a database.
#[derive(Debug)]
pub(crate) struct Admission {
    state: Mutex<State>,
    limits: AdmissionLimits,
    memory: Arc<ResidentGuard>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Those who wait, for a turn or for memory.
    waiting: usize,
    /// Users who have a turn or wait for one.
    users: HashMap<Arc<str>, User>,
    turns_given: u64,
}

#[derive(Debug, Default)]
struct User {
    running: usize,
    /// Which turn of all was the last one given to this user.
    last: u64,
    queue: VecDeque<oneshot::Sender<Permit>>,
}

impl State {
    /// Whether one more of a user with so many may run.
    fn has_turn(&self, limit: usize, running: usize) -> bool {
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

    /// Waits for a turn. Fails with `Busy` when too many wait, or for too long, and with
    /// `OutOfMemory` when memory stays low for as long.
    pub(crate) async fn admit(self: &Arc<Self>, user: &str) -> EngineResult<Turn> {
        let user: Arc<str> = user.into();
        let mut asked = None;
        if self.memory.level() == Level::Normal {
            let mut permit = self.ask(&user);
            if let Ok(permit) = permit.try_recv() {
                return Ok(Turn::new(permit));
            }
            asked = Some(permit);
        }
        let _place = self.queue()?;
        let end = Instant::now() + self.limits.wait;
        while self.memory.level() != Level::Normal {
            if Instant::now() >= end {
                return Err(self.memory.refusal());
            }
            sleep(LOOK_AGAIN).await;
        }
        let asked = asked.unwrap_or_else(|| self.ask(&user));
        match tokio::time::timeout_at(end, asked).await {
            Ok(Ok(permit)) => Ok(Turn::new(permit)),
            Ok(Err(_)) => Err(closed()),
            Err(_) => {
                let seconds = self.limits.wait.as_secs_f64();
                Err(self.busy(&format!("waited {seconds} s for a turn")))
            }
        }
    }

    /// Asks for a turn, which comes when it is there.
    fn ask(self: &Arc<Self>, user: &Arc<str>) -> oneshot::Receiver<Permit> {
        let (sender, receiver) = oneshot::channel();
        self.state.lock().users.entry(Arc::clone(user)).or_default().queue.push_back(sender);
        self.give();
        receiver
    }

    /// Gives the free turns: to the users with the fewest, and of those to the longest waiting one.
    fn give(self: &Arc<Self>) {
        while let Some((sender, permit)) = self.next() {
            // One who does not wait any more gives it back by letting go of it.
            drop(sender.send(permit));
        }
    }

    fn next(self: &Arc<Self>) -> Option<(oneshot::Sender<Permit>, Permit)> {
        let mut state = self.state.lock();
        let waiting = state.users.iter().filter(|(_, user)| !user.queue.is_empty());
        let (name, running) = waiting
            .min_by_key(|(_, user)| (user.running, user.last))
            .map(|(name, user)| (Arc::clone(name), user.running))?;
        if !state.has_turn(self.limits.running, running) {
            return None;
        }
        state.running += 1;
        state.turns_given += 1;
        let given = state.turns_given;
        let user = state.users.get_mut(&name)?;
        user.running += 1;
        user.last = given;
        let sender = user.queue.pop_front()?;
        Some((sender, Permit { admission: Arc::clone(self), user: name }))
    }

    /// Statements that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    fn queue(&self) -> EngineResult<Place<'_>> {
        let mut state = self.state.lock();
        let waiting = state.waiting;
        if waiting >= self.limits.queue {
            return Err(self.busy(&format!("{waiting} wait already")));
        }
        state.waiting += 1;
        Ok(Place(self))
    }

    fn busy(&self, why: &str) -> EngineError {
        let message = format!("too many queries: {} run at once, {why}", self.limits.running);
        EngineError::new(ErrorCode::Busy, message)
            .with_hint("retry later; see query.concurrency, query.queue.limit and query.queue.wait")
    }
}

fn closed() -> EngineError {
    EngineError::new(ErrorCode::Closed, "the database is closed")
}

/// A place in the queue.
struct Place<'a>(&'a Admission);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting -= 1;
    }
}

/// A turn of a user's, given back when dropped.
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
                // Those who gave up waiting are not counted as waiting any more.
                user.queue.retain(|sender| !sender.is_closed());
            }
            state.forget_idle(&self.user);
        }
        self.admission.give();
    }
}

/// The right to run, given back when dropped.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    permit: Option<Permit>,
    /// Whose turn, and where; absent for what takes no turn.
    of: Option<(Arc<Admission>, Arc<str>)>,
}

impl Turn {
    fn new(permit: Permit) -> Self {
        let of = Some((Arc::clone(&permit.admission), Arc::clone(&permit.user)));
        Self { permit: Some(permit), of }
    }

    /// What is cheap needs no turn.
    pub(crate) fn free() -> Self {
        Self::default()
    }

    /// Lets others run while this one waits for its reader.
    pub(crate) fn pause(&mut self) {
        self.permit = None;
    }

    /// Goes on; waits as long as it takes, since what it holds is in use already.
    pub(crate) async fn resume(&mut self) -> EngineResult<()> {
        if let Some((admission, user)) = &self.of
            && self.permit.is_none()
        {
            self.permit = Some(admission.ask(user).await.map_err(|_| closed())?);
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
    fn those_over_the_limit_wait_and_then_are_refused() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let turn = admission.admit("a").await.unwrap();
            let error = admission.admit("a").await.unwrap_err();
            assert_eq!(error.code, ErrorCode::Busy);
            assert_eq!(error.message, "too many queries: 1 run at once, waited 0.03 s for a turn");
            assert!(error.retryable);
            assert_eq!(admission.waiting(), 0);
            drop(turn);
            admission.admit("a").await.unwrap();
        });
    }

    #[test]
    fn a_full_queue_refuses_at_once() {
        block_on(async {
            let admission = admission(1, 0, 60_000);
            let _turn = admission.admit("a").await.unwrap();
            let error = admission.admit("a").await.unwrap_err();
            assert_eq!(error.message, "too many queries: 1 run at once, 0 wait already");
        });
    }

    #[test]
    fn a_paused_turn_is_anybodys() {
        block_on(async {
            let admission = admission(1, 8, 30);
            let mut first = admission.admit("a").await.unwrap();
            first.pause();
            let second = admission.admit("a").await.unwrap();
            assert!(tokio::time::timeout(LOOK_AGAIN, first.resume()).await.is_err());
            drop(second);
            first.resume().await.unwrap();
            assert!(admission.admit("a").await.is_err());
            let mut free = Turn::free();
            free.pause();
            free.resume().await.unwrap();
        });
    }

    #[test]
    fn a_user_who_runs_nothing_has_a_turn_beside_the_common_ones() {
        block_on(async {
            let admission = admission(2, 8, 30);
            let _many =
                [admission.admit("many").await.unwrap(), admission.admit("many").await.unwrap()];
            assert!(admission.admit("many").await.is_err());
            let one = admission.admit("one").await.unwrap();
            assert!(admission.admit("one").await.is_err(), "beside the common ones only one");
            let _other = admission.admit("other").await.unwrap();
            assert!(admission.admit("third").await.is_err(), "twice as many at the most");
            drop(one);
            assert!(admission.admit("many").await.is_err());
            admission.admit("third").await.unwrap();
        });
    }

    #[test]
    fn the_next_turn_is_that_of_the_user_who_runs_least() {
        block_on(async {
            let admission = admission(1, 8, 60_000);
            let (many, own) = (admission.admit("many").await, admission.admit("own").await);
            let (first, second) = (admission.ask(&"many".into()), admission.ask(&"one".into()));
            drop((many, own));
            let (mut first, mut second) = (first, second);
            assert!(second.try_recv().is_ok() && first.try_recv().is_ok());
            let state = admission.state.lock();
            assert!(state.users.is_empty(), "nobody is remembered");
        });
    }
}
