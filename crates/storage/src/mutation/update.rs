//! UPDATE: new cells for existing rows.
//!
//! The log identifies a row by its position in the partition, ordered by time and then by arrival.
//! That position does not depend on the layout of rows in runs and segments. Replay therefore finds
//! the same rows, regardless of which segments checkpoints have merged. A run with new cells is
//! replaced with a new run in memory. A segment receives one [`Patch`] per column, which the next
//! checkpoint writes out with the segment.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType};

use crate::mutation::cells::check_type;
use crate::options::StorageOptions;
use crate::segment::Segment;
use crate::segment::column::ColumnData;
use crate::segment::patch::{Patch, Placed, patched};
use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::{ApplyContext, grow_symbols, new_symbols};
use crate::table::merge::SourceRange;
use crate::table::partition::{Fragment, Partition};
use crate::table::row_source::{RowSource, Run};
use crate::table::schema::{ColumnSchema, TableId};
use crate::table::symbols::NewSymbols;
use crate::table::{TableSnapshot, row_position};

/// New cells for some rows of a table.
#[derive(Debug, Clone)]
pub struct Update {
    /// The table in which the rows were found. If rows have been added or removed since then, the
    /// commit fails with `Replan`, and the rows must be found again.
    /// [`Storage::lock_writes`](crate::Storage::lock_writes) prevents that.
    pub base: Arc<TableSnapshot>,
    /// Version of the definition that `columns` refer to.
    pub schema_version: u64,
    /// Positions of the changed columns in that definition.
    pub columns: Vec<usize>,
    /// Identifiers of the rows in `base` ([`Slice::row_ids`](crate::Slice::row_ids)), ascending.
    pub rows: Vec<i64>,
    /// New cells of each column, one per row.
    pub values: Vec<ArrayRef>,
}

/// An update in its logged form.
#[derive(Debug)]
pub(crate) struct UpdateOp {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    pub(crate) partitions: Vec<UpdatedCells>,
}

/// New cells in one partition.
#[derive(Debug)]
pub(crate) struct UpdatedCells {
    pub(crate) floor: i64,
    /// First row and row count of each range, in the partition's row order.
    pub(crate) rows: Vec<(u64, u64)>,
    pub(crate) columns: Vec<(u32, SqlType, ColumnData)>,
}

impl UpdatedCells {
    pub(crate) fn row_count(&self) -> usize {
        self.rows.iter().map(|(_, len)| *len as usize).sum()
    }
}

/// Refuses an update that does not match the definition.
pub(crate) fn check(
    columns: &[ColumnSchema],
    update: &Update,
    options: &StorageOptions,
) -> EngineResult<()> {
    let ascending = update.rows.is_sorted_by(|a, b| a < b);
    if !ascending || update.columns.len() != update.values.len() {
        return Err(EngineError::internal("the rows of an update are not in ascending order"));
    }
    for (&index, values) in update.columns.iter().zip(&update.values) {
        let column = columns.get(index);
        let column = column.ok_or_else(|| EngineError::internal(format!("no column {index}")))?;
        check_type(column, values, options)?;
        if values.len() != update.rows.len() {
            return Err(EngineError::internal("the values of an update do not match its rows"));
        }
    }
    Ok(())
}

/// Whether both snapshots have the same rows, with the same cells, at the same positions.
pub(crate) fn same_rows(base: &TableSnapshot, now: &TableSnapshot) -> bool {
    let (base, now) = (base.partitions(), now.partitions());
    base.len() == now.len()
        && base.iter().zip(now.iter()).all(|(a, b)| a.0 == b.0 && a.1.changed == b.1.changed)
}

pub(crate) fn resolve_update(snapshot: &Snapshot, update: &Update) -> EngineResult<UpdateOp> {
    let id = update.base.schema().id;
    let found = snapshot.table_by_id(id).ok_or_else(|| no_such_table(id))?;
    let schema = found.schema();
    if schema.version != update.schema_version || !same_rows(&update.base, &found) {
        let message = format!("table '{}' changed concurrently", schema.name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    let mut symbols = Vec::new();
    let mut columns = Vec::with_capacity(update.columns.len());
    for (&index, array) in update.columns.iter().zip(&update.values) {
        let column = &schema.columns[index];
        let array = crate::segment::column::without_nulls(column.sql_type, array);
        let cells = match found.head.symbols.get(&column.id) {
            Some(dictionary) => {
                let keys = ColumnData::keys(dictionary.store().intern_column(&array)?)?;
                if let ColumnData::Keys(checked) = &keys {
                    let store = dictionary.store();
                    symbols.extend(new_symbols(column.id, dictionary, store, checked.max_key()));
                }
                keys
            }
            None => ColumnData::new(column.sql_type, array)?,
        };
        columns.push((column.id, column.sql_type, cells));
    }
    let partitions = by_partition(&update.base, &update.rows)?.map(|partition| {
        let cells = |(id, sql_type, cells): &(u32, SqlType, ColumnData)| {
            (*id, *sql_type, cells.slice(partition.found.start, partition.found.len()))
        };
        let columns = columns.iter().map(cells).collect();
        UpdatedCells { floor: partition.floor, rows: partition.rows, columns }
    });
    Ok(UpdateOp { table: id, symbols, partitions: partitions.collect() })
}

/// A change's rows in one partition.
pub(crate) struct PartitionRows {
    pub(crate) floor: i64,
    /// Range of these rows in the change's row list.
    found: Range<usize>,
    /// First row and row count of each range, in the partition's row order.
    pub(crate) rows: Vec<(u64, u64)>,
}

/// Splits ascending row identifiers of `base` by partition.
pub(crate) fn by_partition(
    base: &TableSnapshot,
    rows: &[i64],
) -> EngineResult<impl Iterator<Item = PartitionRows>> {
    let partitions = base.partitions();
    let mut split = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let (ordinal, _) = row_position(rows[start]);
        let len = rows[start..].partition_point(|&row| row_position(row).0 == ordinal);
        let partition = partitions.get(ordinal);
        let (floor, _) = partition.ok_or_else(|| EngineError::internal("no such row"))?;
        let found = start..start + len;
        let positions = rows[found.clone()].iter().map(|&row| row_position(row).1);
        split.push(PartitionRows { floor: *floor, rows: row_ranges(positions), found });
        start += len;
    }
    Ok(split.into_iter())
}

/// Combines consecutive rows into ranges.
pub(crate) fn row_ranges(rows: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for row in rows {
        match ranges.last_mut() {
            Some((start, len)) if *start + *len == row => *len += 1,
            _ => ranges.push((row, 1)),
        }
    }
    ranges
}

pub(crate) fn apply_update(
    snapshot: &mut Snapshot,
    update: &UpdateOp,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, update.table)?;
    grow_symbols(&mut table, &update.symbols)?;
    let head = Arc::clone(&table.head);
    for part in &update.partitions {
        let partition = table.partition(part.floor);
        let partition = partition.ok_or_else(|| EngineError::internal("no such partition"))?;
        let timestamp = head.schema.timestamp_column();
        let patched = patched_bytes(partition);
        let new = if part.columns.iter().any(|(id, ..)| partition.upserts_by(*id)) {
            // The key columns are about to change. Rows that the old keys replaced must not
            // reappear.
            let resolved = partition.resolved(&head.schema)?;
            let retained: Vec<_> = resolved.files().collect();
            let removed = |file: &Arc<_>| !retained.iter().any(|other| Arc::ptr_eq(other, file));
            context.removed.extend(partition.files().filter(removed));
            table.rows = table.rows - partition.rows() + resolved.rows();
            updated(&resolved, timestamp, part, context.lsn)?
        } else {
            updated(partition, timestamp, part, context.lsn)?
        };
        context.pending_rewrites.rewrite_bytes += patched_bytes(&new).saturating_sub(patched);
        table.hot.insert(part.floor, Arc::new(new));
    }
    put_table(snapshot, table);
    Ok(())
}

/// Returns the number of bytes in the partition's files that a checkpoint must rewrite.
fn patched_bytes(partition: &Partition) -> u64 {
    let patched = partition.segments.iter().filter(|segment| segment.is_patched());
    patched.map(|segment| segment.meta.file_len).sum()
}

/// Identifies a run or segment while its partition is changed.
pub(crate) fn address(source: &RowSource) -> usize {
    match source {
        RowSource::Run(run) => Arc::as_ptr(run) as usize,
        RowSource::Segment(segment) => Arc::as_ptr(segment) as usize,
        RowSource::Merged(merged) => Arc::as_ptr(merged) as usize,
    }
}

/// Returns the partition with new cells, as of transaction `lsn`.
pub(crate) fn updated(
    partition: &Partition,
    timestamp: Option<&ColumnSchema>,
    part: &UpdatedCells,
    lsn: u64,
) -> EngineResult<Partition> {
    let view = partition.view(timestamp)?;
    let hits = hits(&view, &part.rows)?;
    let mut new = Vec::with_capacity(partition.segments.len());
    for segment in &partition.segments {
        new.push(match hits.get(&(Arc::as_ptr(segment) as usize)) {
            Some(placed) => patched_segment(segment, placed, part)?,
            None => Arc::clone(segment),
        });
    }
    let mut runs = Vec::with_capacity(partition.runs.len());
    for run in &partition.runs {
        runs.push(match hits.get(&(Arc::as_ptr(run) as usize)) {
            Some(placed) => Arc::new(patched_run(run, placed, part)?),
            None => Arc::clone(run),
        });
    }
    Ok(Partition::new(new, runs, lsn))
}

/// Maps new cells to rows of runs and segments.
pub(crate) fn hits(
    view: &[Fragment],
    rows: &[(u64, u64)],
) -> EngineResult<BTreeMap<usize, Vec<Placed>>> {
    let mut hits: BTreeMap<usize, Vec<Placed>> = BTreeMap::new();
    let mut required = rows.iter().map(|&(start, len)| (start as usize, len as usize));
    let mut next = required.next();
    let (mut start, mut cell) = (0, 0);
    let mut visit = |address: usize, first: usize, len: usize| {
        let end = start + len;
        while let Some((row, count)) = next
            && row < end
        {
            let step = count.min(end - row);
            let placed = Placed { row: first + (row - start), len: step, cell };
            hits.entry(address).or_default().push(placed);
            cell += step;
            next = if step < count { Some((row + step, count - step)) } else { required.next() };
        }
        start = end;
    };
    for fragment in view {
        let (from, len) = (fragment.rows.start, fragment.rows.len());
        match &fragment.source {
            RowSource::Merged(merged) => {
                for (source, range) in merged.origins(from, len) {
                    visit(address(source), range.start, range.len);
                }
            }
            piece => visit(address(piece), from, len),
        }
    }
    match next {
        None => Ok(hits),
        Some((row, _)) => Err(EngineError::internal(format!("the partition has no row {row}"))),
    }
}

/// Selects a single run's or segment's cells from the partition's cells.
fn own_cells(
    sql_type: SqlType,
    cells: &ColumnData,
    placed: &[Placed],
) -> EngineResult<(Vec<Placed>, ColumnData)> {
    if let [single] = placed {
        let cells = cells.slice(single.cell, single.len);
        return Ok((vec![Placed { cell: 0, ..*single }], cells));
    }
    let mut count = 0;
    let mut own = Vec::with_capacity(placed.len());
    let mut order = Vec::with_capacity(placed.len());
    for placed in placed {
        order.push(SourceRange { source: 0, start: placed.cell, len: placed.len });
        own.push(Placed { cell: count, ..*placed });
        count += placed.len;
    }
    Ok((own, ColumnData::gather(sql_type, std::slice::from_ref(cells), &order)?))
}

fn patched_segment(
    segment: &Segment,
    placed: &[Placed],
    partition: &UpdatedCells,
) -> EngineResult<Arc<Segment>> {
    let mut patches = Vec::with_capacity(partition.columns.len());
    for (id, sql_type, cells) in &partition.columns {
        let (placed, cells) = own_cells(*sql_type, cells, placed)?;
        patches.push((*id, Patch::new(*sql_type, placed, cells)));
    }
    segment.with_patches(patches).map(Arc::new)
}

fn patched_run(run: &Run, placed: &[Placed], partition: &UpdatedCells) -> EngineResult<Run> {
    let mut columns = run.columns.clone();
    for (id, sql_type, cells) in &partition.columns {
        let old = match columns.iter().find(|(other, ..)| other == id) {
            Some((_, _, old)) => old.clone(),
            None => ColumnData::nulls(*sql_type, run.rows)?,
        };
        columns.retain(|(other, ..)| other != id);
        columns.push((*id, *sql_type, patched(*sql_type, &old, placed, cells)?));
    }
    let upsert = run.upsert.clone();
    Ok(Run { rows: run.rows, columns, bounds: run.bounds, last_lsn: run.last_lsn, upsert })
}
