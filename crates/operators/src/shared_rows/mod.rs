//! Computes rows only once when a plan uses them more than once.

mod equal;
pub(crate) mod exec;
pub(crate) mod node;
