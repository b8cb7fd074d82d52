//! The state machine: what a transaction does to a snapshot. Live commits and replay share it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode, SqlType, identifier};

use crate::change::Change;
use crate::column::{self, ColumnData};
use crate::partition::Partition;
use crate::piece::Run;
use crate::prepare::{Prepared, Rows, no_such_table};
use crate::schema::{TableId, TableSchema};
use crate::snapshot::Snapshot;
use crate::symbols::{NewSymbols, SymbolDictionary, SymbolStore};
use crate::table::{TableHead, TableSnapshot};

/// One step of a transaction as the log holds it: complete, with every identifier assigned.
#[derive(Debug)]
pub(crate) enum Op {
    CreateTable(TableSchema),
    DropTable(TableId),
    /// The definition with its new version.
    ReplaceSchema(TableSchema),
    Truncate(TableId),
    Append(Append),
    PutRecord { kind: String, key: String, value: Vec<u8> },
    DeleteRecord { kind: String, key: String },
}

/// Rows ascending in time, symbols as keys of the table's dictionaries.
#[derive(Debug)]
pub(crate) struct Append {
    pub(crate) table: TableId,
    pub(crate) symbols: Vec<NewSymbols>,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<(u32, SqlType, ColumnData)>,
}

/// What the state machine must know beside the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApplyContext {
    pub(crate) lsn: u64,
    /// Runs up to this transaction are being written to segments and must stay as they are.
    pub(crate) frozen_lsn: u64,
    pub(crate) run_rows: usize,
}

/// Completes a change: assigns identifiers, resolves symbols, refuses what cannot be.
pub(crate) fn resolve(snapshot: &Snapshot, change: Prepared) -> EngineResult<Op> {
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
        Prepared::Other(change) => resolve_other(snapshot, change),
    }
}

fn resolve_other(snapshot: &Snapshot, change: Change) -> EngineResult<Op> {
    let existing = |id: TableId| {
        snapshot.table_by_id(id).map(|_| id).ok_or_else(|| no_such_table(id))
    };
    Ok(match change {
        Change::CreateTable(schema) => Op::CreateTable(resolve_create(snapshot, schema)?),
        Change::DropTable(id) => Op::DropTable(existing(id)?),
        Change::Truncate(id) => Op::Truncate(existing(id)?),
        Change::ReplaceSchema(schema) => Op::ReplaceSchema(resolve_replace(snapshot, schema)?),
        Change::PutRecord { kind, key, value } => Op::PutRecord { kind, key, value },
        Change::DeleteRecord { kind, key } => Op::DeleteRecord { kind, key },
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
    if schema.id == 0 {
        schema.id = snapshot.next_table.max(1);
    }
    if snapshot.table_by_id(schema.id).is_some() {
        return Err(EngineError::internal(format!("table {} is there already", schema.id)));
    }
    schema.version = schema.version.max(1);
    assign_columns(&mut schema, 1);
    Ok(schema)
}

fn assign_columns(schema: &mut TableSchema, next: u32) {
    let known = schema.columns.iter().map(|column| column.id + 1).max().unwrap_or(1);
    let mut next = next.max(known);
    for column in schema.columns.iter_mut().filter(|column| column.id == 0) {
        column.id = next;
        next += 1;
    }
}

fn refuse_taken_name(snapshot: &Snapshot, schema: &TableSchema) -> EngineResult<()> {
    let holder = snapshot.names.get(identifier::fold(&schema.name).as_str());
    match holder {
        Some(&holder) if holder != schema.id || schema.id == 0 => Err(EngineError::new(
            ErrorCode::TableExists,
            format!("table already exists [table={}]", schema.name),
        )),
        _ => Ok(()),
    }
}

fn resolve_replace(snapshot: &Snapshot, mut schema: TableSchema) -> EngineResult<TableSchema> {
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
    Ok(schema)
}

fn resolve_append(table: &TableSnapshot, rows: &Rows) -> EngineResult<Append> {
    let schema = table.schema();
    let mut columns = Vec::with_capacity(rows.columns.len());
    let mut symbols = Vec::new();
    for (column, array) in schema.columns.iter().zip(&rows.columns) {
        let cells = match table.head.symbols.get(&column.id) {
            Some(dictionary) => {
                let keys = ColumnData::keys(dictionary.store().intern_column(array)?)?;
                symbols.extend(new_symbols(column.id, dictionary, &keys));
                keys
            }
            None => ColumnData::new(column.sql_type, Arc::clone(array))?,
        };
        columns.push((column.id, column.sql_type, cells));
    }
    Ok(Append { table: schema.id, symbols, rows: rows.count, columns })
}

/// The symbols that `keys` use beyond the dictionary, and all before them.
pub(crate) fn new_symbols(
    column: u32,
    dictionary: &SymbolDictionary,
    keys: &ColumnData,
) -> Option<NewSymbols> {
    let ColumnData::Keys(keys) = keys else { return None };
    let (first_key, end) = (dictionary.len() as u32, (keys.max_key() + 1) as u32);
    (end > first_key).then(|| NewSymbols {
        column,
        first_key,
        texts: dictionary.store().texts(first_key, end),
    })
}

/// Applies one step to the snapshot.
pub(crate) fn apply(snapshot: &mut Snapshot, op: Op, context: ApplyContext) -> EngineResult<()> {
    match op {
        Op::CreateTable(schema) => create_table(snapshot, schema),
        Op::DropTable(id) => drop_table(snapshot, id)?,
        Op::ReplaceSchema(schema) => replace_schema(snapshot, schema)?,
        Op::Truncate(id) => {
            let mut table = table_of(snapshot, id)?;
            table.cold = Arc::default();
            table.hot.clear();
            table.rows = 0;
            put_table(snapshot, table);
        }
        Op::Append(append) => apply_append(snapshot, append, context)?,
        Op::PutRecord { kind, key, value } => snapshot.put_record(&kind, &key, value.into()),
        Op::DeleteRecord { kind, key } => snapshot.delete_record(&kind, &key),
    }
    Ok(())
}

fn table_of(snapshot: &Snapshot, id: TableId) -> EngineResult<TableSnapshot> {
    let table = snapshot.tables.get(&id).ok_or_else(|| no_such_table(id))?;
    let mut table = TableSnapshot::clone(table);
    table.listed = std::sync::OnceLock::new();
    Ok(table)
}

pub(crate) fn put_table(snapshot: &mut Snapshot, table: TableSnapshot) {
    snapshot.tables.insert(table.schema().id, Arc::new(table));
}

fn create_table(snapshot: &mut Snapshot, schema: TableSchema) {
    snapshot.next_table = snapshot.next_table.max(schema.id + 1);
    snapshot.names.insert(identifier::fold(&schema.name), schema.id);
    put_table(snapshot, TableSnapshot::empty(head_of(schema, &HashMap::new(), 1)));
}

fn drop_table(snapshot: &mut Snapshot, id: TableId) -> EngineResult<()> {
    let table = snapshot.tables.remove(&id).ok_or_else(|| no_such_table(id))?;
    snapshot.names.remove(identifier::fold(&table.schema().name).as_str());
    Ok(())
}

fn replace_schema(snapshot: &mut Snapshot, schema: TableSchema) -> EngineResult<()> {
    let mut table = table_of(snapshot, schema.id)?;
    snapshot.names.remove(identifier::fold(&table.schema().name).as_str());
    snapshot.names.insert(identifier::fold(&schema.name), schema.id);
    let head = head_of(schema, &table.head.symbols, table.head.next_column);
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
    append: Append,
    context: ApplyContext,
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
    for (floor, rows) in partition_rows(&head.schema, times.as_deref(), append.rows) {
        let cells = |(id, sql_type, cells): &(u32, SqlType, ColumnData)| {
            (*id, *sql_type, cells.slice(rows.start, rows.len()))
        };
        let run = Run {
            rows: rows.len(),
            columns: append.columns.iter().map(cells).collect(),
            bounds: times.as_ref().map_or((0, 0), |t| (t[rows.start], t[rows.end - 1])),
            last_lsn: context.lsn,
        };
        let old = table.partition(floor).map_or_else(Arc::<Partition>::default, Arc::clone);
        let new = old.with_run(run, timestamp, context.frozen_lsn, context.run_rows)?;
        table.hot.insert(floor, Arc::new(new));
    }
    table.rows += append.rows as u64;
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
        // `i64::MAX` stands for "no end".
        let in_partition = |&ts: &i64| ts < ceil || ceil == i64::MAX;
        let end = start + times[start..].partition_point(in_partition);
        cuts.push((floor, start..end));
        start = end;
    }
    cuts
}
