//! Rejects a plan before it runs if an operator would not receive rows in the order or partitioning
//! that it requires. Such a plan would return wrong results.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::OrderingRequirements;
use datafusion::physical_plan::{ChildSatisfactionOptions, ExecutionPlanProperties};

use super::planned::Plan;

/// Fails if an input lacks the order or partitioning that its operator requires.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    plan.apply(|node| {
        check_inputs(node)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn check_inputs(node: &Plan) -> Result<()> {
    let distributions = node.input_distribution_requirements();
    let orders = node.required_input_ordering();
    for (at, (input, order)) in node.children().into_iter().zip(orders).enumerate() {
        let is_one = input.output_partitioning().partition_count() == 1;
        let options = ChildSatisfactionOptions::default();
        if !is_one && !distributions.child_satisfaction(at, input.as_ref(), options)?.is_satisfied()
        {
            return internal_err!(
                "{} requires a different partitioning of input {at}",
                node.name()
            );
        }
        let Some(order) = order.map(OrderingRequirements::into_single) else { continue };
        if !input.equivalence_properties().ordering_satisfy_requirement(order)? {
            return internal_err!("{} requires a different order of input {at}", node.name());
        }
    }
    Ok(())
}
