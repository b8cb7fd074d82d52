//! Where the values of a record are.

/// Where a value is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the data.
    Plain,
    /// In the data, with backslashes.
    Escaped,
    /// Put together, from what stood in quotes.
    Quoted,
}

/// A record that is whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marked {
    /// Where the next one begins.
    pub(super) next: usize,
    /// Ends of lines within it, its own included.
    pub(super) lines: u64,
}
