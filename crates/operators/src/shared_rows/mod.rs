//! Rows that a plan asks for more than once, made once.

mod equal;
pub(crate) mod exec;
pub(crate) mod node;
