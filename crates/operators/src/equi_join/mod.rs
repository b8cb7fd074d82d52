//! Equi-joins. [`join`] describes a join, and [`select_operator`] chooses its operator. Two sides
//! ordered by their key are merged. If only the existence of a match matters, only keys are kept in
//! memory. A small side is built once and shared by all workers. Any other join is built per
//! partition and spills to files when memory runs out.

pub(crate) mod grace;
pub(crate) mod join;
pub(crate) mod lookup;
pub(crate) mod merge;
pub(crate) mod select_operator;
pub(crate) mod semi;
