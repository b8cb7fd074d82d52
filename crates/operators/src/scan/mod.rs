//! Table scans: the provider that plans refer to, and the scan operator.

pub(crate) mod bounds;
pub(crate) mod exec;
mod filter_rows;
pub(crate) mod filtered;
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
