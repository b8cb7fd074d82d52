//! In-memory sorting by numbers and symbols. `keys` converts keys to numbers. `materialize` reads
//! rows and, if there are too many, passes them to a sort that spills. `order` sorts them in
//! ranges. `exec` returns sorted rows, `rank` returns rows in their original order along with their
//! ranks, and `top` returns rows that may be among the first few.

pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod keys;
mod order;
pub(crate) mod rank;
pub(crate) mod top;
