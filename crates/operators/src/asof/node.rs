//! The ASOF JOIN and LT JOIN logical node.

use std::cmp::Ordering;
use std::fmt;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, DFSchemaRef, Result, TableReference, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// The rule that selects the right row for a left row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AsofKind {
    /// The last row at or before the left timestamp.
    Asof,
    /// The last row strictly before the left timestamp.
    Lt,
}

/// Joins each left row with at most one right row: the latest one with equal keys. Left rows
/// without a match are returned with nulls. The output consists of the left columns, then the
/// (nullable) right columns, in left order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AsofJoinNode {
    left: LogicalPlan,
    right: LogicalPlan,
    left_timestamp: Expr,
    right_timestamp: Expr,
    keys: Vec<(Expr, Expr)>,
    kind: AsofKind,
    tolerance: Option<i64>,
    schema: DFSchemaRef,
}

impl AsofJoinNode {
    /// Creates a node over two inputs in timestamp order. Both timestamps are columns with the same
    /// unit; `tolerance` is inclusive and in that unit.
    pub fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        left_timestamp: Expr,
        right_timestamp: Expr,
        keys: Vec<(Expr, Expr)>,
        kind: AsofKind,
        tolerance: Option<i64>,
    ) -> Result<Self> {
        let nullable = |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
            (qualifier.cloned(), FieldRef::new(field.as_ref().clone().with_nullable(true)))
        };
        let left_fields = left
            .schema()
            .iter()
            .map(|(qualifier, field)| (qualifier.cloned(), FieldRef::clone(field)));
        let fields = left_fields.chain(right.schema().iter().map(nullable)).collect();
        let schema = DFSchema::new_with_metadata(fields, left.schema().metadata().clone())?;
        Ok(Self {
            left,
            right,
            left_timestamp,
            right_timestamp,
            keys,
            kind,
            tolerance,
            schema: schema.into(),
        })
    }

    /// The left timestamp.
    pub fn left_timestamp(&self) -> &Expr {
        &self.left_timestamp
    }

    /// The right timestamp.
    pub fn right_timestamp(&self) -> &Expr {
        &self.right_timestamp
    }

    /// Pairs of left and right expressions that must be equal, where null equals null.
    pub fn keys(&self) -> &[(Expr, Expr)] {
        &self.keys
    }

    /// The rule that decides whether a right row at the left timestamp itself matches.
    pub fn kind(&self) -> AsofKind {
        self.kind
    }

    /// Maximum time between the two timestamps, inclusive, in their unit.
    pub fn tolerance(&self) -> Option<i64> {
        self.tolerance
    }

    /// The left input.
    pub fn left(&self) -> &LogicalPlan {
        &self.left
    }

    /// The right input.
    pub fn right(&self) -> &LogicalPlan {
        &self.right
    }
}

impl PartialOrd for AsofJoinNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.kind, node.tolerance, node.keys.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => {
                (&self.left, &self.right).partial_cmp(&(&other.left, &other.right))
            }
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for AsofJoinNode {
    fn name(&self) -> &'static str {
        "AsofJoin"
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
        write!(f, "{:?}Join: {}, {}", self.kind, self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        self.tolerance.map_or(Ok(()), |tolerance| write!(f, " tolerance={tolerance}"))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [left, right] = <[LogicalPlan; 2]>::try_from(inputs)
            .or_else(|inputs| plan_err!("AsofJoin needs two inputs, got {}", inputs.len()))?;
        let mut exprs = exprs.into_iter();
        let (Some(left_timestamp), Some(right_timestamp)) = (exprs.next(), exprs.next()) else {
            return plan_err!("AsofJoin needs two timestamps");
        };
        let mut keys = Vec::with_capacity(self.keys.len());
        while let (Some(left_key), Some(right_key)) = (exprs.next(), exprs.next()) {
            keys.push((left_key, right_key));
        }
        let (kind, tolerance) = (self.kind, self.tolerance);
        Self::try_new(left, right, left_timestamp, right_timestamp, keys, kind, tolerance)
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
