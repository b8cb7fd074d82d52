//! HORIZON JOIN.

pub(crate) mod exec;
pub(crate) mod node;
