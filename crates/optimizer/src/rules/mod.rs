//! The logical rules, and the wrapper around every operator in a plan.

pub(crate) mod bound;
pub(crate) mod costly;
pub(crate) mod decorrelate;
pub(crate) mod dependent_keys;
pub(crate) mod distinct;
pub(crate) mod fence;
pub(crate) mod join_keys;
pub(crate) mod keys;
pub(crate) mod push_filters;
pub(crate) mod stoppable;
