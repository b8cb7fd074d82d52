//! Catalog lookups: tables and views by name, and the server's own tables: `tables()`, SHOW,
//! `pg_catalog`.

pub(crate) mod catalog_rows;
pub(crate) mod incremental_rows;
pub(crate) mod pg_catalog;
pub(crate) mod policy_rows;
pub(crate) mod server_rows;
pub(crate) mod show;
pub(crate) mod source_column;
pub(crate) mod table;
pub(crate) mod view;
pub(crate) mod view_rows;
