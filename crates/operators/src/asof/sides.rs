//! Inputs of a time join: rows in time order, with key IDs.

use std::sync::Arc;

use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;

use super::keys::KeyKind;
use crate::lowering::{Inputs, Lowering};
use crate::order::in_time_order;
use crate::symbols::dictionary;

/// A join input with its timestamp.
pub(crate) struct SidePlan {
    pub(crate) schema: DFSchema,
    pub(crate) plan: Arc<dyn ExecutionPlan>,
    pub(crate) timestamp: Arc<dyn PhysicalExpr>,
}

pub(crate) type KeyPairs = Vec<(Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>)>;

/// Returns the input with this index, in time order.
pub(crate) fn side(
    inputs: &Inputs<'_>,
    number: usize,
    timestamp: &Expr,
    lowering: &Lowering<'_>,
) -> Result<SidePlan> {
    let (schema, plan) = inputs.get(number)?;
    let timestamp = lowering.expr(timestamp, schema)?;
    let plan = in_time_order(plan, &timestamp)?;
    Ok(SidePlan { schema: schema.as_ref().clone(), plan, timestamp })
}

/// Returns the key pairs and the way their IDs are assigned.
pub(crate) fn key_pairs(
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
