//! Recovers a damaged table without its damaged data, which is reported exactly. Also tests when
//! segments are verified.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tempfile::{TempDir, tempdir};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, PartitionAction, Storage, StorageOptions,
    TableSchema, Verify,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::RealVfs;

const DAY: i64 = 86_400_000_000;

fn open_with(directory: &TempDir, verify: Verify) -> Arc<Storage> {
    let options = StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 64 << 10,
        background: false,
        verify,
        ..StorageOptions::default()
    };
    Storage::open(Arc::new(RealVfs::new(directory.path()).unwrap()), options).unwrap()
}

fn open(directory: &TempDir) -> Arc<Storage> {
    open_with(directory, Verify::First)
}

fn create(storage: &Storage) -> u64 {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("id", SqlType::Long),
        ColumnSchema::new("sym", SqlType::Symbol),
    ];
    let schema = TableSchema::new("t", columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    storage.snapshot().table("t").unwrap().schema().id
}

/// Returns the rows of one day. Every identifier is odd, and the symbol names the day.
fn batch(day: i64, rows: i64) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    (0..rows).for_each(|_| symbols.append_value(format!("day {day}")));
    let times = (0..rows).map(|row| Some(day * DAY + row)).collect::<TimestampMicrosecondArray>();
    let ids = (0..rows).map(|row| Some(2 * row + 1)).collect::<Int64Array>();
    let columns: [(&str, ArrayRef); 3] =
        [("ts", Arc::new(times)), ("id", Arc::new(ids)), ("sym", Arc::new(symbols.finish()))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn bulk(storage: &Arc<Storage>, table: u64, day: i64) {
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    bulk.push(batch(day, 1_000)).unwrap();
    bulk.finish().unwrap();
}

fn append(storage: &Storage, day: i64, rows: i64) -> EngineResult<()> {
    let table = storage.snapshot().table("t").unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let change = Change::Append { table, schema_version, batch: batch(day, rows) };
    storage.commit(vec![change]).map(drop)
}

/// Sum of all identifiers, and the distinct symbols in row order.
fn content(storage: &Storage) -> EngineResult<(i64, Vec<String>)> {
    let (mut sum, mut symbols) = (0, Vec::new());
    for slice in storage.snapshot().table("t").unwrap().slices()? {
        let columns = slice.columns(&[1, 2], 0..slice.rows())?;
        sum += columns[0].as_primitive::<Int64Type>().values().iter().sum::<i64>();
        let cells = columns[1].as_dictionary::<Int32Type>();
        let texts = cells.values().as_string::<i32>();
        for row in 0..cells.len() {
            symbols.push(texts.value(cells.key(row).unwrap()).to_owned());
        }
    }
    symbols.dedup();
    Ok((sum, symbols))
}

fn files(directory: &Path, part: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, part));
        } else if path.file_name().unwrap().to_str().unwrap().contains(part) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 16], at).unwrap();
}

fn days(days: &[i64]) -> Vec<String> {
    days.iter().map(|day| format!("day {day}")).collect()
}

#[test]
fn skipping_a_damaged_segment_makes_the_table_writable_again() {
    let directory = tempdir().unwrap();
    let storage = open(&directory);
    let table = create(&storage);
    (0..3).for_each(|day| bulk(&storage, table, day));
    storage.checkpoint().unwrap();
    append(&storage, 1, 5).unwrap();
    assert_eq!(storage.lost_data(table).unwrap(), []);
    assert_eq!(storage.skip_damage(table).unwrap(), []);
    let segments = files(directory.path(), ".seg");
    flip(&segments[1], 5_000);
    let lost = storage.lost_data(table).unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert_eq!((lost[0].partition.as_str(), lost[0].rows), ("1970-01-02", 1_000));
    assert_eq!(lost[0].bounds, (DAY, DAY + 999));
    assert!(lost[0].what.contains(segments[1].file_name().unwrap().to_str().unwrap()));
    assert_eq!(append(&storage, 4, 1).unwrap_err().code, ErrorCode::Damaged);
    assert_eq!(storage.skip_damage(table).unwrap(), lost);
    assert_eq!(storage.snapshot().damages(), []);
    assert_eq!(storage.lost_data(table).unwrap(), []);
    // In-memory rows of the same partition are retained.
    let expected = (2_000_025, days(&[0, 1, 2]));
    assert_eq!(content(&storage).unwrap(), expected);
    assert!(!segments[1].exists());
    append(&storage, 4, 1).unwrap();
    drop(storage);
    let storage = open(&directory);
    assert_eq!(storage.repairs(), [] as [String; 0]);
    assert_eq!(content(&storage).unwrap(), (2_000_026, days(&[0, 1, 2, 4])));
    assert_eq!(storage.snapshot().table("t").unwrap().row_count().unwrap(), 2_006);
}

#[test]
fn skipped_damage_does_not_reappear_from_the_previous_generation() {
    let directory = tempdir().unwrap();
    let storage = open(&directory);
    let table = create(&storage);
    bulk(&storage, table, 0);
    storage.checkpoint().unwrap();
    bulk(&storage, table, 1);
    storage.checkpoint().unwrap();
    flip(&files(directory.path(), ".seg")[0], 5_000);
    storage.skip_damage(table).unwrap();
    append(&storage, 2, 1).unwrap();
    storage.checkpoint().unwrap();
    storage.close().unwrap();
    drop(storage);
    // Damages the newest manifest. The previous manifest, which is used instead, records no damage.
    let current = std::fs::read_to_string(directory.path().join("db/CURRENT")).unwrap();
    let newest = current.split(' ').next().unwrap();
    flip(&directory.path().join("db").join(newest), 20);
    let storage = open(&directory);
    assert_eq!(storage.repairs().len(), 1);
    assert_eq!(storage.lost_data(table).unwrap(), []);
    assert_eq!(content(&storage).unwrap(), (1_000_001, days(&[1, 2])));
}

#[test]
fn skipping_damage_can_remove_entire_partitions_including_detached_ones() {
    let directory = tempdir().unwrap();
    let storage = open(&directory);
    let table = create(&storage);
    (0..3).for_each(|day| bulk(&storage, table, day));
    storage.checkpoint().unwrap();
    let action = PartitionAction::Detach;
    storage.commit(vec![Change::Partitions { table, action, floors: vec![2 * DAY] }]).unwrap();
    let segments = files(directory.path(), ".seg");
    flip(&segments[0], 3_000);
    flip(&segments[2], 3_000);
    let lost = storage.skip_damage(table).unwrap();
    let partitions: Vec<&str> = lost.iter().map(|part| part.partition.as_str()).collect();
    assert_eq!(partitions, ["1970-01-01", "1970-01-03"]);
    let snapshot = storage.snapshot();
    let found = snapshot.table("t").unwrap();
    assert_eq!(found.partition_list().len(), 1);
    assert_eq!(found.detached_list().len(), 0);
    storage.close().unwrap();
    drop((snapshot, found, storage));
    assert_eq!(content(&open(&directory)).unwrap(), (1_000_000, days(&[1])));
}

#[test]
fn lost_symbols_are_replaced_with_distinct_placeholders() {
    let directory = tempdir().unwrap();
    let storage = open(&directory);
    let table = create(&storage);
    for day in 0..4 {
        append(&storage, day, 10).unwrap();
        if day % 2 == 1 {
            storage.checkpoint().unwrap(); // Two symbols in each file.
        }
    }
    storage.close().unwrap();
    drop(storage);
    flip(&files(directory.path(), "sym.")[1], 30);
    let storage = open(&directory);
    assert_eq!(content(&storage).unwrap_err().code, ErrorCode::Damaged);
    let lost = storage.skip_damage(table).unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].what.starts_with("column 'sym': 2 symbols are lost"), "{lost:?}");
    let mut expected = days(&[0, 1]);
    expected.extend([2, 3].map(|key| format!("\u{FFFD}lost symbol {key}")));
    assert_eq!(content(&storage).unwrap(), (400, expected.clone()));
    append(&storage, 4, 1).unwrap();
    storage.close().unwrap();
    drop(storage);
    expected.extend(days(&[4]));
    let storage = open(&directory);
    assert_eq!(storage.snapshot().damages(), []);
    assert_eq!(content(&storage).unwrap(), (401, expected));
}

#[test]
fn skipping_lost_transactions_makes_the_table_writable_again() {
    let directory = tempdir().unwrap();
    let storage = open(&directory);
    let table = create(&storage);
    for _ in 0..4 {
        append(&storage, 0, 10).unwrap();
        storage.flush().unwrap();
    }
    append(&storage, 0, 10).unwrap();
    drop(storage);
    // A block in the middle of the log, after the header and the first group.
    let log = files(directory.path(), ".log").remove(0);
    flip(&log, 4_096 * 3 + 100);
    let storage = open(&directory);
    assert_eq!(append(&storage, 0, 1).unwrap_err().code, ErrorCode::Damaged);
    let lost = storage.skip_damage(table).unwrap();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].what.contains("transaction"), "{lost:?}");
    append(&storage, 0, 1).unwrap();
    drop(storage);
    let storage = open(&directory);
    assert_eq!(storage.snapshot().damages(), []);
    assert_eq!(content(&storage).unwrap().0, 401);
}

#[test]
fn segments_are_verified_at_startup_or_on_first_read_or_never() {
    for (verify, found_at_start, wrong_is_read) in
        [(Verify::Open, true, false), (Verify::First, false, false), (Verify::Off, false, true)]
    {
        let directory = tempdir().unwrap();
        let storage = open(&directory);
        let table = create(&storage);
        bulk(&storage, table, 0);
        storage.close().unwrap();
        drop(storage);
        // This offset is within the identifiers, which follow the timestamps.
        flip(&files(directory.path(), ".seg")[0], 64 + 8_000 + 64);
        let storage = open_with(&directory, verify);
        assert_eq!(storage.snapshot().damages().len(), usize::from(found_at_start), "{verify:?}");
        assert_eq!(content(&storage).is_ok(), wrong_is_read, "{verify:?}");
        // A check verifies everything in every mode.
        assert_eq!(storage.check(Some(table)).unwrap().len(), 1, "{verify:?}");
        assert_eq!(storage.snapshot().damages().len(), 1, "{verify:?}");
    }
}
