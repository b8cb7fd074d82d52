//! Positions of the values within a record.

/// The position of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValuePosition {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value is in the input data.
    Plain,
    /// The value is in the input data and contains backslash escapes.
    Escaped,
    /// The value was assembled from quoted parts.
    Quoted,
}

/// A complete record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marked {
    /// Start position of the next record.
    pub(super) next: usize,
    /// Number of line ends in the record, including its last one.
    pub(super) lines: u64,
}
