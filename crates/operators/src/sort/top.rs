//! The rows that may be among the first few in an order: a number is kept that so many rows came
//! before, and what comes after it is left out. Blocks of a table are read in the order of what is
//! known of them, up to the first that has none of these rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{SchemaRef, SortOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use tidemark_storage::Slice;

use super::exec::FEWEST_ROWS;
use super::keys::{first_of, first_of_zone, is_number, is_symbol, numbers};
use crate::operator::{Facts, Input, Keeps, Lineage, Operator, OperatorExec, Run, Work, of_first};
use crate::plan_node::{PlanNode, scan_of, with_first_input};
use crate::properties::properties;
use crate::scan::exec::SliceScan;
use crate::scan::kind::Scan;
use crate::scan::pace::paced;
use crate::scan::rows::read;

/// Leaves out rows that so many others come before.
#[derive(Debug, Clone)]
pub struct TopRows {
    column: usize,
    name: String,
    options: SortOptions,
    most: usize,
    /// Whether of rows with one key any will do.
    is_only_key: bool,
}

/// What is known of the rows so far.
struct Seen {
    top: TopRows,
    /// The numbers of the first rows, the last of them on top.
    first: BinaryHeap<u64>,
}

impl Seen {
    /// Whether a row of this number may be among the first.
    fn may_be_first(&self, number: u64) -> bool {
        match self.first.peek() {
            Some(&last) if self.first.len() >= self.top.most => {
                number < last || (number == last && !self.top.is_only_key)
            }
            _ => self.top.most > 0,
        }
    }

    fn note(&mut self, number: u64) {
        if self.first.len() < self.top.most {
            self.first.push(number);
        } else if let Some(mut last) = self.first.peek_mut()
            && number < *last
        {
            *last = number;
        }
    }

    /// The rows of a batch that may be among the first.
    fn of(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let (values, options) = (batch.column(self.top.column), self.top.options);
        if first_of(values, options).is_some_and(|first| !self.may_be_first(first)) {
            return Ok(batch.slice(0, 0));
        }
        let numbers = numbers(values, options)?;
        let kept = BooleanBuffer::collect_bool(numbers.len(), |row| {
            let may_be_first = self.may_be_first(numbers[row]);
            if may_be_first {
                self.note(numbers[row]);
            }
            may_be_first
        });
        Ok(filter_record_batch(batch, &BooleanArray::new(kept, None))?)
    }

    fn read(&mut self, scan: &SliceScan, slice: &Slice, rows: Range<usize>) -> Result<RecordBatch> {
        self.of(&read(slice, scan.projection(), rows, scan.schema())?)
    }
}

/// Rows of a table by blocks, those first whose numbers may come first.
struct Blocks<I> {
    chunks: I,
    scan: SliceScan,
    seen: Seen,
    /// Numbers that the rows of blocks do not come before, the least on top.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    places: Vec<(Arc<Slice>, Range<usize>)>,
}

impl<I: Iterator<Item = (Arc<Slice>, Range<usize>)>> Iterator for Blocks<I> {
    type Item = Result<RecordBatch>;

    /// A batch is what is done between two turns of others; it may have no rows.
    fn next(&mut self) -> Option<Self::Item> {
        if let Some((slice, rows)) = self.chunks.next() {
            let column = self.scan.projection()[self.seen.top.column];
            let Some(zones) = slice.zones(column, rows.clone()) else {
                return Some(self.seen.read(&self.scan, &slice, rows));
            };
            for (rows, zone) in zones {
                let first = zone.map_or(0, |zone| first_of_zone(&zone, self.seen.top.options));
                self.order.push(Reverse((first, self.places.len())));
                self.places.push((Arc::clone(&slice), rows));
            }
            return Some(Ok(RecordBatch::new_empty(Arc::clone(self.scan.schema()))));
        }
        let Reverse((first, place)) = self.order.pop()?;
        if !self.seen.may_be_first(first) {
            self.order.clear();
            return None;
        }
        let (slice, rows) = self.places.get(place)?;
        Some(self.seen.read(&self.scan, slice, rows.clone()))
    }
}

impl TopRows {
    /// A sort of few rows of a scan, reading what may be among them alone.
    pub fn below(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let PlanNode::Sort(sort) = PlanNode::of(plan.as_ref()) else { return Ok(None) };
        let Some(most) = sort.fetch().filter(|most| *most < FEWEST_ROWS) else { return Ok(None) };
        let (key, schema) = (sort.expr().first(), sort.input().schema());
        let Some(column) = key.expr.downcast_ref::<Column>() else { return Ok(None) };
        let suits = is_number(key, &schema) && !is_symbol(key, &schema);
        if !suits || scan_of(sort.input()).is_none() {
            return Ok(None);
        }
        let operator = Self {
            column: column.index(),
            name: column.name().to_owned(),
            options: key.options,
            most,
            is_only_key: sort.expr().len() == 1,
        };
        let top = OperatorExec::plan(operator, vec![Arc::clone(sort.input())], &schema);
        with_first_input(Arc::clone(plan), |_| Ok(top)).map(Some)
    }
}

impl fmt::Display for TopRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = if self.options.descending { " DESC" } else { "" };
        write!(f, "{} by {}{direction}", self.most, self.name)
    }
}

impl Operator for TopRows {
    fn facts(&self, _: &[Input]) -> Facts<'_> {
        Facts {
            name: "TopRowsExec",
            memory: None,
            keeps: Keeps::NOTHING,
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
        vec![]
    }

    fn distribution(&self, _: &[Input]) -> Vec<Distribution> {
        vec![Distribution::UnspecifiedDistribution]
    }

    fn input_order(&self, _: &[Input]) -> Vec<Option<OrderingRequirements>> {
        vec![None]
    }

    fn lineage(&self, column: usize, inputs: &[Input]) -> Option<Lineage> {
        of_first(column, inputs)
    }

    /// Of rows in no order, each is among the first with a chance that falls with their number.
    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        let rows = rows.first().copied().flatten()?;
        Some(rows.min(self.most.saturating_mul(1 + rows.max(1).ilog2() as usize)))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&run.schema);
        let mut seen = Seen { top: Self::clone(&self), first: BinaryHeap::new() };
        if let Some(Scan::Table(scan)) = scan_of(&run.inputs[0]) {
            let chunks = scan.chunks(run.partition)?;
            let (order, places) = (BinaryHeap::new(), vec![]);
            let blocks = Blocks { chunks, scan: scan.clone(), seen, order, places };
            return Ok(paced(schema, blocks));
        }
        let rows = run.rows(0, run.partition)?;
        let rows = rows.map(move |batch| batch.and_then(|batch| seen.of(&batch)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
