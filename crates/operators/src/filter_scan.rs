//! The physical rule that gives a scan the filter above it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;

use crate::scan::filtered::FilteredScanExec;

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
            let merged = plan.downcast_ref::<FilterExec>().and_then(FilteredScanExec::of);
            Ok(match merged {
                Some(scan) => Transformed::yes(Arc::new(scan) as Arc<dyn ExecutionPlan>),
                None => Transformed::no(plan),
            })
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
