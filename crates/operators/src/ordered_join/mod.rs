//! Joins that keep the order of the rows they are made for.

pub(crate) mod node;
