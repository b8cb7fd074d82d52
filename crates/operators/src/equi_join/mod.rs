//! Joins by equal keys. [`join`] describes one, [`choice`] decides how it runs: two sides in the
//! order of their key are merged; where it matters only whether a row exists, keys are held; a
//! small side is held by all workers; any other join is held in parts, and goes to files where
//! memory ends.

pub(crate) mod choice;
pub(crate) mod grace;
pub(crate) mod join;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod semi;
