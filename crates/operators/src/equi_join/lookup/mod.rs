//! Equi-joins that build the smaller side in memory and look up each row of the other side in it.
//!
//! Keys become numbers before they are compared. A symbol costs a lookup in a table with an entry
//! per symbol of the dictionary, an integer a lookup in a table or hash table. Keys of other types
//! are looked up by their bytes.

pub(crate) mod exec;
mod held;
mod probe;
