//! Rules of `DataFusion` that are left out where they take seconds: nothing stops them meanwhile.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tidemark_operators::LogicalNode;

/// `DataFusion`'s coercion of types where a plan has windows: their frame bounds are typed by it
/// alone. All other operands the binder has cast, and the rule takes a second for a condition of
/// 9,000 terms.
#[derive(Debug)]
pub(crate) struct CoerceFrames(pub(crate) TypeCoercion);

impl AnalyzerRule for CoerceFrames {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_window = |node: &LogicalPlan| {
            matches!(node, LogicalPlan::Window(_))
                || matches!(LogicalNode::of_plan(node), Some(LogicalNode::Windows(_)))
        };
        if plan.exists(|node| Ok(is_window(node)))? {
            self.0.analyze(plan, config)
        } else {
            Ok(plan)
        }
    }

    fn name(&self) -> &'static str {
        "coerce_frames"
    }
}

/// Comparisons of names beyond which [`NarrowInputs`] leaves a plan as it is.
const MANY_COMPARISONS: usize = 8_000_000;

/// `DataFusion`'s pruning of columns, which looks each one up by name among all: where thousands
/// are computed of thousands (PIVOT by as many values) that takes seconds.
#[derive(Debug)]
pub(crate) struct NarrowInputs(pub(crate) OptimizeProjections);

impl OptimizerRule for NarrowInputs {
    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if most_comparisons(&plan)? > MANY_COMPARISONS {
            return Ok(Transformed::no(plan));
        }
        self.0.rewrite(plan, config)
    }

    fn name(&self) -> &'static str {
        "narrow_inputs"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }
}

/// Of the projection with most: columns that it makes × columns that it makes them of.
fn most_comparisons(plan: &LogicalPlan) -> Result<usize> {
    let mut most = 0;
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node {
            let columns = projection.input.schema().fields().len();
            most = most.max(columns.saturating_mul(projection.expr.len()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(most)
}
