//! Group commit: transactions that wait at the same time are written, and synced, together.
//!
//! The first to come leads: it takes the log, writes for all that wait, and hands the lead to the
//! first that came meanwhile. The others sleep until their outcome is known; none queues for
//! the log only to learn it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tidemark_types::{EngineError, EngineResult};

use crate::mutation::change::CommitReceipt;
use crate::mutation::prepare::Prepared;

/// Longest time a leader waits for those that took part in the group before: little beside a
/// sync, and enough for them to come back with their next transaction.
const GATHER: Duration = Duration::from_micros(500);

#[derive(Debug)]
enum State {
    Waits,
    Leads,
    Done(EngineResult<CommitReceipt>),
}

/// A transaction waiting for its turn.
#[derive(Debug)]
pub(crate) struct Ticket {
    work: Mutex<Vec<Prepared>>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Ticket {
    /// What it wants written; once.
    pub(crate) fn take_work(&self) -> Vec<Prepared> {
        std::mem::take(&mut *self.work.lock())
    }

    pub(crate) fn finish(&self, outcome: EngineResult<CommitReceipt>) {
        self.set(State::Done(outcome));
    }

    fn set(&self, state: State) {
        *self.state.lock() = state;
        self.changed.notify_one();
    }

    /// Sleeps until it leads or is done. Returns whether it leads.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while matches!(*state, State::Waits) {
            self.changed.wait(&mut state);
        }
        matches!(*state, State::Leads)
    }
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Arc<Ticket>>,
    /// Whether there is a leader.
    led: bool,
    /// Transactions in the group that is written.
    taken: usize,
    /// Transactions in the last group, and those that waited at its end.
    expected: usize,
}

/// The transactions that wait, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue {
    inner: Mutex<Inner>,
    /// As many wait as were expected.
    gathered: Condvar,
}

impl CommitQueue {
    /// Waits until the transaction is written. When it is this one's turn to lead, `lead` writes
    /// a group, which holds it.
    pub(crate) fn commit(
        &self,
        work: Vec<Prepared>,
        lead: impl FnOnce(),
    ) -> EngineResult<CommitReceipt> {
        let (work, state) = (Mutex::new(work), Mutex::new(State::Waits));
        let ticket = Arc::new(Ticket { work, state, changed: Condvar::new() });
        let leads = {
            let mut inner = self.inner.lock();
            inner.waiting.push_back(Arc::clone(&ticket));
            if inner.waiting.len() == inner.expected {
                self.gathered.notify_one();
            }
            !std::mem::replace(&mut inner.led, true)
        };
        if leads || ticket.wait() {
            let turn = Turn(self);
            lead();
            drop(turn);
        }
        let outcome = std::mem::replace(&mut *ticket.state.lock(), State::Waits);
        match outcome {
            State::Done(outcome) => outcome,
            _ => Err(EngineError::internal("a transaction was left out of its group")),
        }
    }

    /// The next transaction of the group.
    pub(crate) fn take(&self) -> Option<Arc<Ticket>> {
        let mut inner = self.inner.lock();
        let ticket = inner.waiting.pop_front()?;
        inner.taken += 1;
        Some(ticket)
    }

    /// Waits a little for as many transactions as came last time.
    pub(crate) fn gather(&self) {
        let end = Instant::now() + GATHER;
        let mut inner = self.inner.lock();
        while inner.waiting.len() < inner.expected {
            if self.gathered.wait_until(&mut inner, end).timed_out() {
                break;
            }
        }
    }
}

/// The lead. Dropping it hands it on, also when the leader panics.
struct Turn<'a>(&'a CommitQueue);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.expected = std::mem::take(&mut inner.taken) + inner.waiting.len();
        match inner.waiting.front() {
            Some(next) => next.set(State::Leads),
            None => inner.led = false,
        }
    }
}
