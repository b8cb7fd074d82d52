//! Plans whose window functions resume from the state of an earlier execution.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Extension, LogicalPlan};

use super::cache::WindowCache;
use super::node::WindowNode;
use crate::logical::LogicalNode;

impl WindowCache {
    /// Returns the plan with window functions that resume from this state and store their final
    /// state in it. Rows at the latest timestamp that have already been processed are skipped.
    pub fn in_plan(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let is_window = |node: &LogicalPlan| {
            matches!(LogicalNode::of_plan(node), Some(LogicalNode::Windows(_)))
        };
        let mut count = 0;
        plan.apply(|node| {
            count += usize::from(is_window(node));
            Ok(TreeNodeRecursion::Continue)
        })?;
        // Nodes are visited from the top down, so the last node visited is the first to receive
        // rows.
        let mut slots = self.slots(count);
        let resumed = plan.transform_down(|node| {
            let Some(LogicalNode::Windows(window)) = LogicalNode::of_plan(&node) else {
                return Ok(Transformed::no(node));
            };
            let Some(slot) = slots.next() else { return Ok(Transformed::no(node)) };
            let node: Arc<WindowNode> = Arc::new(window.clone().keeping(slot));
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
        })?;
        Ok(resumed.data)
    }
}
