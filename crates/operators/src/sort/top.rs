//! Selects rows that may be in the top k of a sort order. The operator tracks the key of the last
//! row in the current top k and drops rows after it. A table's blocks are read in the order of
//! their zone bounds, up to the first block that cannot contain top-k rows. Below a filter, blocks
//! are read in scan order, and blocks that cannot contain top-k rows are skipped.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{SchemaRef, SortOptions};
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::common::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, SendableRecordBatchStream,
};
use futures::StreamExt;
use tidemark_storage::{Slice, Zone};

use super::exec::MIN_ROWS;
use super::keys::{first_of, first_of_zone, is_number, is_symbol, numbers};
use crate::key::of_key;
use crate::operator::{
    Facts, Input, Lineage, Operator, OperatorExec, PreservedOrder, Run, Work, of_first,
};
use crate::plan_node::{PlanNode, scan_of, with_first_input};
use crate::properties::properties;
use crate::scan::exec::SliceScan;
use crate::scan::filtered::FilteredScan;
use crate::scan::kind::Scan;
use crate::scan::pace::paced;
use crate::scan::rows::read;
use crate::scan::zones::blocks;

/// Drops rows that cannot be in the top k.
#[derive(Debug, Clone)]
pub struct TopRows {
    column: usize,
    name: String,
    options: SortOptions,
    most: usize,
    /// Whether rows with equal keys are interchangeable.
    is_only_key: bool,
}

/// If fewer than one row in this many passes a filter, reading the cells of the passing rows
/// touches fewer pages than reading the whole column.
const FEW: usize = 512;

/// Top-k rows found so far.
#[derive(Clone)]
struct FirstRows {
    top: TopRows,
    /// A heap of the top-k rows' keys, with the last key on top.
    first: BinaryHeap<u64>,
}

impl FirstRows {
    /// Returns the greatest key that a further top-k row may have; `None` if no more rows can be in
    /// the top k.
    fn reach(&self) -> Option<u64> {
        match self.first.peek() {
            Some(&last) if self.is_full() => {
                if self.top.is_only_key {
                    last.checked_sub(1)
                } else {
                    Some(last)
                }
            }
            _ => (self.top.most > 0).then_some(u64::MAX),
        }
    }

    /// Whether the requested number of rows has been found.
    fn is_full(&self) -> bool {
        self.first.len() >= self.top.most
    }

    /// Whether a row with this key may be in the top k.
    fn may_be_first(&self, number: u64) -> bool {
        self.reach().is_some_and(|reach| number <= reach)
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

    /// Returns which of the rows with these values may be in the top k; `None` if none of them can.
    fn candidates(&mut self, values: &ArrayRef) -> Result<Option<BooleanBuffer>> {
        let options = self.top.options;
        if first_of(values, options).is_some_and(|first| !self.may_be_first(first)) {
            return Ok(None);
        }
        let numbers = numbers(values, options)?;
        let mut reach = self.reach();
        let kept = BooleanBuffer::collect_bool(numbers.len(), |row| {
            let may_be_first = reach.is_some_and(|reach| numbers[row] <= reach);
            if may_be_first {
                self.note(numbers[row]);
                reach = self.reach();
            }
            may_be_first
        });
        Ok((kept.count_set_bits() > 0).then_some(kept))
    }

    /// Returns the rows of a batch that may be in the top k.
    fn of(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        Ok(match self.candidates(batch.column(self.top.column))? {
            Some(kept) => filter_record_batch(batch, &BooleanArray::new(kept, None))?,
            None => batch.slice(0, 0),
        })
    }

    fn read(&mut self, scan: &SliceScan, slice: &Slice, rows: Range<usize>) -> Result<RecordBatch> {
        self.of(&read(slice, scan.projection(), rows, scan.schema())?)
    }
}

/// A table's filtered rows, in scan order. For rows that pass, the sort column is read in addition
/// to the filter's columns. All other columns are read only for rows that may be in the top k.
struct Filtered {
    scan: FilteredScan,
    /// Index of the sort column in the scan below the filter and in the table.
    column: usize,
    stored: usize,
    looked_at: usize,
    passed: usize,
    seen: FirstRows,
}

impl Filtered {
    /// Returns `None` if the filtered rows are limited or reversed first.
    fn new(filtered: &FilteredScan, seen: &FirstRows) -> Option<Self> {
        let column = filtered.column(seen.top.column)?;
        let stored = *filtered.scan().projection().get(column)?;
        let suits = filtered.fetch().is_none() && !filtered.scan().is_backward();
        let (scan, seen) = (filtered.clone(), seen.clone());
        suits.then_some(Self { scan, column, stored, looked_at: 0, passed: 0, seen })
    }

    fn read(&mut self, slice: &Slice, rows: Range<usize>) -> Result<Option<RecordBatch>> {
        let mut batches = vec![];
        for rows in self.blocks(slice, rows) {
            self.looked_at += rows.len();
            let Some(mut passing) = self.scan.passing(slice, rows)? else { continue };
            self.passed += passing.count();
            if let Some(kept) = self.seen.candidates(&passing.column(self.column)?)? {
                passing.apply(kept);
                batches.push(self.scan.output(&passing)?);
            }
        }
        Ok(match batches.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            [first, ..] => Some(concat_batches(&first.schema(), &batches)?),
        })
    }

    /// Removes blocks that cannot contain top-k rows. Determining a block's bounds requires reading
    /// its column, so blocks are not tested if only a few rows pass the filter.
    fn blocks(&self, slice: &Slice, rows: Range<usize>) -> Vec<Range<usize>> {
        let top = &self.seen.top;
        if !self.seen.is_full() || self.passed.saturating_mul(FEW) < self.looked_at {
            return vec![rows];
        }
        let may_be_first = |zone: &Zone| self.seen.may_be_first(first_of_zone(zone, top.options));
        blocks(slice, self.stored, rows, may_be_first)
    }
}

/// A table's rows by block, in the order of each block's smallest key.
struct Blocks<I> {
    chunks: I,
    scan: SliceScan,
    seen: FirstRows,
    /// A heap of the lower bounds on each block's keys, with the smallest bound on top.
    order: BinaryHeap<Reverse<(u64, usize)>>,
    places: Vec<(Arc<Slice>, Range<usize>)>,
}

impl<I: Iterator<Item = (Arc<Slice>, Range<usize>)>> Iterator for Blocks<I> {
    type Item = Result<RecordBatch>;

    /// Each item is the work done between two yields and may be empty.
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
        let Reverse((first, position)) = self.order.pop()?;
        if !self.seen.may_be_first(first) {
            self.order.clear();
            return None;
        }
        let (slice, rows) = self.places.get(position)?;
        Some(self.seen.read(&self.scan, slice, rows.clone()))
    }
}

impl TopRows {
    /// Inserts the operator below a sort that returns few rows of a scan, so that only rows that
    /// may be in the result are read.
    pub fn below(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let PlanNode::Sort(sort) = PlanNode::of(plan.as_ref()) else { return Ok(None) };
        let Some(max) = sort.fetch().filter(|max| *max < MIN_ROWS) else { return Ok(None) };
        let (key, schema) = (sort.expr().first(), sort.input().schema());
        // The column has the same sort keys as the key expression.
        let Some(column) = of_key(&key.expr).downcast_ref::<Column>() else { return Ok(None) };
        let suits = is_number(key, &schema) && !is_symbol(key, &schema);
        if !suits || scan_of(sort.input()).is_none() {
            return Ok(None);
        }
        let operator = Self {
            column: column.index(),
            name: column.name().to_owned(),
            options: key.options,
            most: max,
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

    /// Estimate for unordered rows: the further along a row is, the less likely it is to be in the
    /// top k so far.
    fn rows(&self, _: &[Input], rows: &[Option<usize>]) -> Option<usize> {
        let rows = rows.first().copied().flatten()?;
        Some(rows.min(self.most.saturating_mul(1 + rows.max(1).ilog2() as usize)))
    }

    fn over(self: Arc<Self>, _: &[Input]) -> Result<Arc<dyn Operator>> {
        Ok(self)
    }

    fn run(self: Arc<Self>, run: Run) -> Result<SendableRecordBatchStream> {
        let schema = Arc::clone(&run.schema);
        let mut seen = FirstRows { top: Self::clone(&self), first: BinaryHeap::new() };
        match scan_of(&run.inputs[0]) {
            Some(Scan::Table(scan)) => {
                let chunks = scan.chunks(run.partition)?;
                let (order, slices) = (BinaryHeap::new(), vec![]);
                let blocks = Blocks { chunks, scan: scan.clone(), seen, order, places: slices };
                return Ok(paced(schema, blocks));
            }
            Some(Scan::Filtered(filtered)) => {
                if let Some(mut rows) = Filtered::new(filtered, &seen) {
                    let read = move |slice: &Slice, own| rows.read(slice, own);
                    return Ok(paced(schema, filtered.batches(run.partition, read)?));
                }
            }
            None => {}
        }
        let rows = run.rows(0, run.partition)?;
        let rows = rows.map(move |batch| batch.and_then(|batch| seen.of(&batch)));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
