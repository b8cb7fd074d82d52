//! A filtering scan. Predicates are evaluated on the columns they need; the other columns are read
//! only for rows that pass.
//!
//! A predicate on a single symbol column is evaluated only once (`symbol_test`). Each row then
//! needs just a key lookup, whatever the predicate. Comparisons of a number with a value become
//! ranges, each of which takes one pass over its column (`numbers`).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, split_conjunction};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SendableRecordBatchStream};
use tidemark_kernels::run_end;
use tidemark_storage::{Slice, TimeRange};

use super::exec::{SliceScan, TABLE_SCAN};
use super::numbers::{NumberTest, Ranges};
use super::pace::{Steps, paced};
use super::passing::{Condition, Passing};
use super::rows::reverse;
use super::symbol_test::{PassingKeys, SymbolTest};
use super::time_filter;
use super::zones::{ZoneTest, certain, matching_ranges};
use crate::error::engine_error;

/// A filter merged with the scan below it.
#[derive(Debug, Clone)]
pub struct FilteredScan {
    scan: SliceScan,
    predicate: Arc<dyn PhysicalExpr>,
    /// Names of the scan's columns in the filter condition, if the filter was built from a single
    /// condition.
    named: Option<DFSchemaRef>,
    tests: Arc<Tests>,
    /// The scan column of each output column.
    output: Vec<usize>,
    fetch: Option<usize>,
    properties: Arc<PlanProperties>,
}

/// A conjunction, with the cheapest conditions first.
#[derive(Debug)]
struct Tests {
    times: Vec<TimeTest>,
    symbols: Vec<SymbolTest>,
    numbers: Vec<NumberTest>,
    row_conditions: Vec<Condition>,
    /// Zone tests of numeric and other conditions, which can rule out whole blocks.
    zones: Vec<ZoneTest>,
}

/// A comparison of the designated timestamp with a value that is known only when the scan runs,
/// such as a subquery's value.
#[derive(Debug)]
struct TimeTest {
    op: Operator,
    value: Arc<dyn PhysicalExpr>,
}

/// Records in the properties which output columns the predicate makes equal to each other or to a
/// constant.
fn with_equal_columns(
    properties: Arc<PlanProperties>,
    predicate: &Arc<dyn PhysicalExpr>,
    output: &[usize],
) -> Result<Arc<PlanProperties>> {
    let passed_on = |expr: &Arc<dyn PhysicalExpr>| -> Option<Arc<dyn PhysicalExpr>> {
        let Some(column) = expr.downcast_ref::<Column>() else {
            return expr.is::<Literal>().then(|| Arc::clone(expr));
        };
        let at = output.iter().position(|own| *own == column.index())?;
        Some(Arc::new(Column::new(column.name(), at)))
    };
    let pairs = split_conjunction(predicate).into_iter().filter_map(|conjunct| {
        let equal = conjunct
            .downcast_ref::<BinaryExpr>()
            .filter(|conjunct| *conjunct.op() == Operator::Eq)?;
        let sides = (equal.left(), equal.right());
        let is_column = sides.0.is::<Column>() || sides.1.is::<Column>();
        passed_on(sides.0).zip(passed_on(sides.1)).filter(|_| is_column)
    });
    let pairs: Vec<_> = pairs.collect();
    if pairs.is_empty() {
        return Ok(properties);
    }
    let mut equal = properties.equivalence_properties().clone();
    for (left, right) in pairs {
        equal.add_equal_conditions(left, right)?;
    }
    Ok(Arc::new(PlanProperties::clone(&properties).with_eq_properties(equal)))
}

impl FilteredScan {
    /// Creates a filter that applies `predicate` to the scan's rows and returns at most `fetch`
    /// rows per partition. `output` lists the scan columns to return.
    pub fn new(
        scan: SliceScan,
        predicate: Arc<dyn PhysicalExpr>,
        output: Vec<usize>,
        fetch: Option<usize>,
    ) -> Result<Self> {
        let properties = with_equal_columns(scan.narrowed(&output)?, &predicate, &output)?;
        Ok(Self::with_properties(scan, predicate, output, fetch, properties))
    }

    fn with_properties(
        scan: SliceScan,
        predicate: Arc<dyn PhysicalExpr>,
        output: Vec<usize>,
        fetch: Option<usize>,
        properties: Arc<PlanProperties>,
    ) -> Self {
        let tests = Arc::new(Tests::new(&scan, &predicate));
        Self { scan, predicate, named: None, tests, output, fetch, properties }
    }

    /// Records that the filter was built from a single condition on columns with these names.
    #[must_use]
    pub fn named(self, columns: DFSchemaRef) -> Self {
        Self { named: Some(columns), ..self }
    }

    /// Names of the scan's columns in the filter condition; `None` if the filter was built from
    /// several conditions.
    pub fn names(&self) -> Option<&DFSchemaRef> {
        self.named.as_ref()
    }

    /// Returns the same filter above a different scan of the same columns. `predicate`, if given,
    /// replaces the current predicate.
    #[must_use]
    pub fn over(&self, scan: SliceScan, predicate: Option<Arc<dyn PhysicalExpr>>) -> Self {
        let predicate = predicate.unwrap_or_else(|| Arc::clone(&self.predicate));
        let (output, properties) = (self.output.clone(), Arc::clone(&self.properties));
        let filter = Self::with_properties(scan, predicate, output, self.fetch, properties);
        Self { named: self.named.clone(), ..filter }
    }

    /// Returns a filter that yields the same rows in reverse order. With `as_one`, it has a single
    /// partition, which suits a small limit.
    pub fn reversed(&self, as_one: bool) -> Result<Self> {
        let scan = if as_one { self.scan.as_one_partition() } else { self.scan.clone() };
        let (predicate, output) = (Arc::clone(&self.predicate), self.output.clone());
        let reversed = Self::new(scan.reversed(None), predicate, output, self.fetch)?;
        Ok(Self { named: self.named.clone(), ..reversed })
    }

    /// Returns the same rows with one partition per span.
    pub(crate) fn cut_at(&self, spans: &[Option<(i64, i64)>]) -> Result<Self> {
        let (predicate, output) = (Arc::clone(&self.predicate), self.output.clone());
        Self::new(self.scan.cut_at(spans)?, predicate, output, self.fetch)
    }

    /// Merges `filter` with the scan below it.
    pub fn of(filter: &FilterExec, scan: SliceScan) -> Self {
        let output = match filter.projection() {
            Some(projection) => projection.to_vec(),
            None => (0..scan.projection().len()).collect(),
        };
        let properties = PlanProperties::clone(filter.properties())
            .with_scheduling_type(SchedulingType::Cooperative);
        let (predicate, fetch) = (Arc::clone(filter.predicate()), filter.fetch());
        Self::with_properties(scan, predicate, output, fetch, Arc::new(properties))
    }

    /// Whether the same rows pass in every execution.
    pub(crate) fn is_stable(&self) -> bool {
        !is_volatile(&self.predicate)
    }

    /// Whether another filter returns the same cells in the same order.
    pub(crate) fn reads_same(&self, other: &Self) -> bool {
        self.output == other.output
            && self.fetch == other.fetch
            && self.predicate.eq(&other.predicate)
            && self.scan.reads_same(&other.scan)
    }

    /// Schema of the output columns.
    pub fn schema(&self) -> &SchemaRef {
        self.properties.equivalence_properties().schema()
    }

    /// The scan's plan properties: order and partitioning.
    pub(super) fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// The filter condition.
    pub(super) fn predicate(&self) -> &Arc<dyn PhysicalExpr> {
        &self.predicate
    }

    /// The columns of [`Self::scan`] that are in the output.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.output
    }

    /// Returns the scan column for an output column.
    pub fn column(&self, output: usize) -> Option<usize> {
        self.output.get(output).copied()
    }

    /// Maximum number of rows per partition, if limited.
    pub fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// The scan below.
    pub fn scan(&self) -> &SliceScan {
        &self.scan
    }

    /// Returns the keys that can occur in a symbol output column, if known.
    pub(crate) fn passing_keys(&self, output: usize) -> Option<PassingKeys> {
        let column = *self.output.get(output)?;
        let mut tests = self.tests.symbols.iter().filter(|test| test.column == column);
        let first = tests.next()?.passing.clone();
        Some(tests.fold(first, |all, test| all.and(&test.passing)))
    }

    /// Returns a symbol column of the scan for which only a few keys can pass, along with these
    /// keys.
    pub(super) fn few_keys(&self) -> Option<(usize, &[i32])> {
        let mut tests = self.tests.symbols.iter();
        tests.find_map(|test| Some((test.column, test.passing.few()?)))
    }

    /// Returns the rows that pass, oldest first; `None` if no rows pass.
    pub fn read(&self, slice: &Slice, rows: Range<usize>) -> Result<Option<RecordBatch>> {
        self.passing(slice, rows)?.map(|passing| self.output(&passing)).transpose()
    }

    /// Selects the rows that pass, oldest first; `None` if no rows pass.
    pub(crate) fn passing<'a>(
        &'a self,
        slice: &'a Slice,
        rows: Range<usize>,
    ) -> Result<Option<Passing<'a>>> {
        let rows = self.tests.within(slice, rows)?;
        if rows.is_empty() {
            return Ok(None);
        }
        let mut passing = Passing::all(&self.scan, slice, rows);
        for test in &self.tests.symbols {
            if !passing.narrow(test.evaluate(&[passing.cells(test.column)?])?) {
                return Ok(None);
            }
        }
        let ranges = Ranges::of(&self.tests.numbers)?;
        for (column, between) in ranges.columns {
            if !passing.narrow(between.passing(&passing.cells(column)?)?) {
                return Ok(None);
            }
        }
        for condition in ranges.other_conditions.into_iter().chain(&self.tests.row_conditions) {
            if !passing.test(condition)? {
                return Ok(None);
            }
        }
        Ok(Some(passing))
    }

    /// Returns the output columns of these rows.
    pub(crate) fn output(&self, rows: &Passing<'_>) -> Result<RecordBatch> {
        rows.batch(&self.output, self.schema())
    }

    /// Divides a chunk's rows into ranges, omitting blocks that cannot contain a match. Returns at
    /// least one range, which may be empty, so that other tasks can run.
    fn chunk_ranges(
        &self,
        slice: Arc<Slice>,
        rows: Range<usize>,
    ) -> Vec<(Arc<Slice>, Range<usize>)> {
        if self.tests.zones.is_empty() {
            return vec![(slice, rows)];
        }
        let nothing = rows.start..rows.start;
        let mut found = matching_ranges(&self.tests.zones, &self.scan, &slice, rows);
        if found.is_empty() {
            found.push(nothing);
        }
        if self.scan.is_backward() {
            found.reverse();
        }
        found.into_iter().map(|rows| (Arc::clone(&slice), rows)).collect()
    }

    /// Returns a partition's rows.
    pub(super) fn stream(&self, partition: usize) -> Result<SendableRecordBatchStream> {
        let (plan, backward) = (self.clone(), self.scan.is_backward());
        let mut remaining = self.fetch.unwrap_or(usize::MAX);
        let batches =
            self.batches(partition, move |slice, rows| match plan.read(slice, rows)? {
                Some(batch) if backward => reverse(&batch).map(Some),
                batch => Ok(batch),
            })?;
        let batches = batches.map_while(move |batch: Result<RecordBatch>| {
            if remaining == 0 {
                return None;
            }
            Some(batch.map(|batch| {
                let rows = batch.num_rows().min(remaining);
                remaining -= rows;
                batch.slice(0, rows)
            }))
        });
        Ok(paced(Arc::clone(self.schema()), batches))
    }

    /// Returns the results of `read` for a partition's rows, in scan order. Blocks that cannot
    /// contain a match are skipped.
    pub(crate) fn batches<R>(
        &self,
        partition: usize,
        mut read: R,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>> + use<R>>
    where
        R: FnMut(&Slice, Range<usize>) -> Result<Option<RecordBatch>>,
    {
        // A chunk without rows is returned too, so that a filter that drops all rows still yields.
        let nothing = RecordBatch::new_empty(Arc::clone(self.schema()));
        let (chunks, tested) = (self.scan.chunks(partition)?, self.clone());
        let chunks = chunks.flat_map(move |(slice, rows)| tested.chunk_ranges(slice, rows));
        let mut steps = Steps::new(chunks, self.scan.is_backward());
        Ok(std::iter::from_fn(move || {
            let (slice, rows) = steps.next()?;
            let started = Instant::now();
            let batch = read(&slice, rows);
            steps.took(started.elapsed());
            Some(batch.map(|batch| batch.unwrap_or_else(|| nothing.clone())))
        }))
    }
}

impl Tests {
    fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Self {
        let (mut times, mut symbols, mut others) = (vec![], vec![], vec![]);
        let (mut numbers, mut zones) = (vec![], vec![]);
        for conjunct in split_conjunction(predicate) {
            if let Some(test) = TimeTest::new(scan, conjunct) {
                times.push(test);
                continue;
            }
            if let Some(test) = SymbolTest::new(scan, conjunct) {
                symbols.push(test);
                continue;
            }
            zones.extend(ZoneTest::new(scan, conjunct));
            if let Some(test) = NumberTest::new(scan, conjunct) {
                numbers.push(test);
            } else {
                others.push(Condition::new(scan, conjunct));
            }
        }
        // The most selective test runs first, because it may drop the whole batch.
        symbols.sort_by_key(|test| test.passing.count());
        Self { times, symbols, numbers, row_conditions: others, zones }
    }

    /// Returns the rows whose timestamps may pass the tests. All other rows are skipped without
    /// being read.
    fn within(&self, slice: &Slice, mut rows: Range<usize>) -> Result<Range<usize>> {
        for test in &self.times {
            let times = slice.timestamps().map_err(engine_error)?;
            let TimeRange { lo, hi } = test.range()?;
            let own = &times[rows.clone()];
            let (start, end) = (run_end(own, 0, lo), run_end(own, 0, hi));
            rows = rows.start + start..rows.start + end.max(start);
        }
        Ok(rows)
    }
}

impl TimeTest {
    fn new(scan: &SliceScan, predicate: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let comparison = certain(predicate).downcast_ref::<BinaryExpr>()?;
        let (left, right) = (comparison.left(), comparison.right());
        let (column, value, op) = match left.downcast_ref::<Column>() {
            Some(column) => (column, right, *comparison.op()),
            None => (right.downcast_ref::<Column>()?, left, comparison.op().swap()?),
        };
        let data_type = scan.schema().field(column.index()).data_type();
        let same_type = value.data_type(scan.schema()).is_ok_and(|found| found == *data_type);
        let is_value = collect_columns(value).is_empty() && !is_volatile(value) && same_type;
        let compares = time_filter::compare(op, 0).is_some();
        (scan.is_timestamp(column.index()) && is_value && compares)
            .then(|| Self { op, value: Arc::clone(value) })
    }

    /// Returns the range of times that pass.
    fn range(&self) -> Result<TimeRange> {
        let nothing = RecordBatch::new_empty(Arc::new(Schema::empty()));
        let value = match self.value.evaluate(&nothing)? {
            ColumnarValue::Scalar(value) => time_filter::timestamp(&value),
            ColumnarValue::Array(_) => return internal_err!("expected one timestamp"),
        };
        let range = value.and_then(|value| time_filter::compare(self.op, value));
        // A comparison with null does not match any time.
        Ok(range.unwrap_or(TimeRange { lo: 0, hi: 0 }))
    }
}

impl fmt::Display for FilteredScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}: {}", self.predicate, TABLE_SCAN, self.scan)
    }
}
