//! LATEST ON.

pub(crate) mod exec;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod stream;
