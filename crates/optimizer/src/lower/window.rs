//! Window functions over rows in a specific order.

use std::sync::Arc;

use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::Window;
use datafusion::physical_plan::InputOrderMode;
use datafusion::physical_plan::windows::{
    BoundedWindowAggExec, WindowAggExec, get_best_fitting_window,
};
use datafusion::physical_planner::create_window_expr;
use tidemark_operators::RankRows;

use super::planned::{Plan, Planned, Requirements};
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn window(&self, node: &Window, requirements: &Requirements) -> Result<Planned> {
        let input = self.node(&node.input, &Requirements::all(&node.input).in_any_order())?;
        let props = self.session.execution_props();
        let functions = node
            .window_expr
            .iter()
            .map(|expr| create_window_expr(expr, &node.schema, props, self.context()))
            .collect::<Result<Vec<_>>>()?;
        let Some(keys) = functions.first().map(|function| function.partition_by().to_vec()) else {
            return plan_err!("a window node has no function");
        };
        let is_bounded = functions.iter().all(|function| function.uses_bounded_memory());
        let is_spread = self.workers() > 1;
        let input = input.plan;
        let window: Plan = if is_bounded {
            let mode = InputOrderMode::Sorted;
            let input = Arc::clone(&input);
            let window = BoundedWindowAggExec::try_new(functions.clone(), input, mode, is_spread)?;
            Arc::new(window)
        } else {
            Arc::new(WindowAggExec::try_new(functions.clone(), Arc::clone(&input), is_spread)?)
        };
        let plan = if let Some(ranks) = RankRows::try_replace(&window)? {
            ranks
        } else {
            // Avoids another sort if the existing row order is suitable.
            get_best_fitting_window(&functions, &input, &keys, None)?.unwrap_or(window)
        };
        let plan = self.with_inputs(&plan)?;
        Planned { plan, schema: Arc::clone(&node.schema) }.narrowed(requirements)
    }
}
