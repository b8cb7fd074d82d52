//! The physical rule that makes groups once where a plan has them more than once. Runs when each
//! has its last form: what only differs in how it was written has become equal.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::SharedRows;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct ShareRows;

impl PhysicalOptimizerRule for ShareRows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        SharedRows::in_plan(plan)
    }

    fn name(&self) -> &'static str {
        "ShareRows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
