//! Parts of expressions in the place of others.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;

/// The expression with what `part` gives for a node in its place; what is given is not looked into.
/// All such walks share one unit of code: each would have tens of kilobytes of its own otherwise.
pub(super) fn rewritten(
    expr: Expr,
    part: &mut dyn FnMut(&Expr) -> Result<Option<Expr>>,
) -> Result<Expr> {
    expr.transform_down(|node| {
        Ok(match part(&node)? {
            Some(part) => Transformed::new(part, true, TreeNodeRecursion::Jump),
            None => Transformed::no(node),
        })
    })
    .data()
}
