//! The physical rule that gives a scan the filter above it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use tidemark_operators::filtered_scan;

/// Makes one operator of a filter and the scan below it. Runs when nothing needs to look through
/// the filter any more.
#[derive(Debug)]
pub(crate) struct FilterScan;

impl PhysicalOptimizerRule for FilterScan {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let merge = |plan: Arc<dyn ExecutionPlan>| {
            let scan = filtered_scan(&plan);
            Ok(scan.map_or_else(|| Transformed::no(Arc::clone(&plan)), Transformed::yes))
        };
        plan.transform_up(merge).data()
    }

    fn name(&self) -> &'static str {
        "FilterScan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
