//! SAMPLE BY, GROUP BY and global aggregates.

pub(crate) mod accumulator;
pub(crate) mod distinct;
pub(crate) mod edge;
pub(crate) mod exec;
pub(crate) mod fallback;
pub(crate) mod groups;
pub(crate) mod node;
pub(crate) mod partial;
pub(crate) mod plan;
