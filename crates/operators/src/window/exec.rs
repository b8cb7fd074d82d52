//! Executes window functions. Batches are passed on with additional columns. If any function
//! depends on later rows, all rows are read first.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::cast;
use datafusion::common::{DataFusionError, Result, internal_err, plan_err};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::{Stream, StreamExt, TryStreamExt};
use tidemark_kernels::Pick;
use tidemark_types::SqlType;

use super::cache::{CachedState, Slot};
use super::function::{self, Function};
use super::node::WindowNode;
use super::spec::{Kind, Spec};
use super::whole_partition::plan_unframed;
use crate::bounded::bytes::memory_bytes;
use crate::lowering::{Inputs, Lower, Lowering, hashed_keys, key_plan, schema_of};
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
    order_of_first,
};
use crate::order::{TimeConcat, in_time_order};
use crate::plan_node::scan_of;
use crate::properties::{ascending, ascending_inputs, properties};
use crate::sample_by::accumulator::RowGroups;
use crate::sample_by::groups::{GroupIndex, KeyPlan};
use crate::scan::kind::Scan;
use crate::scan::rows::BATCH_ROWS;

/// Maximum size in bytes of the copied state per row, chosen so that copying is cheap compared with
/// processing the rows.
const MAX_MARK_BYTES_PER_ROW: u64 = 16;
/// If no mark is due at the start of a batch, the next mark is set after at least this many of its
/// rows.
const MIN_SPLIT_ROWS: usize = 4_096;

/// A PARTITION BY clause.
pub(crate) struct PartitionPlan {
    pub(crate) keys: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) plan: KeyPlan,
}

/// A function with its input.
pub(crate) struct FunctionPlan {
    pub(crate) spec: Spec,
    pub(crate) argument: Option<Arc<dyn PhysicalExpr>>,
    /// Index of the function's PARTITION BY clause.
    pub(crate) partition: usize,
}

/// Adds one column to the rows for each window function.
pub(crate) struct WindowPlan {
    pub(crate) timestamp: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) partitions: Vec<PartitionPlan>,
    pub(crate) functions: Vec<FunctionPlan>,
    pub(crate) schema: SchemaRef,
    /// Nanoseconds per unit of the timestamp.
    pub(crate) nanos_per_tick: i64,
    /// Slot that caches the state between executions, if any.
    pub(crate) cache_slot: Option<Slot>,
    /// How many of the rows before a scan partition affect the results in the partition. If the
    /// number is known, partitions are processed independently.
    pub(crate) lookback_rows: Option<usize>,
}

/// State of the execution.
struct Progress {
    plan: Arc<WindowPlan>,
    indexes: Vec<Option<GroupIndex>>,
    functions: Vec<Function>,
    batches: usize,
    /// Timestamp of the leading rows that have already been processed, and their number.
    passed: Option<(i64, u64)>,
    /// The latest timestamp, and the number of processed rows with that timestamp.
    last: Option<(i64, u64)>,
    /// Number of rows processed, and the number that had been processed at the last mark.
    rows: u64,
    marked: u64,
    /// Size of the last mark in bytes.
    mark_bytes: u64,
}

/// A node's state at a mark. Partition numbers remain valid because later rows can only add
/// partitions.
struct Marked {
    functions: Vec<Function>,
    batches: usize,
    rows: u64,
}

/// A batch with the columns known so far, and each row's partition for each PARTITION BY.
struct Passed {
    batch: RecordBatch,
    columns: Vec<Option<ArrayRef>>,
    partitions: Vec<Vec<u32>>,
}

impl Progress {
    fn new(plan: &Arc<WindowPlan>) -> Result<Self> {
        let index = |partition: &PartitionPlan| match partition.keys.as_slice() {
            [] => Ok(None),
            _ => GroupIndex::new(&partition.plan).map(Some),
        };
        let width = plan.schema.fields().len() - plan.functions.len();
        let types = plan.schema.fields().iter().skip(width);
        let functions = plan.functions.iter().zip(types).map(|(function, field)| {
            Function::new(&function.spec, Some(field.data_type()), plan.nanos_per_tick)
        });
        Ok(Self {
            indexes: plan.partitions.iter().map(index).collect::<Result<_>>()?,
            functions: functions.collect(),
            plan: Arc::clone(plan),
            batches: 0,
            passed: None,
            last: None,
            rows: 0,
            marked: 0,
            mark_bytes: 0,
        })
    }

    /// Starts from scratch or from the state of an earlier execution.
    fn begin(plan: &Arc<WindowPlan>) -> Result<Self> {
        let Some(slot) = &plan.cache_slot else { return Self::new(plan) };
        let passed = slot.passed();
        match slot.take::<Self>() {
            Some(retained) => {
                Ok(Self { plan: Arc::clone(plan), passed, last: passed, ..*retained })
            }
            None => Self::new(plan),
        }
    }

    /// Stores the state that later rows need.
    fn end(mut self) {
        if let Some(slot) = self.plan.cache_slot.clone() {
            // This node did not receive any rows at or after these marks.
            while let Some(time) = slot.next_mark().filter(|_| !slot.is_first()) {
                self.mark(&slot, time);
            }
            slot.note(self.last);
            slot.store(self);
        }
    }

    /// Returns rows with the new columns, excluding rows that have already been processed. If a
    /// mark is set before a row, the batch is split there.
    fn pass(&mut self, batch: RecordBatch) -> Result<Vec<RecordBatch>> {
        let (Some(timestamp), Some(slot)) = (&self.plan.timestamp, self.plan.cache_slot.clone())
        else {
            let passed = self.push(batch)?;
            return Ok(vec![self.finish(0, passed)?]);
        };
        let rows = batch.num_rows();
        let times = cast(&timestamp.evaluate(&batch)?.into_array(rows)?, &DataType::Int64)?;
        let times = times.as_primitive::<Int64Type>().values();
        let mut from = self.processed_rows(times);
        let mut done = Vec::with_capacity(1);
        while let Some((row, time)) = self.next_mark(&slot, &times[from..]) {
            done.extend(self.process(&batch, from..from + row, times)?);
            from += row;
            self.mark(&slot, time);
        }
        done.extend(self.process(&batch, from..rows, times)?);
        Ok(done)
    }

    /// Returns how many of the leading rows have already been processed.
    fn processed_rows(&mut self, times: &[i64]) -> usize {
        let Some((time, count)) = &mut self.passed else { return 0 };
        let is_seen = |row: &usize| times[*row] == *time && (*row as u64) < *count;
        let seen = (0..times.len()).take_while(is_seen).count();
        *count -= seen as u64;
        seen
    }

    /// Processes some of a batch's rows and records the latest timestamp.
    fn process(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        times: &[i64],
    ) -> Result<Option<RecordBatch>> {
        let times = &times[rows.clone()];
        let Some(&time) = times.last() else { return Ok(None) };
        let count = times.iter().rev().take_while(|other| **other == time).count() as u64;
        let before = self.last.filter(|last| last.0 == time && count == times.len() as u64);
        self.last = Some((time, count + before.map_or(0, |last| last.1)));
        self.rows += times.len() as u64;
        let passed = self.push(batch.slice(rows.start, rows.len()))?;
        self.finish(0, passed).map(Some)
    }

    /// Returns the next row before which a mark is set, along with its timestamp. The first node
    /// chooses where each mark goes, and the other nodes follow.
    fn next_mark(&mut self, slot: &Slot, times: &[i64]) -> Option<(usize, i64)> {
        if !slot.is_first() {
            let time = slot.next_mark()?;
            let row = times.partition_point(|other| *other < time);
            return (row < times.len()).then_some((row, time));
        }
        let unmarked = self.rows - self.marked;
        let worth = (self.mark_bytes / MAX_MARK_BYTES_PER_ROW).max(1);
        let wait = match usize::try_from(worth.saturating_sub(unmarked)).ok()? {
            0 => 0,
            rows => rows.max(MIN_SPLIT_ROWS),
        };
        // Rows with the same timestamp are not separated.
        let last = if wait == 0 { self.last?.0 } else { *times.get(wait - 1)? };
        let from = slot.marked_from();
        let is_before = |time: &i64| *time <= last || *time < from;
        let row = wait + times[wait..].partition_point(is_before);
        Some((row, *times.get(row)?))
    }

    fn mark(&mut self, slot: &Slot, time: i64) {
        (self.marked, self.mark_bytes) = (self.rows, self.bytes() as u64);
        let copy = || -> Box<dyn Any + Send> {
            let functions = self.functions.iter().map(|function| function.copy(self.batches));
            let functions = functions.collect();
            Box::new(Marked { functions, batches: self.batches, rows: self.rows })
        };
        let bytes = self.mark_bytes as usize;
        if slot.is_first() {
            slot.begin_mark((time, self.rows), self.last, bytes, copy);
        } else {
            slot.complete_mark(time, bytes, copy);
        }
    }

    fn bytes(&self) -> usize {
        self.functions.iter().map(Function::bytes).fold(0, usize::saturating_add)
    }

    fn push(&mut self, batch: RecordBatch) -> Result<Passed> {
        let rows = batch.num_rows();
        let times = match &self.plan.timestamp {
            Some(timestamp) => {
                let times = timestamp.evaluate(&batch)?.into_array(rows)?;
                Some(cast(&times, &DataType::Int64)?)
            }
            None => None,
        };
        let times = times.as_ref().map(|times| times.as_primitive::<Int64Type>().values().as_ref());
        let mut partitions = Vec::with_capacity(self.indexes.len());
        for (partition, index) in self.plan.partitions.iter().zip(&mut self.indexes) {
            let Some(index) = index else {
                partitions.push(vec![]);
                continue;
            };
            let evaluate = partition.keys.iter().map(|key| key.evaluate(&batch)?.into_array(rows));
            let keys = evaluate.collect::<Result<Vec<_>>>()?;
            partitions.push(match index.assign(&[(0..rows, 0)], &keys)?.0 {
                RowGroups::Scattered(groups) => groups,
                RowGroups::Runs(_) => vec![],
            });
        }
        let mut columns = Vec::with_capacity(self.functions.len());
        for (function, plan) in self.functions.iter_mut().zip(&self.plan.functions) {
            let argument = match &plan.argument {
                Some(argument) => Some(argument.evaluate(&batch)?.into_array(rows)?),
                None => None,
            };
            columns.push(function.push(&function::Input {
                batch: self.batches,
                rows,
                argument: argument.as_ref(),
                partitions: &partitions[plan.partition],
                times,
            })?);
        }
        self.batches += 1;
        Ok(Passed { batch, columns, partitions })
    }

    fn finish(&self, number: usize, passed: Passed) -> Result<RecordBatch> {
        let rows = passed.batch.num_rows();
        let mut columns = passed.batch.columns().to_vec();
        let width = columns.len();
        for (index, column) in passed.columns.into_iter().enumerate() {
            columns.push(if let Some(column) = column {
                column
            } else {
                let partition = self.plan.functions[index].partition;
                let partitions = &passed.partitions[partition];
                let data_type = self.plan.schema.field(width + index).data_type();
                self.functions[index].finish(number, rows, partitions, data_type)?
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.plan.schema), columns)?)
    }
}

impl CachedState for Progress {
    fn settle(&mut self) -> usize {
        let batches = self.batches;
        self.functions.iter_mut().for_each(|function| function.settle(batches));
        self.bytes() + self.indexes.iter().flatten().map(GroupIndex::size).sum::<usize>()
    }

    fn rewind(&mut self, copy: &(dyn Any + Send)) {
        let Some(marked) = copy.downcast_ref::<Marked>() else { return };
        self.functions.clone_from(&marked.functions);
        self.batches = marked.batches;
        (self.rows, self.marked) = (marked.rows, marked.rows);
    }
}

/// Reads all rows, then returns them with the new columns.
async fn work_to_the_end(
    mut rows: SendableRecordBatchStream,
    plan: Arc<WindowPlan>,
    memory: MemoryReservation,
) -> Result<impl Stream<Item = Result<RecordBatch>>> {
    let mut work = Progress::new(&plan)?;
    let mut passed = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        memory.try_grow(memory_bytes(&batch) + 16 * batch.num_rows())?;
        passed.push(work.push(batch)?);
    }
    let batches = futures::stream::iter(passed.into_iter().enumerate());
    Ok(batches.map(move |(number, passed)| {
        // Releases the memory after the last batch has been returned.
        let _ = &memory;
        work.finish(number, passed)
    }))
}

impl WindowPlan {
    /// Whether a function depends on later rows.
    fn is_deferred(&self) -> bool {
        self.functions.iter().any(|function| function.spec.is_deferred())
    }

    /// Returns the rows before a partition that affect the results in the partition.
    fn lead(&self, run: &Run) -> Result<Vec<RecordBatch>> {
        let Some(rows) = self.lookback_rows.filter(|_| run.partition > 0) else {
            return Ok(vec![]);
        };
        let Some(scan) = scan_of(&run.inputs[0]).and_then(Scan::unfiltered) else {
            return internal_err!("preceding rows require a scan");
        };
        scan.rows_before(run.partition, rows)
    }
}

/// Returns how many rows back the functions read; `None` unless all of them read only earlier
/// values of a whole scan.
fn lookback_rows(
    node: &WindowNode,
    input: &Input,
    functions: &[FunctionPlan],
    partitions: &[(Vec<Expr>, PartitionPlan)],
) -> Option<usize> {
    let scan = scan_of(input).and_then(Scan::unfiltered)?;
    let is_plain = node.cache_slot().is_none() && !scan.is_backward();
    if !is_plain || partitions.iter().any(|(keys, _)| !keys.is_empty()) {
        return None;
    }
    let distance = |function: &FunctionPlan| match function.spec.kind {
        Kind::Pick { pick: Pick::Back(distance), ignore_nulls: false, .. } => Some(distance),
        _ => None,
    };
    let max =
        functions.iter().try_fold(0, |max: usize, function| Some(max.max(distance(function)?)));
    max.filter(|max| *max <= BATCH_ROWS)
}

impl fmt::Display for WindowPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.schema.fields().len() - self.functions.len();
        let names = self.schema.fields().iter().skip(width).map(|field| field.name().as_str());
        write!(f, "[{}]", names.collect::<Vec<_>>().join(", "))
    }
}

impl Operator for WindowPlan {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "WindowsExec",
            memory: Some("Windows"),
            preserves: PreservedOrder {
                partitions: self.lookback_rows.is_some(),
                rows: true,
                direction: false,
                every_row: true,
            },
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    /// A sort for a window above may have been pushed below this node.
    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let by_time = self.timestamp.iter().map(|timestamp| vec![ascending(timestamp)]);
        let orders = order_of_first(inputs).into_iter().chain(by_time);
        let emission =
            if self.is_deferred() { EmissionType::Final } else { EmissionType::Incremental };
        let partitions = match (self.lookback_rows, inputs) {
            (Some(_), [input]) => input.output_partitioning().partition_count(),
            _ => 1,
        };
        properties(schema, orders, partitions, emission)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        let keys = self.partitions.iter().flat_map(|partition| &partition.keys);
        let arguments = self.functions.iter().filter_map(|plan| plan.argument.as_ref());
        self.timestamp.iter().chain(keys).chain(arguments).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![match self.lookback_rows {
            Some(_) => Distribution::UnspecifiedDistribution,
            None => Distribution::SinglePartition,
        }]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        match &self.timestamp {
            Some(timestamp) => ascending_inputs([timestamp]),
            None => vec![None],
        }
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        rows.first().copied().flatten()
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (rows, schema) = (run.rows(0, run.partition)?, Arc::clone(&run.schema));
        if self.is_deferred() {
            return Ok(Run::stream(schema, work_to_the_end(rows, self, run.memory())));
        }
        let mut work = Progress::begin(&self)?;
        for before in self.lead(&run)? {
            work.push(before)?;
        }
        let batches = futures::stream::try_unfold((rows, work), |(mut rows, mut work)| async {
            let Some(batch) = rows.try_next().await? else {
                work.end();
                return Ok::<_, DataFusionError>(None);
            };
            let batches = work.pass(batch)?.into_iter().map(Ok);
            Ok(Some((futures::stream::iter(batches), (rows, work))))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }
}

impl Lower for WindowNode {
    fn lower(
        &self,
        inputs: &Inputs<'_>,
        lowering: &Lowering<'_>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (schema, mut input) = inputs.get(0)?;
        let timestamp = self.timestamp().map(|timestamp| lowering.expr(timestamp, schema));
        let timestamp = timestamp.transpose()?;
        let mut nanos_per_tick = 1;
        if let Some(timestamp) = &timestamp {
            input = in_time_order(input, timestamp)?;
            if timestamp.data_type(&input.schema())? == SqlType::Timestamp.arrow_type() {
                nanos_per_tick = 1_000;
            }
        }
        if let Some(logical) = inputs.logical.first()
            && let Some(plan) = plan_unframed(self, logical, &input, lowering)?
        {
            return Ok(plan);
        }
        let mut partitions: Vec<(Vec<Expr>, PartitionPlan)> = Vec::new();
        let mut functions = Vec::with_capacity(self.functions().len());
        for function in self.functions() {
            let Some((spec, call)) = Spec::of(function, self.timestamp(), schema) else {
                return plan_err!("'{function}' requires a different row order");
            };
            let by = call.params.partition_by;
            let known = partitions.iter().position(|(keys, _)| *keys == by);
            let partition = if let Some(known) = known {
                known
            } else {
                let keys = by.iter().map(|key| lowering.expr(key, schema));
                let keys: Vec<_> = keys.collect::<Result<_>>()?;
                let plan = match self.cache_slot() {
                    // Keys are hashed, because dictionaries grow between executions.
                    Some(_) if !keys.is_empty() => hashed_keys(&input, &keys)?,
                    _ => key_plan(&input, &keys)?,
                };
                partitions.push((by, PartitionPlan { keys, plan }));
                partitions.len() - 1
            };
            let argument = call.params.args.first().map(|argument| lowering.expr(argument, schema));
            functions.push(FunctionPlan { spec, argument: argument.transpose()?, partition });
        }
        let looks_back = lookback_rows(self, &input, &functions, &partitions);
        if looks_back.is_none() && input.output_partitioning().partition_count() > 1 {
            input = TimeConcat::plan(input);
        }
        let plan = WindowPlan {
            timestamp,
            lookback_rows: looks_back,
            partitions: partitions.into_iter().map(|(_, plan)| plan).collect(),
            cache_slot: self.cache_slot().cloned(),
            functions,
            schema: schema_of(self),
            nanos_per_tick,
        };
        let output = Arc::clone(&plan.schema);
        Ok(OperatorExec::plan(plan, vec![input], &output))
    }

    fn times(&self) -> Vec<&Expr> {
        self.timestamp().into_iter().collect()
    }
}
