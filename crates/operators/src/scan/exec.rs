//! Table scan: slices of mapped columns, in time order, forward or backward.

use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{SchemaRef, SortOptions};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::Expr;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::EmissionType;
use datafusion::physical_plan::{PlanProperties, SendableRecordBatchStream};
use datafusion::prelude::SessionConfig;
use tidemark_kernels::{run_end, upper_bound};
use tidemark_storage::{Slice, SymbolDictionary, TableSnapshot, TimeRange};
use tidemark_types::timestamp::iso_text;
use tidemark_types::{SqlType, TimestampUnit};

use super::pace::paced;
use super::rows::{BATCH_ROWS, Rows, ScanUnit, read, reverse};
use super::time_filter;
use crate::error::engine_error;
use crate::properties::properties;

/// A scan's name in EXPLAIN.
pub(super) const TABLE_SCAN: &str = "TableScanExec";

/// Below this number of rows, a second worker costs more than it saves.
const MIN_ROWS_PER_PARTITION: usize = 128 * 1024;

/// How a scan is divided between workers.
#[derive(Debug, Clone, Copy)]
pub struct ScanPartitioning {
    /// Maximum number of partitions.
    pub max: usize,
    /// Minimum number of rows in a partition and maximum number of rows in a batch; `None` selects
    /// the fastest values.
    pub rows: Option<NonZeroUsize>,
}

impl ScanPartitioning {
    /// Returns the partitioning requested by the session options.
    pub fn of(config: &SessionConfig) -> Self {
        let rows = config.get_extension::<PartitionRows>().map(|rows| rows.0);
        Self { max: config.target_partitions(), rows }
    }

    fn count(self, rows: usize) -> usize {
        let min = self.rows.map_or(MIN_ROWS_PER_PARTITION, NonZeroUsize::get);
        self.max.min(rows / min).max(1)
    }

    /// Splits units so that none is longer than the maximum batch.
    fn cut(self, units: Vec<ScanUnit>) -> Vec<ScanUnit> {
        let Some(max) = self.rows.map(NonZeroUsize::get) else { return units };
        let chunks = |unit: ScanUnit| {
            unit.rows.clone().step_by(max).map(move |start| {
                let rows = start..unit.rows.end.min(start.saturating_add(max));
                ScanUnit { slice: Arc::clone(&unit.slice), rows }
            })
        };
        units.into_iter().flat_map(chunks).collect()
    }
}

/// Session setting for [`ScanPartitioning::rows`].
pub struct PartitionRows(pub NonZeroUsize);

/// Scans a table. Partition `i` precedes partition `i + 1` in time (or follows it, if backward),
/// and every partition is in timestamp order.
#[derive(Debug, Clone)]
pub struct SliceScan {
    table: Arc<TableSnapshot>,
    /// The time ranges that determine which rows are read; empty for all rows. `None` if a filter
    /// in the plan restricts the rows as well.
    ranges: Option<Vec<TimeRange>>,
    projection: Vec<usize>,
    partitioning: ScanPartitioning,
    partitions: Vec<Arc<Vec<ScanUnit>>>,
    backward: bool,
    /// Whether the scan is read as a single partition, regardless of its number of rows.
    is_single: bool,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
}

impl SliceScan {
    /// Creates a forward scan of the rows within `ranges` (all rows if empty), with partitions of
    /// about equal size.
    pub fn try_new(
        table: Arc<TableSnapshot>,
        ranges: &[TimeRange],
        projection: Vec<usize>,
        schema: &SchemaRef,
        partitioning: ScanPartitioning,
        limit: Option<usize>,
    ) -> Result<Self> {
        let partitions = partitions_of(&table, ranges, partitioning, limit)?;
        let properties = scan_properties(&table, &projection, schema, partitions.len(), false);
        let (backward, is_single, ranges) = (false, false, Some(ranges.to_vec()));
        Ok(Self {
            table,
            ranges,
            projection,
            partitioning,
            partitions,
            backward,
            is_single,
            limit,
            properties,
        })
    }

    /// Whether the partition size comes from the session options rather than being chosen for
    /// speed.
    pub(crate) fn is_cut_small(&self) -> bool {
        self.partitioning.rows.is_some()
    }

    /// Returns the scan as a single partition, so that later rows are not read if only a few rows
    /// are needed.
    #[must_use]
    pub fn as_one_partition(&self) -> Self {
        let units = self.units().cloned().collect();
        let properties =
            scan_properties(&self.table, &self.projection, self.schema(), 1, self.backward);
        let partitions = vec![Arc::new(units)];
        Self { partitions, is_single: true, properties, ..self.clone() }
    }

    /// First and last designated timestamps of each partition; `None` for a partition without rows.
    pub(crate) fn spans(&self) -> Result<Vec<Option<(i64, i64)>>> {
        self.partitions.iter().map(|units| span_of(units)).collect()
    }

    /// Returns a forward scan with one partition per span, each containing all rows in that span.
    /// Rows at a timestamp shared by two spans are in both partitions.
    pub(crate) fn cut_at(&self, spans: &[Option<(i64, i64)>]) -> Result<Self> {
        let part = |span: &Option<(i64, i64)>| -> Result<_> {
            let units = match span {
                Some(span) => self.units_within(*span)?,
                None => vec![],
            };
            Ok(Arc::new(units))
        };
        let partitions = spans.iter().map(part).collect::<Result<Vec<_>>>()?;
        let partition_count = partitions.len();
        let properties = scan_properties(
            &self.table,
            &self.projection,
            self.schema(),
            partition_count,
            self.backward,
        );
        Ok(Self { partitions, properties, ..self.clone() })
    }

    /// Returns the units, restricted to a time range.
    fn units_within(&self, (first, last): (i64, i64)) -> Result<Vec<ScanUnit>> {
        let mut units = vec![];
        for unit in self.units() {
            let times = unit.slice.timestamps().map_err(engine_error)?;
            let own = &times[unit.rows.clone()];
            let (start, end) = (run_end(own, 0, first), upper_bound(own, 0, last));
            if start < end {
                let rows = unit.rows.start + start..unit.rows.start + end;
                units.push(ScanUnit { slice: Arc::clone(&unit.slice), rows });
            }
        }
        Ok(units)
    }

    /// Marks the scan as being restricted by a filter in the plan.
    #[must_use]
    pub fn filtered(self) -> Self {
        Self { ranges: None, ..self }
    }

    /// Returns the scan over the requested ranges; the predicate is ignored. Returns `None` if the
    /// scan's rows depend on more than the known ranges, or if there would be more than one
    /// partition.
    pub fn reading(&self, Rows { known, ranges, .. }: Rows<'_>) -> Result<Option<Self>> {
        if self.ranges.as_deref() != Some(known) {
            return Ok(None);
        }
        if ranges == known {
            return Ok(Some(self.clone()));
        }
        if self.partitions.len() != 1 {
            return Ok(None);
        }
        // Two partitions are enough to detect that the rows need more than one.
        let partitioning = ScanPartitioning { max: 2, ..self.partitioning };
        let limit = self.limit.filter(|_| !self.backward);
        let mut partitions = partitions_of(&self.table, ranges, partitioning, limit)?;
        if self.is_single {
            partitions = vec![Arc::new(units_of(&partitions).cloned().collect())];
        }
        if self.backward {
            partitions = turned(&partitions, true, self.limit);
        }
        // The result must also have one partition; otherwise, its properties would be invalid.
        let ranges = Some(ranges.to_vec());
        Ok((partitions.len() == 1).then(|| Self { ranges, partitions, ..self.clone() }))
    }

    /// Returns a scan in the opposite direction, with at most `limit` rows.
    #[must_use]
    pub fn reversed(&self, limit: Option<usize>) -> Self {
        let mut scan = self.clone();
        scan.backward = !self.backward;
        scan.partitions = turned(&self.partitions, scan.backward, limit);
        scan.limit = limit.or(self.limit);
        let (schema, partition_count) = (self.schema(), scan.partitions.len());
        scan.properties =
            scan_properties(&self.table, &self.projection, schema, partition_count, scan.backward);
        scan
    }

    /// Returns the properties of an operator that passes on only these columns.
    pub fn narrowed(&self, output: &[usize]) -> Result<Arc<PlanProperties>> {
        let schema = Arc::new(self.schema().project(output)?);
        let columns: Vec<usize> = output.iter().map(|&column| self.projection[column]).collect();
        let partition_count = self.partitions.len();
        Ok(scan_properties(&self.table, &columns, &schema, partition_count, self.backward))
    }

    /// Whether another scan reads the same cells in the same order and with the same partitions.
    pub(crate) fn reads_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.partitions, &other.partitions);
        Arc::ptr_eq(&self.table, &other.table)
            && self.projection == other.projection
            && self.backward == other.backward
            && self.limit == other.limit
            && own.len() == others.len()
            && own.iter().zip(others).all(|(own, others)| {
                own.len() == others.len() && own.iter().zip(others.iter()).all(are_same_rows)
            })
    }

    /// Schema of the output columns.
    pub fn schema(&self) -> &SchemaRef {
        self.properties.equivalence_properties().schema()
    }

    /// The scan's plan properties: order and partitioning.
    pub(super) fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// Whether the last row is returned first.
    pub fn is_backward(&self) -> bool {
        self.backward
    }

    /// Returns a filter's time range, if the filter does not test anything else.
    pub fn time_range(&self, filter: &Expr) -> Option<TimeRange> {
        time_filter::range_in(&self.table, filter)
    }

    /// The exact number of rows.
    pub fn row_count(&self) -> usize {
        self.partitions.iter().map(|units| count(units)).sum()
    }

    /// The exact number of rows in a partition.
    pub fn rows_of(&self, partition: usize) -> usize {
        self.partitions.get(partition).map_or(0, |units| count(units))
    }

    /// Returns all units in scan order.
    pub fn units(&self) -> impl DoubleEndedIterator<Item = &ScanUnit> {
        units_of(&self.partitions)
    }

    /// The table column of each output column.
    pub fn projection(&self) -> &[usize] {
        &self.projection
    }

    /// Returns the dictionary of an output column, if the column is a symbol in the table.
    pub fn symbols(&self, output: usize) -> Option<Arc<SymbolDictionary>> {
        self.table.symbols(*self.projection.get(output)?).ok()
    }

    /// Whether an output column is the designated timestamp.
    pub fn is_timestamp(&self, output: usize) -> bool {
        let timestamp = self.table.schema().timestamp;
        timestamp.is_some() && self.projection.get(output).copied() == timestamp
    }

    /// Whether an output column may contain a null.
    pub fn has_nulls(&self, output: usize) -> bool {
        let Some(&column) = self.projection.get(output) else { return true };
        self.units().any(|unit| {
            let cells = unit.slice.columns(&[column], unit.rows.clone());
            cells
                .ok()
                .and_then(|cells| cells.first().map(|cells| cells.null_count() > 0))
                .unwrap_or(true)
        })
    }

    /// Returns the first and last designated timestamps of the scanned rows, if `output` is that
    /// column.
    pub fn time_bounds(&self, output: usize) -> Option<(i64, i64)> {
        if !self.is_timestamp(output) {
            return None;
        }
        let mut units = self.units();
        let first = units.next()?;
        let last = units.next_back().unwrap_or(first);
        let ends = |unit: &ScanUnit| {
            let times = unit.slice.timestamps().ok()?;
            Some((*times.get(unit.rows.start)?, *times.get(unit.rows.end - 1)?))
        };
        let (first, last) = (ends(first)?, ends(last)?);
        Some((first.0.min(last.0), first.1.max(last.1)))
    }

    /// Returns a partition's row ranges, one batch at a time, in scan order.
    pub fn chunks(
        &self,
        partition: usize,
    ) -> Result<impl Iterator<Item = (Arc<Slice>, Range<usize>)> + use<>> {
        let Some(units) = self.partitions.get(partition) else {
            return internal_err!(
                "partition {partition} does not exist: the scan has {}",
                self.partitions.len()
            );
        };
        let (units, backward) = (Arc::clone(units), self.backward);
        Ok((0..units.len()).flat_map(move |index| {
            let unit = units[index].clone();
            let count = unit.rows.len().div_ceil(BATCH_ROWS);
            (0..count).map(move |chunk| {
                let chunk = if backward { count - 1 - chunk } else { chunk };
                let start = unit.rows.start + chunk * BATCH_ROWS;
                (Arc::clone(&unit.slice), start..unit.rows.end.min(start + BATCH_ROWS))
            })
        }))
    }

    /// Returns the last `count` rows that precede a partition of a forward scan.
    pub(crate) fn rows_before(&self, partition: usize, count: usize) -> Result<Vec<RecordBatch>> {
        if self.backward {
            return internal_err!("preceding rows require a forward scan");
        }
        let (mut batches, mut left) = (vec![], count);
        for unit in self.partitions.iter().take(partition).flat_map(|units| units.iter()).rev() {
            if left == 0 {
                break;
            }
            let rows = unit.rows.len().min(left);
            let range = unit.rows.end - rows..unit.rows.end;
            batches.push(read(&unit.slice, &self.projection, range, self.schema())?);
            left -= rows;
        }
        batches.reverse();
        Ok(batches)
    }

    /// Returns a partition's rows.
    pub(crate) fn stream(&self, partition: usize) -> Result<SendableRecordBatchStream> {
        let backward = self.backward;
        let (schema, projection) = (Arc::clone(self.schema()), self.projection.clone());
        let output = Arc::clone(&schema);
        let batches = self.chunks(partition)?.map(move |(slice, rows)| {
            let batch = read(&slice, &projection, rows, &schema)?;
            if backward { reverse(&batch) } else { Ok(batch) }
        });
        Ok(paced(output, batches))
    }
}

/// Whether two units from one snapshot have the same rows.
fn are_same_rows((left, right): (&ScanUnit, &ScanUnit)) -> bool {
    let first = |unit: &ScanUnit| {
        let start = unit.rows.start;
        unit.slice.row_ids(start..unit.rows.end.min(start + 1))
    };
    left.rows.len() == right.rows.len() && first(left) == first(right)
}

fn count(units: &[ScanUnit]) -> usize {
    units.iter().map(|unit| unit.rows.len()).sum()
}

/// Returns the first and last designated timestamps.
fn span_of(units: &[ScanUnit]) -> Result<Option<(i64, i64)>> {
    let (Some(first), Some(last)) = (units.first(), units.last()) else { return Ok(None) };
    let times = first.slice.timestamps().map_err(engine_error)?;
    let begin = times.get(first.rows.start).copied();
    let times = last.slice.timestamps().map_err(engine_error)?;
    Ok(begin.zip(times.get(last.rows.end.saturating_sub(1)).copied()))
}

fn truncate(units: &mut Vec<ScanUnit>, mut limit: usize) {
    units.retain_mut(|unit| {
        let rows = unit.rows.len().min(limit);
        limit -= rows;
        unit.rows.end = unit.rows.start + rows;
        rows > 0
    });
}

fn truncate_front(units: &mut Vec<ScanUnit>, mut limit: usize) {
    units.retain_mut(|unit| {
        let rows = unit.rows.len().min(limit);
        limit -= rows;
        unit.rows.start = unit.rows.end - rows;
        rows > 0
    });
}

/// Divides a list of units, in order, into `partition_count` partitions with about the same number
/// of rows. No unit is empty.
fn split(units: Vec<ScanUnit>, partition_count: usize) -> Vec<Arc<Vec<ScanUnit>>> {
    let rows_per_partition = count(&units).div_ceil(partition_count).max(1);
    let mut partitions = vec![vec![]];
    let mut remaining = rows_per_partition;
    for mut unit in units {
        while unit.rows.len() > remaining {
            let cut = unit.rows.start + remaining;
            let head = ScanUnit { slice: Arc::clone(&unit.slice), rows: unit.rows.start..cut };
            unit.rows.start = cut;
            if let Some(last) = partitions.last_mut()
                && remaining > 0
            {
                last.push(head);
            }
            partitions.push(vec![]);
            remaining = rows_per_partition;
        }
        remaining -= unit.rows.len();
        if let Some(last) = partitions.last_mut() {
            last.push(unit);
        }
    }
    partitions.into_iter().map(Arc::new).collect()
}

fn units_of(partitions: &[Arc<Vec<ScanUnit>>]) -> impl DoubleEndedIterator<Item = &ScanUnit> {
    partitions.iter().flat_map(|units| units.iter())
}

/// Returns the rows within `ranges` (all rows if empty), oldest first.
fn partitions_of(
    table: &TableSnapshot,
    ranges: &[TimeRange],
    partitioning: ScanPartitioning,
    limit: Option<usize>,
) -> Result<Vec<Arc<Vec<ScanUnit>>>> {
    let slices = if ranges.is_empty() { table.slices() } else { table.slices_in(ranges) };
    let slices = slices.map_err(engine_error)?;
    let mut units: Vec<ScanUnit> = slices
        .into_iter()
        .filter(|slice| slice.rows() > 0)
        .map(|slice| ScanUnit { rows: 0..slice.rows(), slice: Arc::new(slice) })
        .collect();
    let partition_count = match limit {
        Some(limit) => {
            truncate(&mut units, limit);
            1
        }
        None => partitioning.count(count(&units)),
    };
    Ok(split(partitioning.cut(units), partition_count))
}

/// Returns at most `limit` of the same rows in the opposite order. `backward` is the new direction.
fn turned(
    partitions: &[Arc<Vec<ScanUnit>>],
    backward: bool,
    limit: Option<usize>,
) -> Vec<Arc<Vec<ScanUnit>>> {
    let Some(limit) = limit else {
        let turn = |units: &Arc<Vec<ScanUnit>>| Arc::new(units.iter().rev().cloned().collect());
        return partitions.iter().rev().map(turn).collect();
    };
    let mut units: Vec<ScanUnit> = units_of(partitions).rev().cloned().collect();
    if backward {
        truncate_front(&mut units, limit);
    } else {
        truncate(&mut units, limit);
    }
    vec![Arc::new(units)]
}

fn scan_properties(
    table: &TableSnapshot,
    projection: &[usize],
    schema: &SchemaRef,
    partitions: usize,
    backward: bool,
) -> Arc<PlanProperties> {
    let timestamp = table.schema().timestamp;
    let position = projection.iter().position(|&column| Some(column) == timestamp);
    let order = position.map(|index| {
        let options = SortOptions { descending: backward, nulls_first: !backward };
        let column = Column::new(schema.field(index).name(), index);
        vec![PhysicalSortExpr::new(Arc::new(column), options)]
    });
    properties(schema, order, partitions, EmissionType::Incremental)
}

impl fmt::Display for SliceScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let definition = self.table.schema();
        let columns: Vec<&str> = self
            .projection
            .iter()
            .map(|&column| definition.columns.get(column).map_or("rows", |c| c.name.as_str()))
            .collect();
        let direction = if self.backward { " backward" } else { "" };
        let (name, rows) = (&definition.name, self.row_count());
        write!(f, "{name}{direction} columns=[{}] rows={rows}", columns.join(", "))?;
        if let Some(limit) = self.limit {
            write!(f, " limit={limit}")?;
        }
        let Some(ranges) = self.ranges.as_deref().filter(|ranges| !ranges.is_empty()) else {
            return Ok(());
        };
        let column = definition.timestamp.and_then(|column| definition.columns.get(column));
        let unit = match column.map(|column| column.sql_type) {
            Some(SqlType::TimestampNs) => TimestampUnit::Nanos,
            _ => TimestampUnit::Micros,
        };
        f.write_str(" intervals=[")?;
        let mut separator = "";
        for range in ranges.iter().filter(|range| range.lo < range.hi).take(SHOWN_RANGES) {
            write!(f, "{separator}{}", Shown(*range, unit))?;
            separator = ", ";
        }
        match ranges.len().checked_sub(SHOWN_RANGES) {
            None | Some(0) => f.write_str("]"),
            Some(more) => write!(f, ", {more} more]"),
        }
    }
}

/// Maximum number of time ranges that EXPLAIN shows.
const SHOWN_RANGES: usize = 1_000;

/// A range as shown by EXPLAIN: both ends are inclusive, and an open end is left empty.
struct Shown(TimeRange, TimestampUnit);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(TimeRange { lo, hi }, unit) = *self;
        let end = |value: i64, open: i64| match value {
            value if value == open => String::new(),
            value => iso_text(value, unit),
        };
        let last = if hi == i64::MAX { hi } else { hi.saturating_sub(1) };
        write!(f, "({},{})", end(lo, i64::MIN), end(last, i64::MAX))
    }
}
