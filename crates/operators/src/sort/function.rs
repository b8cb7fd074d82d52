//! Window functions that return a row's position in an ordering.

/// What the function returns for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    RowNumber,
    Rank,
    DenseRank,
}

impl Place {
    /// Returns the function with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "row_number" => Self::RowNumber,
            "rank" => Self::Rank,
            "dense_rank" => Self::DenseRank,
            _ => return None,
        })
    }
}
