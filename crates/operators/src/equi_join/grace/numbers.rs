//! Adds row positions to one side of a join. They are used to restore the order of the joined rows.

use std::sync::Arc;
use std::task::Poll;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::compute::{SortOptions, take_record_batch};
use datafusion::common::{JoinType, Result, internal_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream};
use futures::{Stream, StreamExt, TryStreamExt};

use super::memory_budget::MemoryBudget;
use super::texts::Texts;
use crate::bounded::bytes::{memory_bytes, rows_of_bytes};
use crate::materialize::{again, with_schema};
use crate::operator::Run;

/// Together, the sorts of one join may use 1/n of the memory for joins.
const SORT_MEMORY_DIVISOR: usize = 8;
/// Minimum number of batches that must fit in a sort's memory.
const BATCHES: usize = 16;

/// Returns the schema with a row position column appended.
pub(crate) fn with_number(schema: &Schema) -> SchemaRef {
    let number = Arc::new(Field::new("number", DataType::Int64, true));
    let fields: Vec<_> = schema.fields().iter().cloned().chain([number]).collect();
    Arc::new(Schema::new(fields))
}

/// Appends a row position column.
pub(crate) fn numbered(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = with_number(&rows.schema());
    let (own, mut next) = (Arc::clone(&schema), 0);
    let rows = rows.map(move |batch| {
        let batch = batch?;
        let start = next;
        next += batch.num_rows() as i64;
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(start..next));
        let columns = batch.columns().iter().cloned().chain([numbers]).collect();
        with_schema(&own, columns, batch.num_rows())
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

/// A join whose sides have row positions and whose type does not return unmatched left rows.
pub(super) struct Numbered {
    pub(super) join: Arc<HashJoinExec>,
    /// Number of position columns after the output columns: first the right row's position, then
    /// the left row's.
    numbers: usize,
    /// Schema of the rows without positions.
    schema: SchemaRef,
}

impl Numbered {
    pub(super) fn of(join: &HashJoinExec) -> Result<Self> {
        let sides = [join.left().schema(), join.right().schema()];
        let widths = sides.each_ref().map(|side| side.fields().len());
        let (columns, numbers) = columns(*join.join_type(), widths);
        let mut output: Vec<_> = match &join.projection {
            Some(projection) => projection.iter().map(|&column| columns[column]).collect(),
            None => columns,
        };
        output.extend(&numbers);
        let sides = sides.map(|side| Arc::new(EmptyExec::new(with_number(&side))) as Arc<_>);
        let builder = join.builder().reset_state().with_projection(None);
        let builder = builder.with_new_children(sides.to_vec())?;
        let numbered = builder.with_projection(Some(output)).recompute_properties().build()?;
        Ok(Self { join: Arc::new(numbered), numbers: numbers.len(), schema: join.schema() })
    }

    /// Returns the join's rows in the order of the right side, without positions. Rows with the
    /// same right row are in left-side order, or in reverse order with `backward`.
    pub(super) fn in_order(
        self,
        rows: SendableRecordBatchStream,
        texts: Texts,
        backward: bool,
        budget: SortBudget,
    ) -> Result<SendableRecordBatchStream> {
        let width = self.schema.fields().len();
        let key = |number: usize| {
            let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("number", width + number));
            let descending = backward && number > 0;
            PhysicalSortExpr::new(column, SortOptions { descending, nulls_first: false })
        };
        let order = LexOrdering::new((0..self.numbers).map(key));
        let order = order.ok_or_else(|| internal_datafusion_err!("rows have no sort keys"))?;
        Ok(sorted(rows, order, self.schema, texts, budget))
    }
}

/// Sorts rows by their last column, which contains the position, and removes that column. `symbols`
/// marks the columns that contain symbols from a single table.
pub(crate) fn by_number(
    run: &Run,
    rows: SendableRecordBatchStream,
    schema: SchemaRef,
    symbols: &[bool],
    partitions: usize,
) -> SendableRecordBatchStream {
    let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("number", schema.fields().len()));
    let order = LexOrdering::from([PhysicalSortExpr::new_default(column)]);
    let texts = Texts::of(with_number(&schema), symbols);
    sorted(rows, order, schema, texts, SortBudget::of(run, partitions))
}

/// Sorts rows and returns only their leading columns, which have the schema `own`.
fn sorted(
    rows: SendableRecordBatchStream,
    order: LexOrdering,
    own: SchemaRef,
    texts: Texts,
    budget: SortBudget,
) -> SendableRecordBatchStream {
    let width = own.fields().len();
    let texts = Arc::new(texts);
    let (taken, max) = (Arc::clone(&texts), budget.batch_bytes);
    let slices = rows.map(move |batch| {
        let batch = taken.take(&batch?)?;
        Ok::<_, DataFusionError>(futures::stream::iter(split(batch, max)))
    });
    let mut slices = Box::pin(slices.try_flatten());
    Run::stream(Arc::clone(&own), async move {
        let schema = Arc::clone(texts.schema_without());
        let first = slices.try_next().await?;
        let context = budget.context(first.as_ref().map_or(1, RecordBatch::num_rows));
        let rows = futures::stream::iter(first.map(Ok)).chain(slices).chain(budget.end());
        let rows = RecordBatchStreamAdapter::new(Arc::clone(&schema), rows);
        let sort = SortExec::new(order, again(vec![Box::pin(rows)], &schema, None));
        let sorted = sort.execute(0, context)?.map(move |batch| {
            let batch = texts.restore(&batch?)?;
            with_schema(&own, batch.columns()[..width].to_vec(), batch.num_rows())
        });
        Ok(sorted)
    })
}

/// A sort's memory budget, and the maximum size of its batches in bytes.
pub(super) struct SortBudget {
    budget: Arc<MemoryBudget>,
    query: Arc<TaskContext>,
    batch_bytes: usize,
}

impl SortBudget {
    /// Returns the memory budget for one sort when each of `partitions` partitions runs a sort.
    pub(super) fn of(run: &Run, partitions: usize) -> Self {
        let max = run.memory_limit() / SORT_MEMORY_DIVISOR / partitions;
        let budget = MemoryBudget::limited(run.memory(), max);
        Self { budget, query: Arc::clone(&run.context), batch_bytes: max / BATCHES }
    }

    /// Returns an empty stream that signals the end of the input to the budget.
    fn end(&self) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
        let budget = Arc::clone(&self.budget);
        futures::stream::poll_fn(move |_| {
            budget.end();
            Poll::Ready(None)
        })
    }

    /// Returns the task context for a sort with batches of `batch_rows` rows.
    fn context(&self, batch_rows: usize) -> Arc<TaskContext> {
        let config = self.query.session_config();
        let rows = batch_rows.clamp(1, config.batch_size());
        let config = config.clone().with_batch_size(rows);
        self.budget.context(&self.query, config)
    }
}

/// Splits a batch into copied slices of about `max` bytes.
fn split(batch: RecordBatch, max: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut rest = Some(batch);
    std::iter::from_fn(move || {
        let batch = rest.take().filter(|batch| batch.num_rows() > 0)?;
        let bytes = memory_bytes(&batch).max(1);
        let even = batch.num_rows().saturating_mul(max) / bytes;
        let rows = rows_of_bytes(&batch, max).min(even.max(1));
        if rows < batch.num_rows() {
            rest = Some(batch.slice(rows, batch.num_rows() - rows));
        }
        let rows = UInt32Array::from_iter_values(0..rows as u32);
        Some(take_record_batch(&batch, &rows).map_err(Into::into))
    })
}

/// Returns the output columns and the position columns of a join whose sides each end with a
/// position column.
fn columns(kind: JoinType, widths: [usize; 2]) -> (Vec<usize>, Vec<usize>) {
    let [left, right] = widths;
    match kind {
        JoinType::RightSemi | JoinType::RightAnti => ((0..right).collect(), vec![right]),
        JoinType::RightMark => ((0..right).chain([right + 1]).collect(), vec![right]),
        _ => {
            let columns = (0..left).chain(left + 1..left + 1 + right).collect();
            (columns, vec![left + 1 + right, left])
        }
    }
}
