//! Cached plans, which are reused for the same or for different parameter values.

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

/// A query with its physical plan.
#[derive(Debug, Clone)]
pub(crate) struct PlannedQuery {
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) columns: Vec<Field>,
    pub(crate) timestamp: Option<usize>,
    /// The epoch in which the result is constant: the query reads no table, and returns the same
    /// rows to all users. `None` if no such epoch exists.
    pub(crate) constant_in: Option<u64>,
}

/// A cached plan, with its results and the data needed to adapt it to other parameter values.
#[derive(Debug)]
pub(crate) struct CachedPlan {
    pub(crate) query: PlannedQuery,
    /// For a query with parameters: adapts the plan, which was made for specific values, to
    /// different ones.
    pub(crate) values: Option<OtherValues>,
    pub(crate) results: CachedResults,
}

/// Adapts a plan to different parameter values. Requires all parameters to occur in the query's
/// WHERE conditions.
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

    /// Returns the plan for its original values; `None` if the query must be planned again.
    pub(crate) fn for_same_values(
        &self,
        session: &PlanSession,
    ) -> EngineResult<Option<PlannedQuery>> {
        match &self.values {
            Some(values) => self.reading(session, values.conditions.ranges(), None),
            None => self.to_execute().map(Some),
        }
    }

    /// Returns a copy of the plan for execution. During an execution, operators attach state to
    /// their plan nodes (a join's build side, spilled files). The cached plan itself is never
    /// executed, because it would then retain that state.
    pub(crate) fn to_execute(&self) -> EngineResult<PlannedQuery> {
        let plan = reset_plan_states(Arc::clone(self.plan())).map_err(from_datafusion)?;
        Ok(PlannedQuery { plan, ..self.query.clone() })
    }

    /// Returns the plan adapted to other ranges and predicates; `None` if the plan cannot be
    /// adapted and the query must be planned again.
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

/// Whether the plan contains a function that must be evaluated for each execution, such as random
/// values or sequences.
pub(crate) fn is_volatile(plan: &LogicalPlan) -> EngineResult<bool> {
    any_expression(plan, Expr::is_volatile)
}

/// Whether the plan computes a string or array whose length depends on a row or a parameter value.
pub(crate) fn has_computed_length(plan: &LogicalPlan) -> EngineResult<bool> {
    let is_long = |expr: &Expr| Ok(tidemark_functions::has_computed_length(expr));
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
