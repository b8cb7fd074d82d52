//! The WINDOW JOIN logical node.

use std::cmp::Ordering;
use std::fmt;

use datafusion::common::{DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, UserDefinedLogicalNodeCore};

/// One end of the window for a left row.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct WindowBound {
    /// Number of units, as a LONG expression on the left row. Negative values count as 0; null
    /// makes the window empty.
    pub distance: Expr,
    /// Length of one unit, in the timestamps' unit.
    pub unit: i64,
    /// Whether the bound lies after the left timestamp rather than before it.
    pub following: bool,
}

impl fmt::Display for WindowBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.following { '+' } else { '-' };
        write!(f, "{sign}{}", self.distance)?;
        if self.unit == 1 { Ok(()) } else { write!(f, "*{}", self.unit) }
    }
}

/// The right rows in a left row's window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub struct WindowRange {
    /// First timestamp, inclusive.
    pub low: WindowBound,
    /// Last timestamp, inclusive.
    pub high: WindowBound,
    /// Whether the window includes the newest right row at or before the first timestamp.
    pub include_prevailing: bool,
}

/// Joins each left row with aggregates over the right rows in a time window around it. The output
/// consists of the left columns, then the aggregates, in left order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowJoinNode {
    left: LogicalPlan,
    right: LogicalPlan,
    left_timestamp: Expr,
    right_timestamp: Expr,
    keys: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
    range: WindowRange,
    aggregates: Vec<Expr>,
    schema: DFSchemaRef,
}

/// Expressions of a [`WindowJoinNode`].
#[derive(Debug, Clone)]
pub struct WindowJoinExprs {
    /// The left timestamp.
    pub left_timestamp: Expr,
    /// The right timestamp, in the left timestamp's unit.
    pub right_timestamp: Expr,
    /// Pairs of left and right expressions that must be equal, where null equals null.
    pub keys: Vec<(Expr, Expr)>,
    /// A condition on a pair of left and right rows.
    pub filter: Option<Expr>,
    /// Aliased aggregate functions over columns from both sides.
    pub aggregates: Vec<Expr>,
}

impl WindowJoinNode {
    /// Creates a node over two inputs in timestamp order.
    pub fn try_new(
        left: LogicalPlan,
        right: LogicalPlan,
        exprs: WindowJoinExprs,
        range: WindowRange,
    ) -> Result<Self> {
        let pair = pair_schema(&left, &right)?;
        let mut fields: Vec<_> = left
            .schema()
            .iter()
            .map(|(qualifier, field)| (qualifier.cloned(), std::sync::Arc::clone(field)))
            .collect();
        for aggregate in &exprs.aggregates {
            if !matches!(aggregate.clone().unalias(), Expr::AggregateFunction(_)) {
                return plan_err!("expected an aggregate function, found '{aggregate}'");
            }
            fields.push(aggregate.to_field(&pair)?);
        }
        let schema = DFSchema::new_with_metadata(fields, left.schema().metadata().clone())?;
        let WindowJoinExprs { left_timestamp, right_timestamp, keys, filter, aggregates } = exprs;
        Ok(Self {
            left,
            right,
            left_timestamp,
            right_timestamp,
            keys,
            filter,
            range,
            aggregates,
            schema: schema.into(),
        })
    }

    /// The left and right timestamps.
    pub fn timestamps(&self) -> (&Expr, &Expr) {
        (&self.left_timestamp, &self.right_timestamp)
    }

    /// Pairs of left and right keys.
    pub fn keys(&self) -> &[(Expr, Expr)] {
        &self.keys
    }

    /// The condition on pairs of rows.
    pub fn filter(&self) -> Option<&Expr> {
        self.filter.as_ref()
    }

    /// The window.
    pub fn range(&self) -> &WindowRange {
        &self.range
    }

    /// The aggregates.
    pub fn aggregates(&self) -> &[Expr] {
        &self.aggregates
    }
}

/// Returns the schema for a left row followed by a right row.
pub(crate) fn pair_schema(left: &LogicalPlan, right: &LogicalPlan) -> Result<DFSchema> {
    let fields = left.schema().iter().chain(right.schema().iter());
    let fields = fields
        .map(|(qualifier, field)| (qualifier.cloned(), std::sync::Arc::clone(field)))
        .collect();
    DFSchema::new_with_metadata(fields, left.schema().metadata().clone())
}

impl PartialOrd for WindowJoinNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.range.clone(), node.keys.clone(), node.aggregates.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => {
                (&self.left, &self.right).partial_cmp(&(&other.left, &other.right))
            }
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for WindowJoinNode {
    fn name(&self) -> &'static str {
        "WindowJoin"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.left, &self.right]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let mut expressions = vec![
            self.left_timestamp.clone(),
            self.right_timestamp.clone(),
            self.range.low.distance.clone(),
            self.range.high.distance.clone(),
        ];
        for (left, right) in &self.keys {
            expressions.extend([left.clone(), right.clone()]);
        }
        expressions.extend(self.filter.clone());
        expressions.extend(self.aggregates.iter().cloned());
        expressions
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let WindowRange { low, high, include_prevailing } = &self.range;
        write!(f, "WindowJoin: {}, {}", self.left_timestamp, self.right_timestamp)?;
        for (left, right) in &self.keys {
            write!(f, ", {left} = {right}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, ", {filter}")?;
        }
        let prevailing = if *include_prevailing { " prevailing" } else { "" };
        let aggregates: Vec<String> = self.aggregates.iter().map(ToString::to_string).collect();
        write!(f, " range=[{low}, {high}]{prevailing} aggregates=[{}]", aggregates.join(", "))
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let [left, right] = <[LogicalPlan; 2]>::try_from(inputs)
            .or_else(|inputs| plan_err!("WindowJoin needs two inputs, got {}", inputs.len()))?;
        let mut exprs = exprs.into_iter();
        let mut next = || {
            if let Some(expr) = exprs.next() {
                Ok(expr)
            } else {
                plan_err!("WindowJoin got too few expressions")
            }
        };
        let (left_timestamp, right_timestamp) = (next()?, next()?);
        let mut range = self.range.clone();
        (range.low.distance, range.high.distance) = (next()?, next()?);
        let keys = self.keys.iter().map(|_| Ok((next()?, next()?))).collect::<Result<_>>()?;
        let filter = self.filter.as_ref().map(|_| next()).transpose()?;
        let aggregates = exprs.collect();
        let exprs = WindowJoinExprs { left_timestamp, right_timestamp, keys, filter, aggregates };
        Self::try_new(left, right, exprs, range)
    }

    // Left columns are passed through; the optimizer adds all columns that the expressions read.
    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.left.schema().fields().len();
        let left = output_columns.iter().copied().filter(|&column| column < width).collect();
        Some(vec![left, vec![]])
    }
}
