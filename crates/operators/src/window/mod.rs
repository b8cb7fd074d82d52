//! Window functions over rows that come in the order the windows ask for.

pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod kept;
pub(crate) mod node;
mod resume;
pub(crate) mod spec;
mod whole;
