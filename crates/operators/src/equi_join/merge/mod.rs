//! Joins two sides on equal designated timestamps when both sides are ordered by that timestamp.
//!
//! One side leads: each of its partitions has a worker, and the other side is partitioned at the
//! same times. Both sides are read once, in parallel. Only rows whose timestamp spans several
//! batches are buffered.

pub(crate) mod cut;
pub(crate) mod exec;
mod found;
mod merger;
pub(crate) mod plan;
