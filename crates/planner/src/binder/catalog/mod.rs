//! What the catalog has: tables and views by their names, and the tables of the server itself:
//! `tables()`, SHOW, `pg_catalog`.

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
