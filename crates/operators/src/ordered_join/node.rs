//! A join that preserves the order of its right side, as a logical node.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, JoinType, Result, plan_datafusion_err, plan_err};
use datafusion::logical_expr::{
    Expr, Extension, InvariantLevel, LogicalPlan, UserDefinedLogicalNodeCore,
};

/// Returns every row of a join's right side, with its matches on the left, in the order of the
/// right side. A plain join does not guarantee any order: its sides may be swapped, and its rows
/// may be partitioned across workers by key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct OrderedJoinNode {
    join: LogicalPlan,
}

impl OrderedJoinNode {
    /// Creates a right join that preserves the order of its right side.
    pub fn plan(join: LogicalPlan) -> Result<LogicalPlan> {
        if !matches!(&join, LogicalPlan::Join(join) if join.join_type == JoinType::Right) {
            return plan_err!("only a right join can preserve the order");
        }
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(Self { join }) }))
    }

    /// The join, without the ordering requirement.
    pub fn join(&self) -> &LogicalPlan {
        &self.join
    }
}

impl UserDefinedLogicalNodeCore for OrderedJoinNode {
    fn name(&self) -> &'static str {
        "OrderedJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.join]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.join.schema()
    }

    fn check_invariants(&self, _: InvariantLevel) -> Result<()> {
        Ok(())
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "OrderedJoin")
    }

    // A rule may replace the join, for example with a projection over it. The node is still valid
    // in that case.
    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [join] = <[LogicalPlan; 1]>::try_from(inputs).map_err(|inputs| {
            plan_datafusion_err!("an ordered join requires one input, found {}", inputs.len())
        })?;
        Ok(Self { join })
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }
}
