//! SAMPLE BY, GROUP BY and global aggregates.

pub(crate) mod accumulator;
pub(crate) mod distinct;
pub(crate) mod edge;
pub(crate) mod exec;
pub(crate) mod fallback;
mod floor;
pub(crate) mod group_cache;
pub(crate) mod groups;
mod moments;
pub(crate) mod node;
mod numbers;
pub(crate) mod partial;
pub(crate) mod plan;
pub(crate) mod resume;
pub(crate) mod slots;
