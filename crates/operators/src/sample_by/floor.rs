//! GROUP BY on a floored designated timestamp. Groups are computed as buckets, as in SAMPLE BY,
//! rather than hashed.

use std::sync::Arc;

use arrow_schema::{DataType, Schema, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::physical_plan::projection::ProjectionExec;

use super::exec::possible_keys;
use super::groups::KeyPlan;
use super::plan::{AggregatePlan, BucketPlan, SampleByPlan};
use crate::bucket::BucketSpec;
use crate::lowering::counted_rows;
use crate::operator::{Input, OperatorExec};
use crate::plan_node::{Grouping, grouping};
use crate::properties::ascending;
use crate::symbols::origin;

/// Maximum number of groups if there are additional keys. Groups stay in memory and cannot be
/// spilled.
const MAX_GROUPS: usize = 1 << 16;
/// Approximate maximum size of the groups in bytes if there are no additional keys. It is small
/// compared with a query's memory.
const MAX_BYTES: usize = 96 << 20;
/// Size of a bucket's start, and approximate size of an aggregate's state, in bytes.
const START_BYTES: usize = size_of::<i64>();
const STATE_BYTES: usize = 3 * size_of::<i64>();

impl SampleByPlan {
    /// Returns the replacement for the two steps of GROUP BY. One key must be the floor of the
    /// timestamp that orders the rows; the other keys must be symbols.
    pub fn try_replace(plan: &Input) -> Result<Option<Input>> {
        let Some(Grouping { mut keys, functions, filters, input }) = grouping(plan) else {
            return Ok(None);
        };
        let found = keys.iter().enumerate().find_map(|(at, key)| Some((at, floored(input, key)?)));
        let Some((at, (bucket, most_buckets))) = found else { return Ok(None) };
        keys.remove(at);
        let groups = possible_keys(input, &keys).and_then(|keys| keys.checked_mul(most_buckets));
        let max = if keys.is_empty() {
            MAX_BYTES / (START_BYTES + STATE_BYTES * functions.len())
        } else {
            MAX_GROUPS
        };
        let in_order = LexOrdering::from([ascending(&bucket.timestamp)]);
        if groups.is_none_or(|groups| groups > max)
            || !input.equivalence_properties().ordering_satisfy(in_order)?
        {
            return Ok(None);
        }
        let expected = plan.schema();
        // The output starts with the bucket.
        let mut from: Vec<usize> = (0..expected.fields().len()).collect();
        from[..=at].rotate_right(1);
        let fields = from.iter().map(|&field| Arc::clone(&expected.fields()[field]));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let sampled = Self {
            bucket: Some(bucket),
            keys,
            key_plan: KeyPlan::None,
            aggregates: aggregates(functions, filters),
            max_groups: None,
            input_schema: input.schema(),
            output_schema: Arc::clone(&schema),
            cache: None,
        };
        let sampled = OperatorExec::plan(sampled.planned(input)?, vec![Arc::clone(input)], &schema);
        if at == 0 {
            return Ok(Some(sampled));
        }
        let columns = (0..from.len()).map(|field| {
            let position = from.iter().position(|&own| own == field).unwrap_or(field);
            let name = expected.field(field).name();
            (Arc::new(Column::new(name, position)) as Arc<dyn PhysicalExpr>, name.clone())
        });
        Ok(Some(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), sampled)?)))
    }
}

/// Returns the aggregates in a GROUP BY.
pub(super) fn aggregates(
    functions: &[Arc<AggregateFunctionExpr>],
    filters: &[Option<Arc<dyn PhysicalExpr>>],
) -> Vec<AggregatePlan> {
    let aggregate = |(function, filter): (&Arc<_>, &Option<Arc<_>>)| AggregatePlan {
        function: Arc::clone(function),
        arguments: arguments(function, filter.as_ref()),
        filter: filter.clone(),
        symbols: None,
    };
    functions.iter().zip(filters).map(aggregate).collect()
}

fn arguments(
    function: &AggregateFunctionExpr,
    filter: Option<&Arc<dyn PhysicalExpr>>,
) -> Vec<Arc<dyn PhysicalExpr>> {
    match filter {
        None => counted_rows(function),
        Some(_) => function.expressions(),
    }
}

/// Returns the buckets into which a key divides a scan's times, and the maximum number of buckets.
fn floored(input: &Input, key: &Arc<dyn PhysicalExpr>) -> Option<(BucketPlan, usize)> {
    let call = key.downcast_ref::<ScalarFunctionExpr>()?;
    let [step, timestamp] = call.args() else { return None };
    if !matches!(call.name(), "timestamp_floor" | "date_trunc") {
        return None;
    }
    let step = step.downcast_ref::<Literal>()?.value();
    let (ScalarValue::Utf8(Some(step)) | ScalarValue::Utf8View(Some(step))) = step else {
        return None;
    };
    let (scan, output) = origin(input, timestamp)?;
    let (first, last) = scan.time_bounds(output)?;
    let mut spec = BucketSpec::of_floor(step)?;
    spec.nanoseconds = match timestamp.data_type(&input.schema()).ok()? {
        DataType::Timestamp(TimeUnit::Microsecond, None) => false,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => true,
        _ => return None,
    };
    let max = usize::try_from(last.checked_sub(first)? / spec.min_length()).ok()?;
    Some((BucketPlan { timestamp: Arc::clone(timestamp), spec }, max.checked_add(2)?))
}
