//! Reading tables: the provider a plan names, and the scan it becomes.

pub(crate) mod exec;
pub(crate) mod filtered;
pub(crate) mod other_rows;
mod pace;
pub(crate) mod provider;
pub(crate) mod time_filter;
