//! The physical rule that merges two large sides by their time, before they are spread by the
//! hashes of it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::MergeJoin;

/// See the file's head.
#[derive(Debug)]
pub(crate) struct MergeJoins;

impl PhysicalOptimizerRule for MergeJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // One worker holds the left side of every join, however many rows it has.
        let most_held = match config.execution.target_partitions {
            1 => config.optimizer.hash_join_single_partition_threshold_rows,
            _ => usize::MAX,
        };
        MergeJoin::choose(plan, most_held)
    }

    fn name(&self) -> &'static str {
        "MergeJoins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
