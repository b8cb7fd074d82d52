//! The SPLICE JOIN logical node.

use std::cmp::Ordering;
use std::fmt;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, DFSchemaRef, Result, TableReference, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// Returns the rows of both sides in time order. Each row is joined with the other side's last row
/// that has equal keys and is not later. A left row and a right row with equal keys and timestamps
/// form a single output row; if there are several, they are paired in order. The output consists of
/// the left columns, then the right columns, all nullable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpliceJoinNode {
    left: LogicalPlan,
    right: LogicalPlan,
    left_timestamp: Expr,
    right_timestamp: Expr,
    keys: Vec<(Expr, Expr)>,
    schema: DFSchemaRef,
}

impl SpliceJoinNode {
    /// Creates a node over two inputs in timestamp order. Both timestamps are columns with the same
    /// unit.
    pub fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        left_timestamp: Expr,
        right_timestamp: Expr,
        keys: Vec<(Expr, Expr)>,
    ) -> Result<Self> {
        let nullable = |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
            (qualifier.cloned(), FieldRef::new(field.as_ref().clone().with_nullable(true)))
        };
        let fields = left.schema().iter().chain(right.schema().iter()).map(nullable).collect();
        let schema = DFSchema::new_with_metadata(fields, left.schema().metadata().clone())?;
        Ok(Self { left, right, left_timestamp, right_timestamp, keys, schema: schema.into() })
    }

    /// The left and right timestamps.
    pub fn timestamps(&self) -> (&Expr, &Expr) {
        (&self.left_timestamp, &self.right_timestamp)
    }

    /// Pairs of left and right expressions that must be equal, where null equals null.
    pub fn keys(&self) -> &[(Expr, Expr)] {
        &self.keys
    }
}

impl PartialOrd for SpliceJoinNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match self.keys.partial_cmp(&other.keys) {
            Some(Ordering::Equal) => {
                (&self.left, &self.right).partial_cmp(&(&other.left, &other.right))
            }
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for SpliceJoinNode {
    fn name(&self) -> &'static str {
        "SpliceJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let mut expressions = vec![self.left_timestamp.clone(), self.right_timestamp.clone()];
        for (left, right) in &self.keys {
            expressions.extend([left.clone(), right.clone()]);
        }
        expressions
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SpliceJoin: {}, {}", self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        Ok(())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [left, right] = <[LogicalPlan; 2]>::try_from(inputs)
            .or_else(|inputs| plan_err!("SpliceJoin needs two inputs, got {}", inputs.len()))?;
        let mut exprs = exprs.into_iter();
        let (Some(left_timestamp), Some(right_timestamp)) = (exprs.next(), exprs.next()) else {
            return plan_err!("SpliceJoin needs two timestamps");
        };
        let mut keys = Vec::with_capacity(self.keys.len());
        while let (Some(left_key), Some(right_key)) = (exprs.next(), exprs.next()) {
            keys.push((left_key, right_key));
        }
        Self::try_new(left, right, left_timestamp, right_timestamp, keys)
    }

    // Maps each output column to the input that it comes from. The optimizer itself adds the
    // columns of the timestamps and keys.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let left_width = self.left.schema().fields().len();
        let (left, right): (Vec<usize>, Vec<usize>) =
            output_columns.iter().partition(|&&column| column < left_width);
        Some(vec![left, right.into_iter().map(|column| column - left_width).collect()])
    }
}
