//! FILL.

pub(crate) mod exec;
mod filled;
pub(crate) mod node;
pub(crate) mod plan;
mod values;
