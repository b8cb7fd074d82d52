//! Window aggregates over whole partitions of a scan's rows. The rows are read twice: once to
//! aggregate them by key, and once to look up each row's result. Only the aggregates are kept in
//! memory.

use std::sync::Arc;

use datafusion::common::{DFSchema, JoinSide, Result};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFunctionDefinition};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;

use super::node::WindowNode;
use super::spec::{Kind, Spec};
use crate::equi_join::join::{self, EquiJoin, OutputColumn};
use crate::equi_join::lookup::exec::LookupJoin;
use crate::keys::values::is_comparable;
use crate::lowering::{Lowering, schema_of};
use crate::operator::OperatorExec;
use crate::plan_node::PlanNode;
use crate::sample_by::exec::plan_sample_by;
use crate::sample_by::node::SampleByNode;
use crate::scan::kind::Scan;

/// Maximum number of partition keys. The time to derive a join's key properties is quadratic in
/// their number, and the derivation cannot be cancelled.
const MAX_KEYS: usize = 64;

/// Returns a node's plan, if all its functions are aggregates over whole partitions with the same
/// keys.
pub(super) fn plan_unframed(
    node: &WindowNode,
    logical: &LogicalPlan,
    input: &Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let schema = logical.schema();
    let Some((by, aggregates)) = aggregates(node, schema) else { return Ok(None) };
    if node.cache_slot().is_some() || by.len() > MAX_KEYS || !can_be_read_twice(input)? {
        return Ok(None);
    }
    let named = |(number, key): (usize, &Expr)| key.clone().alias(format!("key {number}"));
    let keys = by.iter().enumerate().map(named).collect();
    let groups = SampleByNode::try_new(logical.clone(), None, keys, aggregates)?;
    let grouped = plan_sample_by(&groups, schema, Arc::clone(input), lowering)?;
    let probes = by.iter().map(|key| lowering.expr(key, schema)).collect::<Result<Vec<_>>>()?;
    let output = schema_of(node);
    let (width, held_schema) = (input.schema().fields().len(), grouped.schema());
    let mut keys = Vec::with_capacity(probes.len());
    for (at, probe) in probes.into_iter().enumerate() {
        let field = held_schema.field(at);
        if !is_comparable(&probe.data_type(&input.schema())?, field.data_type()) {
            return Ok(None);
        }
        keys.push((probe, Arc::new(Column::new(field.name(), at)) as Arc<_>));
    }
    let results = by.len()..held_schema.fields().len();
    let types = results.clone().map(|column| held_schema.field(column).data_type());
    if !types.eq(output.fields().iter().skip(width).map(|field| field.data_type())) {
        return Ok(None);
    }
    let columns = (0..width).map(OutputColumn::First).chain(results.map(OutputColumn::Other));
    let join = EquiJoin {
        kind: join::Kind::Inner,
        keys,
        nulls: true,
        filter: None,
        first: JoinSide::Right,
        output: columns.collect(),
        equal: EquivalenceProperties::new(Arc::clone(&output)),
    };
    Ok(Some(OperatorExec::plan(
        LookupJoin { join: Arc::new(join) },
        vec![Arc::clone(input), grouped],
        &output,
    )))
}

/// Returns the keys and the functions as aggregates.
fn aggregates(node: &WindowNode, schema: &DFSchema) -> Option<(Vec<Expr>, Vec<Expr>)> {
    let mut by: Option<Vec<Expr>> = None;
    let mut aggregates = vec![];
    for (number, function) in node.functions().iter().enumerate() {
        let (spec, call) = Spec::of(function, node.timestamp(), schema)?;
        let kind =
            matches!(spec.kind, Kind::Sum | Kind::Average | Kind::Count | Kind::Extreme { .. });
        let WindowFunctionDefinition::AggregateUDF(of) = &call.fun else { return None };
        let params = call.params;
        let is_same = by.as_ref().is_none_or(|by| *by == params.partition_by);
        if !kind || spec.reach.is_some() || !is_same || params.partition_by.is_empty() {
            return None;
        }
        by = Some(params.partition_by);
        let call =
            AggregateFunction::new_udf(Arc::clone(of), params.args, false, None, vec![], None);
        aggregates.push(Expr::AggregateFunction(call).alias(format!("result {number}")));
    }
    Some((by?, aggregates))
}

/// Whether the rows come from a scan and are the same in every execution.
fn can_be_read_twice(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    match PlanNode::of(plan.as_ref()) {
        PlanNode::Operator(operator) => {
            return Ok(operator.facts().scan.is_some_and(Scan::is_stable));
        }
        PlanNode::Projection(projection) => {
            if projection.expr().iter().any(|computed| is_volatile(&computed.expr)) {
                return Ok(false);
            }
        }
        PlanNode::Filter(filter) if !is_volatile(filter.predicate()) => {}
        _ => return Ok(false),
    }
    plan.children().first().map_or(Ok(false), |input| can_be_read_twice(input))
}
