//! Resources for running statements: threads, memory, temporary files, cancellation, and the log.
//!
//! `workers` are the threads; `work` and `task_queue` schedule users' tasks on them. `admission`
//! limits the number of concurrent statements; `pool`, `resident` and `spill` limit memory and
//! temporary files. `registry` lists running statements, and `cancel` stops them. `open_handoffs`
//! revokes connection handoffs, and `guard` converts panics to errors.

pub(crate) mod admission;
pub(crate) mod cancel;
pub mod guard;
pub mod log;
pub(crate) mod metrics;
pub(crate) mod open_handoffs;
pub(crate) mod pool;
pub(crate) mod registry;
pub(crate) mod resident;
pub(crate) mod spill;
pub(crate) mod task_queue;
pub(crate) mod work;
pub(crate) mod workers;
