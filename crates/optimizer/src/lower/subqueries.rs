//! Scalar sub-queries: each is a separate plan, which runs before the enclosing rows are read.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{HashMap, Result};
use datafusion::logical_expr::physical_planning_context::{
    PhysicalPlanningContext, ScalarSubqueryResults, SubqueryIndex,
};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};

use super::inputs::in_one_partition;
use super::planned::Plan;

/// The sub-queries in a plan's expressions, excluding nested ones.
pub(super) struct Subqueries {
    plans: Vec<ScalarSubqueryLink>,
    context: PhysicalPlanningContext,
}

impl Subqueries {
    pub(super) fn of(
        logical: &LogicalPlan,
        lowered: impl Fn(&LogicalPlan) -> Result<Plan>,
    ) -> Result<Self> {
        let found = values_of(logical)?;
        let (mut plans, mut indexes) = (vec![], HashMap::with_capacity(found.len()));
        for subquery in found {
            if indexes.contains_key(&subquery) {
                continue;
            }
            let index = SubqueryIndex::new(plans.len());
            let plan = in_one_partition(lowered(&subquery.subquery)?, true);
            plans.push(ScalarSubqueryLink { plan, index });
            indexes.insert(subquery, index);
        }
        let results = ScalarSubqueryResults::new(plans.len());
        Ok(Self { plans, context: PhysicalPlanningContext::new(indexes, results) })
    }

    /// Returns the context that provides the sub-queries' values.
    pub(super) fn context(&self) -> &PhysicalPlanningContext {
        &self.context
    }

    /// Adds the sub-queries to run before the plan.
    pub(super) fn before(self, plan: Plan) -> Plan {
        if self.plans.is_empty() {
            return plan;
        }
        let results = self.context.results().clone();
        Arc::new(ScalarSubqueryExec::new(plan, self.plans, results))
    }
}

fn values_of(logical: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found = vec![];
    logical.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}
