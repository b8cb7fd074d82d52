//! DOUBLE arrays.

pub(crate) mod array_functions;
pub(crate) mod array_select;
pub(crate) mod arrays;
pub(crate) mod as_postgres;
