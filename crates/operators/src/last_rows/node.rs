//! LIMIT counted from the end, as a logical node.

use std::fmt;

use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// Which rows of an input stay, counted in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub struct LastRows {
    /// Rows left out at the start.
    pub skip: usize,
    /// Of the others so many at the end, all where absent.
    pub keep: Option<usize>,
    /// Of those so many at the end are left out as well.
    pub cut: usize,
}

impl fmt::Display for LastRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { skip, keep, cut } = self;
        write!(f, "skip={skip}, ")?;
        if let Some(keep) = keep {
            write!(f, "last={keep}, ")?;
        }
        write!(f, "without={cut}")
    }
}

/// Rows of which one end at least is counted from the last one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct LastRowsNode {
    input: LogicalPlan,
    rows: LastRows,
}

impl LastRowsNode {
    /// These rows of `input`.
    pub fn new(input: LogicalPlan, rows: LastRows) -> Self {
        Self { input, rows }
    }

    /// All rows.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// Which of them stay.
    pub fn rows(&self) -> LastRows {
        self.rows
    }
}

impl UserDefinedLogicalNodeCore for LastRowsNode {
    fn name(&self) -> &'static str {
        "LastRows"
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
        write!(f, "LastRows: {}", self.rows)
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return plan_err!("LastRows needs one input");
        };
        Ok(Self::new(input, self.rows))
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![output_columns.to_vec()])
    }
}
