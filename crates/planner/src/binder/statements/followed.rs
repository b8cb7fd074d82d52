//! Queries that a table's change feed supports. Such a query returns rows from one table, and
//! whether a row is included does not depend on other rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use tidemark_operators::SnapshotTable;
use tidemark_storage::{TableId, TableSnapshot, TimeRange};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::binder::error;

fn refused(why: &str) -> EngineError {
    let message = format!("a change feed cannot follow this query: {why}");
    EngineError::new(ErrorCode::NotSupported, message)
        .with_hint("use SELECT columns FROM table WHERE condition")
}

/// The table from which a query returns rows.
pub(crate) fn table_of(plan: &LogicalPlan) -> EngineResult<TableId> {
    let mut node = plan;
    loop {
        for expr in node.expressions() {
            check(&expr)?;
        }
        node = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::TableScan(scan) if scan.fetch.is_none() => {
                let provider = source_as_provider(&scan.source).map_err(error::plan)?;
                let Some(table) = provider.downcast_ref::<SnapshotTable>() else {
                    return Err(refused("it does not read any table of the database"));
                };
                return Ok(table.table().schema().id);
            }
            _ => return Err(refused("it does more than select rows from one table")),
        };
    }
}

/// Rejects expressions that depend on anything other than the row.
fn check(expr: &Expr) -> EngineResult<()> {
    let mut why = None;
    expr.apply(|node| {
        match node {
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => {
                why = Some("it contains a sub-query");
            }
            node if node.is_volatile_node() => why = Some("it is not deterministic"),
            _ => return Ok(TreeNodeRecursion::Continue),
        }
        Ok(TreeNodeRecursion::Stop)
    })
    .map_err(error::plan)?;
    why.map_or(Ok(()), |why| Err(refused(why)))
}

/// The same plan over different rows of its table.
pub(crate) fn over(
    plan: LogicalPlan,
    table: &Arc<TableSnapshot>,
    ranges: &[TimeRange],
) -> EngineResult<LogicalPlan> {
    let moved = plan.transform_down(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let provider = source_as_provider(&scan.source)?;
        let Some(known) = provider.downcast_ref::<SnapshotTable>() else {
            return Ok(Transformed::no(node));
        };
        let moved = known.over(Arc::clone(table));
        let moved = if ranges.is_empty() { moved } else { moved.narrowed(ranges) };
        let scan = TableScan { source: provider_as_source(Arc::new(moved)), ..scan.clone() };
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    Ok(moved.map_err(error::plan)?.data)
}
