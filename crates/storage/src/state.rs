//! The state machine: what a transaction does to a snapshot. Live commits and replay share it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::disk::Disk;
use crate::disk::file::StoredFile;
use crate::disk::layout::table_dir;
use crate::mutation::change::Change;
use crate::mutation::convert::{ConvertOp, apply_convert, resolve_convert};
use crate::mutation::delete::{DeleteOp, apply_delete, resolve_delete};
use crate::mutation::prepare::{Prepared, Rows, StagedSegments, no_such_table};
use crate::mutation::retire::{
    PartitionAction, PartitionsOp, apply_partitions, expired, resolve_partitions,
};
use crate::mutation::update::{UpdateOp, apply_update, resolve_update};
use crate::recovery::damage::{LOST_RECORDS, refuse_damaged};
use crate::recovery::skip::{SkipOp, apply_skip, resolve_skip};
use crate::segment::column::{self, ColumnData};
use crate::segment::{Segment, SegmentMeta};
use crate::snapshot::Snapshot;
use crate::table::partition::Partition;
use crate::table::piece::Run;
use crate::table::schema::{ColumnSchema, TableId, TableSchema};
use crate::table::symbols::{NewSymbols, SymbolDictionary, SymbolStore};
use crate::table::upsert::UpsertKeys;
use crate::table::{TableHead, TableSnapshot};

/// Records of this kind share one name space with the tables; the key is the folded name.
const NAMED_RECORDS: &str = "view";

/// One step of a transaction as the log holds it: complete, with every identifier assigned.
#[derive(Debug)]
pub(crate) enum Op {
    CreateTable(TableSchema),
    DropTable(TableId),
    /// The definition with its new version.
    ReplaceSchema(TableSchema),
    Truncate(TableId),
    Append(Append),
    Adopt(Adopt),
    PutRecord {
        kind: String,
        key: String,
        value: Vec<u8>,
    },
    DeleteRecord {
        kind: String,
        key: String,
    },
    Partitions(PartitionsOp),
    Update(UpdateOp),
    Convert(ConvertOp),
    Skip(SkipOp),
    Delete(DeleteOp),
}

impl Op {
    /// The table it changes.
    pub(crate) fn table(&self) -> Option<TableId> {
        match self {
            Self::CreateTable(schema) | Self::ReplaceSchema(schema) => Some(schema.id),
            Self::DropTable(id) | Self::Truncate(id) => Some(*id),
            Self::Append(append) => Some(append.table),
            Self::Adopt(adopt) => Some(adopt.table),
            Self::Partitions(op) => Some(op.table),
            Self::Update(update) => Some(update.table),
            Self::Convert(convert) => Some(convert.table),
            Self::Skip(skip) => Some(skip.table),
            Self::Delete(delete) => Some(delete.table),
            Self::PutRecord { .. } | Self::DeleteRecord { .. } => None,
        }
    }
}

/// Rows ascending in time, symbols as keys of the table's dictionaries.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(u32, SqlType, ColumnData)>,
}

/// Segments of a bulk write that become part of a table.
#[derive(Debug)]
pub(crate) struct Adopt {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    /// Whether the segments were synced before this was logged.
    pub(crate) synced: bool,
    /// Partitions and segments, in the order of their arrival.
    pub(crate) segments: Vec<(i64, SegmentMeta)>,
}

/// What the state machine must know beside the transaction, and what it reports.
#[derive(Debug)]
pub(crate) struct ApplyContext<'a> {
    pub(crate) vfs: &'a Arc<Disk>,
    pub(crate) lsn: u64,
    /// Runs up to this transaction are being written to segments and must stay as they are.
    pub(crate) frozen_lsn: u64,
    pub(crate) run_rows: usize,
    /// Files that no table names any more.
    pub(crate) removed: &'a mut Vec<Arc<StoredFile>>,
    /// Segments that were adopted without being synced.
    pub(crate) unsynced: &'a mut Vec<Arc<Segment>>,
    pub(crate) owed: &'a mut Owed,
}

/// What the next checkpoint is to write anew.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Bytes of deleted rows that it frees.
    pub(crate) dead_bytes: u64,
    /// Bytes of files with updated cells: so much room it takes.
    pub(crate) rewrite_bytes: u64,
}

/// Completes a change: assigns identifiers, resolves symbols, refuses what cannot be.
pub(crate) fn resolve(snapshot: &Snapshot, change: Prepared) -> EngineResult<Op> {
    refuse_damaged(snapshot, &change)?;
    match change {
        Prepared::Append { table, schema_version, rows } => {
            let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
            if found.schema().version != schema_version {
                return Err(EngineError::new(
                    ErrorCode::Replan,
                    format!("table '{}' was changed", found.schema().name),
                ));
            }
            Ok(Op::Append(resolve_append(&found, &rows)?))
        }
        Prepared::Adopt(staged) => resolve_adopt(snapshot, staged).map(Op::Adopt),
        Prepared::Convert(conversion) => resolve_convert(snapshot, conversion).map(Op::Convert),
        Prepared::Skip(skip) => resolve_skip(snapshot, skip).map(Op::Skip),
        Prepared::Other(change) => resolve_other(snapshot, change),
    }
}

fn resolve_other(snapshot: &Snapshot, change: Change) -> EngineResult<Op> {
    let existing =
        |id: TableId| snapshot.table_by_id(id).map(|_| id).ok_or_else(|| no_such_table(id));
    Ok(match change {
        Change::CreateTable(schema) => Op::CreateTable(resolve_create(snapshot, schema)?),
        Change::DropTable(id) => Op::DropTable(existing(id)?),
        Change::Truncate(id) => Op::Truncate(existing(id)?),
        Change::ReplaceSchema(schema) => Op::ReplaceSchema(resolve_replace(snapshot, schema)?),
        Change::PutRecord { kind, key, value } => {
            if kind == NAMED_RECORDS && snapshot.names.get(key.as_str()).is_some() {
                return Err(taken_name(&key));
            }
            Op::PutRecord { kind, key, value }
        }
        Change::DeleteRecord { kind, key } => Op::DeleteRecord { kind, key },
        Change::Partitions { table, action, floors } => {
            let op = PartitionsOp { table, action, floors };
            Op::Partitions(resolve_partitions(snapshot, op)?)
        }
        Change::Update(update) => Op::Update(resolve_update(snapshot, &update)?),
        Change::Delete(delete) => Op::Delete(resolve_delete(snapshot, &delete)?),
        Change::Append { .. } => {
            return Err(EngineError::internal("an append that was not prepared"));
        }
    })
}

/// The definition of a new table with its identifiers.
pub(crate) fn resolve_create(
    snapshot: &Snapshot,
    mut schema: TableSchema,
) -> EngineResult<TableSchema> {
    refuse_taken_name(snapshot, &schema)?;
    if schema.id == 0 || snapshot.table_by_id(schema.id).is_some() {
        return Err(EngineError::internal(format!("table {} has no free identifier", schema.id)));
    }
    schema.version = schema.version.max(1);
    assign_columns(&mut schema, 1);
    check_dedup_keys(&schema)?;
    Ok(schema)
}

fn assign_columns(schema: &mut TableSchema, next: u32) {
    let known = schema.columns.iter().map(|column| column.id + 1).max().unwrap_or(1);
    let new = schema.columns.iter_mut().filter(|column| column.id == 0);
    for (column, id) in new.zip(next.max(known)..) {
        column.id = id;
    }
}

fn refuse_taken_name(snapshot: &Snapshot, schema: &TableSchema) -> EngineResult<()> {
    let holder = snapshot.names.get(identifier::fold(&schema.name).as_str());
    match holder {
        Some(&holder) if holder != schema.id || schema.id == 0 => Err(taken_name(&schema.name)),
        None if snapshot.record(NAMED_RECORDS, &identifier::fold(&schema.name)).is_some() => {
            Err(taken_name(&schema.name))
        }
        _ => Ok(()),
    }
}

fn taken_name(name: &str) -> EngineError {
    EngineError::new(ErrorCode::TableExists, format!("table already exists [table={name}]"))
}

pub(crate) fn resolve_replace(
    snapshot: &Snapshot,
    mut schema: TableSchema,
) -> EngineResult<TableSchema> {
    let found = snapshot.table_by_id(schema.id).ok_or_else(|| no_such_table(schema.id))?;
    let old = found.schema();
    if old.version != schema.version {
        let message = format!("table '{}' was changed", old.name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    refuse_taken_name(snapshot, &schema)?;
    let same_time = old.timestamp_column().map(|column| column.id)
        == schema.timestamp_column().map(|column| column.id);
    if !same_time || old.partition_by != schema.partition_by {
        return Err(EngineError::new(
            ErrorCode::NotSupported,
            "the designated timestamp and the partitioning of a table cannot be changed",
        ));
    }
    for column in &schema.columns {
        let known = old.columns.iter().find(|other| other.id == column.id && column.id != 0);
        if known.is_some_and(|known| known.sql_type != column.sql_type) {
            let message = format!("column '{}' cannot change its type in place", column.name);
            return Err(EngineError::new(ErrorCode::NotSupported, message));
        }
    }
    schema.version += 1;
    assign_columns(&mut schema, found.head.next_column);
    check_dedup_keys(&schema)?;
    Ok(schema)
}

/// A key is a column of the table, and the designated timestamp is one.
fn check_dedup_keys(schema: &TableSchema) -> EngineResult<()> {
    let is_column = |key: &u32| schema.columns.iter().any(|column| column.id == *key);
    let timed =
        schema.timestamp_column().is_some_and(|column| schema.dedup_keys.contains(&column.id));
    if schema.dedup_keys.is_empty() || (timed && schema.dedup_keys.iter().all(is_column)) {
        return Ok(());
    }
    Err(EngineError::new(
        ErrorCode::InvalidValue,
        format!(
            "the DEDUP keys of table '{}' must be columns of it, the designated timestamp among \
             them",
            schema.name
        ),
    ))
}

fn resolve_append(table: &TableSnapshot, rows: &Rows) -> EngineResult<Append> {
    let schema = table.schema();
    let mut columns = Vec::with_capacity(rows.columns.len());
    let mut symbols = Vec::new();
    for (column, array) in schema.columns.iter().zip(&rows.columns) {
        let cells = match table.head.symbols.get(&column.id) {
            Some(dictionary) => {
                let keys = ColumnData::keys(dictionary.store().intern_column(array)?)?;
                let ColumnData::Keys(checked) = &keys else {
                    return Err(EngineError::internal("symbols without keys"));
                };
                let max_key = checked.max_key();
                symbols.extend(new_symbols(column.id, dictionary, dictionary.store(), max_key));
                keys
            }
            None => ColumnData::new(column.sql_type, Arc::clone(array))?,
        };
        columns.push((column.id, column.sql_type, cells));
    }
    Ok(Append { table: schema.id, symbols, rows: rows.count, columns })
}

fn resolve_adopt(snapshot: &Snapshot, staged: StagedSegments) -> EngineResult<Adopt> {
    let found = snapshot.table_by_id(staged.table).ok_or_else(|| no_such_table(staged.table))?;
    if UpsertKeys::of(found.schema()) != staged.upsert {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            format!(
                "the DEDUP keys of table '{}' were changed during the write, expected those of \
                 its beginning; write the rows again",
                found.schema().name
            ),
        ));
    }
    // Cells of a column that got another type meanwhile would be invisible.
    let still =
        |column: &&ColumnSchema| found.schema().columns.iter().any(|other| other.id == column.id);
    if let Some(gone) = staged.columns.iter().find(|column| !still(column)) {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            format!(
                "column '{}' of table '{}' was dropped or got another type during the write; \
                 write the rows again",
                gone.name,
                found.schema().name
            ),
        ));
    }
    let symbols = staged.symbols.iter().filter_map(|(column, store, max_key)| {
        let dictionary = found.head.symbols.get(column)?;
        new_symbols(*column, dictionary, store, *max_key)
    });
    let symbols = symbols.collect();
    let StagedSegments { table, segments, synced, .. } = staged;
    Ok(Adopt { table, symbols, synced, segments })
}

/// What the time to live asks for after this step.
pub(crate) fn expiry(snapshot: &Snapshot, op: &Op, by_clock: bool) -> Option<Op> {
    let adds = matches!(op, Op::Append(_) | Op::Adopt(_) | Op::ReplaceSchema(_));
    let table = snapshot.table_by_id(op.table().filter(|_| adds)?)?;
    let (floors, table) = (expired(&table, by_clock), table.schema().id);
    let op = PartitionsOp { table, action: PartitionAction::Drop, floors };
    (!op.floors.is_empty()).then_some(Op::Partitions(op))
}

/// The symbols up to `max_key` that the dictionary does not show yet, with all between: also
/// those of writes still under way, or given up.
pub(crate) fn new_symbols(
    column: u32,
    dictionary: &SymbolDictionary,
    store: &SymbolStore,
    max_key: i32,
) -> Option<NewSymbols> {
    let (first_key, end) = (dictionary.len() as u32, (max_key + 1) as u32);
    (end > first_key).then(|| NewSymbols { column, first_key, texts: store.texts(first_key, end) })
}

/// Applies one step to the snapshot.
pub(crate) fn apply(
    snapshot: &mut Snapshot,
    op: &Op,
    context: &mut ApplyContext<'_>,
) -> EngineResult<()> {
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
    }
    Ok(())
}

pub(crate) fn table_of(snapshot: &Snapshot, id: TableId) -> EngineResult<TableSnapshot> {
    let table = snapshot.tables.get(&id).ok_or_else(|| no_such_table(id))?;
    Ok(TableSnapshot::clone(table))
}

pub(crate) fn put_table(snapshot: &mut Snapshot, mut table: TableSnapshot) {
    // A change that listed the partitions listed the old ones.
    table.listed = std::sync::OnceLock::new();
    snapshot.tables.insert(table.schema().id, Arc::new(table));
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
    snapshot.delete_record(LOST_RECORDS, &id.to_string());
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

/// The head of a table with this definition; dictionaries it has already are kept.
pub(crate) fn head_of(
    schema: TableSchema,
    known: &HashMap<u32, Arc<SymbolDictionary>>,
    next_column: u32,
) -> TableHead {
    let symbol_columns = schema.columns.iter().filter(|c| c.sql_type == SqlType::Symbol);
    let symbols = symbol_columns.map(|column| {
        let dictionary = known.get(&column.id).cloned().unwrap_or_else(|| {
            Arc::new(SymbolDictionary::new(Arc::new(SymbolStore::default()), 0))
        });
        (column.id, dictionary)
    });
    let symbols = symbols.collect();
    let used = schema.columns.iter().map(|column| column.id + 1).max().unwrap_or(1);
    TableHead { next_column: next_column.max(used), schema: Arc::new(schema), symbols }
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
        cells.ok_or_else(|| EngineError::internal("an append without timestamps"))
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
        // Hot, so that the next checkpoint looks for overlaps.
        let new = Partition::new(segments, old.runs.clone(), context.lsn);
        table.hot.insert(*floor, Arc::new(new));
    }
    put_table(snapshot, table);
    Ok(())
}

/// Adds symbols to a table's dictionaries.
pub(crate) fn grow_symbols(table: &mut TableSnapshot, new: &[NewSymbols]) -> EngineResult<()> {
    if new.is_empty() {
        return Ok(());
    }
    let mut head = TableHead::clone(&table.head);
    for symbols in new {
        let Some(dictionary) = head.symbols.get_mut(&symbols.column) else {
            continue; // The column was dropped; its rows cannot be seen.
        };
        dictionary.store().extend(symbols.first_key, &symbols.texts)?;
        let end = symbols.first_key + symbols.texts.len() as u32;
        *dictionary = Arc::new(dictionary.grown(end));
    }
    table.head = Arc::new(head);
    Ok(())
}

/// Cuts rows, ascending in time, at the borders of partitions.
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
