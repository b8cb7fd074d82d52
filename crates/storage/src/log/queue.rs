//! Group commit: transactions that wait at the same time are written and synced together.
//!
//! The first transaction to arrive becomes the leader. It locks the log, writes all waiting
//! transactions, and passes the lead to the first transaction that has arrived in the meantime. The
//! other transactions sleep, without needing the log lock, until their outcome is known.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tidemark_types::{EngineError, EngineResult};

use crate::mutation::change::CommitReceipt;
use crate::mutation::prepare::Prepared;

/// Maximum time a leader waits for the members of the previous group. The wait is short compared
/// with a sync, but long enough for these members to submit their next transaction.
const GATHER: Duration = Duration::from_micros(500);

#[derive(Debug)]
enum State {
    Waits,
    Leads,
    Done(EngineResult<CommitReceipt>),
}

/// A transaction waiting to be committed.
#[derive(Debug)]
pub(crate) struct Ticket {
    work: Mutex<Vec<Prepared>>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Ticket {
    /// Removes and returns the changes to write. Later calls return nothing.
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

    /// Sleeps until the transaction becomes the leader or is done. Returns true if it is the
    /// leader.
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
    /// Whether a leader exists.
    led: bool,
    /// Number of transactions in the current group.
    grouped: usize,
    /// Number of transactions in the last group, plus the transactions that were waiting when it
    /// ended.
    expected: usize,
}

/// Waiting transactions in arrival order.
#[derive(Debug, Default)]
pub(crate) struct CommitQueue {
    inner: Mutex<Inner>,
    /// Signals that the expected number of transactions is waiting.
    gathered: Condvar,
}

impl CommitQueue {
    /// Waits until the transaction is written. If the transaction becomes the leader, `lead` writes
    /// a group that contains it.
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
            let turn = Lead(self);
            lead();
            drop(turn);
        }
        let outcome = std::mem::replace(&mut *ticket.state.lock(), State::Waits);
        match outcome {
            State::Done(outcome) => outcome,
            _ => Err(EngineError::internal("a transaction was omitted from its group commit")),
        }
    }

    /// Returns the next transaction for the group.
    pub(crate) fn take(&self) -> Option<Arc<Ticket>> {
        let mut inner = self.inner.lock();
        let ticket = inner.waiting.pop_front()?;
        inner.grouped += 1;
        Some(ticket)
    }

    /// Waits briefly for the expected number of transactions.
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

/// The leader's role. Dropping it passes the lead on, even if the leader panics.
struct Lead<'a>(&'a CommitQueue);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.expected = std::mem::take(&mut inner.grouped) + inner.waiting.len();
        match inner.waiting.front() {
            Some(next) => next.set(State::Leads),
            None => inner.led = false,
        }
    }
}
