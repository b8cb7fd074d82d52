//! The threads that poll statement tasks.

use std::time::Duration;

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::runtime::work;

/// A worker's stack size. Operators poll their inputs, so a query needs a stack frame for each
/// nesting level of its plan. This size suffices for the deepest plan within the plan size limit.
/// Only touched pages use memory.
pub(crate) const WORKER_STACK_BYTES: usize = 64 * 1024 * 1024;

/// The database's runtime, which exists until the database is closed.
pub(crate) struct Workers {
    runtime: Mutex<Option<Runtime>>,
    handle: Handle,
}

impl Workers {
    pub(crate) fn start(workers: usize) -> EngineResult<Self> {
        let runtime = build_runtime(workers)?;
        let handle = runtime.handle().clone();
        Ok(Self { runtime: Mutex::new(Some(runtime)), handle })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the caller runs on one of the workers.
    pub(crate) fn is_current(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.handle.id())
    }

    /// Ends all tasks, waiting for at most the duration `within`.
    pub(crate) fn stop(&self, within: Duration) {
        let Some(runtime) = self.runtime.lock().take() else { return };
        if self.is_current() {
            // If a task dropped the last reference, waiting for all tasks to end would mean waiting
            // for itself.
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(within);
        }
    }
}

/// Builds the worker threads: one per lane, and an extra thread that polls tasks while they request
/// a lane. Without the extra thread, these tasks would wait in the runtime's queue, which does not
/// distinguish users.
pub(super) fn build_runtime(workers: usize) -> EngineResult<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers.saturating_add(1))
        .thread_name("tidemark-worker")
        .on_thread_park(work::release_freed_memory)
        .thread_stack_size(WORKER_STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| EngineError::io("cannot start worker threads", &error))
}
