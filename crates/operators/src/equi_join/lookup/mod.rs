//! Equi-joins that build the smaller side in memory and look up each row of the other side in it.
//!
//! Keys are mapped to IDs before they are compared. Symbols are looked up in a table with one entry
//! per dictionary symbol, integers in a dense table or hash table. Keys of other types are looked
//! up by their bytes.

mod build_side;
pub(crate) mod exec;
mod probe;
