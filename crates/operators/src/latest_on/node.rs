//! The LATEST ON logical node.

use std::fmt;

use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// Selects the last row of each key, in timestamp order. Null is a key. Among rows with equal
/// timestamps, the row stored last is selected.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct LatestOnNode {
    input: LogicalPlan,
    timestamp: Expr,
    keys: Vec<Expr>,
}

impl LatestOnNode {
    /// Creates a node over `input`, which must be ordered by `timestamp`.
    pub fn try_new(input: LogicalPlan, timestamp: Expr, keys: Vec<Expr>) -> Result<Self> {
        if keys.is_empty() {
            return plan_err!("LATEST ON needs at least one key");
        }
        Ok(Self { input, timestamp, keys })
    }

    /// The designated timestamp.
    pub fn timestamp(&self) -> &Expr {
        &self.timestamp
    }

    /// The input.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// The PARTITION BY expressions.
    pub fn keys(&self) -> &[Expr] {
        &self.keys
    }
}

impl UserDefinedLogicalNodeCore for LatestOnNode {
    fn name(&self) -> &'static str {
        "LatestOn"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        std::iter::once(&self.timestamp).chain(&self.keys).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        write!(f, "LatestOn: {} keys=[{}]", self.timestamp, keys.join(", "))
    }

    fn with_exprs_and_inputs(
        &self,
        mut exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return plan_err!("LatestOn needs one input");
        };
        if exprs.len() != self.keys.len() + 1 {
            return plan_err!("LatestOn got the wrong number of expressions");
        }
        let keys = exprs.split_off(1);
        Self::try_new(input, exprs.remove(0), keys)
    }

    // Requires the same columns from the input as are in the output, because the two schemas are
    // the same. If the optimizer narrows the input, the output is narrowed as well.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}
