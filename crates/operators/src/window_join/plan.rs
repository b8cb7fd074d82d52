//! Settings shared by all workers of a WINDOW JOIN.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;

use super::index::Kind;
use crate::asof::keys::KeyKind;
use crate::sample_by::plan::AggregatePlan;

/// One end of a window.
#[derive(Debug, Clone)]
pub(crate) struct BoundPlan {
    /// Number of units, evaluated on the left row.
    pub(crate) distance: Arc<dyn PhysicalExpr>,
    pub(crate) unit: i64,
    pub(crate) following: bool,
}

impl BoundPlan {
    /// Whether the distance is the same for all rows.
    pub(crate) fn is_constant(&self) -> bool {
        self.distance.is::<Literal>()
    }

    /// Returns the distance from the timestamp, if it is non-null and the same for all rows.
    pub(crate) fn constant(&self) -> Option<i64> {
        match self.distance.downcast_ref::<Literal>()?.value() {
            ScalarValue::Int64(Some(units)) => Some(self.signed(*units)),
            _ => None,
        }
    }

    /// Converts units to a distance; negative values count as 0.
    pub(crate) fn signed(&self, units: i64) -> i64 {
        let distance = units.max(0).saturating_mul(self.unit);
        if self.following { distance } else { -distance }
    }
}

/// How an aggregate is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Computed {
    /// Computed from an index over ranges of right rows; the arguments refer to the right side.
    Indexed(Kind),
    /// Computed over pairs of rows; the arguments refer to both sides.
    Pairs,
}

/// One aggregate.
#[derive(Debug, Clone)]
pub(crate) struct WindowAggregate {
    pub(crate) plan: AggregatePlan,
    pub(crate) computed: Computed,
}

/// Adds aggregates over the surrounding right rows to each left row.
pub(crate) struct WindowPlan {
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) right_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) keys: Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>,
    pub(crate) key_kind: KeyKind,
    pub(crate) low: BoundPlan,
    pub(crate) high: BoundPlan,
    pub(crate) include_prevailing: bool,
    /// Condition on pairs of rows, if any.
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) aggregates: Vec<WindowAggregate>,
    pub(crate) pair_schema: SchemaRef,
    /// The pair columns that are read by expressions.
    pub(crate) paired: HashSet<usize>,
    /// Timestamp range that contains all windows, if known.
    pub(crate) reach: Option<(i64, i64)>,
}
