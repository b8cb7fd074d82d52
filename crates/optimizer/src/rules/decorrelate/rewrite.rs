//! Replaces parts of expressions.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;

/// Replaces each node for which `part` returns an expression, without descending into the
/// replacement. All such rewrites share this function; otherwise each would compile to tens of
/// kilobytes.
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
