//! What statements run on: threads, memory, temporary files, cancellation, the log.
//!
//! `workers` are the threads, `work` and `lanes` schedule the tasks of users on them, `admission`
//! limits the statements that run at once, `pool`, `resident` and `spill` memory and temporary
//! files, `registry` lists the running statements, `cancel` stops them, `open_handoffs` are the
//! connections that the engine serves itself, `guard` turns panics into errors.

pub(crate) mod admission;
pub(crate) mod cancel;
pub mod guard;
pub(crate) mod lanes;
pub mod log;
pub(crate) mod metrics;
pub(crate) mod open_handoffs;
pub(crate) mod pool;
pub(crate) mod registry;
pub(crate) mod resident;
pub(crate) mod spill;
pub(crate) mod work;
pub(crate) mod workers;
