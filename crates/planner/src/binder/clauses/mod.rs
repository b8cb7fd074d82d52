//! The clauses of a query, in the order in which they are applied.

pub(crate) mod aggregate;
pub(crate) mod frame_aggregate;
pub(crate) mod grouping;
pub(crate) mod limit;
pub(crate) mod moving_average;
pub(crate) mod order;
pub(crate) mod projection;
pub(crate) mod query;
pub(crate) mod sample_by;
pub(crate) mod select;
pub(crate) mod set_operation;
pub(crate) mod window;
pub(crate) mod window_frame;
