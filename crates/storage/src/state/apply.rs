//! Applies steps to a snapshot, and enforces limits.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, SqlType, identifier};

use crate::disk::layout::table_dir;
use crate::limits::{check_columns, refuse};
use crate::mutation::convert::apply_convert;
use crate::mutation::delete::apply_delete;
use crate::mutation::retire::apply_partitions;
use crate::mutation::skip::apply_skip;
use crate::mutation::update::apply_update;
use crate::options::StorageOptions;
use crate::segment::column::{self, ColumnData};
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::{Snapshot, no_such_table, put_table, table_of};
use crate::state::context::{ApplyContext, grow_symbols, head_of};
use crate::state::op::{Adopt, Append, Op};
use crate::state::{followed, touched};
use crate::table::TableSnapshot;
use crate::table::partition::Partition;
use crate::table::records::TABLE_RECORDS;
use crate::table::row_source::Run;
use crate::table::schema::{TableId, TableSchema};
use crate::table::upsert::UpsertKeys;

/// Applies one step to the snapshot.
pub(crate) fn apply(
    snapshot: &mut Snapshot,
    op: &Op,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let touch = touched::touch(snapshot, op)?;
    let step = followed::step(snapshot, op, context.lsn)?;
    change(snapshot, op, context)?;
    touched::note(snapshot, op, touch, context.lsn);
    if let Some(step) = step {
        followed::note(snapshot, step, context);
    }
    Ok(())
}

fn change(snapshot: &mut Snapshot, op: &Op, context: &mut ApplyContext<'_>) -> EngineResult<()> {
    match op {
        Op::CreateTable(schema) => create_table(snapshot, schema.clone()),
        Op::DropTable(id) => drop_table(snapshot, *id, context)?,
        Op::ReplaceSchema(schema) => replace_schema(snapshot, schema.clone(), context)?,
        Op::Truncate(id) => {
            let mut table = table_of(snapshot, *id)?;
            for (_, partition) in table.partitions().iter() {
                context.removed.extend(partition.files());
            }
            table.cold = Arc::default();
            table.hot.clear();
            table.rows = 0;
            put_table(snapshot, table);
        }
        Op::Append(append) => apply_append(snapshot, append, context)?,
        Op::Adopt(adopt) => apply_adopt(snapshot, adopt, context)?,
        Op::PutRecord { kind, key, value } => {
            snapshot.put_record(kind, key, value.as_slice().into());
        }
        Op::DeleteRecord { kind, key } => snapshot.delete_record(kind, key),
        Op::Partitions(op) => apply_partitions(snapshot, op, context)?,
        Op::Update(update) => apply_update(snapshot, update, context)?,
        Op::Convert(convert) => apply_convert(snapshot, convert, context)?,
        Op::Skip(skip) => apply_skip(snapshot, skip, context)?,
        Op::Delete(delete) => apply_delete(snapshot, delete, context)?,
        Op::Watch { table, through } => touched::watch(snapshot, *table, *through, context.lsn),
        Op::Follow { table } => followed::follow(snapshot, *table, context.lsn),
    }
    Ok(())
}

fn create_table(snapshot: &mut Snapshot, schema: TableSchema) {
    snapshot.next_table = snapshot.next_table.max(schema.id + 1);
    snapshot.names.insert(identifier::fold(&schema.name), schema.id);
    put_table(snapshot, TableSnapshot::empty(head_of(schema, &HashMap::new(), 1)));
}

fn drop_table(
    snapshot: &mut Snapshot,
    id: TableId,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let table = snapshot.tables.remove(&id).ok_or_else(|| no_such_table(id))?;
    table.collect_segment_files(context.removed);
    for dictionary in table.head.symbols.values() {
        context.removed.extend(dictionary.store().files());
    }
    snapshot.names.remove(identifier::fold(&table.schema().name).as_str());
    for kind in TABLE_RECORDS {
        snapshot.delete_record(kind, &id.to_string());
    }
    Ok(())
}

fn replace_schema(
    snapshot: &mut Snapshot,
    schema: TableSchema,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, schema.id)?;
    snapshot.names.remove(identifier::fold(&table.schema().name).as_str());
    snapshot.names.insert(identifier::fold(&schema.name), schema.id);
    let head = head_of(schema, &table.head.symbols, table.head.next_column);
    for (column, dictionary) in &table.head.symbols {
        if !head.symbols.contains_key(column) {
            context.removed.extend(dictionary.store().files());
        }
    }
    table.head = Arc::new(head);
    put_table(snapshot, table);
    Ok(())
}

fn apply_append(
    snapshot: &mut Snapshot,
    append: &Append,
    context: &ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, append.table)?;
    grow_symbols(&mut table, &append.symbols)?;
    let head = Arc::clone(&table.head);
    let timestamp = head.schema.timestamp_column();
    let time_cells = timestamp.map(|timestamp| {
        let cells = append.columns.iter().find(|(id, ..)| *id == timestamp.id);
        cells.ok_or_else(|| EngineError::internal("rows have no designated timestamps"))
    });
    let times = match time_cells.transpose()? {
        Some((_, _, cells)) => Some(column::timestamps(cells.array())?),
        None => None,
    };
    let upsert = UpsertKeys::of(&head.schema);
    for (floor, rows) in partition_rows(&head.schema, times.as_deref(), append.rows) {
        let cells = |(id, sql_type, cells): &(u32, SqlType, ColumnData)| {
            (*id, *sql_type, cells.slice(rows.start, rows.len()))
        };
        let run = Run {
            rows: rows.len(),
            columns: append.columns.iter().map(cells).collect(),
            bounds: times.as_ref().map_or((0, 0), |t| (t[rows.start], t[rows.end - 1])),
            last_lsn: context.lsn,
            upsert: upsert.clone(),
        };
        let old = table.partition(floor).map_or_else(Arc::<Partition>::default, Arc::clone);
        let new = old.with_run(run, timestamp, context.frozen_lsn, context.run_rows)?;
        table.rows = table.rows - old.rows() + new.rows();
        table.hot.insert(floor, Arc::new(new));
    }
    put_table(snapshot, table);
    Ok(())
}

fn apply_adopt(
    snapshot: &mut Snapshot,
    adopt: &Adopt,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
    let mut table = table_of(snapshot, adopt.table)?;
    grow_symbols(&mut table, &adopt.symbols)?;
    let directory = table_dir(adopt.table);
    let upsert = UpsertKeys::of(table.schema());
    for (floor, meta) in &adopt.segments {
        let meta = SegmentMeta { lsn: context.lsn, ..meta.clone() };
        table.rows += meta.rows;
        let upsert = upsert.clone();
        let segment = Segment::upserting(context.vfs, &directory, meta, upsert);
        if !adopt.synced {
            context.unsynced.push(Arc::clone(&segment));
        }
        let old = table.partition(*floor).map_or_else(Arc::<Partition>::default, Arc::clone);
        let segments = old.segments.iter().cloned().chain([segment]).collect();
        // The partition is added to `hot` so that the next checkpoint checks it for overlaps.
        let new = Partition::new(segments, old.runs.clone(), context.lsn);
        table.hot.insert(*floor, Arc::new(new));
    }
    put_table(snapshot, table);
    Ok(())
}

/// Splits rows, ascending in time, at partition boundaries.
pub(crate) fn partition_rows(
    schema: &TableSchema,
    times: Option<&[i64]>,
    rows: usize,
) -> Vec<(i64, Range<usize>)> {
    let Some(times) = times else {
        return if rows == 0 { Vec::new() } else { vec![(i64::MIN, 0..rows)] };
    };
    let mut cuts = Vec::new();
    let mut start = 0;
    while start < rows {
        let floor = schema.partition_floor(times[start]);
        let ceil = schema.partition_ceil(floor);
        // `i64::MAX` means "no end".
        let in_partition = |&ts: &i64| ts < ceil || ceil == i64::MAX;
        let end = start + times[start..].partition_point(in_partition);
        cuts.push((floor, start..end));
        start = end;
    }
    cuts
}

/// Refuses a step whose result would exceed a limit.
pub(crate) fn check_limits(
    snapshot: &Snapshot,
    op: &Op,
    options: &StorageOptions,
) -> EngineResult<()> {
    match op {
        Op::CreateTable(schema) => {
            check_columns(schema.columns.len(), &schema.name, options)?;
            let tables = snapshot.tables.iter().count();
            refuse(tables > options.max_tables, || {
                format!(
                    "too many tables: {tables}, at most {} tables are allowed",
                    options.max_tables
                )
            })
        }
        Op::ReplaceSchema(schema) => check_columns(schema.columns.len(), &schema.name, options),
        Op::Append(append) => check_partitions(snapshot, append.table, options),
        Op::Adopt(adopt) => check_partitions(snapshot, adopt.table, options),
        _ => Ok(()),
    }
}

fn check_partitions(
    snapshot: &Snapshot,
    table: TableId,
    options: &StorageOptions,
) -> EngineResult<()> {
    let Some(table) = snapshot.tables.get(&table) else { return Ok(()) };
    let new = table.hot.keys().filter(|floor| !table.cold.contains_key(floor)).count();
    let partitions = table.cold.len() + new;
    refuse(partitions > options.max_partitions, || {
        let (name, max) = (&table.schema().name, options.max_partitions);
        format!("table '{name}' has {partitions} partitions: at most {max} partitions are allowed")
    })
}
