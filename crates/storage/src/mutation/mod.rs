//! Changes in a transaction, and their preparation before the commit.

pub(crate) mod bulk;
pub(crate) mod bulk_update;
pub(crate) mod cells;
pub(crate) mod change;
pub(crate) mod convert;
pub(crate) mod delete;
pub(crate) mod prepare;
pub(crate) mod retire;
pub(crate) mod skip;
pub(crate) mod staged;
pub(crate) mod update;
pub(crate) mod write_locks;
