//! Lets a query be cancelled while a join multiplies rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{CrossJoinExec, NestedLoopJoinExec};
use tidemark_types::EngineResult;

use crate::errors::from_datafusion;

/// Wraps joins that compare all pairs of rows. `EnsureCooperative` makes leaves yield, but such
/// a join reads a leaf rarely: each batch of one side meets every row of the other, and an
/// aggregate above it would take all of that in one poll.
pub(crate) fn let_joins_yield(
    plan: Arc<dyn ExecutionPlan>,
) -> EngineResult<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let multiplies = node.is::<NestedLoopJoinExec>() || node.is::<CrossJoinExec>();
        Ok(if multiplies {
            Transformed::yes(Arc::new(CooperativeExec::new(node)) as Arc<dyn ExecutionPlan>)
        } else {
            Transformed::no(node)
        })
    })
    .map(|transformed| transformed.data)
    .map_err(from_datafusion)
}
