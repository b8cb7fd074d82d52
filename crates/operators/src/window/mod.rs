//! Window functions over rows in the order that the windows require.

pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod kept;
pub(crate) mod node;
mod resume;
pub(crate) mod spec;
mod whole;
