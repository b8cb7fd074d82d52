//! LIMIT counted from the end.

pub(crate) mod exec;
pub(crate) mod node;
