//! DELETE: rows that go.
//!
//! Like new cells, the log names them by their places in their partition's order of time and
//! arrival. A run in memory is made anew without them; a segment keeps its file and a list of
//! [`DeadRows`], which readers pass over and the next checkpoint leaves out.

use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::log::codec::{Decoder, Encoder};
use crate::mutation::prepare::no_such_table;
use crate::mutation::retire::take_attached;
use crate::mutation::update::{address, by_partition, hits, same_rows};
use crate::segment::Segment;
use crate::segment::column::{self, ColumnData};
use crate::segment::patch::Placed;
use crate::snapshot::Snapshot;
use crate::state::{ApplyContext, put_table, table_of};
use crate::table::TableSnapshot;
use crate::table::merge::Stretch;
use crate::table::partition::Partition;
use crate::table::piece::{Piece, Run};
use crate::table::schema::{ColumnSchema, TableId};

/// Deleted rows of a segment are few below one part in so many of its rows.
const FEW_SHARE: u64 = 32;

/// Rows of a table that go.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The table as the rows were found in it. When rows came or went since, the commit fails
    /// with `Replan`: find them again. [`Storage::hold_writes`](crate::Storage::hold_writes)
    /// keeps that from happening.
    pub base: Arc<TableSnapshot>,
    /// The rows, by their identifiers in `base` ([`Slice::row_ids`](crate::Slice::row_ids)),
    /// ascending.
    pub rows: Vec<i64>,
}

/// Rows of one partition that go: its first instant; first row and number of rows, counted in
/// the partition's order.
pub(crate) type DeletePart = (i64, Vec<(u64, u64)>);

/// A deletion as the log holds it.
#[derive(Debug)]
pub(crate) struct DeleteOp {
    pub(crate) table: TableId,
    pub(crate) parts: Vec<DeletePart>,
}

/// Rows of a segment's file that are there no more.
#[derive(Debug)]
pub(crate) struct DeadRows {
    /// Ascending, disjoint, and apart from each other.
    rows: Vec<Range<usize>>,
    count: usize,
    /// First and last timestamp of the rows that live; zeros without a designated timestamp.
    bounds: (i64, i64),
}

impl DeadRows {
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn bounds(&self) -> (i64, i64) {
        self.bounds
    }

    /// As a manifest holds them.
    pub(crate) fn encode(&self, out: &mut Encoder) {
        out.i64(self.bounds.0);
        out.i64(self.bounds.1);
        out.u32(self.rows.len() as u32);
        for rows in &self.rows {
            out.u64(rows.start as u64);
            out.u64(rows.len() as u64);
        }
    }

    /// Fails where these are not rows of a file with so many, or all of them.
    pub(crate) fn decode(input: &mut Decoder<'_>, file_rows: u64) -> EngineResult<Self> {
        let wrong = || EngineError::internal("deleted rows that the segment has not");
        let bounds = (input.i64()?, input.i64()?);
        let (mut rows, mut count, mut end) = (Vec::new(), 0, 0);
        for index in 0..input.u32()? {
            let (start, len) = (input.u64()?, input.u64()?);
            let apart = index == 0 || start > end;
            let until = start.checked_add(len).filter(|&end| len > 0 && end <= file_rows);
            end = until.filter(|_| apart).ok_or_else(wrong)?;
            rows.push(start as usize..end as usize);
            count += len as usize;
        }
        if rows.is_empty() || count as u64 == file_rows {
            return Err(wrong());
        }
        Ok(Self { rows, count, bounds })
    }

    /// Adds the living rows of a stretch to an order.
    fn add_living(&self, stretch: Stretch, order: &mut Vec<Stretch>) {
        let end = stretch.start + stretch.len;
        let mut start = stretch.start;
        let first = self.rows.partition_point(|dead| dead.end <= start);
        for dead in self.rows[first..].iter().take_while(|dead| dead.start < end) {
            if dead.start > start {
                order.push(Stretch { start, len: dead.start - start, ..stretch });
            }
            start = dead.end;
        }
        if start < end {
            order.push(Stretch { start, len: end - start, ..stretch });
        }
    }
}

/// Takes the dead rows of `pieces` out of an order.
pub(crate) fn living(order: Vec<Stretch>, pieces: &[Piece]) -> Vec<Stretch> {
    if pieces.iter().all(|piece| piece.dead().is_none()) {
        return order;
    }
    let mut living = Vec::with_capacity(order.len());
    for stretch in order {
        match pieces[stretch.source].dead() {
            Some(dead) => dead.add_living(stretch, &mut living),
            None => living.push(stretch),
        }
    }
    living
}

/// Refuses a deletion whose rows are not where they were found.
pub(crate) fn resolve_delete(snapshot: &Snapshot, delete: &Delete) -> EngineResult<DeleteOp> {
    let id = delete.base.schema().id;
    let found = snapshot.table_by_id(id).ok_or_else(|| no_such_table(id))?;
    if !delete.rows.is_sorted_by(|a, b| a < b) {
        return Err(EngineError::internal("a deletion out of order"));
    }
    if !same_rows(&delete.base, &found) {
        let message = format!("table '{}' was changed", found.schema().name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    let parts = by_partition(&delete.base, &delete.rows)?;
    Ok(DeleteOp { table: id, parts: parts.map(|part| (part.floor, part.rows)).collect() })
}

pub(crate) fn apply_delete(
    snapshot: &mut Snapshot,
    delete: &DeleteOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, delete.table)?;
    let head = Arc::clone(&table.head);
    for (floor, rows) in &delete.parts {
        let partition = table.partition(*floor);
        let partition = partition.ok_or_else(|| EngineError::internal("no such partition"))?;
        let new = if partition.upserts() {
            // A row that goes must not bring back those it replaced.
            let resolved = partition.resolved(&head.schema)?;
            without(&resolved, head.schema.timestamp_column(), rows, context.lsn)?
        } else {
            without(partition, head.schema.timestamp_column(), rows, context.lsn)?
        };
        let kept: Vec<_> = new.files().collect();
        let gone = |file: &Arc<_>| !kept.iter().any(|other| Arc::ptr_eq(other, file));
        context.removed.extend(partition.files().filter(gone));
        context.owed.dead_bytes += dead_bytes(&new).saturating_sub(dead_bytes(partition));
        table.rows = table.rows - partition.rows() + new.rows();
        if new.rows() == 0 {
            take_attached(&mut table, *floor);
        } else {
            table.hot.insert(*floor, Arc::new(new));
        }
    }
    put_table(snapshot, table);
    Ok(())
}

/// What the deleted rows take in the partition's files, by their share of the rows. A segment with
/// few of them is not worth to be written again for it.
fn dead_bytes(partition: &Partition) -> u64 {
    let of = |segment: &Arc<Segment>| {
        let (rows, dead) = (segment.rows() as u64, segment.dead()?.count() as u64);
        (dead * FEW_SHARE >= rows).then_some(segment.meta.file_len / rows.max(1) * dead)
    };
    partition.segments.iter().filter_map(of).sum()
}

/// The partition without these rows, as the transaction `lsn` leaves it.
fn without(
    partition: &Partition,
    timestamp: Option<&ColumnSchema>,
    rows: &[(u64, u64)],
    lsn: u64,
) -> EngineResult<Partition> {
    let view = partition.view(timestamp)?;
    let hits = hits(&view, rows)?;
    let mut segments = Vec::with_capacity(partition.segments.len());
    for segment in &partition.segments {
        match hits.get(&address(&Piece::Segment(Arc::clone(segment)))) {
            Some(placed) => segments.extend(smaller_segment(segment, placed, timestamp)?),
            None => segments.push(Arc::clone(segment)),
        }
    }
    let mut runs = Vec::with_capacity(partition.runs.len());
    for run in &partition.runs {
        match hits.get(&address(&Piece::Run(Arc::clone(run)))) {
            Some(placed) => runs.extend(smaller_run(run, placed, timestamp)?),
            None => runs.push(Arc::clone(run)),
        }
    }
    Ok(Partition::new(segments, runs, lsn))
}

/// The segment without these rows; `None` when it has no other.
fn smaller_segment(
    segment: &Arc<Segment>,
    placed: &[Placed],
    timestamp: Option<&ColumnSchema>,
) -> EngineResult<Option<Arc<Segment>>> {
    let mut rows: Vec<Range<usize>> =
        segment.dead().map(|dead| dead.rows.clone()).unwrap_or_default();
    rows.extend(placed.iter().map(|placed| placed.row..placed.row + placed.len));
    let rows = united(rows);
    let count = rows.iter().map(Range::len).sum();
    if count == segment.rows() {
        return Ok(None);
    }
    let first = rows.first().filter(|dead| dead.start == 0).map_or(0, |dead| dead.end);
    let last = rows.last().filter(|dead| dead.end == segment.rows());
    let last = last.map_or(segment.rows(), |dead| dead.start) - 1;
    let bounds = match timestamp {
        Some(timestamp) => {
            let times = column::timestamps(segment.column(timestamp)?.array())?;
            (times[first], times[last])
        }
        None => (0, 0),
    };
    Ok(Some(Arc::new(segment.with_dead(DeadRows { rows, count, bounds }))))
}

/// The ranges in order, those that touch put together.
fn united(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut united: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match united.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => united.push(range),
        }
    }
    united
}

/// The run without these rows; `None` when it has no other.
fn smaller_run(
    run: &Run,
    placed: &[Placed],
    timestamp: Option<&ColumnSchema>,
) -> EngineResult<Option<Arc<Run>>> {
    let dead = united(placed.iter().map(|placed| placed.row..placed.row + placed.len).collect());
    let dead = DeadRows { count: dead.iter().map(Range::len).sum(), rows: dead, bounds: (0, 0) };
    let mut order = Vec::new();
    dead.add_living(Stretch { source: 0, start: 0, len: run.rows }, &mut order);
    let (Some(first), Some(last)) = (order.first(), order.last()) else { return Ok(None) };
    let bounds = match timestamp {
        Some(timestamp) => {
            let times = column::timestamps(run.column(timestamp)?.array())?;
            (times[first.start], times[last.start + last.len - 1])
        }
        None => (0, 0),
    };
    let mut columns = Vec::with_capacity(run.columns.len());
    for (id, sql_type, cells) in &run.columns {
        let cells = ColumnData::gather(*sql_type, std::slice::from_ref(cells), &order)?;
        columns.push((*id, *sql_type, cells));
    }
    let (rows, last_lsn, upsert) = (run.rows - dead.count, run.last_lsn, run.upsert.clone());
    Ok(Some(Arc::new(Run { rows, columns, bounds, last_lsn, upsert })))
}

/// What a manifest says of a segment's deleted rows; its partition was read before.
pub(crate) fn read_dead_rows(
    snapshot: &mut Snapshot,
    detached: bool,
    input: &mut Decoder<'_>,
) -> EngineResult<()> {
    let (id, floor, index) = (input.u64()?, input.i64()?, input.u32()? as usize);
    let mut table = table_of(snapshot, id)?;
    let place = if detached { &mut table.detached } else { &mut table.cold };
    let partition = Arc::make_mut(place).get_mut(&floor);
    let partition = partition.filter(|partition| index < partition.segments.len());
    let partition = partition.ok_or_else(|| EngineError::internal("deleted rows of no segment"))?;
    let mut segments = partition.segments.clone();
    let dead = DeadRows::decode(input, segments[index].meta.rows)?;
    if !detached {
        table.rows -= dead.count() as u64;
    }
    segments[index] = Arc::new(segments[index].with_dead(dead));
    *partition = Arc::new(Partition::new(segments, Vec::new(), 0));
    put_table(snapshot, table);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn living_rows_are_those_that_are_not_dead() {
        let mut seed = 5_u64;
        let mut random = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % bound) as usize
        };
        for _ in 0..1_000 {
            let mut ranges = Vec::new();
            for _ in 0..random(6) {
                let start = random(40);
                ranges.push(start..start + 1 + random(6));
            }
            let is_dead = |row: usize| ranges.iter().any(|range| range.contains(&row));
            let rows = united(ranges.clone());
            let dead = DeadRows { count: rows.iter().map(Range::len).sum(), rows, bounds: (0, 0) };
            assert_eq!(dead.count(), (0..60).filter(|row| is_dead(*row)).count());
            let (start, len) = (random(20), random(40));
            let mut order = Vec::new();
            dead.add_living(Stretch { source: 0, start, len }, &mut order);
            let found: Vec<usize> = order.iter().flat_map(|s| s.start..s.start + s.len).collect();
            let expected: Vec<usize> = (start..start + len).filter(|row| !is_dead(*row)).collect();
            assert_eq!(found, expected, "{ranges:?}");
            assert!(order.iter().all(|stretch| stretch.len > 0));
        }
    }
}
