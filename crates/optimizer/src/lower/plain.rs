//! Plans that are lowered as the binder built them, because no logical rule would improve them.
//!
//! Most statements in a time-series database are of this kind, and a prepared statement is planned
//! for each execution. The logical rules traverse a plan many times and rebuild parts of it.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, UserDefinedLogicalNodeCore};
use tidemark_operators::{LogicalNode, SnapshotTable};
use tidemark_types::bounded::grown;

use super::planned::is_over;

/// Whether a plan needs no logical rules: it reads one table, each filter is directly above its
/// scan, and no expression contains a sub-query.
pub(crate) fn is_plain(plan: &LogicalPlan) -> bool {
    grown(|| match plan {
        LogicalPlan::TableScan(scan) => is_own(scan),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_plain(&alias.input),
        LogicalPlan::Filter(filter) => {
            let is_above_scan =
                matches!(filter.input.as_ref(), LogicalPlan::Filter(_) | LogicalPlan::TableScan(_));
            is_above_scan
                && is_over(&filter.predicate, filter.input.schema())
                && is_plain(&filter.input)
        }
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema();
            projection.expr.iter().all(|expr| is_over(expr, schema)) && is_plain(&projection.input)
        }
        LogicalPlan::Limit(limit) => is_plain(&limit.input),
        LogicalPlan::Sort(sort) => {
            let schema = sort.input.schema();
            let keys = sort.expr.iter().map(|key| &key.expr);
            are_plain(keys, schema) && is_plain(&sort.input)
        }
        LogicalPlan::Extension(_) => is_plain_node(plan),
        _ => false,
    })
}

fn is_plain_node(plan: &LogicalPlan) -> bool {
    match LogicalNode::of_plan(plan) {
        Some(LogicalNode::LatestOn(node)) => {
            let exprs = std::iter::once(node.timestamp()).chain(node.keys());
            are_plain(exprs, node.input().schema()) && is_plain(node.input())
        }
        Some(LogicalNode::LastRows(node)) => is_plain(node.input()),
        Some(LogicalNode::SampleBy(node)) => {
            let bucket = node.bucket().map(|bucket| &bucket.timestamp);
            let exprs = bucket.into_iter().chain(node.keys()).chain(node.aggregates());
            are_plain(exprs, node.input().schema()) && is_plain(node.input())
        }
        Some(LogicalNode::Fill(node)) => is_plain(node.inputs()[0]),
        _ => false,
    }
}

fn are_plain<'e>(exprs: impl IntoIterator<Item = &'e Expr>, schema: &DFSchema) -> bool {
    exprs.into_iter().all(|expr| !is_foldable(expr) && is_over(expr, schema))
}

/// Whether a scan reads a Tidemark table.
pub(super) fn is_own(scan: &TableScan) -> bool {
    source_as_provider(&scan.source)
        .is_ok_and(|provider| provider.downcast_ref::<SnapshotTable>().is_some())
}

/// Whether some sub-expression is computed only from literals.
pub(super) fn is_foldable(expr: &Expr) -> bool {
    let computed = |expr: &Expr| {
        let (mut operands, mut literals) = (0, 0);
        let count = |operand: &Expr| {
            operands += 1;
            literals += usize::from(matches!(operand, Expr::Literal(..)));
            Ok(TreeNodeRecursion::Continue)
        };
        let named = matches!(expr, Expr::Alias(_) | Expr::AggregateFunction(_));
        let counted = named || expr.apply_children(count).is_ok();
        !named && counted && operands > 0 && operands == literals && !expr.is_volatile_node()
    };
    expr.exists(|expr| Ok(computed(expr))).unwrap_or(true)
}
