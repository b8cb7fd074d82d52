//! Window functions over rows that are in the order the windows require.

pub(crate) mod cache;
pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod node;
mod resume;
pub(crate) mod spec;
mod whole_partition;
