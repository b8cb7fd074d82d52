//! Work that a commit does before its group is written: it checks a batch and sorts the rows by
//! time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::compute::{TakeOptions, take};
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use tidemark_types::{EngineError, EngineResult, ErrorCode};

use crate::mutation::cells::check_type;
use crate::mutation::change::Change;
use crate::mutation::convert::Conversion;
use crate::mutation::retire::PartitionAction;
use crate::mutation::skip::SkipOp;
use crate::options::StorageOptions;
use crate::segment::SegmentMeta;
use crate::segment::column;
use crate::snapshot::{Snapshot, no_such_table};
use crate::table::schema::{ColumnSchema, TableId, TableSchema};
use crate::table::symbols::SymbolStore;
use crate::table::upsert::{UpsertKeys, last_of_each};

/// Checked rows in ascending time order, ready to be appended.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) count: usize,
    /// Columns in definition order; symbols still as strings.
    pub(crate) columns: Vec<ArrayRef>,
}

/// A change whose expensive work is done.
#[derive(Debug)]
pub(crate) enum Prepared {
    Append { table: TableId, schema_version: u64, rows: Rows },
    Adopt(StagedSegments),
    Convert(Conversion),
    Skip(SkipOp),
    Other(Change),
}

impl Prepared {
    /// Whether the change needs more than a few bytes of disk space.
    pub(crate) fn grows(&self) -> bool {
        match self {
            Self::Append { .. } | Self::Adopt(_) | Self::Convert(_) => true,
            Self::Skip(_) => false,
            Self::Other(change) => matches!(change, Change::Append { .. } | Change::Update(_)),
        }
    }

    /// Whether the change frees disk space because the next checkpoint retains less data.
    fn frees(&self) -> bool {
        use PartitionAction::{Drop, DropDetached};
        match self {
            Self::Append { .. } | Self::Adopt(_) | Self::Convert(_) => false,
            Self::Skip(_) => true,
            Self::Other(change) => match change {
                Change::DropTable(_)
                | Change::Truncate(_)
                | Change::Delete(_)
                | Change::Clear { .. } => true,
                Change::Partitions { action, .. } => matches!(action, Drop | DropDetached),
                // A new definition may drop a column or change the time to live. Other data
                // belonging to a table or column is stored in records, so removing a record may
                // also free space.
                Change::ReplaceSchema(_) | Change::DeleteRecord { .. } => true,
                Change::CreateTable(_)
                | Change::Append { .. }
                | Change::PutRecord { .. }
                | Change::Watch { .. }
                | Change::Follow(_)
                | Change::Expect { .. }
                | Change::Update(_) => false,
            },
        }
    }

    /// The table that the change applies to, if it already exists.
    pub(crate) fn table(&self) -> Option<TableId> {
        match self {
            Self::Append { table, .. } => Some(*table),
            Self::Adopt(staged) => Some(staged.table),
            Self::Convert(conversion) => Some(conversion.table()),
            Self::Skip(skip) => Some(skip.table),
            Self::Other(change) => match change {
                Change::DropTable(table)
                | Change::Truncate(table)
                | Change::Partitions { table, .. }
                | Change::Clear { table, .. }
                | Change::Append { table, .. } => Some(*table),
                Change::ReplaceSchema(schema) => Some(schema.id),
                Change::Update(update) => Some(update.base.schema().id),
                Change::Delete(delete) => Some(delete.base.schema().id),
                // Records about a table are not rows, so they need not wait for the table's
                // writers.
                Change::CreateTable(_)
                | Change::PutRecord { .. }
                | Change::DeleteRecord { .. }
                | Change::Watch { .. }
                | Change::Follow(_)
                | Change::Expect { .. } => None,
            },
        }
    }
}

/// Whether a transaction only frees disk space and needs no more of it. Such a transaction may use
/// the reserve.
pub(crate) fn frees(work: &[Prepared]) -> bool {
    work.iter().any(Prepared::frees) && !work.iter().any(Prepared::grows)
}

/// Segments that a bulk write has moved into the table's directory.
#[derive(Debug)]
pub(crate) struct StagedSegments {
    pub(crate) table: TableId,
    pub(crate) segments: Vec<(i64, SegmentMeta)>,
    pub(crate) synced: bool,
    /// Columns that the rows were written with, from the table definition at that time.
    pub(crate) columns: Vec<ColumnSchema>,
    /// Keys by which later rows of the write replace earlier ones.
    pub(crate) upsert: Option<Arc<UpsertKeys>>,
    /// Symbol columns with their symbol stores and the greatest key used.
    pub(crate) symbols: Vec<(u32, Arc<SymbolStore>, i32)>,
}

/// Returns the definition of an existing table. Fails if the rows were built for a different
/// definition.
pub(crate) fn existing(
    snapshot: &Snapshot,
    table: TableId,
    schema_version: u64,
) -> EngineResult<Arc<TableSchema>> {
    let found = snapshot.table_by_id(table).ok_or_else(|| no_such_table(table))?;
    if found.schema().version != schema_version {
        let message = format!("table '{}' changed concurrently", found.schema().name);
        return Err(EngineError::new(ErrorCode::Replan, message));
    }
    Ok(Arc::clone(found.schema()))
}

/// Prepares changes for a commit. `next_table` assigns identifiers to new tables.
pub(crate) fn prepare(
    changes: Vec<Change>,
    snapshot: &Snapshot,
    next_table: impl Fn() -> TableId,
    options: &StorageOptions,
) -> EngineResult<Vec<Prepared>> {
    // Tables that this commit creates accept rows under their reserved identifier.
    let mut defined: HashMap<TableId, Arc<TableSchema>> = HashMap::new();
    let mut prepared = Vec::with_capacity(changes.len());
    for mut change in changes {
        if let Change::CreateTable(schema) = &mut change
            && schema.id == 0
        {
            schema.id = next_table();
        }
        match change {
            Change::Append { table, schema_version, batch } => {
                let schema = match defined.get(&table) {
                    Some(schema) => Arc::clone(schema),
                    None => existing(snapshot, table, schema_version)?,
                };
                let rows = sorted_rows(&schema, &batch, options)?;
                prepared.push(Prepared::Append { table, schema_version, rows });
            }
            Change::Update(update) => {
                let id = update.base.schema().id;
                let schema = match defined.get(&id) {
                    Some(schema) => Arc::clone(schema),
                    None => existing(snapshot, id, update.schema_version)?,
                };
                crate::mutation::update::check(&schema.columns, &update, options)?;
                prepared.push(Prepared::Other(Change::Update(update)));
            }
            change => {
                if let Change::CreateTable(schema) | Change::ReplaceSchema(schema) = &change {
                    defined.insert(schema.id, Arc::new(schema.clone()));
                }
                prepared.push(Prepared::Other(change));
            }
        }
    }
    Ok(prepared)
}

/// Returns the batch's columns, checked against the definition.
pub(crate) fn checked_rows(
    schema: &TableSchema,
    batch: &RecordBatch,
    options: &StorageOptions,
) -> EngineResult<Rows> {
    let columns = checked_columns(schema, batch, options)?;
    if let Some(timestamp) = schema.timestamp {
        designated(&columns[timestamp])?;
    }
    Ok(Rows { count: batch.num_rows(), columns })
}

/// Returns the batch's columns, checked against the definition and sorted by time. Rows with equal
/// timestamps keep their order. With DEDUP keys, rows that later rows replace are omitted.
pub(crate) fn sorted_rows(
    schema: &TableSchema,
    batch: &RecordBatch,
    options: &StorageOptions,
) -> EngineResult<Rows> {
    let columns = checked_columns(schema, batch, options)?;
    in_time_order(schema, Rows { count: batch.num_rows(), columns })
}

/// Sorts rows by time and omits replaced rows.
pub(crate) fn in_time_order(schema: &TableSchema, rows: Rows) -> EngineResult<Rows> {
    let Some(timestamp) = schema.timestamp else { return Ok(rows) };
    let Rows { count, mut columns } = rows;
    let times = designated(&columns[timestamp])?;
    let Some(order) = order_of_rows(schema, &columns, &times)? else {
        return Ok(Rows { count, columns });
    };
    let order = UInt32Array::from(order);
    for column in &mut columns {
        let options = Some(TakeOptions { check_bounds: false });
        *column = take(column, &order, options)
            .map_err(|error| EngineError::internal(error.to_string()))?;
    }
    Ok(Rows { count: order.len(), columns })
}

/// Returns the rows to keep in ascending time order; `None` if all rows keep their order.
fn order_of_rows(
    schema: &TableSchema,
    columns: &[ArrayRef],
    times: &[i64],
) -> EngineResult<Option<Vec<u32>>> {
    let sorted = times.is_sorted();
    let dedup = !schema.dedup_keys.is_empty() && !times.is_sorted_by(|a, b| a < b);
    if sorted && !dedup {
        return Ok(None);
    }
    let mut order: Vec<u32> = (0..times.len() as u32).collect();
    if !sorted {
        // This sort is stable, and fast on nearly sorted data.
        order.sort_by_key(|&row| times[row as usize]);
    }
    if dedup {
        order = last_of_each(schema, columns, times, order)?;
    }
    Ok((!sorted || order.len() < times.len()).then_some(order))
}

fn checked_columns(
    schema: &TableSchema,
    batch: &RecordBatch,
    options: &StorageOptions,
) -> EngineResult<Vec<ArrayRef>> {
    if batch.num_columns() != schema.columns.len() {
        return Err(EngineError::internal(format!(
            "a batch has {} columns, but its table has {}",
            batch.num_columns(),
            schema.columns.len()
        )));
    }
    let columns = schema.columns.iter().zip(batch.columns()).map(|(column, array)| {
        check_type(column, array, options)?;
        Ok(column::without_nulls(column.sql_type, array))
    });
    columns.collect()
}

/// Returns the designated timestamps. Refuses null and timestamps before 1970.
fn designated(array: &ArrayRef) -> EngineResult<arrow_buffer::ScalarBuffer<i64>> {
    if array.null_count() > 0 {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            "designated timestamp column cannot be NULL",
        ));
    }
    let times = column::timestamps(array)?;
    if times.iter().any(|&ts| ts < 0) {
        return Err(EngineError::new(
            ErrorCode::InvalidValue,
            "designated timestamp before 1970-01-01 is not allowed",
        ));
    }
    Ok(times)
}
