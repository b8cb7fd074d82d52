//! Grace hash join. If the left side fits in memory, it runs as `DataFusion`'s hash join.
//! Otherwise, the rows of both sides are partitioned into files by key hash. The pairs of files are
//! then joined one after another in the same way.
//!
//! A left file that does not fit in memory is partitioned again using different hashes. If nearly
//! all rows of a left file have one key, they are joined in blocks that fit in memory, each with
//! the whole right file.
//!
//! A left side shared by all right partitions is read once. If it does not fit, it is written to a
//! single file. Each partition then joins it through separate files and sorts the result by row
//! position.

mod blocks;
mod build_rows;
pub(crate) mod exec;
mod join;
mod joiner;
mod memory_budget;
pub(crate) mod numbers;
pub(crate) mod shared;
pub(crate) mod spread;
pub(crate) mod texts;
