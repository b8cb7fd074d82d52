//! A query's clauses, in order of evaluation.

pub(crate) mod aggregate;
pub(crate) mod grouping;
pub(crate) mod horizon_join;
pub(crate) mod latest_on;
pub(crate) mod limit;
pub(crate) mod moved_sums;
pub(crate) mod order;
pub(crate) mod pivot;
pub(crate) mod projection;
pub(crate) mod query;
pub(crate) mod recursive;
pub(crate) mod sample_by;
pub(crate) mod select;
pub(crate) mod set_operation;
pub(crate) mod stage;
pub(crate) mod star;
pub(crate) mod window_join;
