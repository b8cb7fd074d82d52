//! Joins by equal keys that hold the smaller side and look each row of the other up in it.
//!
//! Keys are numbers before they are compared: a symbol costs a look at a table with an entry for
//! each symbol of the dictionary, an integer one at a table or a hash table, and what has neither
//! form its bytes.

pub(crate) mod exec;
mod held;
mod probe;
