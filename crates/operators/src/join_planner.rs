//! From logical to physical time joins.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{Fields, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, UserDefinedLogicalNodeCore};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::ExecutionPlan;

use crate::asof::keys::KeyKind;
use crate::asof::node::{AsofJoinNode, AsofKind};
use crate::asof::plan::AsofPlan;
use crate::asof::right::SideExprs;
use crate::horizon::exec::HorizonPlan;
use crate::horizon::node::HorizonJoinNode;
use crate::operator::OperatorExec;
use crate::order::in_time_order;
use crate::planner::{Inputs, Lowering};
use crate::splice::exec::SplicePlan;
use crate::splice::node::SpliceJoinNode;
use crate::symbols::{dictionary, origin};
use crate::window_join::index;
use crate::window_join::node::{WindowBound, WindowJoinNode, pair_schema};
use crate::window_join::plan::{BoundPlan, Computed, WindowAggregate, WindowPlan};

/// A side of a join with its timestamp.
#[derive(Clone)]
struct SidePlan {
    schema: DFSchema,
    plan: Arc<dyn ExecutionPlan>,
    timestamp: Arc<dyn PhysicalExpr>,
}

type KeyPairs = Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>;

/// The input with this number, in time order.
fn side(
    inputs: &Inputs<'_>,
    number: usize,
    timestamp: &Expr,
    lowering: &Lowering<'_>,
) -> Result<SidePlan> {
    let (Some(logical), Some(plan)) = (inputs.logical.get(number), inputs.physical.get(number))
    else {
        return plan_err!("a join lacks input {number}");
    };
    let timestamp = lowering.expr(timestamp, logical.schema())?;
    let plan = in_time_order(Arc::clone(plan), &timestamp)?;
    Ok(SidePlan { schema: logical.schema().as_ref().clone(), plan, timestamp })
}

/// Pairs of keys, and how they become numbers.
fn key_pairs(
    keys: &[(Expr, Expr)],
    (left, right): (&SidePlan, &SidePlan),
    lowering: &Lowering<'_>,
) -> Result<(KeyPairs, KeyKind)> {
    let keys = keys.iter().map(|(left_key, right_key)| {
        Ok((lowering.expr(left_key, &left.schema)?, lowering.expr(right_key, &right.schema)?))
    });
    let keys: KeyPairs = keys.collect::<Result<_>>()?;
    let symbols = match keys.as_slice() {
        [(left_key, right_key)] => {
            dictionary(&left.plan, left_key).zip(dictionary(&right.plan, right_key))
        }
        _ => None,
    };
    let kind = match symbols {
        _ if keys.is_empty() => KeyKind::None,
        Some((left_symbols, right_symbols)) => KeyKind::Symbol(left_symbols, right_symbols),
        None => {
            let types = keys.iter().map(|(_, key)| key.data_type(&right.plan.schema()));
            KeyKind::Hashed(types.collect::<Result<_>>()?)
        }
    };
    Ok((keys, kind))
}

fn schema_of(node: &impl UserDefinedLogicalNodeCore) -> SchemaRef {
    Arc::new(node.schema().as_arrow().clone())
}

pub(crate) fn plan_asof(
    node: &AsofJoinNode,
    inputs: &Inputs<'_>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let left = side(inputs, 0, node.left_timestamp(), lowering)?;
    let right = side(inputs, 1, node.right_timestamp(), lowering)?;
    let (keys, key_kind) = key_pairs(node.keys(), (&left, &right), lowering)?;
    let plan = AsofPlan {
        left_timestamp: left.timestamp,
        right_timestamp: right.timestamp,
        keys,
        key_kind,
        kind: node.kind(),
        tolerance: node.tolerance(),
    };
    let schema = schema_of(node);
    Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema))
}

pub(crate) fn plan_splice(
    node: &SpliceJoinNode,
    inputs: &Inputs<'_>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (left_timestamp, right_timestamp) = node.timestamps();
    let left = side(inputs, 0, left_timestamp, lowering)?;
    let right = side(inputs, 1, right_timestamp, lowering)?;
    let (keys, key_kind) = key_pairs(node.keys(), (&left, &right), lowering)?;
    let (left_keys, right_keys) = keys.into_iter().unzip();
    let plan = SplicePlan {
        left: SideExprs { timestamp: left.timestamp, keys: left_keys },
        right: SideExprs { timestamp: right.timestamp, keys: right_keys },
        key_kind,
    };
    let schema = schema_of(node);
    Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema))
}

pub(crate) fn plan_horizon(
    node: &HorizonJoinNode,
    inputs: &Inputs<'_>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let left = side(inputs, 0, node.left_timestamp(), lowering)?;
    let (mut rights, mut sides) = (vec![], vec![]);
    for (number, right) in node.sides().iter().enumerate() {
        let side = side(inputs, number + 1, &right.timestamp, lowering)?;
        let (keys, key_kind) = key_pairs(&right.keys, (&left, &side), lowering)?;
        sides.push(Arc::new(AsofPlan {
            left_timestamp: Arc::clone(&left.timestamp),
            right_timestamp: side.timestamp,
            keys,
            key_kind,
            kind: AsofKind::Asof,
            tolerance: None,
        }));
        rights.push(side.plan);
    }
    let offsets = node.horizon().offsets.clone();
    let per_left = node.sides().iter().map(|side| side.per_left).collect();
    let plan = HorizonPlan { sides, per_left, left_timestamp: left.timestamp, offsets };
    let schema = schema_of(node);
    rights.insert(0, left.plan);
    Ok(OperatorExec::plan(plan, rights, &schema))
}

pub(crate) fn plan_window(
    node: &WindowJoinNode,
    inputs: &Inputs<'_>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let (left_timestamp, right_timestamp) = node.timestamps();
    let left = side(inputs, 0, left_timestamp, lowering)?;
    let right = side(inputs, 1, right_timestamp, lowering)?;
    let (keys, key_kind) = key_pairs(node.keys(), (&left, &right), lowering)?;
    let pairs = pair_schema(inputs.logical[0], inputs.logical[1])?;
    let (left_schema, right_schema) = (left.plan.schema(), right.plan.schema());
    // Columns that nothing reads are null there.
    let fields = left_schema.fields().iter().chain(right_schema.fields());
    let fields: Fields = fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let pair_schema = Arc::new(Schema::new(fields));
    let filter = node.filter().map(|filter| lowering.expr(filter, &pairs)).transpose()?;
    let sides = Sides { right: &right, pairs: &pairs, pair_schema: &pair_schema };
    let aggregates = node
        .aggregates()
        .iter()
        .map(|aggregate| window_aggregate(aggregate, &sides, filter.is_some(), lowering));
    let aggregates = aggregates.collect::<Result<Vec<_>>>()?;
    let pairwise = aggregates.iter().filter(|one| one.computed == Computed::Pairs);
    let read = pairwise.flat_map(|one| one.plan.arguments.iter().chain(&one.plan.filter));
    let paired: HashSet<usize> = read
        .chain(&filter)
        .flat_map(|expr| collect_columns(expr).into_iter().map(|column| column.index()))
        .collect();
    let range = node.range();
    let low = bound(&range.low, &left, lowering)?;
    let high = bound(&range.high, &left, lowering)?;
    let mut reach = reach(&left, &low, &high);
    if filter.is_some() && range.include_prevailing {
        // The newest row for which the condition holds may be older than any window.
        reach = reach.map(|(_, newest)| (i64::MIN, newest));
    }
    let plan = WindowPlan {
        left_timestamp: left.timestamp,
        right_timestamp: right.timestamp,
        keys,
        key_kind,
        low,
        high,
        include_prevailing: range.include_prevailing,
        filter,
        aggregates,
        pair_schema,
        paired,
        reach,
    };
    let schema = schema_of(node);
    Ok(OperatorExec::plan(plan, vec![left.plan, right.plan], &schema))
}

fn bound(bound: &WindowBound, left: &SidePlan, lowering: &Lowering<'_>) -> Result<BoundPlan> {
    let distance = lowering.expr(&bound.distance, &left.schema)?;
    Ok(BoundPlan { distance, unit: bound.unit, following: bound.following })
}

/// The instants that windows of constant distances can hold.
fn reach(left: &SidePlan, low: &BoundPlan, high: &BoundPlan) -> Option<(i64, i64)> {
    let (scan, output) = origin(&left.plan, &left.timestamp)?;
    let (first, last) = scan.time_bounds(output)?;
    let (low, high) = (low.constant()?, high.constant()?);
    Some((first.saturating_add(low), last.saturating_add(high)))
}

struct Sides<'a> {
    right: &'a SidePlan,
    pairs: &'a DFSchema,
    pair_schema: &'a SchemaRef,
}

/// An aggregate that reads the right side alone may have an index; all others go over pairs.
fn window_aggregate(
    aggregate: &Expr,
    sides: &Sides<'_>,
    filtered: bool,
    lowering: &Lowering<'_>,
) -> Result<WindowAggregate> {
    let right = sides.right;
    let alone = aggregate.column_refs().iter().all(|column| right.schema.has_column(column));
    if alone && !filtered {
        let schema = right.plan.schema();
        let plan = lowering.aggregate_over(aggregate, &right.schema, &schema)?;
        let argument = plan.arguments.first().map(|argument| argument.data_type(&schema));
        let kind = index::kind_of(&plan.function, argument.transpose()?.as_ref());
        if let (Some(kind), None) = (kind, &plan.filter) {
            return Ok(WindowAggregate { plan, computed: Computed::Indexed(kind) });
        }
    }
    let plan = lowering.aggregate_over(aggregate, sides.pairs, sides.pair_schema)?;
    Ok(WindowAggregate { plan, computed: Computed::Pairs })
}
