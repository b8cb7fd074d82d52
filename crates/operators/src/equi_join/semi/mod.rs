//! Joins that ask no more than whether a row with equal keys exists: rows of the *outer* side stay,
//! go or are marked by whether the *inner* side has their keys.
//!
//! Each key is held once, however many rows have it, so that the cost is of rows and not of pairs.
//! Where the outer side has far fewer rows it is held, and those of its keys that the inner side
//! has are gathered. What does not fit in memory goes to files by the hashes of the keys.

mod exec;
mod files;
mod held;
pub(crate) mod plan;
