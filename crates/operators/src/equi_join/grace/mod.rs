//! The hash join by partitions, or Grace hash join: while its left side fits in memory, it is the
//! hash join of `DataFusion`; where it does not, the rows of both sides go to files by the hashes
//! of their keys, and one pair of files after the other is joined in the same way.
//!
//! A file of the left side that does not fit either is spread again by other hashes. One that has
//! hardly more than one key is joined in blocks that fit, each with all of the right file.
//!
//! A left side that all partitions of the right one are joined to is read once. Where it does not
//! fit it is written to one file, which each partition joins by files of its own, and sorts what
//! comes out by the places of the rows.

mod blocks;
pub(crate) mod exec;
mod hold;
mod join;
mod joiner;
pub(crate) mod numbers;
mod share;
pub(crate) mod shared;
pub(crate) mod spread;
pub(crate) mod texts;
