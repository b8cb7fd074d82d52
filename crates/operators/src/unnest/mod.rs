//! UNNEST: a row for each element of arrays, or of a JSON document, beside the row it is of.

pub(crate) mod elements;
pub(crate) mod exec;
pub(crate) mod node;
