//! Equi-joins that build the smaller side in memory and look up each row of the other side in it.
//!
//! Keys are mapped to IDs before they are compared. A symbol is looked up in a table with one entry
//! per symbol of the dictionary, an integer in a dense table or hash table. Keys of other types are
//! looked up by their bytes.

mod build_side;
pub(crate) mod exec;
mod probe;
