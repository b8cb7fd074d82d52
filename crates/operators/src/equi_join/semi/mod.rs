//! Joins that only test whether a row with equal keys exists. Rows of the *outer* side are
//! returned, dropped or marked depending on whether the *inner* side has their keys.
//!
//! Each distinct key is stored once, so the cost depends on the number of rows rather than the
//! number of pairs. If the outer side has far fewer rows, its rows are kept in memory instead, and
//! the inner side is searched for their keys. A side that does not fit in memory is partitioned
//! into files by key hash.

mod exec;
mod files;
mod in_memory;
pub(crate) mod plan;
