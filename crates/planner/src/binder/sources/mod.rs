//! What FROM names: tables, scopes, joins, table functions.

pub(crate) mod horizon_join;
pub(crate) mod join;
pub(crate) mod latest_on;
pub(crate) mod list_rows;
pub(crate) mod pivot;
pub(crate) mod recursive;
pub(crate) mod source;
pub(crate) mod table_function;
pub(crate) mod time_join;
pub(crate) mod unnest;
pub(crate) mod window_join;
