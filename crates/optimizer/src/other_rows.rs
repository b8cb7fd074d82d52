//! Reuses a plan for other parameter values, so a prepared statement with parameters in its WHERE
//! clause is planned only once.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

use crate::lower::condition;
use crate::session::PlanSession;
use tidemark_operators::{Facts, FilteredScan, PlanNode, Rows, Scan, SliceScan, Test};

impl PlanSession {
    /// Returns the plan, changed to read `rows` instead of the rows that it was built for. Returns
    /// `None` if the planner might have chosen a different plan for `rows`. The result shares no
    /// execution state with `plan`.
    pub fn reading(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        rows: Rows<'_>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let suits_any_rows = match PlanNode::of(plan.as_ref()) {
            PlanNode::Operator(node) => match node.facts() {
                Facts { scan: Some(scan), .. } => return self.scanning(scan, rows),
                facts => facts.suits_any_rows,
            },
            PlanNode::Projection(_) | PlanNode::Cooperative | PlanNode::GlobalLimit => true,
            _ => false,
        };
        let children = plan.children();
        let (true, [child]) = (suits_any_rows, children.as_slice()) else { return Ok(None) };
        let Some(child) = self.reading(child, rows)? else { return Ok(None) };
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
        Arc::clone(plan).replace_children(vec![child], options).map(Some)
    }

    fn scanning(&self, scan: &Scan, rows: Rows<'_>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        Ok(match scan {
            Scan::Table(_) if rows.predicate.is_some() => None,
            Scan::Table(scan) => scan.reading(rows)?.map(SliceScan::plan),
            Scan::Filtered(filtered) => self.filtered(filtered, rows)?.map(FilteredScan::plan),
        })
    }

    fn filtered(&self, filtered: &FilteredScan, rows: Rows<'_>) -> Result<Option<FilteredScan>> {
        let Some(scan) = filtered.scan().reading(rows)? else { return Ok(None) };
        let predicate = match rows.predicate {
            None => None,
            Some(Test::Lowered(predicate)) => Some(Arc::clone(predicate)),
            Some(Test::Named(predicate)) => match self.lowered_over(filtered, predicate)? {
                None => return Ok(None),
                lowered => lowered,
            },
        };
        Ok(Some(filtered.over(scan, predicate)))
    }

    fn lowered_over(
        &self,
        filtered: &FilteredScan,
        predicate: &Expr,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let Some(names) = filtered.names() else { return Ok(None) };
        condition(predicate, names, filtered.scan(), self)
    }

    /// Lowers a condition to the form that the filter of a reusable plan uses.
    pub fn lowered(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        predicate: &Expr,
    ) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        if let PlanNode::Operator(node) = PlanNode::of(plan.as_ref())
            && let Some(scan) = node.facts().scan
        {
            return match scan {
                Scan::Filtered(filtered) => self.lowered_over(filtered, predicate),
                Scan::Table(_) => Ok(None),
            };
        }
        match plan.children().as_slice() {
            [child] => self.lowered(child, predicate),
            _ => Ok(None),
        }
    }
}
