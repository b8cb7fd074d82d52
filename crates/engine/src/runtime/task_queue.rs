//! Fair scheduling of tasks. Tasks of heavy queries run for a few milliseconds at a time.
//!
//! If more tasks are ready than there are workers, the scheduler alternates between users. A user
//! with many queries then gets no more worker time than a user with a single query.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The task scheduler. It has as many lanes as there are workers.
#[derive(Debug)]
pub(crate) struct TaskQueue {
    count: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    /// Users with running or waiting tasks.
    users: HashMap<Arc<str>, User>,
    /// Worker time used by the user who was scheduled last. New users start with this value.
    floor: Duration,
    next_ticket: u64,
}

#[derive(Debug, Default)]
struct User {
    used: Duration,
    running: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    waker: Waker,
}

impl TaskQueue {
    pub(crate) fn new(count: usize) -> Arc<Self> {
        Arc::new(Self { count, state: Mutex::default() })
    }

    fn release(&self, user: &Arc<str>, used: Duration) {
        let mut state = self.state.lock();
        state.running -= 1;
        if let Some(own) = state.users.get_mut(user) {
            own.running -= 1;
            own.used += used;
        }
        state.forget_idle(user);
        state.admit(self.count);
    }
}

impl State {
    fn user(&mut self, name: &Arc<str>) -> &mut User {
        let floor = self.floor;
        self.users
            .entry(Arc::clone(name))
            .or_insert_with(|| User { used: floor, ..User::default() })
    }

    /// Appends a task to the user's waiting tasks; returns its ticket.
    fn line_up(&mut self, user: &Arc<str>, waker: Waker) -> u64 {
        self.next_ticket += 1;
        let ticket = self.next_ticket;
        self.user(user).waiting.push_back(Waiting { ticket, waker });
        ticket
    }

    fn forget_idle(&mut self, name: &Arc<str>) {
        let is_idle = |user: &User| user.running == 0 && user.waiting.is_empty();
        if self.users.get(name).is_some_and(is_idle) {
            self.users.remove(name);
        }
    }

    /// Starts tasks while lanes are free. The next task is always the first waiting task of the
    /// user with the least worker time.
    fn admit(&mut self, count: usize) {
        while self.running < count {
            let waiting = self.users.values_mut().filter(|user| !user.waiting.is_empty());
            let Some(next) = waiting.min_by_key(|user| user.used) else { return };
            let Some(task) = next.waiting.pop_front() else { return };
            next.running += 1;
            self.floor = next.used;
            self.running += 1;
            task.waker.wake();
        }
    }
}

/// A task's registration in the scheduler.
#[derive(Debug)]
pub(crate) struct QueuedTask {
    queue: Arc<TaskQueue>,
    user: Arc<str>,
    /// The waiting task's ticket. It remains set after admission until the task is polled.
    ticket: Option<u64>,
}

impl QueuedTask {
    pub(crate) fn new(task_queue: Arc<TaskQueue>, user: Arc<str>) -> Self {
        Self { queue: task_queue, user, ticket: None }
    }

    /// Returns permission to run, or `None` if all lanes are busy. In that case the task is woken
    /// when it is admitted.
    pub(crate) fn enter(&mut self, context: &Context<'_>) -> Option<Running<'_>> {
        let mut state = self.queue.state.lock();
        if let Some(ticket) = self.ticket {
            let mut waiting = state.user(&self.user).waiting.iter_mut();
            if let Some(waits) = waiting.find(|waits| waits.ticket == ticket) {
                waits.waker.clone_from(context.waker());
                return None;
            }
            // The task is no longer in the queue, because it was admitted.
            self.ticket = None;
        } else {
            let ticket = state.line_up(&self.user, Waker::noop().clone());
            state.admit(self.queue.count);
            let own = state.user(&self.user);
            if let Some(waits) = own.waiting.iter_mut().find(|waits| waits.ticket == ticket) {
                waits.waker.clone_from(context.waker());
                self.ticket = Some(ticket);
                return None;
            }
        }
        drop(state);
        Some(Running { task: self, since: Instant::now() })
    }
}

impl Drop for QueuedTask {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut state = self.queue.state.lock();
        let own = state.user(&self.user);
        let waited = own.waiting.len();
        own.waiting.retain(|waits| waits.ticket != ticket);
        if own.waiting.len() == waited {
            drop(state);
            self.queue.release(&self.user, Duration::ZERO);
        } else {
            state.forget_idle(&self.user);
        }
    }
}

/// Permission to run, which ends when this value is dropped.
pub(crate) struct Running<'a> {
    task: &'a mut QueuedTask,
    since: Instant,
}

impl Running<'_> {
    /// Ends the time slice of a task that has more work. The task rejoins the queue now. If it
    /// rejoined only at its next poll, every other task could first run for a time slice.
    pub(crate) fn line_up(self, context: &Context<'_>) {
        let mut state = self.task.queue.state.lock();
        let ticket = state.line_up(&self.task.user, context.waker().clone());
        drop(state);
        self.task.ticket = Some(ticket);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.task.queue.release(&self.task.user, self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(queue: &Arc<TaskQueue>, user: &str) -> QueuedTask {
        QueuedTask::new(Arc::clone(queue), user.into())
    }

    #[test]
    fn lanes_alternate_between_users_regardless_of_task_counts() {
        let queue = TaskQueue::new(1);
        let context = Context::from_waker(Waker::noop());
        let mut tasks: Vec<QueuedTask> = (0..8).map(|_| task(&queue, "many")).collect();
        tasks.push(task(&queue, "one"));
        let mut first = task(&queue, "first");
        let running = first.enter(&context);
        assert!(tasks.iter_mut().all(|task| task.enter(&context).is_none()));
        drop(running);
        let mut turns = [0; 9];
        for at in (0..9).cycle().take(3_000) {
            let Some(running) = tasks[at].enter(&context) else { continue };
            std::thread::sleep(Duration::from_micros(50));
            drop(running);
            turns[at] += 1;
            assert!(tasks[at].enter(&context).is_none(), "other tasks are waiting");
        }
        let many: i32 = turns[..8].iter().sum();
        assert!(turns[8] * 2 > many && many * 2 > turns[8], "{turns:?}");
    }

    #[test]
    fn a_dropped_task_releases_its_lane() {
        let queue = TaskQueue::new(1);
        let context = Context::from_waker(Waker::noop());
        let (mut first, mut second, mut third) =
            (task(&queue, "a"), task(&queue, "a"), task(&queue, "b"));
        let running = first.enter(&context);
        assert!(running.is_some());
        assert!(second.enter(&context).is_none());
        assert!(third.enter(&context).is_none());
        drop(third);
        drop(running);
        // The task was dropped after its admission but before it ran.
        drop(second);
        assert!(first.enter(&context).is_some());
        let state = queue.state.lock();
        assert_eq!(state.running, 0);
        assert!(state.users.is_empty());
    }
}
