//! Grace hash join. While the left side fits in memory, it is the hash join of `DataFusion`.
//! Otherwise the rows of both sides are written to files by the hashes of their keys. The pairs of
//! files are joined one after the other in the same way.
//!
//! A left file that does not fit either is partitioned again by different hashes. A left file whose
//! rows nearly all have one key is joined in blocks that fit, each with the whole right file.
//!
//! A left side shared by all right partitions is read once. If it does not fit, it is written to
//! one file. Each partition then joins it through separate files and sorts the result by row
//! positions.

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
