//! The logical node of a LIMIT counted from the end.

use std::fmt;

use datafusion::common::{DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// Selects rows from an input, counted in input order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd)]
pub struct LastRows {
    /// Number of rows skipped at the start.
    pub skip: usize,
    /// Number of rows to keep, counted from the end; `None` keeps all rows.
    pub keep: Option<usize>,
    /// Number of rows to remove from the end of the selection.
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

/// Selects a range of rows with at least one end counted from the last row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct LastRowsNode {
    input: LogicalPlan,
    rows: LastRows,
}

impl LastRowsNode {
    /// Selects these rows of `input`.
    pub fn new(input: LogicalPlan, rows: LastRows) -> Self {
        Self { input, rows }
    }

    /// The input.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }

    /// The selection.
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
