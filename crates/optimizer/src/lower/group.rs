//! GROUP BY: time buckets, slots, many keys, or `DataFusion`'s two-phase aggregation.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::Aggregate;
use datafusion::logical_expr::expr::physical_name;
use datafusion::physical_expr::aggregate::LoweredAggregateBuilder;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use tidemark_operators::{GroupRows, SampleByPlan, first_step, in_one_step};

use super::planned::{Plan, Planned, Requirements, columns_of};
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn aggregate(
        &self,
        node: &Aggregate,
        requirements: &Requirements,
    ) -> Result<Planned> {
        let exprs = node.group_expr.iter().chain(&node.aggr_expr);
        let columns = columns_of(exprs, node.input.schema())?;
        let below = Requirements { accepts_extra_columns: true, ..Requirements::columns(columns) };
        let input = self.node(&node.input, &below.in_any_order())?;
        let keys = self.exprs(&node.group_expr, &input.schema)?;
        let names = node.group_expr.iter().map(physical_name).collect::<Result<Vec<_>>>()?;
        let keys = PhysicalGroupBy::new_single(keys.into_iter().zip(names).collect());
        let schema = input.plan.schema();
        let (mut functions, mut filters) = (vec![], vec![]);
        for expr in &node.aggr_expr {
            let props = self.session.execution_props();
            let context = self.context();
            let lowered =
                LoweredAggregateBuilder::new(expr, &input.schema, &schema, props, context);
            let lowered = lowered.build()?;
            functions.push(lowered.aggregate);
            filters.push(lowered.filter);
        }
        let is_spread = !keys.is_empty() && self.workers() > 1;
        let first = AggregateExec::try_new(
            AggregateMode::Partial,
            keys.clone(),
            functions,
            filters.clone(),
            input.plan,
            Arc::clone(&schema),
        )?;
        // Takes the aggregates from the first phase, which may have replaced one with an equivalent
        // that suits the row order.
        let functions = first.aggr_expr().to_vec();
        let mode = if is_spread { AggregateMode::FinalPartitioned } else { AggregateMode::Final };
        let first = Arc::new(first);
        let last =
            AggregateExec::try_new(mode, keys.as_final(), functions, filters, first, schema)?;
        let plan: Plan = Arc::new(last);
        let plan = if requirements.in_two_steps { plan } else { self.grouped(plan)? };
        Planned { plan, schema: Arc::clone(&node.schema) }.narrowed(requirements)
    }

    /// Replaces a two-phase aggregation with the best operator if nothing lies between its phases;
    /// returns other plans unchanged.
    pub(super) fn grouped(&self, plan: Plan) -> Result<Plan> {
        let Some(first) = first_step(&plan) else { return Ok(plan) };
        let own = match SampleByPlan::try_replace(&plan)? {
            None => match SampleByPlan::by_slots(&plan)? {
                None => GroupRows::try_replace(&plan, self.workers())?,
                own => own,
            },
            own => own,
        };
        if let Some(own) = own {
            let known: Vec<_> = first.children().into_iter().map(Arc::clone).collect();
            return self.with_inputs_above(&known, &own);
        }
        let first = self.with_inputs(first)?;
        let last = replace_children_if_necessary(plan, vec![first])?;
        let last = self.with_inputs(&last)?;
        Ok(in_one_step(&last)?.unwrap_or(last))
    }
}
