//! Limits that every operator observes: the time until it yields, the size of a batch, and prompt
//! cancellation.

pub(crate) mod bytes;
pub(crate) mod candidates;
mod literal;
pub(crate) mod paced;
mod slices;
pub(crate) mod stream;

pub use bytes::{cell_bytes, rows_of_bytes};
pub use literal::InternLiterals;
pub(crate) use literal::{has_long_constant, shared};
