//! Computes rows once that a plan uses more than once.

mod equal;
pub(crate) mod exec;
pub(crate) mod node;
