//! Statements other than queries.

pub(crate) mod alter;
pub(crate) mod conflict;
pub(crate) mod constraints;
pub(crate) mod conversion;
pub(crate) mod create_table;
pub(crate) mod ddl;
pub(crate) mod defaults;
pub(crate) mod expire_rows;
pub(crate) mod followed;
pub(crate) mod incremental;
pub(crate) mod insert;
pub(crate) mod insert_values;
pub(crate) mod numbering;
pub(crate) mod partitions;
pub(crate) mod returning;
pub(crate) mod storage_policy;
pub(crate) mod ttl;
pub(crate) mod update;
pub(crate) mod view;
pub(crate) mod view_sources;
