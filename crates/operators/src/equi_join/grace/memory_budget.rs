//! A memory pool backed by part of a query's memory. For a join, the pool contains memory reserved
//! in advance, so other operators cannot allocate it first. A sort allocates as much memory as it
//! can, so the pool limits it.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Result, resources_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::SessionConfig;
use parking_lot::Mutex;

/// A sort reserves 1/n of its budget for merging.
const MERGE_MEMORY_DIVISOR: usize = 4;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    memory: MemoryReservation,
    /// Maximum size of the unsorted rows, in bytes. The total memory may be twice this size.
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: usize,
    /// Whether unused memory is returned to the query's pool.
    is_settled: bool,
    /// Whether one of the sort's memory requests failed, or the sort has read all rows. The sort
    /// then sorts its rows in memory and requests a little more memory to concatenate batches.
    is_sorting: bool,
    /// Whether the sort has read all rows.
    has_ended: bool,
}

impl MemoryBudget {
    /// Creates a pool from reserved memory. Any further memory is allocated from the query's pool.
    pub(super) fn reserved(memory: MemoryReservation) -> Arc<Self> {
        Arc::new(Self { memory, max_bytes: usize::MAX, state: Mutex::default() })
    }

    /// Creates a pool that allocates at most `max` bytes from the query's pool.
    pub(super) fn limited(memory: MemoryReservation, max: usize) -> Arc<Self> {
        let state = Mutex::new(State { is_settled: true, ..State::default() });
        Arc::new(Self { memory, max_bytes: max, state })
    }

    /// Returns unrequested memory to the query's pool. From now on, unused memory is returned
    /// immediately.
    pub(super) fn settle(&self) {
        let mut state = self.state.lock();
        state.is_settled = true;
        self.memory.shrink(self.memory.size().saturating_sub(state.used));
    }

    /// Signals that a sort has read all its rows.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        (state.is_sorting, state.has_ended) = (true, true);
    }

    /// Returns the same context with this memory pool.
    pub(super) fn query_context(self: &Arc<Self>, context: &TaskContext) -> Arc<TaskContext> {
        self.context(context, context.session_config().clone())
    }

    /// Returns the same context with this memory pool and these settings.
    pub(super) fn context(
        self: &Arc<Self>,
        context: &TaskContext,
        mut config: SessionConfig,
    ) -> Arc<TaskContext> {
        let mut runtime = RuntimeEnv::clone(&context.runtime_env());
        runtime.memory_pool = Arc::clone(self) as Arc<dyn MemoryPool>;
        let merging = &mut config.options_mut().execution.sort_spill_reservation_bytes;
        *merging = (*merging).min(self.max_bytes / MERGE_MEMORY_DIVISOR);
        let own = TaskContext::default().with_session_config(config);
        Arc::new(own.with_runtime(Arc::new(runtime)))
    }
}

impl MemoryPool for MemoryBudget {
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
        state.is_sorting &= state.has_ended || state.used > self.max_bytes / 2;
        if state.is_settled {
            self.memory.shrink(self.memory.size().saturating_sub(state.used));
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state.lock();
        let used = state.used.saturating_add(additional);
        if used > self.max_bytes && reservation.consumer().can_spill() && !state.is_sorting {
            state.is_sorting = true;
            return resources_err!("{used} bytes exceed the memory budget of {}", self.max_bytes);
        }
        if used > self.max_bytes.saturating_mul(2) {
            return resources_err!(
                "{used} bytes exceed twice the memory budget of {}",
                self.max_bytes
            );
        }
        self.memory.try_grow(used.saturating_sub(self.memory.size()))?;
        state.used = used;
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.state.lock().used
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.max_bytes)
    }
}

impl fmt::Display for MemoryBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.reserved(), self.memory.size())
    }
}
