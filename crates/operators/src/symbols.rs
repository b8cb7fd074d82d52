//! Finds the table column that a symbol expression in a physical plan originates from.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_storage::SymbolDictionary;

use crate::plan_node::PlanNode;
use crate::scan::exec::SliceScan;

/// What a column must share with the scan: its values in scan order, or its symbol keys. Sorted or
/// merged rows have the scan's values. If the rows were spilled, their symbol keys differ, because
/// each spill file is read with a separate dictionary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cells {
    Values,
    SymbolKeys,
}

/// A scan and one of its output columns.
pub(crate) type Origin<'a> = (&'a SliceScan, usize);

/// Returns the scan column that this expression passes through unchanged; `None` for any other
/// expression.
pub fn origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<Origin<'a>> {
    column_origin(plan, expr.downcast_ref::<Column>()?.index(), Cells::Values, &mut false)
}

/// Like [`origin`], but also returns whether the column may be null here because of the scan or
/// because of a join without a match.
pub(crate) fn nullable_origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<(Origin<'a>, bool)> {
    let mut unmatched = false;
    let index = expr.downcast_ref::<Column>()?.index();
    let (scan, output) = column_origin(plan, index, Cells::SymbolKeys, &mut unmatched)?;
    Some(((scan, output), unmatched || scan.has_nulls(output)))
}

/// Finds the scan column that a column originates from. Sets `unmatched` if a join between the two
/// may leave the column without a match.
fn column_origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    index: usize,
    cells: Cells,
    unmatched: &mut bool,
) -> Option<Origin<'a>> {
    let (input, index) = match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(node) => {
            if let Some(scan) = node.facts().scan {
                return Some((scan.table(), scan.column(index)?));
            }
            let (input, index, may_lack) = node.lineage(index)?;
            // Rows are in the order of the first input.
            if cells == Cells::Values && !std::ptr::eq(input, *plan.children().first()?) {
                return None;
            }
            *unmatched |= may_lack;
            (input, index)
        }
        PlanNode::Filter(filter) => {
            let index = match filter.projection() {
                Some(projection) => *projection.get(index)?,
                None => index,
            };
            (filter.input(), index)
        }
        PlanNode::Projection(projection) => {
            let column = projection.expr().get(index)?.expr.downcast_ref::<Column>()?;
            (projection.input(), column.index())
        }
        PlanNode::Cooperative | PlanNode::LocalLimit | PlanNode::Values => {
            (*plan.children().first()?, index)
        }
        PlanNode::Sort(_) | PlanNode::Merge(_) if cells == Cells::Values => {
            (*plan.children().first()?, index)
        }
        _ => return None,
    };
    column_origin(input, index, cells, unmatched)
}

/// Returns the dictionary of a symbol expression, if it comes from a single table column.
pub(crate) fn dictionary(
    plan: &Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<Arc<SymbolDictionary>> {
    let index = expr.downcast_ref::<Column>()?.index();
    let (scan, output) = column_origin(plan, index, Cells::SymbolKeys, &mut false)?;
    scan.symbols(output)
}
