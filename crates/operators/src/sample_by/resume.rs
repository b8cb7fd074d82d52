//! Plans whose aggregation resumes from the state of an earlier execution.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Extension, LogicalPlan};

use super::group_cache::GroupCache;
use super::node::SampleByNode;
use crate::bucket::Alignment;
use crate::logical::LogicalNode;

impl GroupCache {
    /// Returns the plan with an aggregation that resumes from this cache and stores its state
    /// there. Returns `None` if a result row depends on anything other than one table's rows in one
    /// bucket.
    pub fn in_plan(&self, plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
        let (mut aggregations, mut is_plain) = (0, true);
        plan.apply(|node| {
            match node {
                LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::TableScan(_) => {}
                node => match LogicalNode::of_plan(node) {
                    Some(LogicalNode::SampleBy(node)) if has_calendar(node) => aggregations += 1,
                    _ => is_plain = false,
                },
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        if aggregations != 1 || !is_plain {
            return Ok(None);
        }
        let resumed = plan.transform_down(|node| {
            let Some(LogicalNode::SampleBy(found)) = LogicalNode::of_plan(&node) else {
                return Ok(Transformed::no(node));
            };
            let node: Arc<SampleByNode> = Arc::new(found.clone().keeping(self.clone()));
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
        })?;
        Ok(Some(resumed.data))
    }
}

/// Whether the buckets are calendar buckets over all rows.
fn has_calendar(node: &SampleByNode) -> bool {
    node.bucket().is_some_and(|bucket| {
        let spec = &bucket.spec;
        let is_calendar = matches!(spec.alignment, Alignment::Calendar { .. });
        is_calendar && spec.from.is_none() && spec.to.is_none()
    })
}
