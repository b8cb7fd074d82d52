//! `DataFusion` rules that cannot be cancelled. They are skipped where they would take seconds.

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

/// `DataFusion`'s type coercion, applied only to plans with windows: no other rule assigns types to
/// their frame bounds. The binder has already cast all other operands, and the rule takes a second
/// on a condition with 9,000 terms.
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

/// Maximum number of name comparisons. Beyond this, [`NarrowInputs`] leaves a plan unchanged.
const MANY_COMPARISONS: usize = 8_000_000;

/// `DataFusion`'s column pruning, which looks up each column by name. This takes seconds when
/// thousands of columns are computed from thousands of others, as in a PIVOT with that many values.
#[derive(Debug)]
pub(crate) struct NarrowInputs(pub(crate) OptimizeProjections);

impl OptimizerRule for NarrowInputs {
    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if max_comparisons(&plan)? > MANY_COMPARISONS {
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

/// Returns the largest product of output column count and input column count over all projections.
fn max_comparisons(plan: &LogicalPlan) -> Result<usize> {
    let mut max = 0;
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node {
            let columns = projection.input.schema().fields().len();
            max = max.max(columns.saturating_mul(projection.expr.len()));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(max)
}
