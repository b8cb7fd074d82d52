//! Reading tables: the provider a plan names, and the scan it becomes.

pub(crate) mod bounds;
pub(crate) mod exec;
pub(crate) mod filtered;
mod kept;
pub(crate) mod kind;
mod numbers;
mod operator;
pub(crate) mod pace;
pub(crate) mod passing;
pub(crate) mod provider;
pub(crate) mod rows;
pub(crate) mod symbol_test;
pub(crate) mod time_filter;
pub(crate) mod zones;
