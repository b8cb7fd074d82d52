//! FILL.

pub(crate) mod exec;
pub(crate) mod node;
pub(crate) mod values;
