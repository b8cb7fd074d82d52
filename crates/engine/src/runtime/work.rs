//! Work done for a query, either polled by a worker or run on a separate thread. A thread's
//! allocations are charged to the query it works for. Heavy work is scheduled fairly among users.
//!
//! Tasks spawned by a plan are attributed to its query automatically, through a tracing hook in
//! `DataFusion`.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::future::BoxFuture;
use tidemark_types::account::{self, Account};

use crate::runtime::task_queue::{QueuedTask, TaskQueue};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Work>>> = const { RefCell::new(None) };
}

/// State shared by all tasks of a query.
pub(crate) struct Work {
    pub(crate) account: Arc<Account>,
    task_queue: Arc<TaskQueue>,
    user: Arc<str>,
    /// Whether the work is heavy and must yield to other users' work.
    is_heavy: AtomicBool,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work(of {}, {:?})", self.user, self.account)
    }
}

impl Work {
    pub(crate) fn new(account: Arc<Account>, queue: Arc<TaskQueue>, user: &str) -> Arc<Self> {
        Arc::new(Self {
            account,
            task_queue: queue,
            user: user.into(),
            is_heavy: AtomicBool::new(false),
        })
    }

    /// Returns the query's user.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Marks the work as heavy. From now on it yields to other users' work.
    pub(crate) fn set_heavy(&self) {
        self.is_heavy.store(true, Ordering::Relaxed);
    }

    /// Wraps a future so that each poll is attributed to this work.
    pub(crate) fn of<F: Future>(self: &Arc<Self>, work: F) -> Working<F> {
        Working { work: Arc::clone(self), task: None, inner: Box::pin(work) }
    }

    /// Runs a blocking function and attributes it to this work.
    fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let _current = Doing::new(self);
        work()
    }
}

/// Guard: while it exists, the thread works for a query.
struct Doing {
    _entered: account::Entered,
    before: Option<Arc<Work>>,
}

/// Returns memory that this thread freed for large queries that have since ended. Called before the
/// thread works for another query and before it parks.
pub(crate) fn release_freed_memory() {
    if account::must_release() {
        tidemark_vfs::release_memory();
    }
}

impl Doing {
    fn new(work: &Arc<Work>) -> Self {
        release_freed_memory();
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(work)));
        Self { _entered: work.account.enter(), before }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = self.before.take());
    }
}

/// Returns the current thread's work.
fn current() -> Option<Arc<Work>> {
    CURRENT.with_borrow(Clone::clone)
}

/// A future that is attributed to a query's work.
pub(crate) struct Working<F> {
    work: Arc<Work>,
    /// The task's handle in the scheduler, if the work is heavy.
    task: Option<QueuedTask>,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for Working<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let is_inner = current().is_some_and(|current| Arc::ptr_eq(&current, &this.work));
        if is_inner {
            return this.inner.as_mut().poll(context);
        }
        if !this.work.is_heavy.load(Ordering::Relaxed) {
            let _doing = Doing::new(&this.work);
            return this.inner.as_mut().poll(context);
        }
        let queue =
            || QueuedTask::new(Arc::clone(&this.work.task_queue), Arc::clone(&this.work.user));
        let task = this.task.get_or_insert_with(queue);
        let Some(running) = task.enter(context) else { return Poll::Pending };
        let doing = Doing::new(&this.work);
        let polled = this.inner.as_mut().poll(context);
        let has_more = polled.is_pending() && account::is_slice_over();
        drop(doing);
        if has_more {
            running.line_up(context);
        }
        polled
    }
}

/// Wraps a future so that it is attributed to the current thread's work.
pub(crate) fn following<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = current();
    async move {
        match current {
            Some(current) => current.of(work).await,
            None => work.await,
        }
    }
}

/// Wraps a future on which a thread blocks within its task. Each poll starts a new time slice.
pub(crate) fn waited_for<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let mut work = Box::pin(work);
    std::future::poll_fn(move |context| {
        account::begin_slice();
        work.as_mut().poll(context)
    })
}

/// Wraps a function so that it is attributed to the current thread's work.
pub(crate) fn following_run<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let current = current();
    move || match current {
        Some(current) => current.run(work),
        None => work(),
    }
}

/// Attributes a plan's tasks to the query that spawned them.
struct Follower;

impl JoinSetTracer for Follower {
    fn trace_future(
        &self,
        task: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        match current() {
            Some(current) => Box::pin(current.of(task)),
            None => task,
        }
    }

    fn trace_block(
        &self,
        task: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        Box::new(following_run(task))
    }
}

/// Installs the hook for spawned tasks. Only the first call in the process has an effect.
pub(crate) fn follow_tasks() {
    // Installing fails if another database in this process has already installed the hook.
    let _ = set_join_set_tracer(&Follower);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::runtime::workers::build_runtime;

    /// Runs until `end`, for one time slice per poll, and counts the polls.
    async fn busy(end: Instant, polls: Arc<AtomicUsize>) {
        while Instant::now() < end {
            while !account::is_slice_over() {
                std::hint::spin_loop();
            }
            polls.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn users_share_the_workers_regardless_of_task_counts() {
        let (runtime, queue) = (build_runtime(1).unwrap(), TaskQueue::new(1));
        let end = Instant::now() + Duration::from_secs(2);
        let start = |user: &str, tasks: usize| {
            let work = Work::new(Account::new(1 << 20, || None), Arc::clone(&queue), user);
            work.set_heavy();
            let polls = Arc::new(AtomicUsize::new(0));
            for _ in 0..tasks {
                runtime.spawn(work.of(busy(end, Arc::clone(&polls))));
            }
            polls
        };
        let (many, one) = (start("many", 32), start("one", 1));
        std::thread::sleep(end - Instant::now());
        drop(runtime);
        let [many, one] = [many, one].map(|polls| polls.load(Ordering::Relaxed));
        assert!(one * 2 > many, "one {one}, many {many}");
    }
}
