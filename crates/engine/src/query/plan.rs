//! Plans that are cached, for the values they were made for or for others.

use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use tidemark_operators::{Rows, Test, from_datafusion};
use tidemark_optimizer::PlanSession;
use tidemark_planner::Conditions;
use tidemark_storage::TimeRange;
use tidemark_types::{EngineResult, Field};

use super::QueryCache;
use super::results::CachedResults;
use super::symbols::NamedTest;

/// A query that needs no more planning.
#[derive(Debug, Clone)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) columns: Vec<Field>,
    pub(crate) timestamp: Option<usize>,
    /// The epoch during which everyone gets the same rows at once: no table is read for them.
    pub(crate) constant_in: Option<u64>,
}

/// A plan with what serves its next execution.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) query: PlannedQuery,
    /// Of a query with parameters, whose plan was made for one value of each.
    pub(crate) values: Option<OtherValues>,
    pub(crate) results: CachedResults,
}

/// How a plan serves other values of its parameters: all of them are in the conditions of its
/// WHERE.
#[derive(Debug)]
pub(crate) struct OtherValues {
    pub(crate) conditions: Conditions,
    pub(crate) named: NamedTest,
}

impl CachedPlan {
    pub(crate) fn new(
        query: PlannedQuery,
        conditions: Option<Conditions>,
        cache: &QueryCache,
    ) -> Self {
        let values =
            conditions.map(|conditions| OtherValues { conditions, named: NamedTest::default() });
        Self { query, values, results: CachedResults::new(&cache.results) }
    }

    pub(crate) fn plan(&self) -> &Arc<dyn ExecutionPlan> {
        &self.query.plan
    }

    pub(crate) fn constant_in(&self) -> Option<u64> {
        self.query.constant_in
    }

    /// The plan for the values it was made for; `None` where it serves no others.
    pub(crate) fn for_same_values(
        &self,
        session: &PlanSession,
    ) -> EngineResult<Option<PlannedQuery>> {
        match &self.values {
            Some(values) => self.reading(session, values.conditions.ranges(), None),
            None => self.to_execute().map(Some),
        }
    }

    /// A copy to be executed. Operators hang what one execution builds (the rows of a join, spilled
    /// files) on their plan's nodes, so what is cached is never executed itself: it would hold them
    /// for as long as it is cached.
    pub(crate) fn to_execute(&self) -> EngineResult<PlannedQuery> {
        let plan = reset_plan_states(Arc::clone(self.plan())).map_err(from_datafusion)?;
        Ok(PlannedQuery { plan, ..self.query.clone() })
    }

    /// The plan for other rows; `None` where it has to be planned.
    pub(crate) fn reading(
        &self,
        session: &PlanSession,
        ranges: &[TimeRange],
        predicate: Option<Test<'_>>,
    ) -> EngineResult<Option<PlannedQuery>> {
        let known = self.values.as_ref().map_or(&[][..], |values| values.conditions.ranges());
        let rows = Rows { known, ranges, predicate };
        let plan = session.reading(self.plan(), rows).map_err(from_datafusion)?;
        Ok(plan.map(|plan| PlannedQuery { plan, ..self.query.clone() }))
    }
}

/// Whether a function in it is made for one execution: random values, sequences.
pub(crate) fn is_volatile(plan: &LogicalPlan) -> EngineResult<bool> {
    any_expression(plan, Expr::is_volatile)
}

/// Whether a number of the rows, or a parameter, decides how long a text or an array is that the
/// plan computes.
pub(crate) fn is_as_long_as_said(plan: &LogicalPlan) -> EngineResult<bool> {
    let is_long = |expr: &Expr| Ok(tidemark_functions::is_as_long_as_said(expr));
    any_expression(plan, |expr| expr.exists(is_long).unwrap_or(true))
}

fn any_expression(plan: &LogicalPlan, is_wanted: impl Fn(&Expr) -> bool) -> EngineResult<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= node.expressions().iter().any(&is_wanted);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
    .map_err(from_datafusion)?;
    Ok(found)
}
