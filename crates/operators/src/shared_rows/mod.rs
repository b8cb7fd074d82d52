//! Groups that a plan asks for more than once, made once.

mod equal;
pub(crate) mod exec;
