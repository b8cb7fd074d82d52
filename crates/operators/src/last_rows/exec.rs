//! Executes a LIMIT counted from the end. A table is read backward from its last row. For other
//! inputs, only rows that may still be among the last rows are kept in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{PlanProperties, SendableRecordBatchStream};
use futures::{Stream, TryStreamExt};

use super::node::{LastRows, LastRowsNode};
use crate::bounded::bytes::memory_bytes;
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
    order_of_first,
};
use crate::plan_node::{PlanNode, scan_of, with_first_input};
use crate::properties::properties;
use crate::scan::kind::{Requested, Scan};

/// Plans the selection of the last rows. The selection moves below projections, so they process
/// only the selected rows.
pub fn plan_last_rows(node: &LastRowsNode, input: Input) -> Result<Input> {
    over(node.rows(), input)
}

fn over(rows: LastRows, input: Input) -> Result<Input> {
    if matches!(PlanNode::of(input.as_ref()), PlanNode::Projection(_) | PlanNode::Cooperative) {
        return with_first_input(input, |input| over(rows, input));
    }
    let schema = input.schema();
    Ok(OperatorExec::plan(rows, vec![input], &schema))
}

impl LastRows {
    /// Returns the scan that can be read from its end.
    fn scan(self, inputs: &[Input]) -> Option<(&Scan, usize)> {
        let keep = self.keep.filter(|_| self.skip == 0)?;
        let scan = scan_of(&inputs[0])?;
        (!scan.table().is_backward() && scan.fetch().is_none()).then_some((scan, keep))
    }

    /// How many of `rows` rows are selected.
    fn of(self, rows: usize) -> usize {
        let rows = rows.saturating_sub(self.skip);
        self.keep.map_or(rows, |keep| keep.min(rows)).saturating_sub(self.cut)
    }
}

/// In-memory batches, in order, with their total number of rows.
struct Buffer {
    batches: VecDeque<(RecordBatch, usize)>,
    rows: usize,
    memory: MemoryReservation,
}

impl Buffer {
    fn new(memory: MemoryReservation) -> Self {
        Self { batches: VecDeque::new(), rows: 0, memory }
    }

    fn push_back(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = self.count(&batch)?;
        self.batches.push_back((batch, bytes));
        Ok(())
    }

    fn push_front(&mut self, batch: RecordBatch) -> Result<()> {
        let bytes = self.count(&batch)?;
        self.batches.push_front((batch, bytes));
        Ok(())
    }

    fn count(&mut self, batch: &RecordBatch) -> Result<usize> {
        let bytes = memory_bytes(batch);
        self.memory.try_grow(bytes)?;
        self.rows += batch.num_rows();
        Ok(bytes)
    }

    /// Removes the first batch if at least `left` rows remain afterwards.
    fn pop(&mut self, left: usize) -> Option<RecordBatch> {
        let rows = self.batches.front()?.0.num_rows();
        if self.rows - rows < left {
            return None;
        }
        let (batch, bytes) = self.batches.pop_front()?;
        self.rows -= rows;
        self.memory.shrink(bytes);
        Some(batch)
    }

    /// Returns the last `keep` rows, excluding the last `cut` of these.
    fn last(mut self, keep: usize, cut: usize) -> impl Iterator<Item = Result<RecordBatch>> {
        while self.pop(keep).is_some() {}
        let mut from = self.rows.saturating_sub(keep);
        let mut left = self.rows.min(keep).saturating_sub(cut);
        std::iter::from_fn(move || {
            let rows = self.batches.front().filter(|_| left > 0)?.0.num_rows();
            let batch = self.pop(self.rows - rows)?;
            let slice = batch.slice(from, (rows - from).min(left));
            from = 0;
            left -= slice.num_rows();
            Some(Ok(slice))
        })
    }
}

/// Reads a filtered scan backward from the last row.
async fn of_filtered(run: &Run, rows: LastRows) -> Result<Buffer> {
    let mut buffer = Buffer::new(run.memory());
    let Some((scan, keep)) = rows.scan(&run.inputs) else { return Ok(buffer) };
    let take = |batch| {
        buffer.push_front(batch)?;
        Ok(if buffer.rows < keep { Requested::Rows } else { Requested::Nothing })
    };
    scan.read_from_end(Requested::Rows, take).await?;
    Ok(buffer)
}

/// A stream that is read once.
struct Reading {
    input: SendableRecordBatchStream,
    skip: usize,
    rows: LastRows,
    buffer: Buffer,
}

impl Reading {
    /// Returns the next batch that is certain to be part of the result; `None` at the end of the
    /// input.
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.rows.keep {
                Some(keep) => while self.buffer.pop(keep).is_some() {},
                None => {
                    if let Some(batch) = self.buffer.pop(self.rows.cut) {
                        return Ok(Some(batch));
                    }
                }
            }
            let Some(batch) = self.input.try_next().await? else { return Ok(None) };
            let skipped = self.skip.min(batch.num_rows());
            self.skip -= skipped;
            if skipped < batch.num_rows() {
                self.buffer.push_back(batch.slice(skipped, batch.num_rows() - skipped))?;
            }
        }
    }
}

fn of_stream(reading: Reading) -> impl Stream<Item = Result<RecordBatch>> {
    let batches = futures::stream::try_unfold(Some(reading), next_batches);
    batches.map_ok(futures::stream::iter).try_flatten()
}

type NextBatches = (Vec<Result<RecordBatch>>, Option<Reading>);

/// Returns batches that are certain to be part of the result, and the remaining input.
async fn next_batches(reading: Option<Reading>) -> Result<Option<NextBatches>> {
    let Some(mut reading) = reading else { return Ok(None) };
    if let Some(batch) = reading.next().await? {
        return Ok(Some((vec![Ok(batch)], Some(reading))));
    }
    let LastRows { keep, cut, .. } = reading.rows;
    Ok(Some((reading.buffer.last(keep.unwrap_or(usize::MAX), cut).collect(), None)))
}

impl Operator for LastRows {
    fn facts(&self, inputs: &[Input]) -> Facts<'_> {
        let scan = self.scan(inputs);
        let work = match scan {
            Some((scan, keep)) if scan.unfiltered().is_some() => Work::AtMost(keep),
            Some(_) => Work::FromEnd,
            None => Work::Inputs,
        };
        Facts {
            name: "LastRowsExec",
            memory: Some("LIMIT"),
            preserves: PreservedOrder { rows: true, ..PreservedOrder::NOTHING },
            work,
            suits_any_rows: scan.is_some(),
            scan: None,
        }
    }

    fn properties(&self, schema: &SchemaRef, inputs: &[Input]) -> Arc<PlanProperties> {
        let emission = match self.keep {
            Some(_) => EmissionType::Final,
            None => EmissionType::Incremental,
        };
        properties(schema, order_of_first(inputs), 1, emission)
    }

    fn expressions(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![]
    }

    fn distribution(&self, inputs: &[Input]) -> Vec<Distribution> {
        vec![match self.scan(inputs) {
            Some(_) => Distribution::UnspecifiedDistribution,
            None => Distribution::SinglePartition,
        }]
    }

    fn input_order(&self, inputs: &[Input]) -> Vec<Option<OrderingRequirements>> {
        let order = inputs[0].properties().output_ordering();
        vec![order.map(|order| OrderingRequirements::from(order.clone()))]
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        Some(self.of(rows.first().copied().flatten()?))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let (rows, schema) = (*self, Arc::clone(&run.schema));
        match rows.scan(&run.inputs) {
            Some((Scan::Table(scan), keep)) => {
                // The row count is known in advance, so no rows are kept in memory.
                let stay = rows.of(scan.row_count());
                scan.reversed(Some(keep)).reversed(Some(stay)).stream(0)
            }
            Some((Scan::Filtered(_), keep)) => Ok(Run::stream(schema, async move {
                let buffer = of_filtered(&run, rows).await?;
                Ok(futures::stream::iter(buffer.last(keep, rows.cut)))
            })),
            None => {
                let buffer = Buffer::new(run.memory());
                let reading = Reading { input: run.rows(0, 0)?, skip: rows.skip, rows, buffer };
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, of_stream(reading))))
            }
        }
    }
}
