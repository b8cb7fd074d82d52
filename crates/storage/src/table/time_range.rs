//! Stretches of time.

/// First and last instant of rows.
pub(crate) type Span = (i64, i64);

/// Half-open range of timestamps in the column's own unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// First instant in the range.
    pub lo: i64,
    /// First instant after the range.
    pub hi: i64,
}
