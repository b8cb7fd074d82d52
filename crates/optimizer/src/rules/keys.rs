//! Logical rule: normalises values to keys. Groups, partitions, peers and sorts then treat values
//! that compare equal as the same, even if their bits differ: both zeros of DOUBLE, FLOAT and
//! DOUBLE[], and PERIOD in different units. Joins normalise DOUBLE and FLOAT keys themselves.

use std::borrow::Cow;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, Extension, LogicalPlan, SortExpr, Window,
};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tidemark_operators::{LogicalNode, as_key};

/// Aggregates that compare argument values for equality even without DISTINCT.
const BY_VALUE: [&str; 1] = ["mode"];

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct EqualKeys;

impl OptimizerRule for EqualKeys {
    fn name(&self) -> &'static str {
        "equal_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        with_keys(plan)
    }
}

/// Returns the plan with normalised keys in each node, or the plan itself if it needs none.
pub(crate) fn equal_keys(plan: &LogicalPlan) -> Result<Cow<'_, LogicalPlan>> {
    let needs_keys = |node: &LogicalPlan| {
        // Other nodes have no keys; skipping them avoids copying their expression lists.
        let may_have_keys = matches!(
            node,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Window(_)
                | LogicalPlan::Sort(_)
                | LogicalPlan::Join(_)
                | LogicalPlan::Extension(_)
        );
        Ok(may_have_keys && with_keys(node.clone())?.transformed)
    };
    if plan.exists(needs_keys)? {
        return Ok(Cow::Owned(plan.clone().transform_up(with_keys)?.data));
    }
    Ok(Cow::Borrowed(plan))
}

fn with_keys(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Aggregate(node) => {
            let schema = node.input.schema();
            let groups = all(&node.group_expr, |expr| named_key(expr, schema))?;
            let aggregates = all(&node.aggr_expr, |expr| over_keys(expr, schema))?;
            if !groups.transformed && !aggregates.transformed {
                return Ok(Transformed::no(LogicalPlan::Aggregate(node)));
            }
            let node = Aggregate::try_new(node.input, groups.data, aggregates.data)?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(node)))
        }
        LogicalPlan::Window(node) => {
            let schema = node.input.schema();
            let exprs = all(&node.window_expr, |expr| over_keys(expr, schema))?;
            if !exprs.transformed {
                return Ok(Transformed::no(LogicalPlan::Window(node)));
            }
            let node = Window::try_new(exprs.data, node.input)?;
            Ok(Transformed::yes(LogicalPlan::Window(node)))
        }
        LogicalPlan::Sort(mut node) if node.expr.len() > 1 => {
            let order = sort_keys(node.expr, node.input.schema())?;
            node.expr = order.data;
            Ok(Transformed::new_transformed(LogicalPlan::Sort(node), order.transformed))
        }
        LogicalPlan::Join(mut node) => {
            let (left, right) = (node.left.schema(), node.right.schema());
            let on = all(&node.on, |(one, other)| {
                let (one, other) = (join_key(one, left)?, join_key(other, right)?);
                let is_any = one.transformed || other.transformed;
                Ok(Transformed::new_transformed((one.data, other.data), is_any))
            })?;
            node.on = on.data;
            Ok(Transformed::new_transformed(LogicalPlan::Join(node), on.transformed))
        }
        LogicalPlan::Extension(node) => own_node(node),
        other => Ok(Transformed::no(other)),
    }
}

/// Normalises a Tidemark node's keys.
fn own_node(extension: Extension) -> Result<Transformed<LogicalPlan>> {
    let unchanged = |extension| Ok(Transformed::no(LogicalPlan::Extension(extension)));
    let keyed = match LogicalNode::of(extension.node.as_ref()) {
        Some(LogicalNode::SampleBy(node)) => {
            let schema = extension.node.inputs()[0].schema();
            let keys = node.keys();
            all(&extension.node.expressions(), |expr| {
                if keys.contains(&expr) {
                    return named_key(expr, schema);
                }
                over_keys(expr, schema)
            })?
        }
        Some(LogicalNode::LatestOn(_)) => {
            let schema = extension.node.inputs()[0].schema();
            all(&extension.node.expressions(), |expr| key(expr, schema))?
        }
        Some(LogicalNode::Windows(_)) => {
            let schema = extension.node.inputs()[0].schema();
            all(&extension.node.expressions(), |expr| over_keys(expr, schema))?
        }
        Some(
            LogicalNode::Fill(_)
            | LogicalNode::LastRows(_)
            | LogicalNode::Unnest(_)
            | LogicalNode::Asof(_)
            | LogicalNode::Splice(_)
            | LogicalNode::WindowJoin(_)
            | LogicalNode::Horizon(_)
            | LogicalNode::OrderedJoin(_)
            | LogicalNode::SharedRows(_),
        )
        | None => return unchanged(extension),
    };
    if !keyed.transformed {
        return unchanged(extension);
    }
    let inputs = extension.node.inputs().into_iter().cloned().collect();
    let node = extension.node.with_exprs_and_inputs(keyed.data, inputs)?;
    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
}

fn all<E: Clone>(
    exprs: &[E],
    mut change: impl FnMut(E) -> Result<Transformed<E>>,
) -> Result<Transformed<Vec<E>>> {
    let mut changed = Vec::with_capacity(exprs.len());
    let mut is_any = false;
    for expr in exprs {
        let one = change(expr.clone())?;
        is_any |= one.transformed;
        changed.push(one.data);
    }
    Ok(Transformed::new_transformed(changed, is_any))
}

fn key(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let data_type = expr.get_type(schema)?;
    Ok(match as_key(&expr, &data_type) {
        Some(rewritten) => Transformed::yes(rewritten),
        None => Transformed::no(expr),
    })
}

/// Normalises a join key, except numbers: every join treats both zeros as equal.
fn join_key(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if expr.get_type(schema)?.is_floating() {
        return Ok(Transformed::no(expr));
    }
    key(expr, schema)
}

/// Normalises a key, keeping its expression's name.
fn named_key(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (qualifier, name) = expr.qualified_name();
    let inner = match &expr {
        Expr::Alias(alias) => alias.expr.as_ref().clone(),
        _ => expr.clone(),
    };
    let rewritten = key(inner, schema)?;
    if !rewritten.transformed {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(rewritten.data.alias_qualified(qualifier, name)))
}

fn sort_keys(order: Vec<SortExpr>, schema: &DFSchema) -> Result<Transformed<Vec<SortExpr>>> {
    let mut is_any = false;
    let order = order.into_iter().map(|mut one| {
        let rewritten = key(one.expr, schema)?;
        is_any |= rewritten.transformed;
        one.expr = rewritten.data;
        Ok(one)
    });
    let order = order.collect::<Result<_>>()?;
    Ok(Transformed::new_transformed(order, is_any))
}

/// Normalises the arguments of an aggregate or window function, keeping its name.
fn over_keys(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (qualifier, name) = expr.qualified_name();
    let rewritten = match expr.clone().unalias() {
        Expr::AggregateFunction(call) => aggregate_keys(call, schema)?,
        Expr::WindowFunction(call) => window_keys(*call, schema)?,
        other => Transformed::no(other),
    };
    if !rewritten.transformed {
        return Ok(Transformed::no(expr));
    }
    Ok(Transformed::yes(rewritten.data.alias_qualified(qualifier, name)))
}

fn aggregate_keys(mut call: AggregateFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut is_any = false;
    if call.params.distinct || BY_VALUE.contains(&call.func.name()) {
        let arguments = all(&call.params.args, |expr| key(expr, schema))?;
        is_any |= arguments.transformed;
        call.params.args = arguments.data;
    }
    let order = sort_keys(std::mem::take(&mut call.params.order_by), schema)?;
    is_any |= order.transformed;
    call.params.order_by = order.data;
    Ok(Transformed::new_transformed(Expr::AggregateFunction(call), is_any))
}

fn window_keys(mut call: WindowFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let params = &mut call.params;
    let partitions = all(&params.partition_by, |expr| key(expr, schema))?;
    params.partition_by = partitions.data;
    let order = sort_keys(std::mem::take(&mut params.order_by), schema)?;
    params.order_by = order.data;
    let mut is_any = partitions.transformed || order.transformed;
    if params.distinct {
        let arguments = all(&params.args, |expr| key(expr, schema))?;
        is_any |= arguments.transformed;
        params.args = arguments.data;
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(Box::new(call)), is_any))
}
