//! From our logical nodes to physical operators.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};
use tidemark_operators::{Inputs, LogicalNode, Lowering, check_stop};

/// Plans the nodes of this crate.
#[derive(Debug, Default)]
pub(crate) struct TidemarkExtensionPlanner;

#[async_trait]
impl ExtensionPlanner for TidemarkExtensionPlanner {
    async fn plan_extension(
        &self,
        _: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        check_stop()?;
        let Some(node) = LogicalNode::of(node) else { return Ok(None) };
        let inputs = Inputs { logical, physical };
        node.lowered().lower(&inputs, &Lowering { session, context }).map(Some)
    }
}
