//! Rows in the order of numbers and symbols, held in memory: `keys` makes numbers of keys, `held`
//! reads rows and, where they are too many, hands them to a sort that spills; `order` sorts them in
//! parts. `exec` hands on sorted rows, `rank` the rows as they came with their ranks,
//! `top` those that may be among the first few.

pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod keys;
mod order;
pub(crate) mod rank;
pub(crate) mod top;
