//! Reading and building JSON.

pub(crate) mod json_build;
pub(crate) mod read;
