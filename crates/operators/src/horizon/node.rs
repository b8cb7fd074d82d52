//! The HORIZON JOIN logical node.

use std::cmp::Ordering;
use std::fmt;

use arrow_schema::{DataType, Field};
use datafusion::arrow::datatypes::FieldRef;
use datafusion::common::{DFSchema, DFSchemaRef, Result, TableReference, plan_err};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, UserDefinedLogicalNodeCore};

/// The offsets of a HORIZON JOIN. They add two output columns that do not come from any input.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct Horizon {
    /// Qualifier of the two columns.
    pub qualifier: TableReference,
    /// Distances from the left timestamp, ascending and in its unit.
    pub offsets: Vec<i64>,
}

/// A right side: its rows, their timestamp, and the join keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct HorizonSide {
    /// The rows, in timestamp order.
    pub plan: LogicalPlan,
    /// The rows' timestamp.
    pub timestamp: Expr,
    /// Number of units of this timestamp per unit of the left timestamp.
    pub per_left: i64,
    /// Pairs of left and right expressions that must be equal, where null equals null.
    pub keys: Vec<(Expr, Expr)>,
}

/// Joins each left row, once per offset, with a row from each right side: the last row at or before
/// the left timestamp plus the offset. The output is unordered. It consists of the left columns,
/// `offset`, `timestamp` (left timestamp plus offset), and the (nullable) right columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HorizonJoinNode {
    left: LogicalPlan,
    left_timestamp: Expr,
    sides: Vec<HorizonSide>,
    horizon: Horizon,
    schema: DFSchemaRef,
}

impl HorizonJoinNode {
    /// Creates a node over inputs that are in timestamp order.
    pub fn try_new(
        left: LogicalPlan,
        left_timestamp: Expr,
        sides: Vec<HorizonSide>,
        horizon: Horizon,
    ) -> Result<Self> {
        let time = left_timestamp.get_type(left.schema())?;
        let own = [("offset", DataType::Int64), ("timestamp", time)].map(|(name, data_type)| {
            (Some(horizon.qualifier.clone()), FieldRef::new(Field::new(name, data_type, false)))
        });
        let left_fields = left
            .schema()
            .iter()
            .map(|(qualifier, field)| (qualifier.cloned(), FieldRef::clone(field)));
        let right_fields = sides.iter().flat_map(|side| side.plan.schema().iter()).map(
            |(qualifier, field): (Option<&TableReference>, &FieldRef)| {
                (qualifier.cloned(), FieldRef::new(field.as_ref().clone().with_nullable(true)))
            },
        );
        let fields = left_fields.chain(own).chain(right_fields).collect();
        let schema = DFSchema::new_with_metadata(fields, left.schema().metadata().clone())?;
        Ok(Self { left, left_timestamp, sides, horizon, schema: schema.into() })
    }

    /// The left timestamp.
    pub fn left_timestamp(&self) -> &Expr {
        &self.left_timestamp
    }

    /// The right sides.
    pub fn sides(&self) -> &[HorizonSide] {
        &self.sides
    }

    /// The offsets.
    pub fn horizon(&self) -> &Horizon {
        &self.horizon
    }
}

impl PartialOrd for HorizonJoinNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.horizon.clone(), node.sides.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => self.left.partial_cmp(&other.left),
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for HorizonJoinNode {
    fn name(&self) -> &'static str {
        "HorizonJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        std::iter::once(&self.left).chain(self.sides.iter().map(|side| &side.plan)).collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let mut expressions = vec![self.left_timestamp.clone()];
        for side in &self.sides {
            expressions.push(side.timestamp.clone());
            for (left, right) in &side.keys {
                expressions.extend([left.clone(), right.clone()]);
            }
        }
        expressions
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "HorizonJoin: {}", self.left_timestamp)?;
        for side in &self.sides {
            write!(f, ", {}", side.timestamp)?;
            for (left, right) in &side.keys {
                write!(f, " {left} = {right}")?;
            }
        }
        write!(f, " offsets={}", self.horizon.offsets.len())
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let mut inputs = inputs.into_iter();
        let mut exprs = exprs.into_iter();
        let (Some(left), Some(left_timestamp)) = (inputs.next(), exprs.next()) else {
            return plan_err!("HorizonJoin needs a left side");
        };
        let mut sides = Vec::with_capacity(self.sides.len());
        for side in &self.sides {
            let (Some(plan), Some(timestamp)) = (inputs.next(), exprs.next()) else {
                return plan_err!("HorizonJoin needs {} right sides", self.sides.len());
            };
            let mut keys = Vec::with_capacity(side.keys.len());
            for _ in &side.keys {
                let (Some(left), Some(right)) = (exprs.next(), exprs.next()) else {
                    return plan_err!("HorizonJoin needs pairs of keys");
                };
                keys.push((left, right));
            }
            sides.push(HorizonSide { plan, timestamp, per_left: side.per_left, keys });
        }
        Self::try_new(left, left_timestamp, sides, self.horizon.clone())
    }

    // Maps each output column to the input that it comes from. The optimizer itself adds the
    // columns of the timestamps and keys.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let mut needed = vec![];
        let mut start = 0;
        for (index, input) in self.inputs().into_iter().enumerate() {
            let end = start + input.schema().fields().len();
            let own = output_columns.iter().filter(|&&column| (start..end).contains(&column));
            needed.push(own.map(|column| column - start).collect());
            // The offset and the shifted timestamp follow the left columns.
            start = if index == 0 { end + 2 } else { end };
        }
        Some(needed)
    }
}
