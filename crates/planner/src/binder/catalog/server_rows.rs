//! Rows about storage and its readers, built from the snapshot: `table_storage()`,
//! `wal_transactions('t')`, `reader_pool()`.

use std::sync::Arc;

use arrow::array::new_null_array;
use arrow_array::{ArrayRef, Int16Array, Int32Array, Int64Array, TimestampMicrosecondArray};
use tidemark_storage::TableSnapshot;
use tidemark_types::{EngineResult, SqlType};

use crate::binder::Binder;
use crate::binder::catalog::catalog_rows::{booleans, ints, longs, texts};
use crate::binder::state::scope::Relation;

impl Binder<'_> {
    /// Returns the rows of `table_storage()`.
    pub(crate) fn table_storage_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.sorted_tables();
        let (mut counts, mut rows, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        for table in &tables {
            if !self.reads_some(&table.schema().name) {
                counts.push(None);
                rows.push(None);
                bytes.push(None);
                continue;
            }
            let mut partitions = table.partition_list();
            counts.push(Some(partitions.len() as i64));
            rows.push(Some(partitions.iter().map(|one| one.rows as i64).sum::<i64>()));
            partitions.extend(table.detached_list());
            bytes.push(Some(partitions.iter().map(|one| one.disk_bytes as i64).sum::<i64>()));
        }
        let unit = |table: &Arc<TableSnapshot>| Some(table.schema().partition_by.name());
        self.literal_rows(vec![
            ("tableName", SqlType::String, texts(tables.iter().map(|t| Some(&t.schema().name)))),
            ("walEnabled", SqlType::Boolean, booleans(tables.iter().map(|t| t.schema().wal))),
            ("partitionBy", SqlType::String, texts(tables.iter().map(unit))),
            ("partitionCount", SqlType::Long, numbers(counts)),
            ("rowCount", SqlType::Long, numbers(rows)),
            ("diskSize", SqlType::Long, numbers(bytes)),
        ])
    }

    /// Returns the rows of `wal_transactions('t')`: transactions as recorded in the table's
    /// segments. All tables share one log, which does not record commit times.
    pub(crate) fn wal_transactions_rows(
        &mut self,
        table: &TableSnapshot,
    ) -> EngineResult<Relation> {
        let schema = table.schema();
        let found = table.transactions();
        let count = found.len();
        let timestamp = schema.timestamp.map(|index| schema.columns[index].sql_type);
        let micros = |at: i64| match timestamp {
            Some(SqlType::TimestampNs) => Some(at.div_euclid(1_000)),
            Some(_) => Some(at),
            None => None,
        };
        let times = |pick: fn((i64, i64)) -> i64| -> ArrayRef {
            let values = found.iter().map(|one| micros(pick(one.bounds)));
            Arc::new(values.collect::<TimestampMicrosecondArray>())
        };
        let unknown = || -> ArrayRef { Arc::new(Int32Array::new_null(count)) };
        let version = schema.version as i64;
        self.literal_rows(vec![
            ("sequencerTxn", SqlType::Long, longs(found.iter().map(|one| one.lsn as i64))),
            ("timestamp", SqlType::Timestamp, Arc::new(TimestampMicrosecondArray::new_null(count))),
            ("walId", SqlType::Int, ints((0..count).map(|_| 1))),
            ("segmentId", SqlType::Int, unknown()),
            ("segmentTxn", SqlType::Int, unknown()),
            ("structureVersion", SqlType::Long, longs((0..count).map(|_| version))),
            ("minTimestamp", SqlType::Timestamp, times(|bounds| bounds.0)),
            ("maxTimestamp", SqlType::Timestamp, times(|bounds| bounds.1)),
            ("rowCount", SqlType::Long, longs(found.iter().map(|one| one.rows as i64))),
            ("alterCommandType", SqlType::Short, Arc::new(Int16Array::from(vec![0_i16; count]))),
        ])
    }

    /// Returns the rows of `reader_pool()`. This database has no reader pool, so each pinned
    /// snapshot counts as a reader of every table.
    pub(crate) fn reader_pool_rows(&mut self) -> EngineResult<Relation> {
        let tables = self.sorted_tables();
        let pinned = self.context.pinned(self.snapshot);
        let pairs = || tables.iter().flat_map(|table| pinned.iter().map(move |pin| (table, pin)));
        let count = tables.len() * pinned.len();
        let names = texts(pairs().map(|(table, _)| Some(&table.schema().name)));
        let since = pairs().map(|(_, pin)| pin.published_micros);
        self.literal_rows(vec![
            ("table_name", SqlType::String, names),
            ("owner_thread_id", SqlType::Long, Arc::new(Int64Array::new_null(count))),
            (
                "last_access_timestamp",
                SqlType::Timestamp,
                Arc::new(TimestampMicrosecondArray::from_iter_values(since)),
            ),
            ("current_txn", SqlType::Long, longs(pairs().map(|(_, pin)| pin.lsn as i64))),
        ])
    }

    /// The columns of `tables()` that describe rows and commits. Transactions are applied at
    /// commit, so nothing is ever pending. Statistics that are not collected are null.
    pub(crate) fn written_columns(
        &self,
        tables: &[Arc<TableSnapshot>],
    ) -> Vec<crate::binder::catalog::catalog_rows::LiteralColumn<'static>> {
        let count = tables.len();
        let read = || {
            let read = |table| self.reads_some(&TableSnapshot::schema(table).name);
            tables.iter().map(move |table| Some(table).filter(|table| read(table)))
        };
        let rows = read().map(|table| table?.row_count().ok().map(|rows| rows as i64));
        let micros = |table: &TableSnapshot, at: i64| {
            let schema = table.schema();
            let nanos = schema
                .timestamp
                .is_some_and(|index| schema.columns[index].sql_type == SqlType::TimestampNs);
            if nanos { at.div_euclid(1_000) } else { at }
        };
        let times = |pick: fn((i64, i64)) -> i64| -> ArrayRef {
            let values = read().map(|table| {
                let table = table?;
                table.time_bounds().map(|bounds| micros(table, pick(bounds)))
            });
            Arc::new(values.collect::<TimestampMicrosecondArray>())
        };
        let last = || -> ArrayRef {
            let last = read().map(|table| table?.last_transaction().map(|lsn| lsn as i64));
            Arc::new(last.collect::<Int64Array>())
        };
        let none = |sql_type: SqlType| new_null_array(&sql_type.arrow_type(), count);
        let mut columns = vec![
            ("table_row_count", SqlType::Long, Arc::new(rows.collect::<Int64Array>()) as ArrayRef),
            ("table_min_timestamp", SqlType::Timestamp, times(|bounds| bounds.0)),
            ("table_max_timestamp", SqlType::Timestamp, times(|bounds| bounds.1)),
            ("table_last_write_timestamp", SqlType::Timestamp, none(SqlType::Timestamp)),
            ("table_txn", SqlType::Long, last()),
            ("table_memory_pressure_level", SqlType::Int, none(SqlType::Int)),
            ("wal_pending_row_count", SqlType::Long, longs((0..count).map(|_| 0))),
            ("wal_txn", SqlType::Long, last()),
            ("wal_max_timestamp", SqlType::Timestamp, times(|bounds| bounds.1)),
            ("replica_more_pending", SqlType::Boolean, booleans((0..count).map(|_| false))),
        ];
        let untracked =
            |(name, sql_type): &(&'static str, SqlType)| (*name, *sql_type, none(*sql_type));
        columns.extend(UNTRACKED.iter().map(untracked));
        columns
    }
}

/// Builds a LONG column. The value is null for tables in which the user may not read any column.
fn numbers(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

/// Write statistics that are not collected.
const UNTRACKED: &[(&str, SqlType)] = &[
    ("table_write_amp_count", SqlType::Long),
    ("table_write_amp_p50", SqlType::Double),
    ("table_write_amp_p90", SqlType::Double),
    ("table_write_amp_p99", SqlType::Double),
    ("table_write_amp_max", SqlType::Double),
    ("table_merge_rate_count", SqlType::Long),
    ("table_merge_rate_p50", SqlType::Long),
    ("table_merge_rate_p90", SqlType::Long),
    ("table_merge_rate_p99", SqlType::Long),
    ("table_merge_rate_max", SqlType::Long),
    ("wal_dedup_row_count_since_start", SqlType::Long),
    ("wal_tx_count", SqlType::Long),
    ("wal_tx_size_p50", SqlType::Long),
    ("wal_tx_size_p90", SqlType::Long),
    ("wal_tx_size_p99", SqlType::Long),
    ("wal_tx_size_max", SqlType::Long),
    ("replica_batch_count", SqlType::Long),
    ("replica_batch_size_p50", SqlType::Long),
    ("replica_batch_size_p90", SqlType::Long),
    ("replica_batch_size_p99", SqlType::Long),
    ("replica_batch_size_max", SqlType::Long),
];
