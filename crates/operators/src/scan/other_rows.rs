//! A plan made for some values of parameters, for others: so a prepared statement whose parameters
//! are in its WHERE is planned once.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::ProjectionExec;
use tidemark_storage::TimeRange;

use super::exec::TableScanExec;
use super::filtered::FilteredScanExec;
use crate::fill::exec::FillExec;
use crate::one_table::condition;
use crate::sample_by::exec::SampleByExec;
use crate::session::PlanSession;

/// What a plan reads of its table.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The ranges it read by, none for all.
    pub known: &'a [TimeRange],
    /// The ranges it is to read by.
    pub ranges: &'a [TimeRange],
    /// What is to hold for its rows; `None`: what it was before.
    pub predicate: Option<&'a Expr>,
}

impl PlanSession {
    /// The plan that reads these rows in place of those it was made for; `None` where the planner
    /// might have made another one of them. It shares no state of execution with `plan`.
    pub fn reading(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        rows: Rows<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = plan.downcast_ref::<TableScanExec>() {
            let scan = if rows.predicate.is_some() { None } else { scan.reading(rows)? };
            return Ok(scan.map(|scan| Arc::new(scan) as _));
        }
        if let Some(filtered) = plan.downcast_ref::<FilteredScanExec>() {
            let filtered = self.filtered(filtered, rows)?;
            return Ok(filtered.map(|filtered| Arc::new(filtered) as _));
        }
        // These do the same whatever rows they read.
        let is_indifferent = plan.is::<ProjectionExec>()
            || plan.is::<CooperativeExec>()
            || plan.is::<GlobalLimitExec>()
            || plan.is::<SampleByExec>()
            || plan.is::<FillExec>();
        let children = plan.children();
        let (true, [child]) = (is_indifferent, children.as_slice()) else { return Ok(None) };
        let Some(child) = self.reading(child, rows)? else { return Ok(None) };
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Arc::clone(plan).replace_children(vec![child], options).map(Some)
    }

    fn filtered(
        &self,
        filtered: &FilteredScanExec,
        rows: Rows<'_>,
    ) -> Result<Option<FilteredScanExec>> {
        let Some(scan) = filtered.scan().reading(rows)? else { return Ok(None) };
        let Some(predicate) = rows.predicate else { return Ok(Some(filtered.over(scan, None))) };
        let Some(names) = filtered.names() else { return Ok(None) };
        let predicate = condition(predicate, names, &scan, self.state())?;
        Ok(predicate.map(|predicate| filtered.over(scan, Some(predicate))))
    }
}
