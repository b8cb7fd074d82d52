//! Keys of rows, for every operator that compares them: numbers of keys, and sets that hold each
//! key once. Both ask for memory before they grow.
//!
//! Integers and times are compared as they are: by a table with an entry, or a bit, for each of a
//! range where they are near, by a hash table otherwise. Anything else becomes bytes, which one
//! buffer holds ([`bytes`]).

pub(crate) mod bytes;
mod encoded;
mod integers;
pub(crate) mod numbers;
pub(crate) mod room;
pub(crate) mod set;
mod table;
pub(crate) mod values;

/// The number of a key that is not there.
pub(crate) const ABSENT: u32 = u32::MAX;

/// Rows whose keys are added together: each may be a new one, for which there is room then.
const ROWS_AT_ONCE: usize = 1 << 10;
