//! Materializes an input's rows with their keys. If the rows exceed the memory limit, the
//! materialized rows and the remaining input are passed to operators that can spill.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tidemark_types::account;

use crate::bounded::bytes::memory_bytes;
use crate::error::{engine_error, join_error};
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::properties::properties;

/// A batch with its keys and the number of bytes accounted for it.
pub(crate) struct MaterializedBatch<K> {
    pub(crate) rows: RecordBatch,
    pub(crate) keys: K,
    bytes: usize,
}

/// Materialized rows, by partition.
pub(crate) struct Materialized<K = Vec<ArrayRef>> {
    partitions: Vec<Vec<MaterializedBatch<K>>>,
    memory: Arc<MemoryReservation>,
    /// Bytes reserved for the operators that spill.
    spare: usize,
}

/// Remaining rows of each partition of an input.
pub(crate) type RemainingInput = Vec<Option<SendableRecordBatchStream>>;

/// Result of reading an input.
pub(crate) enum Read<K = Vec<ArrayRef>> {
    All(Materialized<K>),
    /// The rows that fit in memory and the remaining input.
    Partial(Materialized<K>, RemainingInput),
}

/// Yields to other tasks if the time slice is over. Fails if the statement has been cancelled.
pub(crate) async fn pause() -> Result<()> {
    account::check().map_err(engine_error)?;
    if account::is_slice_over() {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Spawns the work as a task, unless it is the only task.
pub(crate) fn begin<T: Send + 'static>(
    is_only: bool,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> impl Future<Output = Result<T>> + Send {
    let work = if is_only { Ok(work) } else { Err(SpawnedTask::spawn(work)) };
    async move {
        match work {
            Ok(work) => work.await,
            Err(task) => task.join().await.map_err(join_error)?,
        }
    }
}

impl Materialized {
    /// Reads an input along with the values of its keys. `row_bytes` is added to the size of each
    /// row.
    pub(crate) async fn with_keys(
        run: &Run,
        keys: &[PhysicalSortExpr],
        row_bytes: usize,
    ) -> Result<Read> {
        let is_computed = |key: &&PhysicalSortExpr| !key.expr.is::<Column>();
        let computed = keys.iter().filter(is_computed).count();
        let keys: Arc<[_]> = keys.iter().map(|key| Arc::clone(&key.expr)).collect();
        let with_keys = move |batch: RecordBatch| {
            let keys = keys.iter().map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
            let keys = keys.collect::<Result<_>>()?;
            Ok((batch, keys))
        };
        let rows = |partition| run.rows(0, partition);
        Self::read(run, rows, row_bytes + size_of::<u64>() * computed, with_keys).await
    }

    /// Sorts these rows and the remaining rows of their partitions into one partition, using
    /// operators that can spill.
    pub(crate) fn spilling(
        self,
        rest: RemainingInput,
        schema: &SchemaRef,
        order: &LexOrdering,
    ) -> Input {
        let again = self.again(rest, schema);
        let is_one = again.output_partitioning().partition_count() == 1;
        let sort = SortExec::new(order.clone(), again).with_preserve_partitioning(!is_one);
        if is_one {
            return Arc::new(sort);
        }
        Arc::new(SortPreservingMergeExec::new(order.clone(), Arc::new(sort)))
    }
}

impl<K: Send + 'static> Materialized<K> {
    /// Reads the rows in each partition of an input, as returned by `rows`, and applies `prepare`
    /// to them. `row_bytes` is added to the size of each row.
    pub(crate) async fn read(
        run: &Run,
        rows: impl Fn(usize) -> Result<SendableRecordBatchStream>,
        row_bytes: usize,
        prepare: impl Fn(RecordBatch) -> Result<(RecordBatch, K)> + Clone + Send + 'static,
    ) -> Result<Read<K>> {
        let memory = Arc::new(run.spilling_memory());
        let partitions = run.inputs[0].output_partitioning().partition_count();
        // Each sort reserves this much before its first row, and the same amount again for merging.
        let merging = run.context.session_config().options().execution.sort_spill_reservation_bytes;
        let spare = 2 * merging * partitions;
        let max = match run.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(limit) => limit / 2,
            _ => usize::MAX,
        };
        let is_full = Arc::new(AtomicBool::new(memory.try_grow(spare).is_err()));
        let spare = if is_full.load(Ordering::Relaxed) { 0 } else { spare };
        let tasks = (0..partitions).map(|partition| {
            let (memory, is_full) = (Arc::clone(&memory), Arc::clone(&is_full));
            let limits = Limits { row_bytes, memory, max_bytes: max, is_full };
            let partition_rows = read_partition(rows(partition)?, prepare.clone(), limits);
            Ok(begin(partitions == 1, partition_rows))
        });
        let tasks = tasks.collect::<Result<Vec<_>>>()?;
        let (mut read, mut rests) = (Vec::with_capacity(partitions), vec![]);
        for task in tasks {
            let (partition_rows, rest) = task.await?;
            read.push(partition_rows);
            rests.push(rest);
        }
        let materialized = Self { partitions: read, memory, spare };
        let is_all = rests.iter().all(Option::is_none);
        Ok(if is_all { Read::All(materialized) } else { Read::Partial(materialized, rests) })
    }

    /// Reserves more memory; returns false if it is not available.
    pub(crate) fn grow(&self, bytes: usize) -> bool {
        self.memory.try_grow(bytes).is_ok()
    }

    /// Size of the materialized rows, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.partitions().flatten().map(|batch| batch.bytes).sum()
    }

    /// Batches of each partition, in partition order.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = &[MaterializedBatch<K>]> {
        self.partitions.iter().map(Vec::as_slice)
    }

    /// Returns these rows, followed by the remaining rows of their partitions.
    pub(crate) fn again(self, mut rest: RemainingInput, schema: &SchemaRef) -> Input {
        rest.resize_with(self.partitions.len(), || None);
        self.memory.shrink(self.spare);
        let streams = self.partitions.into_iter().zip(rest).map(|(batches, rest)| {
            let memory = Arc::clone(&self.memory);
            let materialized = futures::stream::iter(batches).map(move |batch| {
                memory.shrink(batch.bytes);
                Ok(batch.rows)
            });
            let rows = materialized.chain(futures::stream::iter(rest).flatten());
            let rows = rows.map(|batch| owned(batch?));
            let rows = RecordBatchStreamAdapter::new(Arc::clone(schema), rows);
            Some(Box::pin(rows) as SendableRecordBatchStream)
        });
        let again = Again { rows: Mutex::new(streams.collect()), order: None };
        OperatorExec::plan(again, vec![], schema)
    }
}

/// Copies the rows into separate buffers if they are a small slice, because `DataFusion` counts
/// whole buffers.
fn owned(batch: RecordBatch) -> Result<RecordBatch> {
    if batch.get_array_memory_size() <= 2 * memory_bytes(&batch) {
        return Ok(batch);
    }
    let rows = UInt32Array::from_iter_values(0..batch.num_rows() as u32);
    let copied = take_record_batch(&batch, &rows)?;
    let columns = copied.columns().iter().map(|column| match column.as_string_view_opt() {
        Some(texts) => Arc::new(texts.gc()) as ArrayRef,
        None => Arc::clone(column),
    });
    with_schema(batch.schema_ref(), columns.collect(), batch.num_rows())
}

/// Memory limits for all partitions together.
struct Limits {
    row_bytes: usize,
    memory: Arc<MemoryReservation>,
    max_bytes: usize,
    is_full: Arc<AtomicBool>,
}

async fn read_partition<K>(
    mut rows: SendableRecordBatchStream,
    prepare: impl Fn(RecordBatch) -> Result<(RecordBatch, K)>,
    Limits { row_bytes, memory, max_bytes: max, is_full }: Limits,
) -> Result<(Vec<MaterializedBatch<K>>, Option<SendableRecordBatchStream>)> {
    let mut batches = vec![];
    while !is_full.load(Ordering::Relaxed) {
        let Some(batch) = rows.try_next().await? else { return Ok((batches, None)) };
        let bytes = memory_bytes(&batch) + row_bytes * batch.num_rows();
        // If these rows used all of the query's memory, none would be left for the operators that
        // receive them.
        if memory.size().saturating_add(bytes) > max || memory.try_grow(bytes).is_err() {
            is_full.store(true, Ordering::Relaxed);
            let again = futures::stream::once(futures::future::ready(Ok(batch)));
            let schema = rows.schema();
            let rest = RecordBatchStreamAdapter::new(schema, again.chain(rows));
            return Ok((batches, Some(Box::pin(rest))));
        }
        let (rows, keys) = prepare(batch)?;
        batches.push(MaterializedBatch { rows, keys, bytes });
    }
    Ok((batches, Some(rows)))
}

/// Returns partitions of rows as an input that can be read once. The rows in each partition are in
/// the order `order`.
pub(crate) fn again(
    rows: Vec<SendableRecordBatchStream>,
    schema: &SchemaRef,
    order: Option<&LexOrdering>,
) -> Input {
    let rows = Mutex::new(rows.into_iter().map(Some).collect());
    OperatorExec::plan(Again { rows, order: order.cloned() }, vec![], schema)
}

/// Chains two sequences of rows. The first sequence is in memory; its reservation is released when
/// it ends.
pub(crate) fn chained(
    schema: SchemaRef,
    materialized: BoxStream<'static, Result<RecordBatch>>,
    memory: Arc<MemoryReservation>,
    rest: BoxStream<'static, Result<RecordBatch>>,
) -> SendableRecordBatchStream {
    let freed = futures::stream::once(async move {
        memory.free();
        rest
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, materialized.chain(freed.flatten())))
}

/// Returns columns as a batch with this schema, which may allow nulls that the original schema does
/// not.
pub(crate) fn with_schema(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Rows that were read earlier; each partition can be read again only once.
struct Again {
    rows: Mutex<Vec<Option<SendableRecordBatchStream>>>,
    order: Option<LexOrdering>,
}

impl fmt::Display for Again {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Operator for Again {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            // Never appears in a displayed plan.
            name: "SortRowsExec",
            memory: None,
            preserves: PreservedOrder::NOTHING,
            work: Work::Cells,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        let order = self.order.iter().map(|order| order.iter().cloned().collect());
        properties(schema, order, self.rows.lock().len(), EmissionType::Incremental)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![]
    }

    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], _: &[Option<usize>]) -> Option<usize> {
        None
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let rows = self.rows.lock().get_mut(run.partition).and_then(Option::take);
        rows.ok_or_else(|| internal_datafusion_err!("materialized rows were read twice"))
    }
}
