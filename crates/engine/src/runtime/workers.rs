//! The threads that poll the tasks of statements.

use std::time::Duration;

use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::runtime::work;

/// Stack of a worker. Operators poll their inputs, so a query takes a frame for each of those that
/// stand within each other: enough for the deepest plan that the limit of its size allows. Only
/// pages that are used take memory.
pub(crate) const WORKER_STACK_BYTES: usize = 64 * 1024 * 1024;

/// The runtime of a database, until it is closed.
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

    /// Whether the caller runs on one of them.
    pub(crate) fn is_current(&self) -> bool {
        Handle::try_current().is_ok_and(|current| current.id() == self.handle.id())
    }

    /// Ends all tasks. Waits for so long at most.
    pub(crate) fn stop(&self, within: Duration) {
        let Some(runtime) = self.runtime.lock().take() else { return };
        if self.is_current() {
            // The last reference was that of a task, which cannot wait for its own end.
            runtime.shutdown_background();
        } else {
            runtime.shutdown_timeout(within);
        }
    }
}

/// Threads that poll tasks: as many as there are lanes, and one that polls the tasks which ask for
/// a lane meanwhile. Without it they wait in the queue of the runtime, which knows no users.
pub(super) fn build_runtime(workers: usize) -> EngineResult<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers.saturating_add(1))
        .thread_name("tidemark-worker")
        .on_thread_park(work::give_back)
        .thread_stack_size(WORKER_STACK_BYTES)
        .enable_time()
        .build()
        .map_err(|error| EngineError::io("cannot start worker threads", &error))
}
