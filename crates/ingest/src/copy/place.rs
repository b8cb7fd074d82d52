//! Positions of the values of a record.

/// The position of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the input data.
    Plain,
    /// In the input data, with backslash escapes.
    Escaped,
    /// Assembled from quoted text.
    Quoted,
}

/// A complete record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marked {
    /// Start of the next record.
    pub(super) next: usize,
    /// Number of line ends in the record, including its own.
    pub(super) lines: u64,
}
