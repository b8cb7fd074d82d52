//! JSON: read and made.

pub(crate) mod json_build;
pub(crate) mod read;
