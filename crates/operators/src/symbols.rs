//! Which table column a symbol expression of a physical plan comes from.

use std::sync::Arc;

use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::LocalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use tidemark_storage::SymbolDictionary;

use crate::asof::exec::AsofJoinExec;
use crate::horizon::exec::HorizonJoinExec;
use crate::order::TimeConcatExec;
use crate::scan::exec::TableScanExec;
use crate::scan::filtered::FilteredScanExec;
use crate::window::exec::WindowsExec;
use crate::window_join::exec::WindowJoinExec;

/// A scan and one of its output columns.
pub(crate) type Origin<'a> = (&'a TableScanExec, usize);

/// The scan column that this expression passes on unchanged, if it is that simple.
pub(crate) fn origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<Origin<'a>> {
    column_origin(plan, expr.downcast_ref::<Column>()?.index(), &mut false)
}

/// As [`origin`], and whether the column holds nulls here, those of the scan or of a join that
/// found no row.
pub(crate) fn nullable_origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<(Origin<'a>, bool)> {
    let mut unmatched = false;
    let index = expr.downcast_ref::<Column>()?.index();
    let (scan, output) = column_origin(plan, index, &mut unmatched)?;
    Some(((scan, output), unmatched || scan.has_nulls(output)))
}

/// `unmatched` becomes true where the column is a join's that may find no row for it.
fn column_origin<'a>(
    plan: &'a Arc<dyn ExecutionPlan>,
    index: usize,
    unmatched: &mut bool,
) -> Option<Origin<'a>> {
    if let Some(scan) = plan.downcast_ref::<TableScanExec>() {
        return Some((scan, index));
    }
    if let Some(filtered) = plan.downcast_ref::<FilteredScanExec>() {
        return Some((filtered.scan(), filtered.column(index)?));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let index = match filter.projection() {
            Some(projection) => *projection.get(index)?,
            None => index,
        };
        return column_origin(filter.input(), index, unmatched);
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let column = projection.expr().get(index)?.expr.downcast_ref::<Column>()?;
        return column_origin(projection.input(), column.index(), unmatched);
    }
    if let Some(join) = plan.downcast_ref::<AsofJoinExec>() {
        let (left, right) = join.inputs();
        let width = left.schema().fields().len();
        return match index.checked_sub(width) {
            None => column_origin(left, index, unmatched),
            Some(index) => {
                *unmatched = true;
                column_origin(right, index, unmatched)
            }
        };
    }
    if let Some(windows) = plan.downcast_ref::<WindowsExec>() {
        let width = windows.input().schema().fields().len();
        return (index < width).then(|| column_origin(windows.input(), index, unmatched))?;
    }
    if let Some(join) = plan.downcast_ref::<WindowJoinExec>() {
        let width = join.left().schema().fields().len();
        return (index < width).then(|| column_origin(join.left(), index, unmatched))?;
    }
    if let Some(join) = plan.downcast_ref::<HorizonJoinExec>() {
        let (input, index) = join.input_of(index)?;
        *unmatched = true;
        return column_origin(input, index, unmatched);
    }
    let passes = plan.is::<CooperativeExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<TimeConcatExec>()
        || plan.is::<SortExec>()
        || plan.is::<SortPreservingMergeExec>();
    if passes { column_origin(plan.children().first()?, index, unmatched) } else { None }
}

/// The dictionary behind a symbol expression, if it comes from one table column.
pub(crate) fn dictionary(
    plan: &Arc<dyn ExecutionPlan>,
    expr: &Arc<dyn PhysicalExpr>,
) -> Option<Arc<SymbolDictionary>> {
    let (scan, output) = origin(plan, expr)?;
    scan.symbols(output)
}
