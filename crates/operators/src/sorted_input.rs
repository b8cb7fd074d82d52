//! Keeps the order of a sub-query for aggregates to which it matters: `first`, `string_agg`. No
//! other operator requires it, and `DataFusion` drops sorts that no operator requires.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{
    ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};

use crate::operator::{Facts, Input, Keeps, Lineage, Operator, OperatorExec, Run, Work};
use crate::plan_node::PlanNode;

/// The plan, asking for the order of the sort that it is made of row by row, if it is.
pub(crate) fn keep_sorted(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match PlanNode::of(plan.as_ref()) {
        PlanNode::Sort(sort) => {
            let (sorted, schema) = (SortedInput(sort.expr().clone()), sort.schema());
            return Ok(OperatorExec::plan(sorted, vec![plan], &schema));
        }
        PlanNode::Projection(_) | PlanNode::Filter(_) => {}
        _ => return Ok(plan),
    }
    let children = plan.children().into_iter().map(|child| keep_sorted(Arc::clone(child)));
    let children = children.collect::<Result<Vec<_>>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options)
}

/// Hands on the rows of its input, in an order it insists on.
struct SortedInput(LexOrdering);

impl fmt::Display for SortedInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.0)
    }
}

impl Operator for SortedInput {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SortedInputExec",
            memory: None,
            keeps: Keeps { rows: true, ..Keeps::NOTHING },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, _: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let properties = PlanProperties::clone(inputs[0].properties());
        Arc::new(properties.with_partitioning(Partitioning::UnknownPartitioning(1)))
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![Some(OrderingRequirements::from(self.0.clone()))]
    }

    /// Sorted rows may have got keys of another dictionary.
    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        run.rows(0, run.partition)
    }
}
