//! Bounds on what any operator does in one go: how long a task works before others do, how many
//! bytes a batch has, and that a query which has to stop does.

pub(crate) mod bytes;
pub(crate) mod candidates;
mod literal;
pub(crate) mod paced;
mod slices;
pub(crate) mod stream;

pub use bytes::{cell_bytes, rows_of_bytes};
pub use literal::ShareLiterals;
pub(crate) use literal::{has_long_constant, shared};
