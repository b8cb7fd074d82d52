//! A part of a query's memory as a pool of its own: what was counted before a join asks for it,
//! which others could take before it does, or what a sort may have, which takes what it gets.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, resources_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

/// A sort reserves one part in so many of its share for merging.
const MERGE_SHARE: usize = 4;

/// See the file's head.
#[derive(Debug)]
pub(super) struct Share {
    memory: MemoryReservation,
    /// Bytes of rows that are not sorted yet, at most; twice as many of all.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    /// Whether nothing more is kept than is used.
    is_settled: bool,
    /// Whether a sort has got no more, or all: it sorts what it holds, and asks for a little more
    /// where it puts batches together.
    is_sorting: bool,
    /// Whether it has all.
    has_ended: bool,
}

impl Share {
    /// What is reserved already, and what is beyond that from the query's pool.
    pub(super) fn held(memory: MemoryReservation) -> Arc<Self> {
        Arc::new(Self { memory, most: usize::MAX, state: Mutex::default() })
    }

    /// So many bytes of the query's pool at most.
    pub(super) fn at_most(memory: MemoryReservation, most: usize) -> Arc<Self> {
        let state = Mutex::new(State { is_settled: true, ..State::default() });
        Arc::new(Self { memory, most, state })
    }

    /// Gives back what was not asked for, and from now on what is no longer used.
    pub(super) fn settle(&self) {
        let mut state = self.state.lock();
        state.is_settled = true;
        self.memory.shrink(self.memory.size().saturating_sub(state.used));
    }

    /// A sort has got all of its rows.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        (state.is_sorting, state.has_ended) = (true, true);
    }

    /// The same context with this memory.
    pub(super) fn query_context(self: &Arc<Self>, context: &TaskContext) -> Arc<TaskContext> {
        self.context(context, context.session_config().clone())
    }

    /// The same with these settings.
    pub(super) fn context(
        self: &Arc<Self>,
        context: &TaskContext,
        mut config: SessionConfig,
    ) -> Arc<TaskContext> {
        let mut runtime = RuntimeEnv::clone(&context.runtime_env());
        runtime.memory_pool = Arc::clone(self) as Arc<dyn MemoryPool>;
        let merging = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *merging = (*merging).min(self.most / MERGE_SHARE);
        let own = TaskContext::default().with_session_config(config);
        Arc::new(own.with_runtime(Arc::new(runtime)))
    }
}

impl MemoryPool for Share {
    fn name(&self) -> &'static str {
        "share"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        let mut state = self.state.lock();
        state.used += additional;
        self.memory.grow(state.used.saturating_sub(self.memory.size()));
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        let mut state = self.state.lock();
        state.used = state.used.saturating_sub(shrink);
        state.is_sorting &= state.has_ended || state.used > self.most / 2;
        if state.is_settled {
            self.memory.shrink(self.memory.size().saturating_sub(state.used));
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state.lock();
        let used = state.used.saturating_add(additional);
        if used > self.most && reservation.consumer().can_spill() && !state.is_sorting {
            state.is_sorting = true;
            return resources_err!("{used} bytes are more than the share of {}", self.most);
        }
        if used > self.most.saturating_mul(2) {
            return resources_err!("{used} bytes are more than twice the share of {}", self.most);
        }
        self.memory.try_grow(used.saturating_sub(self.memory.size()))?;
        state.used = used;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state.lock().used
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.most)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.reserved(), self.memory.size())
    }
}
