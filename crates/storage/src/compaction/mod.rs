//! Work that runs in parallel with transactions: checkpoints, and rewrites of files with invisible
//! data.

pub(crate) mod background;
pub(crate) mod checkpoint;
pub(crate) mod fold;
pub(crate) mod report;
pub(crate) mod shrink;
