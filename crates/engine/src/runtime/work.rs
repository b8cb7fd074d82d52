//! Work that is done for a query: polled by a worker, or run on a thread of its own. Each thread
//! works for the query's account, and heavy work takes its place among that of other users.
//!
//! Tasks that a plan spawns follow by themselves: `DataFusion` tells of each.

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

use crate::runtime::lanes::{Lane, Lanes};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Work>>> = const { RefCell::new(None) };
}

/// What all tasks of one query share.
pub(crate) struct Work {
    pub(crate) account: Arc<Account>,
    lanes: Arc<Lanes>,
    user: Arc<str>,
    /// Whether it gives way to others: what is cheap does not.
    is_heavy: AtomicBool,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work(of {}, {:?})", self.user, self.account)
    }
}

impl Work {
    pub(crate) fn new(account: Arc<Account>, lanes: Arc<Lanes>, user: &str) -> Arc<Self> {
        Arc::new(Self { account, lanes, user: user.into(), is_heavy: AtomicBool::new(false) })
    }

    /// Whose work it is.
    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// From now on it gives way to other users' work.
    pub(crate) fn set_heavy(&self) {
        self.is_heavy.store(true, Ordering::Relaxed);
    }

    /// A future that is polled as this work.
    pub(crate) fn of<F: Future>(self: &Arc<Self>, work: F) -> Working<F> {
        Working { work: Arc::clone(self), lane: None, inner: Box::pin(work) }
    }

    /// Runs what blocks as this work.
    fn run<T>(self: &Arc<Self>, work: impl FnOnce() -> T) -> T {
        let _current = Doing::new(self);
        work()
    }
}

/// The thread does a query's work as long as this lives.
struct Doing {
    _entered: account::Entered,
    before: Option<Arc<Work>>,
}

/// Gives back what this thread freed for large queries that ended: before it works for others, and
/// before it rests.
pub(crate) fn give_back() {
    if account::has_to_give_back() {
        tidemark_vfs::give_back();
    }
}

impl Doing {
    fn new(work: &Arc<Work>) -> Self {
        give_back();
        let before = CURRENT.with_borrow_mut(|current| current.replace(Arc::clone(work)));
        Self { _entered: work.account.enter(), before }
    }
}

impl Drop for Doing {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = self.before.take());
    }
}

/// The work this thread does.
fn current() -> Option<Arc<Work>> {
    CURRENT.with_borrow(Clone::clone)
}

/// A future of a query.
pub(crate) struct Working<F> {
    work: Arc<Work>,
    /// Its place among the tasks that want to run, while it is heavy.
    lane: Option<Lane>,
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
        let lanes = || Lane::new(Arc::clone(&this.work.lanes), Arc::clone(&this.work.user));
        let lane = this.lane.get_or_insert_with(lanes);
        let Some(running) = lane.enter(context) else { return Poll::Pending };
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

/// The same future, as the work that this thread does now.
pub(crate) fn following<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let current = current();
    async move {
        match current {
            Some(current) => current.of(work).await,
            None => work.await,
        }
    }
}

/// A future that a thread waits for within its task: each look at it is a slice of its own.
pub(crate) fn waited_for<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let mut work = Box::pin(work);
    std::future::poll_fn(move |context| {
        account::begin_slice();
        work.as_mut().poll(context)
    })
}

/// The same function, as the work that this thread does now.
pub(crate) fn following_run<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let current = current();
    move || match current {
        Some(current) => current.run(work),
        None => work(),
    }
}

/// Tasks of plans are work of the query that spawns them.
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

/// Lets tasks follow; for the whole process, once.
pub(crate) fn follow_tasks() {
    // Another database of this process has done it already.
    let _ = set_join_set_tracer(&Follower);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::runtime::workers::build_runtime;

    /// Works until the end, a slice at each poll; counts its polls.
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
    fn users_share_the_workers_of_a_runtime_whatever_the_number_of_their_tasks() {
        let (runtime, lanes) = (build_runtime(1).unwrap(), Lanes::new(1));
        let end = Instant::now() + Duration::from_secs(2);
        let start = |user: &str, tasks: usize| {
            let work = Work::new(Account::new(1 << 20, || None), Arc::clone(&lanes), user);
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
