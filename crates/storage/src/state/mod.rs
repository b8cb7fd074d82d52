//! The state machine: applies a transaction to a snapshot. Live commits and replay share it.

pub(crate) mod apply;
pub(crate) mod context;
pub(crate) mod followed;
pub(crate) mod materialized;
pub(crate) mod op;
pub(crate) mod recent;
pub(crate) mod resolve;
pub(crate) mod touched;
