//! Computes rows only once if a plan uses them more than once.

mod equal;
pub(crate) mod exec;
pub(crate) mod node;
