//! UNNEST: one row per element of an array or JSON document, along with the columns of its source
//! row.

pub(crate) mod elements;
pub(crate) mod exec;
pub(crate) mod node;
