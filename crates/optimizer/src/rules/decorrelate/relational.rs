//! Joins, set operations, aggregates and Tidemark nodes in a plan computed for a domain.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, Result, ScalarValue};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{
    Aggregate, Expr, Extension, Join, LogicalPlan, Projection, Subquery, Union,
    UserDefinedLogicalNodeCore,
};

use super::domain::{Domain, column_named};
use super::subquery::join;
use tidemark_operators::{
    AsofJoinNode, Bucket, LatestOnNode, LogicalNode, SampleByNode, WindowNode, not_supported,
};

impl Domain {
    pub(super) fn join(&self, node: Join) -> Result<LogicalPlan> {
        let left = Arc::unwrap_or_clone(node.left);
        let right = Arc::unwrap_or_clone(node.right);
        if let LogicalPlan::Subquery(subquery) = right {
            return self.lateral(left, subquery, node.filter, node.join_type);
        }
        let in_condition = node.filter.as_ref().is_some_and(|test| self.in_expr(test));
        let (in_left, in_right) = (self.in_plan(&left)?, self.in_plan(&right)?);
        let kind = node.join_type;
        let left_alone = !in_right && matches!(kind, JoinType::Inner | JoinType::Left);
        let right_alone = !in_left && matches!(kind, JoinType::Inner | JoinType::Right);
        let (left, right) = if left_alone && (kind == JoinType::Inner || !in_condition) {
            (self.spread(left)?, right)
        } else if right_alone && !in_condition {
            (left, self.spread(right)?)
        } else {
            return self.join_of_both(left, right, node.on, node.filter, kind);
        };
        let schema = left.schema().join(right.schema())?;
        let filter = node.filter.map(|test| self.resolved(test, &schema)).transpose()?;
        join(left, right, node.on, filter, kind)
    }

    /// Joins two sides that both carry the domain; rows only match within the same domain value.
    fn join_of_both(
        &self,
        left: LogicalPlan,
        right: LogicalPlan,
        mut on: Vec<(Expr, Expr)>,
        filter: Option<Expr>,
        kind: JoinType,
    ) -> Result<LogicalPlan> {
        let left = self.spread(left)?;
        let mut outputs: Vec<Expr> =
            self.own_columns(&left).into_iter().map(Expr::Column).collect();
        let right = self.spread(right)?;
        let mut exprs: Vec<Expr> = self.own_columns(&right).into_iter().map(Expr::Column).collect();
        if !matches!(kind, JoinType::LeftSemi | JoinType::LeftAnti) {
            outputs.extend(exprs.iter().cloned());
        }
        for name in self.names() {
            let twin = format!("{name}r");
            exprs.push(column_named(right.schema(), name)?.alias(&twin));
            let here = column_named(left.schema(), name)?;
            let there = Expr::Column(Column::new_unqualified(twin));
            outputs.push(match kind {
                JoinType::Right => there.clone().alias(name),
                JoinType::Full => either(here.clone(), there.clone()).alias(name),
                _ => here.clone(),
            });
            on.push((here, there));
        }
        let right = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(right))?);
        let filter = filter.map(|test| self.resolved(test, left.schema())).transpose()?;
        let joined = join(left, right, on, filter, kind)?;
        Ok(LogicalPlan::Projection(Projection::try_new(outputs, Arc::new(joined))?))
    }

    /// Retains LATERAL, which reads the domain from its left side.
    fn lateral(
        &self,
        left: LogicalPlan,
        mut subquery: Subquery,
        filter: Option<Expr>,
        kind: JoinType,
    ) -> Result<LogicalPlan> {
        let left = self.spread(left)?;
        let read = std::mem::take(&mut subquery.outer_ref_columns);
        subquery.outer_ref_columns = self.all_resolved(read, left.schema())?;
        let filter = filter.map(|test| self.resolved(test, left.schema())).transpose()?;
        join(left, LogicalPlan::Subquery(subquery), Vec::new(), filter, kind)
    }

    pub(super) fn union(&self, node: Union) -> Result<LogicalPlan> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for input in node.inputs {
            let input = self.spread(Arc::unwrap_or_clone(input))?;
            inputs.push(Arc::new(self.lined_up(input)?));
        }
        Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
    }

    /// Returns the plan's own columns under unqualified names, then the domain's columns.
    pub(super) fn lined_up(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        let own = self.own_columns(&input).into_iter().map(|column| {
            let name = column.name.clone();
            Expr::Column(column).alias(name)
        });
        let mut exprs: Vec<Expr> = own.collect();
        for name in self.names() {
            exprs.push(column_named(input.schema(), name)?.alias(name));
        }
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input))?))
    }

    pub(super) fn aggregate(&self, node: Aggregate) -> Result<LogicalPlan> {
        let input = self.spread(Arc::unwrap_or_clone(node.input))?;
        let mut keys = self.all_resolved(node.group_expr, input.schema())?;
        let one_row = keys.is_empty();
        keys.extend(self.columns(&input)?);
        let aggregates = self.all_resolved(node.aggr_expr, input.schema())?;
        let grouped = Aggregate::try_new(Arc::new(input), keys, aggregates.clone())?;
        let grouped = LogicalPlan::Aggregate(grouped);
        if one_row { self.with_empty_groups(grouped, &aggregates) } else { Ok(grouped) }
    }

    /// An aggregate without keys returns one row even without input rows.
    fn with_empty_groups(&self, grouped: LogicalPlan, aggregates: &[Expr]) -> Result<LogicalPlan> {
        let outputs = self.own_columns(&grouped);
        let mut retained: Vec<Expr> = outputs.iter().cloned().map(Expr::Column).collect();
        let mut on = Vec::new();
        let mut exprs = Vec::new();
        for (output, aggregate) in outputs.into_iter().zip(aggregates) {
            let value = Expr::Column(output.clone());
            let value = match nothing(aggregate)? {
                Some(nothing) => either(value, Expr::Literal(nothing, None)),
                None => value,
            };
            exprs.push(value.alias_qualified(output.relation, output.name));
        }
        for own in self.names() {
            let outer = column_named(self.plan.schema(), own)?;
            let twin = format!("{own}g");
            retained.push(column_named(grouped.schema(), own)?.alias(&twin));
            exprs.push(outer.clone());
            on.push((outer, Expr::Column(Column::new_unqualified(twin))));
        }
        let groups = LogicalPlan::Projection(Projection::try_new(retained, Arc::new(grouped))?);
        let complete = join(self.plan.clone(), groups, on, None, JoinType::Left)?;
        Ok(LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(complete))?))
    }

    pub(super) fn extension(&self, node: &Extension) -> Result<LogicalPlan> {
        let input = || self.spread(node.node.inputs()[0].clone());
        match LogicalNode::of(node.node.as_ref()) {
            Some(LogicalNode::SampleBy(sampled)) => self.sampled(sampled),
            Some(LogicalNode::LatestOn(latest)) => {
                let input = input()?;
                let schema = Arc::clone(input.schema());
                let timestamp = self.resolved(latest.timestamp().clone(), &schema)?;
                let mut keys = self.all_resolved(latest.keys().to_vec(), &schema)?;
                keys.extend(self.columns(&input)?);
                Ok(extension(LatestOnNode::try_new(input, timestamp, keys)?))
            }
            Some(LogicalNode::Asof(asof)) => self.asof(asof),
            // A sub-query's rows are only looked up, so their order does not matter.
            Some(LogicalNode::OrderedJoin(node)) => self.spread(node.join().clone()),
            Some(LogicalNode::Unnest(unnest)) => {
                let input = input()?;
                let arguments = self.all_resolved(unnest.arguments().to_vec(), input.schema())?;
                Ok(extension(unnest.with_exprs_and_inputs(arguments, vec![input])?))
            }
            Some(LogicalNode::Windows(windows)) => {
                let input = input()?;
                let timestamp = windows.timestamp().cloned();
                let functions = self.partitioned(windows.functions().to_vec(), &input)?;
                Ok(extension(WindowNode::try_new(input, timestamp, functions)?))
            }
            Some(
                LogicalNode::Fill(_)
                | LogicalNode::LastRows(_)
                | LogicalNode::Splice(_)
                | LogicalNode::WindowJoin(_)
                | LogicalNode::Horizon(_)
                | LogicalNode::SharedRows(_),
            )
            | None => not_supported("this clause in a correlated sub-query"),
        }
    }

    fn asof(&self, asof: &AsofJoinNode) -> Result<LogicalPlan> {
        if self.in_plan(asof.right())? {
            return not_supported("a correlated right side of a time series join");
        }
        let node = AsofJoinNode::try_new(
            self.spread(asof.left().clone())?,
            asof.right().clone(),
            asof.left_timestamp().clone(),
            asof.right_timestamp().clone(),
            asof.keys().to_vec(),
            asof.kind(),
            asof.tolerance(),
        )?;
        Ok(extension(node))
    }

    fn sampled(&self, node: &SampleByNode) -> Result<LogicalPlan> {
        let input = self.spread(node.input().clone())?;
        let schema = Arc::clone(input.schema());
        let bucket = match node.bucket() {
            Some(bucket) => Some(Bucket {
                timestamp: self.resolved(bucket.timestamp.clone(), &schema)?,
                spec: bucket.spec,
            }),
            None => None,
        };
        let one_row = bucket.is_none() && node.keys().is_empty();
        let mut keys = self.all_resolved(node.keys().to_vec(), &schema)?;
        keys.extend(self.columns(&input)?);
        let aggregates = self.all_resolved(node.aggregates().to_vec(), &schema)?;
        let grouped = SampleByNode::try_new(input, bucket, keys, aggregates.clone())?;
        let grouped = extension(grouped.in_any_order(node.any_order()));
        if one_row { self.with_empty_groups(grouped, &aggregates) } else { Ok(grouped) }
    }
}

fn extension(node: impl datafusion::logical_expr::UserDefinedLogicalNode + 'static) -> LogicalPlan {
    LogicalPlan::Extension(Extension { node: Arc::new(node) })
}

/// Returns `first`, or `second` if `first` is null.
fn either(first: Expr, second: Expr) -> Expr {
    let test = Box::new(first.clone().is_not_null());
    Expr::Case(Case::new(None, vec![(test, Box::new(first))], Some(Box::new(second))))
}

/// Returns an aggregate's result for an empty input, unless it is null.
fn nothing(aggregate: &Expr) -> Result<Option<ScalarValue>> {
    let Expr::AggregateFunction(call) = aggregate.clone().unalias() else { return Ok(None) };
    // Counts have a non-null default; all other aggregates return null, regardless of the type.
    let value = call.func.default_value(&arrow_schema::DataType::Int64)?;
    Ok(Some(value).filter(|value| !value.is_null()))
}
