//! Joins that preserve the order of one side.

pub(crate) mod node;
