//! Joins two sides on equal designated timestamps, by which both sides are ordered.
//!
//! One side leads: each of its partitions is a worker, and the other side is cut at the same times.
//! Both sides are read once, in parallel. Only rows of a timestamp that spans several batches are
//! kept in memory.

pub(crate) mod cut;
pub(crate) mod exec;
mod found;
mod merger;
pub(crate) mod plan;
