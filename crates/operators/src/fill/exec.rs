//! Plans FILL. The SAMPLE BY result is small, so it is read in full. Missing buckets are generated
//! on demand.

use std::fmt;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::arrow::compute::concat_batches;
use datafusion::common::Result;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SendableRecordBatchStream};
use futures::{TryFutureExt, TryStreamExt};

use super::filled::Filled;
use super::node::FillNode;
use super::plan::FillPlan;
use crate::bounded::cell_bytes;
use crate::lowering::schema_of;
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::properties::{ascending, ascending_inputs, properties};

/// Approximate size of a fixed-length cell, in bytes.
const CELL_BYTES: usize = 16;

/// Reads the buckets that have rows. The set of keys is complete only after the last row.
async fn read(run: Run, plan: Arc<FillPlan>) -> Result<Filled> {
    let memory = run.memory();
    let mut rows = run.rows(0, 0)?;
    let mut batches = vec![];
    while let Some(batch) = rows.try_next().await? {
        let cells = CELL_BYTES * batch.num_rows() * batch.num_columns();
        // Each batch is counted twice: once as read, and once in the concatenation.
        memory.try_grow(2 * (cells + cell_bytes(&batch)))?;
        batches.push(batch);
    }
    let batch = concat_batches(&run.inputs[0].schema(), &batches)?;
    drop(batches);
    Filled::new(batch, plan, run.schema, memory)
}

impl fmt::Display for FillPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} keys={:?} values={:?}", self.spec, self.keys, self.values)
    }
}

impl Operator for FillPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "FillExec",
            memory: Some("Fill"),
            preserves: PreservedOrder::NOTHING,
            // The number of output buckets depends on the gaps between the rows.
            work: Work::Cells,
            suits_any_rows: true,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        properties(schema, [vec![ascending(&self.label(schema))]], 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn input_order(&self, inputs: &[Input]) -> Vec<Option<OrderingRequirements>> {
        ascending_inputs([&self.label(&inputs[0].schema())])
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        // Without statistics, assumes that every other bucket is missing.
        Some(rows.first().copied().flatten()?.saturating_mul(2))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&run.schema);
        Ok(Run::stream(schema, read(run, self).map_ok(futures::stream::iter)))
    }
}

pub fn plan_fill(node: &FillNode, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let plan = FillPlan {
        timestamp: node.timestamp(),
        keys: node.keys().to_vec(),
        values: node.values().to_vec(),
        spec: *node.spec(),
        range: node.range(),
    };
    let schema = schema_of(node);
    OperatorExec::plan(plan, vec![input], &schema)
}
