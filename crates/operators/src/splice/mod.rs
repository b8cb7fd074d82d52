//! SPLICE JOIN.

pub(crate) mod exec;
pub(crate) mod merge;
pub(crate) mod node;
