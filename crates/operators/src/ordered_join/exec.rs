//! How a join keeps its order: it holds its left side, whatever that has, and reads the right one
//! row by row. Until the sides of all joins are chosen it is a node of its own, which shows that
//! choice its inputs and not itself.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SendableRecordBatchStream,
};

use super::node::OrderedJoinNode;
use crate::lowering::{Inputs, Lower, Lowering};
use crate::operator::Input;
use crate::plan_node::{PlanNode, holding_left, is_right_join, with_first_input};

/// A join of which an order is wanted, until the sides of joins are chosen.
#[derive(Debug)]
pub struct OrderedJoin(Input);

impl Lower for OrderedJoinNode {
    fn lower(&self, inputs: &Inputs<'_>, _: &Lowering<'_>) -> Result<Input> {
        let (_, plan) = inputs.get(0)?;
        marked(plan)
    }
}

/// The plan with the join that it is, below filters, limits and projections that rules have put
/// there, as one with an order. A plan that they have made something else of has none to lose.
fn marked(plan: Input) -> Result<Input> {
    if is_right_join(&plan) {
        return Ok(Arc::new(OrderedJoin(plan)));
    }
    let node = PlanNode::of(plan.as_ref());
    if !node.is_row_wise() && !matches!(node, PlanNode::GlobalLimit) {
        return Ok(plan);
    }
    with_first_input(plan, marked)
}

impl OrderedJoin {
    /// The plan without joins of this kind, where there are some: each is decided.
    pub fn decided(plan: Input) -> Result<Input> {
        plan.transform_up(|plan| {
            let Some(Self(join)) = plan.downcast_ref() else { return Ok(Transformed::no(plan)) };
            Ok(Transformed::yes(holding_left(join)?))
        })
        .data()
    }

    /// Whether a plan has such joins.
    pub fn is_in(plan: &Input) -> Result<bool> {
        plan.exists(|plan| Ok(plan.is::<Self>()))
    }

    /// The plan with such joins only where their rows are read as they come; `is_read`:
    /// those of the plan itself are.
    pub fn where_read(plan: Input, is_read: bool) -> Result<Input> {
        let plan = match plan.downcast_ref() {
            Some(Self(join)) if !is_read => Arc::clone(join),
            _ => plan,
        };
        let children = plan.children();
        if children.is_empty() {
            return Ok(plan);
        }
        // The sides of UNION ALL follow each other.
        let is_union = matches!(PlanNode::of(plan.as_ref()), PlanNode::Union);
        let kept = plan.maintains_input_order();
        let children = children.into_iter().zip(kept).map(|(child, kept)| {
            Self::where_read(Arc::clone(child), is_read && (kept || is_union))
        });
        let children = children.collect::<Result<Vec<_>>>()?;
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        plan.replace_children(children, options)
    }
}

impl DisplayAs for OrderedJoin {
    fn fmt_as(&self, how: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt_as(how, f)
    }
}

impl ExecutionPlan for OrderedJoin {
    fn name(&self) -> &'static str {
        "OrderedJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    // A join without keys does so too where it holds one row, a sub-query's.
    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, true]
    }

    fn children(&self) -> Vec<&Input> {
        self.0.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.0.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Input>,
        options: ReplaceChildrenOptions,
    ) -> Result<Input> {
        Ok(Arc::new(Self(Arc::clone(&self.0).replace_children(children, options)?)))
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Input>) -> Result<Input> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.0.statistics_from_inputs(inputs, args)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a join runs before its sides are chosen")
    }
}
