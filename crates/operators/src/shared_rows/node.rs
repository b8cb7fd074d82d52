//! Rows that a plan uses more than once and that would differ if they were computed again. They are
//! therefore computed only once.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::ExecutionPlan;

use super::exec::SharedRows;
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::OperatorExec;

/// The rows of its input, which are identical for every copy of this node.
#[derive(Debug, Clone)]
pub struct SharedRowsNode {
    input: LogicalPlan,
    rows: SharedRows,
}

impl SharedRowsNode {
    /// Creates a node whose input is computed once for all copies of the node.
    pub fn new(input: LogicalPlan) -> Self {
        Self { input, rows: SharedRows::once() }
    }
}

impl PartialEq for SharedRowsNode {
    fn eq(&self, other: &Self) -> bool {
        self.rows.are(&other.rows) && self.input == other.input
    }
}

impl Eq for SharedRowsNode {}

impl Hash for SharedRowsNode {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.input.hash(state);
    }
}

impl PartialOrd for SharedRowsNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.input.partial_cmp(&other.input)
    }
}

impl UserDefinedLogicalNodeCore for SharedRowsNode {
    fn name(&self) -> &'static str {
        "SharedRows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SharedRows")
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return plan_err!("SharedRows needs one input");
        };
        Ok(Self { input, rows: self.rows.clone() })
    }
}

impl Lower for SharedRowsNode {
    fn lower(&self, inputs: &Inputs<'_>, _: &Lowering<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let (_, input) = inputs.get(0)?;
        Ok(OperatorExec::plan(self.rows.clone(), vec![input], &schema_of(self)))
    }

    fn times(&self) -> Vec<&Expr> {
        vec![]
    }
}
