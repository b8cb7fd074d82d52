//! Sources in FROM: tables, views, joins, table functions.

pub(crate) mod expiring;
pub(crate) mod files;
pub(crate) mod join;
pub(crate) mod lateral;
pub(crate) mod recorded;
pub(crate) mod source;
pub(crate) mod table_function;
pub(crate) mod time_join;
pub(crate) mod unnest;
