//! Rows of a bulk write that wait in memory, in arrival order.
//!
//! A batch's late rows are stored separately from its ordered rows. Both are in ascending time
//! order, so the cost of a merge depends on the number of late rows. Ordered rows are copied once,
//! when they are written. Until then, only their positions are stored.

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::ScalarBuffer;
use tidemark_kernels::gather;
use tidemark_types::EngineResult;

use crate::segment::column::ColumnData;
use crate::segment::gather::Source;
use crate::state::apply::partition_rows;
use crate::table::merge::SourceRange;
use crate::table::schema::{ColumnSchema, TableSchema};
use crate::table::upsert::{self, UpsertKeys, upsert_order};

/// If more than one in this many rows is late, all rows are sorted, because a single row far ahead
/// in time makes all following rows late.
const LATE_ROWS_DIVISOR: usize = 4;

/// Rows of one batch, ascending in time if the table has a designated timestamp.
#[derive(Debug, Clone)]
pub(crate) struct StagedRows {
    /// Columns in the definition's order; shared with other rows of the batch.
    columns: Arc<[ColumnData]>,
    /// Positions of these rows in `columns`, in row order.
    ranges: Vec<Range<usize>>,
    /// Timestamps of these rows; empty without a designated timestamp.
    times: ScalarBuffer<i64>,
    rows: usize,
}

impl Source for StagedRows {
    fn column(&self, position: usize, _: &ColumnSchema) -> EngineResult<ColumnData> {
        Ok(self.columns[position].clone())
    }
}

/// Stages all rows of a batch: references the ordered rows and copies the late ones.
pub(crate) fn ascending(
    schema: &TableSchema,
    columns: Arc<[ColumnData]>,
    times: Option<ScalarBuffer<i64>>,
    rows: usize,
) -> EngineResult<Vec<StagedRows>> {
    let times = times.unwrap_or_default();
    if times.is_sorted() {
        return Ok(vec![StagedRows::in_order(columns, rows, times)]);
    }
    let (in_order, late) = in_order_and_late(&times);
    if late.len() > rows / LATE_ROWS_DIVISOR {
        return Ok(vec![StagedRows::sorted(columns, &times)]);
    }
    let order = late.iter().map(|&row| SourceRange { source: 0, start: row, len: 1 });
    // Copies in storage order, which the CPU can prefetch.
    let copies = gathered(schema, std::slice::from_ref(&&*columns), &order.collect::<Vec<_>>())?;
    let late_times: Vec<i64> = late.iter().map(|&row| times[row]).collect();
    let order = in_order.iter().map(|range| SourceRange {
        source: 0,
        start: range.start,
        len: range.len(),
    });
    let times: ScalarBuffer<i64> = gather(&[&times[..]], &order.collect::<Vec<_>>()).into();
    let in_order = StagedRows { columns, ranges: in_order, rows: times.len(), times };
    Ok(vec![in_order, StagedRows::sorted(copies, &late_times)])
}

/// Splits rows into ranges of ordered rows and a list of late rows. An ordered row is not older
/// than any row before it.
fn in_order_and_late(times: &[i64]) -> (Vec<Range<usize>>, Vec<usize>) {
    let capacity = times.len() / 16;
    let (mut in_order, mut late) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
    let (mut start, mut newest) = (0, i64::MIN);
    for (row, &ts) in times.iter().enumerate() {
        if ts >= newest {
            newest = ts;
            continue;
        }
        late.push(row);
        if start < row {
            in_order.push(start..row);
        }
        start = row + 1;
    }
    if start < times.len() {
        in_order.push(start..times.len());
    }
    (in_order, late)
}

/// Copies the cells of rows from several batches so that those batches can be freed.
fn gathered(
    schema: &TableSchema,
    batches: &[&[ColumnData]],
    order: &[SourceRange],
) -> EngineResult<Arc<[ColumnData]>> {
    let columns = schema.columns.iter().enumerate().map(|(position, column)| {
        let cells: Vec<_> = batches.iter().map(|batch| batch[position].clone()).collect();
        Ok(ColumnData::gather(column.sql_type, &cells, order)?.compacted())
    });
    columns.collect()
}

impl StagedRows {
    /// Stages rows that are already in ascending order.
    fn in_order(columns: Arc<[ColumnData]>, rows: usize, times: ScalarBuffer<i64>) -> Self {
        Self { columns, ranges: std::iter::once(0..rows).collect(), times, rows }
    }

    /// Sorts all rows of a batch by time, then by arrival.
    fn sorted(columns: Arc<[ColumnData]>, times: &[i64]) -> Self {
        let mut order: Vec<(i64, usize)> = times.iter().copied().zip(0..).collect();
        order.sort_by_key(|&(ts, _)| ts);
        let mut positions: Vec<Range<usize>> = Vec::with_capacity(order.len());
        for &(_, row) in &order {
            match positions.last_mut() {
                Some(last) if last.end == row => last.end += 1,
                _ => positions.push(row..row + 1),
            }
        }
        let times: Vec<i64> = order.into_iter().map(|(ts, _)| ts).collect();
        Self { columns, ranges: positions, rows: times.len(), times: times.into() }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the last timestamp, or the smallest integer without a designated timestamp.
    pub(crate) fn newest(&self) -> i64 {
        self.times.last().copied().unwrap_or(i64::MIN)
    }

    /// Size in memory, in bytes. Includes the batch's other rows, which are retained together with
    /// these rows.
    pub(crate) fn memory_bytes(&self) -> usize {
        let cells = self.columns.iter().map(ColumnData::byte_size).sum::<usize>();
        // With a single range, the timestamps share the memory of the timestamp column.
        let own = if self.ranges.len() > 1 { self.rows } else { 0 };
        cells + size_of_val(&self.ranges[..]) + own * size_of::<i64>()
    }

    /// Splits the rows by partition. Copies nothing.
    pub(crate) fn by_partition(self, schema: &TableSchema) -> Vec<(i64, Self)> {
        let times = schema.timestamp.map(|_| &self.times[..]);
        let cuts = partition_rows(schema, times, self.rows);
        if let [(floor, _)] = cuts[..] {
            return vec![(floor, self)];
        }
        let mut walk = Walk::of(&self);
        cuts.into_iter().map(|(floor, rows)| (floor, self.subset(&mut walk, rows))).collect()
    }

    /// Splits the rows into those before timestamp `from` and those at or after it. Copies nothing.
    pub(crate) fn split(&self, from: i64) -> [Self; 2] {
        let cut = self.times.partition_point(|&ts| ts < from);
        let mut walk = Walk::of(self);
        [0..cut, cut..self.rows].map(|rows| self.subset(&mut walk, rows))
    }

    fn subset(&self, walk: &mut Walk<'_>, rows: Range<usize>) -> Self {
        let mut positions = Vec::new();
        walk.visit(rows.clone(), |range| positions.push(range));
        let times = if self.times.is_empty() {
            ScalarBuffer::default()
        } else {
            self.times.slice(rows.start, rows.len())
        };
        let columns = Arc::clone(&self.columns);
        Self { columns, ranges: positions, times, rows: rows.len() }
    }
}

/// A single forward pass over the row positions.
struct Walk<'a> {
    ranges: std::slice::Iter<'a, Range<usize>>,
    /// Remainder of the current range.
    current: Range<usize>,
    /// Number of rows before the current range.
    passed: usize,
}

impl<'a> Walk<'a> {
    fn of(rows: &'a StagedRows) -> Self {
        Self { ranges: rows.ranges.iter(), current: 0..0, passed: 0 }
    }

    /// Calls `sink` with the positions of these rows, none of which may have been visited before.
    fn visit(&mut self, rows: Range<usize>, mut sink: impl FnMut(Range<usize>)) {
        while self.passed < rows.end {
            if self.current.is_empty() {
                let Some(next) = self.ranges.next() else { return };
                self.current = next.clone();
            }
            let is_included = self.passed >= rows.start;
            let until = if is_included { rows.end } else { rows.start };
            let count = self.current.len().min(until - self.passed);
            let start = self.current.start;
            self.current.start += count;
            self.passed += count;
            if is_included {
                sink(start..start + count);
            }
        }
    }
}

/// Returns the order of all rows to keep. Row numbers are relative to their source, and sources are
/// in arrival order.
pub(crate) fn common_order(
    sources: &[StagedRows],
    schema: &TableSchema,
    keys: Option<&Arc<UpsertKeys>>,
) -> EngineResult<Vec<SourceRange>> {
    if schema.timestamp.is_none() {
        let whole =
            |(source, rows): (usize, &StagedRows)| SourceRange { source, start: 0, len: rows.rows };
        return Ok(sources.iter().enumerate().map(whole).collect());
    }
    let timed: Vec<_> =
        sources.iter().map(|rows| upsert::Source { times: &rows.times, upsert: keys }).collect();
    upsert_order(&timed, &|index, key| {
        let rows = &sources[index];
        let position = schema.columns.iter().position(|column| column.id == key.id);
        let cells = position.map(|position| &rows.columns[position]);
        let Some(cells) = cells else { return ColumnData::nulls(key.sql_type, rows.rows) };
        match &rows.ranges[..] {
            [range] => Ok(cells.slice(range.start, range.len())),
            ranges => {
                let order = ranges.iter();
                let order = order.map(|p| SourceRange { source: 0, start: p.start, len: p.len() });
                let order: Vec<_> = order.collect();
                ColumnData::gather(key.sql_type, std::slice::from_ref(cells), &order)
            }
        }
    })
}

/// Converts a row order to cell positions, one portion at a time.
pub(crate) struct Placing<'a> {
    sources: &'a [StagedRows],
    walks: Vec<Walk<'a>>,
}

impl<'a> Placing<'a> {
    pub(crate) fn of(sources: &'a [StagedRows]) -> Self {
        Self { sources, walks: sources.iter().map(Walk::of).collect() }
    }

    /// Returns the positions of the next rows in the order, with their first and last timestamps.
    /// Both timestamps are zero without a designated timestamp.
    pub(crate) fn next(&mut self, order: &[SourceRange]) -> (Vec<SourceRange>, (i64, i64)) {
        let mut ranges: Vec<SourceRange> = Vec::with_capacity(order.len());
        for &SourceRange { source, start, len } in order {
            self.walks[source].visit(start..start + len, |range| {
                ranges.push(SourceRange { source, start: range.start, len: range.len() });
            });
        }
        let time = |source: usize, row: usize| self.sources[source].times.get(row).copied();
        let first = order.first().and_then(|s| time(s.source, s.start));
        let last = order.last().and_then(|s| time(s.source, s.start + s.len - 1));
        (ranges, (first.unwrap_or(0), last.unwrap_or(0)))
    }
}

/// Copies the rows to keep from several sources so that the memory of their batches can be freed.
pub(crate) fn copied(
    sources: &[StagedRows],
    schema: &TableSchema,
    keys: Option<&Arc<UpsertKeys>>,
) -> EngineResult<StagedRows> {
    let order = common_order(sources, schema, keys)?;
    let (ranges, _) = Placing::of(sources).next(&order);
    let batches: Vec<&[ColumnData]> = sources.iter().map(|rows| &*rows.columns).collect();
    let columns = gathered(schema, &batches, &ranges)?;
    let rows = order.iter().map(|range| range.len).sum();
    let times: Vec<&[i64]> = sources.iter().map(|rows| &rows.times[..]).collect();
    let times = schema.timestamp.map(|_| gather(&times, &order).into()).unwrap_or_default();
    Ok(StagedRows::in_order(columns, rows, times))
}
