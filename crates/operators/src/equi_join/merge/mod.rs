//! Joins on equal designated timestamps of two sides that both come in their order.
//!
//! The one side leads: each of its partitions is a worker, and the other side is cut at the same
//! times. Both are read once, side by side, and nothing is held but the rows of one timestamp that
//! are in more than one batch.

pub(crate) mod cut;
pub(crate) mod exec;
mod found;
mod merger;
pub(crate) mod plan;
