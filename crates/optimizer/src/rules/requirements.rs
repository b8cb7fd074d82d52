//! Sorts and exchanges where an operator requires them: `DataFusion`'s steps of
//! `EnsureRequirements`, each of which looks at all of a plan below a node. A plan of 500 set
//! operations takes seconds, so that the statement's end is asked for at every node.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::enforce_distribution::{
    DistributionContext, PlanWithKeyRequirements, adjust_input_keys_ordering, ensure_distribution,
};
use datafusion::physical_optimizer::ensure_requirements::enforce_sorting::{
    PlanWithCorrespondingCoalescePartitions, PlanWithCorrespondingSort, ensure_sorting,
    parallelize_sorts, replace_with_order_preserving_variants as order_preserving,
    replace_with_partial_sort, sort_pushdown,
};
use datafusion::physical_plan::ExecutionPlan;

use order_preserving::{OrderPreservationContext, replace_with_order_preserving_variants};
use sort_pushdown::{SortPushDown, assign_initial_requirements, pushdown_sorts};
use tidemark_operators::check_stop;

/// The steps, with the options that sessions here have.
#[derive(Debug)]
pub(crate) struct EnsureRequirements;

impl PhysicalOptimizerRule for EnsureRequirements {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let keys = PlanWithKeyRequirements::new_default(plan);
        let keys = keys.transform_down(stoppable(adjust_input_keys_ordering)).data()?;

        let exchanges = DistributionContext::new_default(keys.plan);
        let exchange = stoppable(|node| ensure_distribution(node, config));
        let exchanges = exchanges.transform_up(exchange).data()?;

        let sorts = PlanWithCorrespondingSort::new_default(exchanges.plan);
        let sorts = sorts.transform_up(stoppable(ensure_sorting)).data()?;

        let merges = PlanWithCorrespondingCoalescePartitions::new_default(sorts.plan);
        let merges = merges.transform_up(stoppable(parallelize_sorts)).data()?;

        let orders = OrderPreservationContext::new_default(merges.plan);
        let order =
            stoppable(|node| replace_with_order_preserving_variants(node, false, true, config));
        let orders = orders.transform_up(order).data()?;

        let mut pushed = SortPushDown::new_default(orders.plan);
        assign_initial_requirements(&mut pushed);
        let pushed = pushdown_sorts(pushed)?;

        let partial = stoppable(|node| replace_with_partial_sort(node).map(Transformed::yes));
        pushed.plan.transform_up(partial).data()
    }

    fn name(&self) -> &'static str {
        "ensure_requirements"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A step over the nodes of a plan that the statement's end ends.
fn stoppable<N>(
    mut step: impl FnMut(N) -> Result<Transformed<N>>,
) -> impl FnMut(N) -> Result<Transformed<N>> {
    move |node| {
        check_stop()?;
        step(node)
    }
}
