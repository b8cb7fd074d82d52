//! Converts a change to a step just before it is applied, with all identifiers assigned, or refuses
//! the change.

use std::sync::Arc;

use tidemark_types::{EngineError, EngineResult, ErrorCode, identifier};

use crate::mutation::change::Change;
use crate::mutation::convert::resolve_convert;
use crate::mutation::delete::{resolve_clear, resolve_delete};
use crate::mutation::prepare::{Prepared, Rows, StagedSegments};
use crate::mutation::retire::{PartitionAction, PartitionsOp, expired, resolve_partitions};
use crate::mutation::skip::resolve_skip;
use crate::mutation::update::resolve_update;
use crate::segment::column::ColumnData;
use crate::snapshot::{Snapshot, no_such_table};
use crate::state::context::new_symbols;
use crate::state::op::{Adopt, Append, Op};
use crate::table::TableSnapshot;
use crate::table::schema::{ColumnSchema, TableId, TableSchema};
use crate::table::upsert::UpsertKeys;

/// Records of this kind share one namespace with the tables; the key is the folded name.
const NAMED_RECORDS: &str = "view";

/// Fails if a record differs from the value that a transaction expects.
pub(crate) fn check_expected(snapshot: &Snapshot, change: &Prepared) -> EngineResult<()> {
    let Prepared::Other(Change::Expect { kind, key, value }) = change else { return Ok(()) };
    if snapshot.record(kind, key) == value.as_deref() {
        return Ok(());
    }
    Err(EngineError::new(ErrorCode::Replan, format!("the record '{kind}' changed concurrently")))
}

/// Completes a change: assigns identifiers, resolves symbols, refuses invalid changes.
pub(crate) fn resolve(snapshot: &Snapshot, change: Prepared) -> EngineResult<Op> {
    refuse_damaged(snapshot, &change)?;
    match change {
        Prepared::Append { table, schema_version, rows } => {
            let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
            if found.schema().version != schema_version {
                return Err(EngineError::new(
                    ErrorCode::Replan,
                    format!("table '{}' changed concurrently", found.schema().name),
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
                return Err(duplicate_name(&key));
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
        Change::Clear { table, ranges } => Op::Delete(resolve_clear(snapshot, table, &ranges)?),
        Change::Watch { table, through } => Op::Watch { table: existing(table)?, through },
        Change::Follow(table) => Op::Follow { table: existing(table)? },
        Change::Append { .. } | Change::Expect { .. } => {
            return Err(EngineError::internal("the change cannot be part of a transaction"));
        }
    })
}

/// Returns a new table's definition with its identifiers.
pub(crate) fn resolve_create(
    snapshot: &Snapshot,
    mut schema: TableSchema,
) -> EngineResult<TableSchema> {
    refuse_duplicate_name(snapshot, &schema)?;
    if schema.id == 0 || snapshot.table_by_id(schema.id).is_some() {
        return Err(EngineError::internal(format!(
            "table identifier {} is invalid or in use",
            schema.id
        )));
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

fn refuse_duplicate_name(snapshot: &Snapshot, schema: &TableSchema) -> EngineResult<()> {
    let holder = snapshot.names.get(identifier::fold(&schema.name).as_str());
    match holder {
        Some(&holder) if holder != schema.id || schema.id == 0 => Err(duplicate_name(&schema.name)),
        None if snapshot.record(NAMED_RECORDS, &identifier::fold(&schema.name)).is_some() => {
            Err(duplicate_name(&schema.name))
        }
        _ => Ok(()),
    }
}

fn duplicate_name(name: &str) -> EngineError {
    EngineError::new(ErrorCode::TableExists, format!("table already exists [table={name}]"))
}

pub(crate) fn resolve_replace(
    snapshot: &Snapshot,
    mut schema: TableSchema,
) -> EngineResult<TableSchema> {
    let found = snapshot.table_by_id(schema.id).ok_or_else(|| no_such_table(schema.id))?;
    let old = found.schema();
    if old.version != schema.version {
        let message = format!("table '{}' changed concurrently", old.name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    refuse_duplicate_name(snapshot, &schema)?;
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

/// Checks that each key is a column of the table, and that one key is the designated timestamp.
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
            "the DEDUP keys of table '{}' must be columns of the table and include the designated \
             timestamp",
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
                    return Err(EngineError::internal("symbols have no dictionary codes"));
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
                "the DEDUP keys of table '{}' changed during the write; \
                 send the rows again",
                found.schema().name
            ),
        ));
    }
    // If the column's type had changed in the meantime, the new cells would be invisible.
    let still =
        |column: &&ColumnSchema| found.schema().columns.iter().any(|other| other.id == column.id);
    if let Some(removed) = staged.columns.iter().find(|column| !still(column)) {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            format!(
                "column '{}' of table '{}' was dropped or changed its type during the write; \
                 send the rows again",
                removed.name,
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

/// Returns the step that drops the partitions that have expired under the time to live once `op` is
/// applied.
pub(crate) fn expiry(snapshot: &Snapshot, op: &Op, by_clock: bool) -> Option<Op> {
    let adds = matches!(op, Op::Append(_) | Op::Adopt(_) | Op::ReplaceSchema(_));
    let table = snapshot.table_by_id(op.table().filter(|_| adds)?)?;
    let (floors, table) = (expired(&table, by_clock), table.schema().id);
    let op = PartitionsOp { table, action: PartitionAction::Drop, floors };
    (!op.floors.is_empty()).then_some(Op::Partitions(op))
}

/// Refuses changes to damaged tables, except those that remove rows or the table.
fn refuse_damaged(snapshot: &Snapshot, work: &Prepared) -> EngineResult<()> {
    match work {
        Prepared::Skip(_) | Prepared::Other(Change::DropTable(_) | Change::Truncate(_)) => Ok(()),
        Prepared::Other(Change::Partitions { action, .. })
            if *action != PartitionAction::Attach =>
        {
            Ok(())
        }
        work => work.table().map_or(Ok(()), |table| snapshot.refuse_damaged(table)),
    }
}
