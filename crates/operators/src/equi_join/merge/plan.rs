//! Describes a join of two ordered sides.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;

use crate::equi_join::join::{EquiJoin, Kind};

/// A join of two sides that are both ordered by its key; the first side leads.
#[derive(Clone)]
pub(crate) struct MergeJoin {
    /// An inner join, or an outer join without a condition.
    pub(super) join: EquiJoin,
    /// Timestamps of the leading side and of the other side.
    pub(super) times: [Arc<dyn PhysicalExpr>; 2],
    /// Whether the other side's batches are slices of mapped files.
    pub(super) is_mapped: bool,
}

impl MergeJoin {
    /// Whether the leading side's unmatched rows are returned.
    pub(super) fn is_outer(&self) -> bool {
        self.join.kind == Kind::Outer
    }
}
