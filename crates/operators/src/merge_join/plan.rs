//! What a join of two ordered sides is asked.

use std::sync::Arc;

use datafusion::common::JoinSide;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::joins::utils::JoinFilter;

use crate::lookup_join::plan::OutputColumn;

/// A join of which both sides are in the order of its key. In [`OutputColumn`] the side that leads
/// is the probe side.
#[derive(Clone)]
pub struct MergeJoin {
    /// The timestamps of the side that leads, and of the other.
    pub(super) times: [Arc<dyn PhysicalExpr>; 2],
    /// Whether rows of the side that leads stay that find no other.
    pub(super) outer: bool,
    /// What has to hold of a pair beside equal times; of an inner join alone.
    pub(super) filter: Option<JoinFilter>,
    /// Which side of the condition leads.
    pub(super) leads: JoinSide,
    pub(super) output: Vec<OutputColumn>,
    /// Which columns of the output are equal or constant.
    pub(super) equal: EquivalenceProperties,
    /// Whether the other side's batches are parts of mapped files.
    pub(super) is_mapped: bool,
}
