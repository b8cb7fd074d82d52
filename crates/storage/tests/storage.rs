//! The storage on real files: committed rows are present, in order, after every kind of reopening.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringViewArray,
    TimestampMicrosecondArray,
};
use tempfile::TempDir;
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Slice, Storage, StorageOptions, TableSchema,
    TableSnapshot, TimeRange,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, SimVfs, Vfs};

const HOUR: i64 = 3_600_000_000;

fn options() -> StorageOptions {
    StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        background: false,
        ..StorageOptions::default()
    }
}

fn open(directory: &TempDir) -> Arc<Storage> {
    open_with(directory, options())
}

fn open_with(directory: &TempDir, options: StorageOptions) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    Storage::open(vfs, options).unwrap()
}

fn trades(name: &str, partition_by: PartitionBy) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("sym", SqlType::Symbol),
        ColumnSchema::new("id", SqlType::Long),
        ColumnSchema::new("note", SqlType::Varchar),
        ColumnSchema::new("flag", SqlType::Boolean),
    ];
    let schema = TableSchema::new(name, columns);
    TableSchema { timestamp: Some(0), partition_by, ..schema }
}

/// Returns rows `(ts, id)`; the other cells are derived from the id.
fn batch(schema: &TableSchema, rows: &[(i64, i64)]) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    let mut notes = Vec::new();
    for (_, id) in rows {
        if id % 7 == 0 {
            symbols.append_null();
        } else {
            symbols.append_value(format!("s{}", id % 5));
        }
        notes.push(note(*id));
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<TimestampMicrosecondArray>()),
        Arc::new(symbols.finish()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<Int64Array>()),
        Arc::new(StringViewArray::from_iter(notes)),
        Arc::new(rows.iter().map(|row| Some(row.1 % 2 == 0)).collect::<BooleanArray>()),
    ];
    let names = schema.columns.iter().map(|column| column.name.clone());
    RecordBatch::try_from_iter(names.zip(columns)).unwrap()
}

fn note(id: i64) -> Option<String> {
    match id % 4 {
        0 => None,
        1 => Some(String::new()),
        2 => Some(format!("n{id}")),
        _ => Some(format!("a text longer than twelve bytes, number {id}")),
    }
}

fn create(storage: &Arc<Storage>, schema: TableSchema) -> Arc<TableSnapshot> {
    let name = schema.name.clone();
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    storage.snapshot().table(&name).unwrap()
}

fn append(storage: &Arc<Storage>, name: &str, rows: &[(i64, i64)]) {
    let table = storage.snapshot().table(name).unwrap();
    let schema = table.schema();
    let batch = batch(schema, rows);
    let change = Change::Append { table: schema.id, schema_version: schema.version, batch };
    storage.commit(vec![change]).unwrap();
}

/// Returns all rows as `(ts, id)`. Checks every other cell and the order of the slices.
fn rows_of(table: &TableSnapshot, slices: &[Slice]) -> Vec<(i64, i64)> {
    let mut rows = Vec::new();
    let mut last = i64::MIN;
    for slice in slices {
        let times = slice.timestamps().unwrap();
        assert_eq!(times.len(), slice.rows());
        assert_eq!(slice.time_bounds(), (times[0], times[times.len() - 1]));
        assert!(slice.time_bounds().0 >= last && times.is_sorted());
        last = slice.time_bounds().1;
        let columns = slice.columns(&[1, 2, 3, 4], 0..slice.rows()).unwrap();
        let symbols = columns[0].as_dictionary::<Int32Type>();
        assert!(Arc::ptr_eq(symbols.values(), &table.symbols(1).unwrap().values()));
        let texts = symbols.values().as_string::<i32>();
        let ids = columns[1].as_primitive::<Int64Type>();
        for row in 0..slice.rows() {
            let id = ids.value(row);
            let symbol = symbols.key(row).map(|key| texts.value(key).to_owned());
            assert_eq!(symbol, (id % 7 != 0).then(|| format!("s{}", id % 5)));
            let found = columns[2].as_string_view();
            let found = found.is_valid(row).then(|| found.value(row).to_owned());
            assert_eq!(found, note(id));
            assert_eq!(columns[3].as_boolean().value(row), id % 2 == 0);
            rows.push((times[row], id));
        }
    }
    rows
}

fn all_rows(storage: &Storage, name: &str) -> Vec<(i64, i64)> {
    let table = storage.snapshot().table(name).unwrap();
    let rows = rows_of(&table, &table.slices().unwrap());
    assert_eq!(rows.len() as u64, table.row_count().unwrap());
    let bounds = rows.first().map(|first| (first.0, rows[rows.len() - 1].0));
    assert_eq!(table.time_bounds(), bounds);
    rows
}

/// Sorts rows in commit order by time, with a stable sort.
fn sorted(rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.0);
    rows
}

fn scattered(count: i64) -> Vec<(i64, i64)> {
    (0..count).map(|id| ((id * 7_919) % 1_000 * HOUR / 7, id)).collect()
}

#[test]
fn an_empty_commit_does_not_hide_later_commits() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    storage.commit(Vec::new()).unwrap();
    create(&storage, trades("trades", PartitionBy::Day));
    let receipt = storage.commit(Vec::new()).unwrap();
    assert_eq!(receipt.lsn, 1);
    append(&storage, "trades", &[(1, 1)]);
    drop(storage); // No close: the log is replayed.
    assert_eq!(all_rows(&open(&directory), "trades"), vec![(1, 1)]);
}

#[test]
fn out_of_order_commits_are_returned_in_time_order() {
    for unit in [PartitionBy::None, PartitionBy::Hour, PartitionBy::Day, PartitionBy::Month] {
        let directory = TempDir::new().unwrap();
        let storage = open(&directory);
        create(&storage, trades("trades", unit));
        let rows = scattered(2_000);
        for (index, part) in rows.chunks(97).enumerate() {
            append(&storage, "trades", part);
            if index % 5 == 4 {
                storage.checkpoint().unwrap();
            }
            if index % 6 == 5 {
                assert_eq!(all_rows(&storage, "TRADES"), sorted(&rows[..(index + 1) * 97]));
            }
        }
        assert_eq!(all_rows(&storage, "trades"), sorted(&rows));
        drop(storage); // No close: the log is replayed.
        let storage = open(&directory);
        assert_eq!(all_rows(&storage, "trades"), sorted(&rows));
        storage.close().unwrap();
        let storage = open(&directory);
        assert_eq!(all_rows(&storage, "trades"), sorted(&rows));
    }
}

#[test]
fn many_single_row_commits_are_merged_into_few_slices() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    create(&storage, trades("t", PartitionBy::Day));
    let rows: Vec<_> = (0..3_000).map(|id| (id * 1_000, id)).collect();
    for row in &rows {
        append(&storage, "t", &[*row]);
    }
    let table = storage.snapshot().table("t").unwrap();
    assert!(table.slices().unwrap().len() < 20);
    assert_eq!(all_rows(&storage, "t"), rows);
}

#[test]
fn time_range_queries_return_exactly_the_rows_in_range() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    create(&storage, trades("t", PartitionBy::Day));
    let rows = scattered(3_000);
    append(&storage, "t", &rows[..1_500]);
    storage.checkpoint().unwrap();
    append(&storage, "t", &rows[1_500..]);
    let table = storage.snapshot().table("t").unwrap();
    let ranges = [
        TimeRange { lo: 3 * HOUR, hi: 5 * HOUR },
        TimeRange { lo: 50 * HOUR, hi: 50 * HOUR + 1 },
        TimeRange { lo: 100 * HOUR, hi: i64::MAX },
    ];
    let inside = |ts: i64| ranges.iter().any(|range| range.lo <= ts && ts < range.hi);
    let expected: Vec<_> = sorted(&rows).into_iter().filter(|row| inside(row.0)).collect();
    assert_eq!(rows_of(&table, &table.slices_in(&ranges).unwrap()), expected);
}

#[test]
fn time_range_queries_find_the_matching_partitions_among_many() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    create(&storage, trades("t", PartitionBy::Hour));
    // Two of every three hours have rows, at the first, a middle and the last timestamp of the
    // hour.
    let hours = (0..300).filter(|hour| hour % 3 != 1).map(|hour| hour * HOUR);
    let rows: Vec<(i64, i64)> =
        hours.flat_map(|floor| [floor, floor + 7, floor + HOUR - 1]).zip(1..).collect();
    append(&storage, "t", &rows);
    let table = storage.snapshot().table("t").unwrap();
    let ends: Vec<i64> = (-1..302).flat_map(|hour| [hour * HOUR - 1, hour * HOUR]).collect();
    let check = |ranges: &[TimeRange]| {
        let inside = |ts: i64| ranges.iter().any(|range| range.lo <= ts && ts < range.hi);
        let expected: Vec<_> = rows.iter().copied().filter(|row| inside(row.0)).collect();
        assert_eq!(rows_of(&table, &table.slices_in(ranges).unwrap()), expected, "{ranges:?}");
    };
    for (at, &lo) in ends.iter().enumerate().step_by(5) {
        check(&[TimeRange { lo, hi: lo + 1 }]);
        for &hi in ends[at + 1..].iter().step_by(97) {
            check(&[TimeRange { lo, hi }]);
            check(&[TimeRange { lo: i64::MIN, hi: lo }, TimeRange { lo: hi, hi: i64::MAX }]);
            check(&[TimeRange { lo: lo - 9, hi: lo - 5 }, TimeRange { lo, hi }]);
        }
    }
    check(&[]);
    check(&[TimeRange { lo: i64::MIN, hi: i64::MAX }]);
}

#[test]
fn bulk_writes_are_visible_only_after_finish() {
    for mode in [CommitMode::Sync, CommitMode::NoSync] {
        let directory = TempDir::new().unwrap();
        let small = StorageOptions {
            commit_mode: mode,
            bulk_memory_bytes: 20_000,
            segment_rows: 300,
            ..options()
        };
        let storage = open_with(&directory, small.clone());
        let rows = scattered(4_000);
        let target = BulkTarget::Create(trades("t", PartitionBy::Day));
        let mut bulk = storage.begin_bulk(target).unwrap();
        for part in rows.chunks(250) {
            let part = batch(bulk.schema(), part);
            bulk.push(part).unwrap();
        }
        assert!(storage.snapshot().table("t").is_none());
        bulk.finish().unwrap();
        assert_eq!(all_rows(&storage, "t"), sorted(&rows));
        drop(storage);
        let storage = open_with(&directory, small.clone());
        assert_eq!(all_rows(&storage, "t"), sorted(&rows));
        storage.checkpoint().unwrap();
        assert_eq!(all_rows(&storage, "t"), sorted(&rows));

        // Another bulk write into the same table, mixed with small commits; then an aborted one.
        let id = storage.snapshot().table("t").unwrap().schema().id;
        let mut bulk = storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
        let more: Vec<_> = scattered(500).iter().map(|row| (row.0, row.1 + 10_000)).collect();
        let part = batch(bulk.schema(), &more);
        bulk.push(part).unwrap();
        append(&storage, "t", &[(5, 20_001)]);
        bulk.finish().unwrap();
        append(&storage, "t", &[(5, 20_002)]);
        let expected: Vec<_> = rows.iter().copied().chain([(5, 20_001)]).chain(more).collect();
        let expected: Vec<_> = expected.into_iter().chain([(5, 20_002)]).collect();
        assert_eq!(all_rows(&storage, "t"), sorted(&expected));
        let mut bulk = storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
        let part = batch(bulk.schema(), &rows);
        bulk.push(part).unwrap();
        bulk.abort();
        storage.close().unwrap();
        let storage = open_with(&directory, small);
        assert_eq!(all_rows(&storage, "t"), sorted(&expected));
        let staged = std::fs::read_dir(directory.path().join("db/stage")).unwrap();
        assert_eq!(staged.count(), 0);
    }
}

#[test]
fn replacing_a_table_is_atomic_and_frees_the_old_files() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let old = create(&storage, trades("t", PartitionBy::Day)).schema().id;
    append(&storage, "t", &scattered(100));
    storage.checkpoint().unwrap();
    let pinned = storage.snapshot();
    let schema = trades("t", PartitionBy::Hour);
    let target = BulkTarget::Replace { old, schema };
    let mut bulk = storage.begin_bulk(target).unwrap();
    let part = batch(bulk.schema(), &[(1, 1)]);
    bulk.push(part).unwrap();
    assert_eq!(all_rows(&storage, "t").len(), 100);
    bulk.finish().unwrap();
    assert_eq!(all_rows(&storage, "t"), [(1, 1)]);
    storage.checkpoint().unwrap();
    let files = || {
        let path = directory.path().join(format!("db/t/{old}"));
        std::fs::read_dir(path).map_or(0, Iterator::count)
    };
    let before = pinned.table("t").unwrap();
    assert_eq!(rows_of(&before, &before.slices().unwrap()).len(), 100);
    assert!(files() > 0);
    drop((before, pinned));
    // The previous manifest, which is retained as a fallback, still lists these files.
    assert!(files() > 0);
    append(&storage, "t", &[(2, 2)]);
    storage.checkpoint().unwrap();
    assert_eq!(files(), 0);
}

#[test]
fn a_bulk_write_is_refused_if_its_new_table_name_has_been_taken() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let mut bulk = storage.begin_bulk(BulkTarget::Create(trades("t", PartitionBy::Day))).unwrap();
    let part = batch(bulk.schema(), &[(1, 1)]);
    bulk.push(part).unwrap();
    create(&storage, trades("T", PartitionBy::None));
    assert_eq!(bulk.finish().unwrap_err().code, ErrorCode::TableExists);
    assert_eq!(all_rows(&storage, "t"), []);
}

#[test]
fn a_new_column_is_null_in_old_rows() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, trades("t", PartitionBy::Day));
    append(&storage, "t", &scattered(50));
    storage.checkpoint().unwrap();
    append(&storage, "t", &scattered(50));
    let mut schema = TableSchema::clone(table.schema());
    schema.columns.push(ColumnSchema::new("extra", SqlType::Double));
    schema.columns.push(ColumnSchema::new("small", SqlType::Short));
    schema.columns.push(ColumnSchema::new("tag", SqlType::Symbol));
    storage.commit(vec![Change::ReplaceSchema(schema.clone())]).unwrap();
    let stale = storage.commit(vec![Change::ReplaceSchema(schema)]).unwrap_err();
    assert_eq!(stale.code, ErrorCode::Replan);
    let (id, schema_version) = (table.schema().id, table.schema().version);
    let batch = batch(table.schema(), &scattered(5));
    let stale = Change::Append { table: id, schema_version, batch };
    assert_eq!(storage.commit(vec![stale]).unwrap_err().code, ErrorCode::Replan);
    let check = |storage: &Storage| {
        let table = storage.snapshot().table("t").unwrap();
        let mut rows = 0;
        for slice in table.slices().unwrap() {
            let columns = slice.columns(&[5, 6, 7], 0..slice.rows()).unwrap();
            assert_eq!(columns[0].null_count(), slice.rows());
            assert_eq!(columns[1].null_count(), 0);
            assert_eq!(columns[2].null_count(), slice.rows());
            rows += slice.rows();
        }
        assert_eq!(rows, 100);
    };
    check(&storage);
    storage.checkpoint().unwrap();
    check(&storage);
    drop(storage);
    check(&open(&directory));
}

#[test]
fn tables_without_a_timestamp_keep_insertion_order() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let schema = TableSchema::new("t", vec![ColumnSchema::new("x", SqlType::Long)]);
    create(&storage, schema);
    let mut next = 0;
    for round in 0..30 {
        let table = storage.snapshot().table("t").unwrap();
        let (id, version) = (table.schema().id, table.schema().version);
        let values: ArrayRef = Arc::new((next..next + 10).map(Some).collect::<Int64Array>());
        next += 10;
        let batch = RecordBatch::try_from_iter([("x", values)]).unwrap();
        if round % 7 == 3 {
            let mut bulk = storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
            bulk.push(batch).unwrap();
            bulk.finish().unwrap();
        } else {
            let change = Change::Append { table: id, schema_version: version, batch };
            storage.commit(vec![change]).unwrap();
        }
        if round % 5 == 4 {
            storage.checkpoint().unwrap();
        }
    }
    let check = |storage: &Storage| {
        let table = storage.snapshot().table("t").unwrap();
        let mut found = Vec::new();
        for slice in table.slices().unwrap() {
            let columns = slice.columns(&[0], 0..slice.rows()).unwrap();
            found.extend_from_slice(columns[0].as_primitive::<Int64Type>().values());
        }
        assert_eq!(found, (0..300).collect::<Vec<_>>());
    };
    check(&storage);
    drop(storage);
    check(&open(&directory));
}

#[test]
fn invalid_timestamps_are_refused() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, trades("t", PartitionBy::Day));
    let schema = table.schema();
    let change = |batch| Change::Append { table: schema.id, schema_version: schema.version, batch };
    let early = storage.commit(vec![change(batch(schema, &[(-1, 1)]))]).unwrap_err();
    assert_eq!(early.code, ErrorCode::InvalidValue);
    assert!(early.message.contains("before 1970-01-01"));
    let good = batch(schema, &[(1, 1)]);
    let mut columns = good.columns().to_vec();
    columns[0] = Arc::new(TimestampMicrosecondArray::from(vec![None]));
    let names = schema.columns.iter().map(|column| column.name.clone());
    let nullable = names.zip(columns).map(|(name, array)| (name, array, true));
    let null = RecordBatch::try_from_iter_with_nullable(nullable).unwrap();
    let null = storage.commit(vec![change(null)]).unwrap_err();
    assert!(null.message.contains("cannot be NULL"));
    assert_eq!(all_rows(&storage, "t"), []);
}

#[test]
fn a_commit_to_tables_and_records_is_atomic() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, trades("t", PartitionBy::Day));
    let (id, version) = (table.schema().id, table.schema().version);
    let put = Change::PutRecord { kind: "view".into(), key: "v".into(), value: b"x".to_vec() };
    let rows = batch(table.schema(), &[(1, 1)]);
    let good = Change::Append { table: id, schema_version: version, batch: rows.clone() };
    let bad = Change::Append { table: id, schema_version: version + 9, batch: rows };
    let failed = storage.commit(vec![put.clone(), good.clone(), bad]).unwrap_err();
    assert_eq!(failed.code, ErrorCode::Replan);
    assert!(storage.snapshot().record("view", "v").is_none());
    assert_eq!(all_rows(&storage, "t").len(), 0);
    storage.commit(vec![put, good, Change::Truncate(id)]).unwrap();
    assert_eq!(storage.snapshot().record("view", "v"), Some(&b"x"[..]));
    assert_eq!(all_rows(&storage, "t").len(), 0);
    storage.commit(vec![Change::DropTable(id)]).unwrap();
    storage.checkpoint().unwrap();
    drop(storage);
    let storage = open(&directory);
    assert!(storage.snapshot().table("t").is_none());
    assert_eq!(storage.snapshot().records("view").count(), 1);
}

#[test]
fn an_open_storage_is_locked_and_a_closed_storage_refuses_writes() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let second = Storage::open(Arc::clone(&vfs), options()).unwrap_err();
    assert_eq!(second.code, ErrorCode::RootLocked);
    storage.close().unwrap();
    let table = Change::CreateTable(trades("t", PartitionBy::Day));
    assert_eq!(storage.commit(vec![table]).unwrap_err().code, ErrorCode::Closed);
    Storage::open(vfs, options()).unwrap();
}

/// Simulates a server that is killed repeatedly, each time before it writes a checkpoint.
#[test]
fn the_number_of_replayed_log_files_does_not_grow_with_restarts() {
    let directory = TempDir::new().unwrap();
    create(&open(&directory), trades("t", PartitionBy::Day));
    let logs = || std::fs::read_dir(directory.path().join("db/log")).unwrap().count();
    for start in 0..7 {
        append(&open(&directory), "t", &[(start * HOUR, start)]);
    }
    assert_eq!(logs(), 8);
    let storage = open_with(&directory, StorageOptions { background: true, ..options() });
    append(&storage, "t", &[(7 * HOUR, 7)]);
    let manifest = directory.path().join("db/manifest.2");
    wait_for("a checkpoint", || manifest.exists());
    storage.close().unwrap();
    let rows: Vec<_> = (0..8).map(|id| (id * HOUR, id)).collect();
    assert_eq!(all_rows(&open(&directory), "t"), rows);
}

/// Waits until the background thread has done its work.
fn wait_for(what: &str, is_done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn async_commits_become_durable_without_a_flush() {
    let disk = SimVfs::new(7);
    let quick = StorageOptions { commit_mode: CommitMode::Async, async_flush_ms: 20, ..options() };
    let shared: Arc<dyn Vfs> = Arc::new(disk.clone());
    let storage = Storage::open(shared, StorageOptions { background: true, ..quick }).unwrap();
    create(&storage, trades("t", PartitionBy::Day));
    for id in 0..3 {
        append(&storage, "t", &[(id, id)]);
        let survives = |seed| {
            let lost: Arc<dyn Vfs> = Arc::new(disk.power_loss(seed));
            let storage = Storage::open(lost, options()).unwrap();
            let table = storage.snapshot().table("t");
            table.is_some_and(|table| table.row_count().unwrap() == id as u64 + 1)
        };
        wait_for("a flush", || (0..8).all(survives));
    }
}

#[test]
fn checkpoints_are_triggered_by_time_and_by_log_size() {
    let by_clock = StorageOptions { checkpoint_interval_ms: 20, ..options() };
    let by_length = StorageOptions { checkpoint_log_bytes: 16 << 10, ..options() };
    for options in [by_clock, by_length] {
        let directory = TempDir::new().unwrap();
        let storage = open_with(&directory, StorageOptions { background: true, ..options });
        create(&storage, trades("t", PartitionBy::Day));
        let rows: Vec<_> = (0..1_000).map(|id| (id, id)).collect();
        append(&storage, "t", &rows);
        let manifest = directory.path().join("db/manifest.2");
        wait_for("a checkpoint", || storage.folded_rows() == 1_000 && manifest.exists());
        assert_eq!(all_rows(&storage, "t"), rows);
    }
}

#[test]
fn invalid_changes_are_refused_without_effect() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let table = create(&storage, trades("t", PartitionBy::Day));
    let schema = TableSchema::clone(table.schema());
    let replace = |change: &dyn Fn(&mut TableSchema)| {
        let mut other = schema.clone();
        change(&mut other);
        storage.commit(vec![Change::ReplaceSchema(other)]).unwrap_err()
    };
    for (refused, names) in [
        (replace(&|schema| schema.partition_by = PartitionBy::Hour), "partitioning"),
        (replace(&|schema| schema.timestamp = None), "designated timestamp"),
        (replace(&|schema| schema.columns[2].sql_type = SqlType::Double), "'id'"),
    ] {
        assert_eq!(refused.code, ErrorCode::NotSupported, "{refused}");
        assert!(refused.message.contains(names), "{refused}");
    }
    let stale = replace(&|schema| schema.version += 1);
    assert_eq!(stale.code, ErrorCode::Replan, "{stale}");
    let append_batch = |batch| {
        let change = Change::Append { table: schema.id, schema_version: schema.version, batch };
        storage.commit(vec![change]).unwrap_err()
    };
    let good = batch(&schema, &[(1, 1)]);
    let narrow = append_batch(good.project(&[0, 1]).unwrap());
    assert!(narrow.reason().contains("a batch has 2 columns, but its table has 5"), "{narrow}");
    let crossed = append_batch(good.project(&[0, 1, 3, 2, 4]).unwrap());
    assert_eq!(crossed.code, ErrorCode::TypeMismatch, "{crossed}");
    assert!(crossed.message.contains("'id'"), "{crossed}");
    drop(storage);
    let storage = open(&directory);
    assert_eq!(**storage.snapshot().table("t").unwrap().schema(), schema);
    append(&storage, "t", &[(1, 1)]);
    assert_eq!(all_rows(&storage, "t"), [(1, 1)]);
}
