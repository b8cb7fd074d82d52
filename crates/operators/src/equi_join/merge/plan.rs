//! What a join of two ordered sides is asked.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;

use crate::equi_join::join::{EquiJoin, Kind};

/// A join of which both sides are in the order of its key; the first one leads.
#[derive(Clone)]
pub(crate) struct MergeJoin {
    /// An inner join, or an outer one without a condition.
    pub(super) join: EquiJoin,
    /// The timestamps of the side that leads, and of the other.
    pub(super) times: [Arc<dyn PhysicalExpr>; 2],
    /// Whether the other side's batches are parts of mapped files.
    pub(super) is_mapped: bool,
}

impl MergeJoin {
    /// Whether rows of the side that leads stay that find no other.
    pub(super) fn is_outer(&self) -> bool {
        self.join.kind == Kind::Outer
    }
}
