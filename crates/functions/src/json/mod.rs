//! Reads and builds JSON.

pub(crate) mod json_build;
pub(crate) mod read;
