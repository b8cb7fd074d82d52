//! The physical rule that chooses the sides of joins: `DataFusion`'s for all but those that keep an
//! order which is read.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::join_selection::JoinSelection;
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::OrderedJoin;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct SelectJoins(pub(crate) JoinSelection);

impl SelectJoins {
    /// `choose` for the joins of `plan` that keep no order.
    fn around(
        plan: Arc<dyn ExecutionPlan>,
        choose: impl FnOnce(Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !OrderedJoin::is_in(&plan)? {
            return choose(plan);
        }
        OrderedJoin::decided(choose(OrderedJoin::where_read(plan, true)?)?)
    }
}

impl PhysicalOptimizerRule for SelectJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::around(plan, |plan| self.0.optimize(plan, config))
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Self::around(plan, |plan| self.0.optimize_with_context(plan, context))
    }

    fn name(&self) -> &'static str {
        "SelectJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
