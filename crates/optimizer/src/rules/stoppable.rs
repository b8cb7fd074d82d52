//! Makes rules cancellable: `DataFusion` never checks for cancellation while it plans.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::analyzer::AnalyzerRule;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::operator_statistics::{
    ExtendedStatistics, StatisticsProvider, StatisticsResult,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use tidemark_operators::check_stop;
use tidemark_types::bounded::folding;

/// Before each application of the inner rule to a node, checks whether the statement may continue.
#[derive(Debug)]
pub(crate) struct Stoppable<R: ?Sized>(pub(crate) Arc<R>);

/// Statistics for choosing joins. They are recomputed at each join; the computation can be
/// cancelled.
#[derive(Debug)]
pub(crate) struct StoppableStatistics;

impl StatisticsProvider for StoppableStatistics {
    fn compute_statistics(
        &self,
        plan: &dyn ExecutionPlan,
        inputs: &[ExtendedStatistics],
    ) -> Result<StatisticsResult> {
        check_stop()?;
        let inputs: Vec<_> = inputs.iter().map(|input| Arc::clone(input.base_arc())).collect();
        let computed = plan.statistics_from_inputs(&inputs, &StatisticsArgs::new())?;
        Ok(StatisticsResult::Computed(ExtendedStatistics::new_arc(computed)))
    }
}

impl AnalyzerRule for Stoppable<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check_stop()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for Stoppable<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        check_stop()?;
        folding(|| self.0.rewrite(plan, config))
    }
}
