//! Executes LATEST ON. Reads backward from the newest row until every key has been found.

use std::fmt;
use std::iter::once;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::{DFSchema, Result};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;

use super::node::LatestOnNode;
use super::plan::{KeyKind, LatestOnPlan};
use super::stream::Picker;
use crate::bounded::bytes::memory_bytes;
use crate::lowering::Lowering;
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, ROWS_PER_GROUP, Run, Work,
};
use crate::order::{TimeConcat, in_time_order, reversed};
use crate::plan_node::scan_of;
use crate::properties::{ascending, properties};
use crate::scan::kind::{Requested, Scan};
use crate::symbols::{dictionary, nullable_origin, origin};

async fn pick(run: Run, plan: Arc<LatestOnPlan>) -> Result<RecordBatch> {
    let memory = run.memory();
    let holds_null = || {
        let key = plan.keys.first().and_then(|key| nullable_origin(&run.inputs[0], key));
        key.is_none_or(|(_, nullable)| nullable)
    };
    if let Some(scan) = forward_scan(&run.inputs) {
        return pick_from_scan(scan, &run, &plan, holds_null).await;
    }
    let mut picker = Picker::new(&plan, None, holds_null)?;
    let mut rows = run.rows(0, 0)?;
    if plan.newest_first {
        while let Some(batch) = rows.try_next().await? {
            picker.update(&batch, true)?;
            memory.try_resize(picker.size())?;
            if picker.is_complete() {
                break;
            }
        }
        return picker.finish(&run.schema);
    }
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        memory.try_grow(memory_bytes(&batch))?;
        batches.push(batch);
    }
    for batch in batches.iter().rev() {
        if picker.is_complete() {
            break;
        }
        picker.update(batch, false)?;
    }
    picker.finish(&run.schema)
}

/// Returns the scan if its slices can be read from the end.
fn forward_scan(inputs: &[Input]) -> Option<&Scan> {
    scan_of(&inputs[0]).filter(|scan| !scan.table().is_backward() && scan.fetch().is_none())
}

/// A filter on the key reduces the number of keys to find.
async fn pick_from_scan(
    scan: &Scan,
    run: &Run,
    plan: &Arc<LatestOnPlan>,
    holds_null: impl FnOnce() -> bool,
) -> Result<RecordBatch> {
    let memory = run.memory();
    let key = plan.keys.first().and_then(|key| key.downcast_ref::<Column>());
    let passing = key.and_then(|key| scan.passing_keys(key.index()));
    let column = key.and_then(|key| scan.column(key.index()));
    let mut picker = Picker::new(plan, passing, holds_null)?;
    let required = |picker: &Picker| match (picker.few_keys(), column) {
        _ if picker.is_complete() => Requested::Nothing,
        (Some(keys), Some(column)) => Requested::Keys { column, keys: keys.to_vec() },
        _ => Requested::Rows,
    };
    let first = required(&picker);
    let take = |batch| {
        picker.update(&batch, false)?;
        memory.try_resize(picker.size())?;
        Ok(required(&picker))
    };
    scan.read_from_end(first, take).await?;
    picker.finish(&run.schema)
}

impl fmt::Display for LatestOnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self.keys.iter().map(ToString::to_string).collect();
        write!(f, "{} keys=[{}]", self.timestamp, keys.join(", "))
    }
}

impl Operator for LatestOnPlan {
    fn facts(&self, inputs: &[Input]) -> Facts<'_> {
        let is_from_end = forward_scan(inputs).is_some();
        Facts {
            name: "LatestOnExec",
            memory: Some("LatestOn"),
            preserves: PreservedOrder::NOTHING,
            work: if is_from_end { Work::FromEnd } else { Work::Inputs },
            suits_any_rows: is_from_end,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        properties(schema, [vec![ascending(&self.timestamp)]], 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        once(&self.timestamp).chain(&self.keys).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        vec![if forward_scan(inputs).is_some() {
            Distribution::UnspecifiedDistribution
        } else {
            Distribution::SinglePartition
        }]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        let mut order = ascending(&self.timestamp);
        order.options.descending = self.newest_first;
        vec![Some(OrderingRequirements::from(LexOrdering::from([order])))]
    }

    /// Picked rows may have keys from a different dictionary.
    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        let rows = rows.first().copied().flatten()?;
        Some(match &self.kind {
            KeyKind::Symbol { symbols } => rows.min(symbols + 1),
            KeyKind::Hashed(_) => rows / ROWS_PER_GROUP,
        })
    }

    fn over(self: Arc<Self>, inputs: &[Input]) -> Result<Arc<dyn Operator>> {
        let kind = KeyKind::of(&self.keys, &inputs[0])?;
        let (timestamp, keys) = (Arc::clone(&self.timestamp), self.keys.clone());
        Ok(Arc::new(Self { timestamp, keys, kind, newest_first: self.newest_first }))
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::batches(Arc::clone(&run.schema), pick(run, self)))
    }
}

/// Plans LATEST ON. `schema` has the column names used by the expressions.
pub fn plan_latest_on(
    node: &LatestOnNode,
    schema: &DFSchema,
    input: Arc<dyn ExecutionPlan>,
    lowering: &Lowering<'_>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let timestamp = lowering.expr(node.timestamp(), schema)?;
    let keys: Vec<_> =
        node.keys().iter().map(|key| lowering.expr(key, schema)).collect::<Result<_>>()?;
    let kind = KeyKind::of(&keys, &input)?;
    let by_time = origin(&input, &timestamp)
        .is_some_and(|(scan, output)| scan.is_timestamp(output) && !scan.is_backward());
    let output = input.schema();
    let mut plan = LatestOnPlan { timestamp, keys, kind, newest_first: false };
    if by_time && scan_of(&input).is_some() {
        return Ok(OperatorExec::plan(plan, vec![input], &output));
    }
    if by_time && let Some(backward) = reversed(&input, None)? {
        plan.newest_first = true;
        return Ok(OperatorExec::plan(plan, vec![TimeConcat::plan(backward)], &output));
    }
    let mut input = in_time_order(input, &plan.timestamp)?;
    // Sorted rows may have keys from a different dictionary.
    plan.kind = KeyKind::of(&plan.keys, &input)?;
    if input.output_partitioning().partition_count() > 1 {
        input = TimeConcat::plan(input);
    }
    Ok(OperatorExec::plan(plan, vec![input], &output))
}

impl KeyKind {
    fn of(keys: &[Arc<dyn PhysicalExpr>], input: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        if let [key] = keys
            && let Some(symbols) = dictionary(input, key)
        {
            return Ok(Self::Symbol { symbols: symbols.len() });
        }
        let types = keys.iter().map(|key| key.data_type(&input.schema()));
        Ok(Self::Hashed(types.collect::<Result<_>>()?))
    }
}
