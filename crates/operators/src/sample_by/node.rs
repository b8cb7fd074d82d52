//! The logical node of SAMPLE BY and GROUP BY: the query, not its execution.

use std::cmp::Ordering;
use std::fmt;

use datafusion::common::{DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::logical_expr::utils::exprlist_to_fields;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use super::group_cache::GroupCache;
use crate::bucket::Bucket;

/// Aggregates by time bucket and key. Without a bucket, the node is a GROUP BY; without a bucket or
/// keys, it returns one row.
///
/// The output is `[bucket timestamp?, keys…, aggregates…]`, sorted by bucket and then by first
/// appearance of the keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SampleByNode {
    input: LogicalPlan,
    bucket: Option<Bucket>,
    keys: Vec<Expr>,
    aggregates: Vec<Expr>,
    /// True if no aggregate depends on the order of its rows.
    any_order: bool,
    schema: DFSchemaRef,
    /// Cache that keeps the open bucket's groups between executions, if any.
    cache: Option<GroupCache>,
}

impl SampleByNode {
    /// Whether the result depends on the order of the input rows.
    pub fn reads_order(&self) -> bool {
        self.bucket.is_some() || (!self.any_order && self.aggregates.iter().any(depends_on_order))
    }

    /// Creates a node over `input`. `aggregates` contains aggregate functions, with or without an
    /// alias.
    pub fn try_new(
        input: LogicalPlan,
        bucket: Option<Bucket>,
        keys: Vec<Expr>,
        aggregates: Vec<Expr>,
    ) -> Result<Self> {
        for aggregate in &aggregates {
            if !matches!(unaliased(aggregate), Expr::AggregateFunction(_)) {
                return plan_err!("expected an aggregate function, found '{aggregate}'");
            }
        }
        let outputs = bucket.iter().map(|bucket| &bucket.timestamp).chain(&keys).chain(&aggregates);
        let fields = exprlist_to_fields(outputs, &input)?;
        let schema = DFSchema::new_with_metadata(fields, input.schema().metadata().clone())?;
        Ok(Self {
            input,
            bucket,
            keys,
            aggregates,
            any_order: false,
            schema: schema.into(),
            cache: None,
        })
    }

    /// Sets whether the aggregates are independent of row order.
    #[must_use]
    pub fn in_any_order(self, any_order: bool) -> Self {
        Self { any_order, ..self }
    }

    /// Adds a cache for the groups of the node's open bucket.
    pub(crate) fn keeping(self, group_cache: GroupCache) -> Self {
        Self { cache: Some(group_cache), ..self }
    }

    /// The cache for the groups of the node's open bucket, if any.
    pub(crate) fn cache(&self) -> Option<&GroupCache> {
        self.cache.as_ref()
    }

    /// Whether rows may arrive in any order.
    pub fn any_order(&self) -> bool {
        self.any_order
    }

    /// The time axis, if any.
    pub fn bucket(&self) -> Option<&Bucket> {
        self.bucket.as_ref()
    }

    /// The key expressions.
    pub fn keys(&self) -> &[Expr] {
        &self.keys
    }

    /// The aggregate expressions.
    pub fn aggregates(&self) -> &[Expr] {
        &self.aggregates
    }

    /// The input.
    pub fn input(&self) -> &LogicalPlan {
        &self.input
    }
}

/// Returns the expression without its aliases.
fn unaliased(mut expr: &Expr) -> &Expr {
    while let Expr::Alias(alias) = expr {
        expr = &alias.expr;
    }
    expr
}

impl PartialOrd for SampleByNode {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let key = |node: &Self| (node.bucket.clone(), node.keys.clone(), node.aggregates.clone());
        match key(self).partial_cmp(&key(other)) {
            Some(Ordering::Equal) => self.input.partial_cmp(&other.input),
            unequal => unequal,
        }
    }
}

impl UserDefinedLogicalNodeCore for SampleByNode {
    fn name(&self) -> &'static str {
        "SampleBy"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let timestamp = self.bucket.iter().map(|bucket| &bucket.timestamp);
        timestamp.chain(&self.keys).chain(&self.aggregates).cloned().collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SampleBy:")?;
        if let Some(bucket) = &self.bucket {
            write!(f, " {} by {}", bucket.timestamp, bucket.spec)?;
        }
        let list =
            |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        write!(f, " keys=[{}] aggregates=[{}]", list(&self.keys), list(&self.aggregates))
    }

    fn with_exprs_and_inputs(
        &self,
        mut exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let Some(input) = inputs.pop() else {
            return plan_err!("SampleBy needs one input");
        };
        let aggregates = exprs.split_off(exprs.len().saturating_sub(self.aggregates.len()));
        let keys = exprs.split_off(exprs.len().saturating_sub(self.keys.len()));
        let bucket = match (&self.bucket, exprs.pop()) {
            (Some(bucket), Some(timestamp)) => Some(Bucket { timestamp, spec: bucket.spec }),
            (None, None) => None,
            _ => return plan_err!("SampleBy got the wrong number of expressions"),
        };
        // Rules also return nodes that they did not change. Their names and types are already
        // known.
        if keys == self.keys
            && aggregates == self.aggregates
            && bucket == self.bucket
            && input.schema() == self.input.schema()
        {
            return Ok(Self { input, bucket, keys, aggregates, ..self.clone() });
        }
        let node = Self::try_new(input, bucket, keys, aggregates)?;
        Ok(Self { any_order: self.any_order, cache: self.cache.clone(), ..node })
    }

    // Does not request any columns, because the optimizer itself adds the columns that the
    // expressions read.
    fn necessary_children_exprs(&self, _output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(vec![vec![]])
    }
}

/// Whether an aggregate depends on the order of its input rows.
pub(super) fn depends_on_order(aggregate: &Expr) -> bool {
    match aggregate {
        Expr::Alias(alias) => depends_on_order(&alias.expr),
        Expr::AggregateFunction(call) => !call.func.order_sensitivity().is_insensitive(),
        _ => false,
    }
}
