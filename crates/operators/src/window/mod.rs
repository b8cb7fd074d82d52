//! Window functions over rows that come in the order the windows ask for.

pub(crate) mod exec;
pub(crate) mod function;
pub(crate) mod kept;
pub(crate) mod node;
pub(crate) mod spec;
