//! FILL.

pub(crate) mod exec;
mod filled;
pub(crate) mod node;
mod values;
