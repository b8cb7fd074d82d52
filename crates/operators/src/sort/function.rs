//! Window functions of a row's place in an order.

/// What a row is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    RowNumber,
    Rank,
    DenseRank,
}

impl Place {
    /// What a window function of this name gives.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "row_number" => Self::RowNumber,
            "rank" => Self::Rank,
            "dense_rank" => Self::DenseRank,
            _ => return None,
        })
    }
}
