//! Executes HORIZON JOIN. Right sides are read once. Each left batch is matched once per offset.
//! Each offset has its own position in each right side, so every position only moves forward.

use std::fmt;
use std::iter::once;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray, TimestampNanosecondArray,
};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::TryStreamExt;
use tidemark_types::account;

use super::node::HorizonJoinNode;
use crate::asof::node::AsofKind;
use crate::asof::plan::AsofPlan;
use crate::asof::right::RightSide;
use crate::asof::sides::{key_pairs, side};
use crate::asof::stream::Matcher;
use crate::error::engine_error;
use crate::lowering::{Inputs, Lower, Lowering, schema_of};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
};
use crate::order::partitions_in_scan_order;
use crate::properties::{ascending_inputs, properties};
use crate::sample_by::partial::timestamps;

/// Joins each left row, at each offset, with the last row of each right side.
pub(crate) struct HorizonPlan {
    /// One plan per right side.
    pub(crate) sides: Vec<Arc<AsofPlan>>,
    /// Number of units of each right timestamp per unit of the left timestamp.
    pub(crate) per_left: Vec<i64>,
    pub(crate) left_timestamp: Arc<dyn PhysicalExpr>,
    pub(crate) offsets: Vec<i64>,
}

/// A worker, with a position in each right side for each offset.
struct Worker {
    plan: Arc<HorizonPlan>,
    schema: SchemaRef,
    /// Matchers by offset, then by right side.
    matchers: Vec<Vec<Matcher>>,
    memory: MemoryReservation,
}

impl Worker {
    fn new(
        plan: Arc<HorizonPlan>,
        rights: &[Arc<RightSide>],
        schema: SchemaRef,
        memory: MemoryReservation,
    ) -> Result<Self> {
        let mut matchers = Vec::with_capacity(plan.offsets.len());
        for _ in &plan.offsets {
            // Matchers have an entry for every key of each right side.
            account::check().map_err(engine_error)?;
            let sides = plan.sides.iter().zip(rights);
            let at_offset: Vec<Matcher> = sides
                .map(|(side, right)| Matcher::new(Arc::clone(side), Arc::clone(right)))
                .collect();
            memory.try_grow(at_offset.iter().map(Matcher::size).sum())?;
            matchers.push(at_offset);
        }
        Ok(Self { plan, schema, matchers, memory })
    }

    /// Joins a batch at the offset with index `number`.
    fn join(&mut self, batch: &RecordBatch, number: usize) -> Result<RecordBatch> {
        let offset = self.plan.offsets[number];
        let times = timestamps(&self.plan.left_timestamp, batch)?;
        let moved: Vec<i64> = times.iter().map(|ts| ts.saturating_add(offset)).collect();
        let mut columns = batch.columns().to_vec();
        let unit = self.schema.field(columns.len() + 1).data_type();
        let nanoseconds = *unit == DataType::Timestamp(TimeUnit::Nanosecond, None);
        let (offsets, shown) = (vec![offset; moved.len()], moved.clone());
        columns.push(Arc::new(Int64Array::from(offsets)));
        let shown: ArrayRef = if nanoseconds {
            Arc::new(TimestampNanosecondArray::from(shown))
        } else {
            Arc::new(TimestampMicrosecondArray::from(shown))
        };
        columns.push(shown);
        for (matcher, &per_left) in self.matchers[number].iter_mut().zip(&self.plan.per_left) {
            let before = matcher.size();
            let finer: Vec<i64>;
            let times = if per_left == 1 {
                &moved
            } else {
                finer = moved.iter().map(|ts| ts.saturating_mul(per_left)).collect();
                &finer
            };
            columns.extend(matcher.matched(times, batch)?);
            self.memory.try_grow(matcher.size().saturating_sub(before))?;
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

impl fmt::Display for HorizonPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.left_timestamp)?;
        for side in &self.sides {
            write!(f, ", {}", side.right_timestamp)?;
            for (left, right) in &side.keys {
                write!(f, " {left} = {right}")?;
            }
        }
        write!(f, " offsets={}", self.offsets.len())
    }
}

impl Operator for HorizonPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "HorizonJoinExec",
            memory: Some("HorizonJoin"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let partitions = inputs[0].output_partitioning().partition_count();
        properties(schema, [], partitions, EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let sides = self.sides.iter().flat_map(|side| {
            let keys = side.keys.iter().flat_map(|(left, right)| [left, right]);
            once(&side.right_timestamp).chain(keys)
        });
        once(&self.left_timestamp).chain(sides).collect()
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        partitions_in_scan_order(inputs)
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        let rights = self.sides.iter().map(|side| &side.right_timestamp);
        ascending_inputs(once(&self.left_timestamp).chain(rights))
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        if let Some(left) = of_first(column, inputs) {
            return Some(left);
        }
        let mut column = column.checked_sub(inputs[0].schema().fields().len() + 2)?;
        for (number, right) in inputs.iter().enumerate().skip(1) {
            let width = right.schema().fields().len();
            if column < width {
                return Some(Lineage { input: number, column, unmatched: true });
            }
            column -= width;
        }
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (mut left, schema) = (run.rows(0, run.partition)?, Arc::clone(&run.schema));
        Ok(Run::stream(Arc::clone(&schema), async move {
            let sides = run.shared(self.read_rights(&run)).await?;
            let worker = Worker::new(self, &sides, schema, run.memory())?;
            let batch = left.try_next().await?;
            let state = (left, worker, batch, 0_usize);
            Ok(futures::stream::try_unfold(state, next_batch))
        }))
    }
}

impl HorizonPlan {
    async fn read_rights(&self, run: &Run) -> Result<Vec<Arc<RightSide>>> {
        let mut rights = Vec::with_capacity(self.sides.len());
        for (number, side) in self.sides.iter().enumerate() {
            rights.push(Arc::new(side.read_right(run, number + 1).await?));
        }
        Ok(rights)
    }
}

/// State of the stream: the left rows, the worker, the current batch, and the next offset.
type State = (SendableRecordBatchStream, Worker, Option<RecordBatch>, usize);

async fn next_batch(
    (mut left, mut worker, mut batch, mut number): State,
) -> Result<Option<(RecordBatch, State)>> {
    if number == worker.plan.offsets.len() {
        (batch, number) = (left.try_next().await?, 0);
    }
    let Some(rows) = batch else { return Ok(None) };
    let joined = worker.join(&rows, number)?;
    Ok(Some((joined, (left, worker, Some(rows), number + 1))))
}

impl Lower for HorizonJoinNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let left = side(inputs, 0, self.left_timestamp(), lowering)?;
        let (mut rights, mut sides) = (vec![], vec![]);
        for (number, right) in self.sides().iter().enumerate() {
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
        let offsets = self.horizon().offsets.clone();
        let per_left = self.sides().iter().map(|side| side.per_left).collect();
        let plan = HorizonPlan { sides, per_left, left_timestamp: left.timestamp, offsets };
        rights.insert(0, left.plan);
        Ok(OperatorExec::plan(plan, rights, &schema_of(self)))
    }

    fn times(&self) -> Vec<&Expr> {
        let rights = self.sides().iter().map(|side| &side.timestamp);
        once(self.left_timestamp()).chain(rights).collect()
    }
}
