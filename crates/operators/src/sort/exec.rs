//! Executes sorts. Also determines which `DataFusion` sorts are replaced.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::{StreamExt, TryStreamExt};

use super::keys::is_number;
use super::order::{Order, row_bytes};
use crate::asof::gather::gather;
use crate::materialize::{Materialized, Read, RemainingInput, begin, pause};
use crate::operator::{Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work};
use crate::plan_node::{PlanNode, limit_of, with_first_input};
use crate::properties::properties;
use crate::scan::rows::BATCH_ROWS;

/// Minimum number of rows at which a full sort pays off; fewer rows are kept in a heap.
pub(super) const MIN_ROWS: usize = 1 << 16;

/// Sorts rows by numbers and symbols; the sort is stable.
pub struct SortRows {
    order: LexOrdering,
    skip: usize,
    fetch: Option<usize>,
}

/// Whether the time to copy rows with these columns depends only on the number of rows.
pub(crate) fn is_copied_by_rows(schema: &Schema) -> bool {
    let by_rows = |data_type: &DataType| match data_type {
        DataType::Utf8View | DataType::BinaryView | DataType::Boolean => true,
        DataType::Dictionary(keys, _) => **keys == DataType::Int32,
        other => other.is_primitive(),
    };
    schema.fields().iter().all(|field| by_rows(field.data_type()))
}

impl SortRows {
    /// Returns the replacement for a sort and any limit above it, if many rows are sorted.
    pub fn try_replace(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
        let (skip, limit, below) = limit_of(plan).unwrap_or((0, None, plan));
        let (sort, merged, projection) = match PlanNode::of(below.as_ref()) {
            PlanNode::Sort(sort) => (sort, None, None),
            PlanNode::Merge(merge) => match PlanNode::of(merge.input().as_ref()) {
                PlanNode::Sort(sort) if sort.expr() == merge.expr() => (sort, merge.fetch(), None),
                // A projection below the merge preserves the sort's order.
                PlanNode::Projection(projection) => {
                    let PlanNode::Sort(sort) = PlanNode::of(projection.input().as_ref()) else {
                        return None;
                    };
                    (sort, merge.fetch(), Some(merge.input()))
                }
                _ => return None,
            },
            _ => return None,
        };
        if below.output_partitioning().partition_count() != 1 {
            return None;
        }
        // The limits below include the skipped rows.
        let below = [merged, sort.fetch()].into_iter().flatten().min();
        let max = below.map(|max| max.saturating_sub(skip));
        let fetch = [max, limit].into_iter().flatten().min();
        let is_top = fetch.is_some_and(|fetch| fetch.saturating_add(skip) < MIN_ROWS);
        let schema = sort.input().schema();
        let are_numbers = sort.expr().iter().all(|key| is_number(key, &schema));
        if is_top || !are_numbers || !is_copied_by_rows(&schema) {
            return None;
        }
        let operator = Self { order: sort.expr().clone(), skip, fetch };
        let sorted = OperatorExec::plan(operator, vec![Arc::clone(sort.input())], &schema);
        match projection {
            Some(projection) => with_first_input(Arc::clone(projection), |_| Ok(sorted)).ok(),
            None => Some(sorted),
        }
    }

    async fn sorted(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let keys: Vec<PhysicalSortExpr> = self.order.iter().cloned().collect();
        let materialized = match Materialized::with_keys(&run, &keys, row_bytes(keys.len())).await?
        {
            Read::All(materialized) => materialized,
            Read::Partial(materialized, rest) => return self.spilling(materialized, rest, &run),
        };
        let order = Order::new(materialized, &keys, keys.len()).await?;
        let workers = run.context.session_config().target_partitions();
        let ranges = self.output_ranges(&order);
        // Ranges of equal keys may be long, so the memory for sorting them is reserved first.
        let max = ranges.iter().map(|range| range.rows).max().unwrap_or(0);
        if !order.materialized.grow(3 * size_of::<u128>() * max * workers) {
            return self.spilling(order.materialized, vec![], &run);
        }
        let columns = (0..run.schema.fields().len()).map(|column| {
            let batches = order.materialized.partitions().flatten();
            batches.map(|batch| Arc::clone(batch.rows.column(column))).collect()
        });
        let sorted =
            Arc::new(Sorted { columns: columns.collect(), schema: Arc::clone(&run.schema), order });
        let is_only = ranges.len() == 1;
        let batches = futures::stream::iter(ranges)
            .map(move |range| {
                let sorted = Arc::clone(&sorted);
                begin(is_only, async move { sorted.rows_of(range) })
            })
            .buffered(workers.max(1))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&run.schema), batches)))
    }

    /// Sorts the rows using an operator that can spill.
    fn spilling(
        &self,
        materialized: Materialized,
        rest: RemainingInput,
        run: &Run,
    ) -> Result<SendableRecordBatchStream> {
        let sorted = materialized.spilling(rest, &run.inputs[0].schema(), &self.order);
        let limited = GlobalLimitExec::new(sorted, self.skip, self.fetch);
        limited.execute(0, Arc::clone(&run.context))
    }

    /// Divides the sorted rows in the result into output ranges.
    fn output_ranges(&self, order: &Order) -> Vec<OutputRange> {
        let mut output = vec![];
        let (mut skip, mut remaining) = (self.skip, self.fetch.unwrap_or(usize::MAX));
        for ranges in order.batch_ranges(order.ranges()) {
            let rows: usize = ranges.clone().map(|range| order.rows_of(range)).sum();
            let skipped = skip.min(rows);
            skip -= skipped;
            let take = (rows - skipped).min(remaining);
            remaining -= take;
            if take > 0 {
                output.push(OutputRange { ranges, rows, skip: skipped, take });
            }
        }
        output
    }
}

/// Consecutive ranges, with their total, skipped and returned row counts.
struct OutputRange {
    ranges: std::ops::Range<usize>,
    rows: usize,
    skip: usize,
    take: usize,
}

/// Sorted rows.
struct Sorted {
    order: Order,
    schema: SchemaRef,
    /// The chunks of each column.
    columns: Vec<Vec<ArrayRef>>,
}

impl Sorted {
    /// Returns the rows in an output range, one batch at a time.
    fn rows_of(
        self: Arc<Self>,
        output_range: OutputRange,
    ) -> Result<impl futures::Stream<Item = Result<RecordBatch>> + Send> {
        let OutputRange { ranges, skip, take, .. } = output_range;
        let mut rows: Vec<u64> = vec![];
        for range in ranges {
            rows.extend(self.order.sorted(range)?.into_iter().map(|entry| entry as u64));
        }
        rows.truncate(skip + take);
        rows.drain(..skip);
        let first = self.batch(&rows[..rows.len().min(BATCH_ROWS)]);
        let later = futures::stream::try_unfold(BATCH_ROWS, move |start| {
            let batch = (start < rows.len())
                .then(|| self.batch(&rows[start..rows.len().min(start + BATCH_ROWS)]));
            async move {
                pause().await?;
                Ok(batch.transpose()?.map(|batch| (batch, start + BATCH_ROWS)))
            }
        });
        Ok(futures::stream::once(futures::future::ready(first)).chain(later))
    }

    fn batch(&self, rows: &[u64]) -> Result<RecordBatch> {
        let columns = self.columns.iter().map(|chunks| {
            let Some(first) = chunks.first() else { return internal_err!("rows have no batch") };
            gather(chunks, rows, &first.slice(0, 0))
        });
        let columns = columns.collect::<Result<_>>()?;
        let count = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &count)?)
    }
}

impl fmt::Display for SortRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}]", self.order)?;
        if self.skip > 0 {
            write!(f, ", skip={}", self.skip)?;
        }
        match self.fetch {
            Some(fetch) => write!(f, ", fetch={fetch}"),
            None => Ok(()),
        }
    }
}

impl Operator for SortRows {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "SortRowsExec",
            memory: Some("SortRows"),
            preserves: PreservedOrder::NOTHING,
            work: Work::Inputs,
            suits_any_rows: false,
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, _: &[Input]) -> Arc<PlanProperties> {
        let order = self.order.iter().cloned().collect();
        properties(schema, [order], 1, EmissionType::Final)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.order.iter().map(|key| &key.expr).collect()
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    /// Spilled rows have keys from different dictionaries.
    fn lineage(&self, _: usize, _: &[Input]) -> Option<Lineage> {
        None
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        let rows = rows.first().copied().flatten()?.saturating_sub(self.skip);
        Some(self.fetch.map_or(rows, |fetch| rows.min(fetch)))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        Ok(Run::stream(Arc::clone(&run.schema), self.sorted(run)))
    }
}
