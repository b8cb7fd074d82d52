//! Row keys, for every operator that compares them: key IDs, and sets that store each key once.
//! Both reserve memory before they grow.
//!
//! Integers and times are compared directly: in a table or bitmap over their range if the range is
//! narrow, otherwise in a hash table. Other keys are encoded as bytes in one buffer ([`bytes`]).

pub(crate) mod bytes;
mod encoded;
mod integers;
pub(crate) mod memory;
pub(crate) mod numbers;
pub(crate) mod set;
mod table;
pub(crate) mod values;

/// ID of an unknown key.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Number of rows whose keys are added in one step. Memory for that many new keys is reserved
/// first.
const ROWS_AT_ONCE: usize = 1 << 10;
