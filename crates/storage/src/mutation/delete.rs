//! DELETE: removes rows.
//!
//! As in an UPDATE, the log identifies rows by position in the partition, ordered by time and then
//! by arrival. An in-memory run is rebuilt without the deleted rows. A segment keeps its file and
//! receives a list of [`DeadRows`], which readers skip and the next checkpoint omits.

use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::log::codec::Decoder;
use crate::mutation::retire::take_attached;
use crate::mutation::update::{address, by_partition, hits, same_rows};
use crate::segment::Segment;
use crate::segment::column::{self, ColumnData};
use crate::segment::dead_rows::{DeadRows, united};
use crate::segment::patch::Placed;
use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::ApplyContext;
use crate::table::merge::SourceRange;
use crate::table::partition::Partition;
use crate::table::row_source::{RowSource, Run};
use crate::table::schema::{ColumnSchema, TableId};
use crate::table::time_range::TimeRange;
use crate::table::{TableSnapshot, row_position};

/// A segment is rewritten only if at least one row in this many has been deleted.
const MIN_DELETED_DIVISOR: u64 = 32;

/// Rows of a table to delete.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The table in which the rows were found. If rows have been added or removed since then, the
    /// commit fails with `Replan`, and the rows must be found again.
    /// [`Storage::lock_writes`](crate::Storage::lock_writes) prevents that.
    pub base: Arc<TableSnapshot>,
    /// Identifiers of the rows in `base` ([`Slice::row_ids`](crate::Slice::row_ids)), ascending.
    pub rows: Vec<i64>,
}

/// Deleted rows of one partition: the partition's start timestamp, then the first row and row count
/// of each range in the partition's row order.
pub(crate) type DeletedRows = (i64, Vec<(u64, u64)>);

/// A deletion in its logged form.
#[derive(Debug)]
pub(crate) struct DeleteOp {
    pub(crate) table: TableId,
    pub(crate) partitions: Vec<DeletedRows>,
}

/// Refuses a deletion whose rows have moved since they were found.
pub(crate) fn resolve_delete(snapshot: &Snapshot, delete: &Delete) -> EngineResult<DeleteOp> {
    let id = delete.base.schema().id;
    let found = snapshot.table_by_id(id).ok_or_else(|| no_such_table(id))?;
    if !delete.rows.is_sorted_by(|a, b| a < b) {
        return Err(EngineError::internal("the rows of a deletion are not in ascending order"));
    }
    if !same_rows(&delete.base, &found) {
        let message = format!("table '{}' changed concurrently", found.schema().name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    let partitions = by_partition(&delete.base, &delete.rows)?;
    Ok(DeleteOp {
        table: id,
        partitions: partitions.map(|partition| (partition.floor, partition.rows)).collect(),
    })
}

/// Finds the rows in the time ranges.
pub(crate) fn resolve_clear(
    snapshot: &Snapshot,
    table: TableId,
    ranges: &[TimeRange],
) -> EngineResult<DeleteOp> {
    let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
    let partitions = found.partitions();
    let mut by_partition: Vec<DeletedRows> = Vec::new();
    for slice in found.slices_in(ranges)? {
        let (ordinal, row) = row_position(slice.first_row());
        let (floor, _) = partitions[ordinal];
        let len = slice.rows() as u64;
        match by_partition.last_mut().filter(|(known, _)| *known == floor) {
            Some((_, rows)) => match rows.last_mut() {
                Some((start, count)) if *start + *count == row => *count += len,
                _ => rows.push((row, len)),
            },
            None => by_partition.push((floor, vec![(row, len)])),
        }
    }
    Ok(DeleteOp { table, partitions: by_partition })
}

pub(crate) fn apply_delete(
    snapshot: &mut Snapshot,
    delete: &DeleteOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, delete.table)?;
    let head = Arc::clone(&table.head);
    for (floor, rows) in &delete.partitions {
        let partition = table.partition(*floor);
        let partition = partition.ok_or_else(|| EngineError::internal("no such partition"))?;
        let new = if partition.upserts() {
            // Rows that a deleted row had replaced must not reappear.
            let resolved = partition.resolved(&head.schema)?;
            without(&resolved, head.schema.timestamp_column(), rows, context.lsn)?
        } else {
            without(partition, head.schema.timestamp_column(), rows, context.lsn)?
        };
        let retained: Vec<_> = new.files().collect();
        let removed = |file: &Arc<_>| !retained.iter().any(|other| Arc::ptr_eq(other, file));
        context.removed.extend(partition.files().filter(removed));
        context.pending_rewrites.dead_bytes +=
            dead_bytes(&new).saturating_sub(dead_bytes(partition));
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

/// Estimates the size of deleted rows in the partition's files, in proportion to the row count.
/// Omits segments with few deleted rows, which are not worth rewriting.
fn dead_bytes(partition: &Partition) -> u64 {
    let of = |segment: &Arc<Segment>| {
        let (rows, dead) = (segment.rows() as u64, segment.dead()?.count() as u64);
        (dead * MIN_DELETED_DIVISOR >= rows).then_some(segment.meta.file_len / rows.max(1) * dead)
    };
    partition.segments.iter().filter_map(of).sum()
}

/// Returns the partition without these rows, as of transaction `lsn`.
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
        match hits.get(&address(&RowSource::Segment(Arc::clone(segment)))) {
            Some(placed) => segments.extend(smaller_segment(segment, placed, timestamp)?),
            None => segments.push(Arc::clone(segment)),
        }
    }
    let mut runs = Vec::with_capacity(partition.runs.len());
    for run in &partition.runs {
        match hits.get(&address(&RowSource::Run(Arc::clone(run)))) {
            Some(placed) => runs.extend(smaller_run(run, placed, timestamp)?),
            None => runs.push(Arc::clone(run)),
        }
    }
    Ok(Partition::new(segments, runs, lsn))
}

/// Returns the segment without these rows; `None` if no row remains.
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

/// Returns the run without these rows; `None` if no row remains.
fn smaller_run(
    run: &Run,
    placed: &[Placed],
    timestamp: Option<&ColumnSchema>,
) -> EngineResult<Option<Arc<Run>>> {
    let dead = united(placed.iter().map(|placed| placed.row..placed.row + placed.len).collect());
    let dead = DeadRows { count: dead.iter().map(Range::len).sum(), rows: dead, bounds: (0, 0) };
    let mut order = Vec::new();
    dead.add_living(SourceRange { source: 0, start: 0, len: run.rows }, &mut order);
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

/// Reads a segment's deleted rows from a manifest, after its partition.
pub(crate) fn read_dead_rows(
    snapshot: &mut Snapshot,
    detached: bool,
    input: &mut Decoder<'_>,
) -> EngineResult<()> {
    let (id, floor, index) = (input.u64()?, input.i64()?, input.u32()? as usize);
    let mut table = table_of(snapshot, id)?;
    let partitions = if detached { &mut table.detached } else { &mut table.cold };
    let partition = Arc::make_mut(partitions).get_mut(&floor);
    let partition = partition.filter(|partition| index < partition.segments.len());
    let partition = partition
        .ok_or_else(|| EngineError::internal("deleted rows refer to an unknown segment"))?;
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
