//! Uncommitted rows. Their own session already sees them exactly as they will be after the commit.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use tempfile::TempDir;
use tidemark_storage::{
    Change, ColumnSchema, CommitMode, PendingRows, Snapshot, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;

/// A row: hour, symbol, value.
type Row = (i64, &'static str, i64);

fn open(directory: &TempDir) -> Arc<Storage> {
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let options = StorageOptions { commit_mode: CommitMode::NoSync, ..StorageOptions::default() };
    let storage = Storage::open(vfs, options).unwrap();
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("s", SqlType::Symbol),
        ColumnSchema::new("v", SqlType::Long),
    ];
    let schema = TableSchema::new("t", columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    storage
}

fn batch(rows: &[Row]) -> RecordBatch {
    let times = rows.iter().map(|row| Some(row.0 * HOUR));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("ts", Arc::new(times.collect::<TimestampMicrosecondArray>())),
        ("s", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>())),
        ("v", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<Int64Array>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn pend(storage: &Storage, rows: &[Row]) -> PendingRows {
    let table = storage.snapshot().table("t").unwrap();
    storage.pend(table.schema().id, table.schema().version, &batch(rows)).unwrap()
}

fn append(storage: &Storage, rows: &[Row]) {
    let table = storage.snapshot().table("t").unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    storage.commit(vec![Change::Append { table, schema_version, batch: batch(rows) }]).unwrap();
}

fn shown(snapshot: &Snapshot) -> Vec<(String, i64)> {
    let table = snapshot.table("t").unwrap();
    let mut rows = Vec::new();
    for slice in table.slices().unwrap() {
        let columns = slice.columns(&[1, 2], 0..slice.rows()).unwrap();
        let symbols = columns[0].as_any_dictionary();
        let texts = symbols.values().as_string::<i32>();
        let keys = symbols.normalized_keys();
        let values = columns[1].as_primitive::<Int64Type>().values();
        rows.extend(keys.iter().zip(values).map(|(&k, &v)| (texts.value(k).to_owned(), v)));
    }
    rows
}

fn owned(rows: &[(&str, i64)]) -> Vec<(String, i64)> {
    rows.iter().map(|(symbol, value)| ((*symbol).to_owned(), *value)).collect()
}

#[test]
fn a_preview_matches_the_later_commit_and_is_invisible_to_other_readers() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    append(&storage, &[(1, "a", 1), (30, "b", 5)]);
    let committed = storage.snapshot();
    let first = pend(&storage, &[(3, "c", 3), (2, "a", 2)]);
    let second = pend(&storage, &[(4, "d", 4)]);
    let one = storage.preview(&committed, &committed, std::slice::from_ref(&first)).unwrap();
    let two = storage.preview(&committed, &one, std::slice::from_ref(&second)).unwrap();
    assert_eq!(shown(&one), owned(&[("a", 1), ("a", 2), ("c", 3), ("b", 5)]));
    assert_eq!(shown(&two), owned(&[("a", 1), ("a", 2), ("c", 3), ("d", 4), ("b", 5)]));
    assert_eq!(shown(&storage.snapshot()), owned(&[("a", 1), ("b", 5)]));
    assert_eq!(two.table("t").unwrap().row_count().unwrap(), 5);
    // Commits rows with other new symbols in between.
    append(&storage, &[(5, "e", 6), (6, "d", 7)]);
    storage.commit_pending(vec![first, second]).unwrap();
    let all = [("a", 1), ("a", 2), ("c", 3), ("d", 4), ("e", 6), ("d", 7), ("b", 5)];
    assert_eq!(shown(&storage.snapshot()), owned(&all));
    storage.close().unwrap();
    drop(storage);
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let storage = Storage::open(vfs, StorageOptions::default()).unwrap();
    assert_eq!(shown(&storage.snapshot()), owned(&all), "the symbols kept their keys");
}

#[test]
fn discarded_pending_rows_leave_nothing_behind() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let committed = storage.snapshot();
    let rows = pend(&storage, &[(1, "gone", 1)]);
    storage.preview(&committed, &committed, &[rows]).unwrap();
    append(&storage, &[(1, "here", 2)]);
    assert_eq!(shown(&storage.snapshot()), owned(&[("here", 2)]));
    storage.close().unwrap();
    drop(storage);
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
    let storage = Storage::open(vfs, StorageOptions::default()).unwrap();
    assert_eq!(shown(&storage.snapshot()), owned(&[("here", 2)]));
}

#[test]
fn merged_pending_rows_contain_both_batches_in_order() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let first = pend(&storage, &[(2, "a", 1), (1, "a", 2)]);
    let second = pend(&storage, &[(1, "b", 3), (3, "b", 4)]);
    let joined = first.joined(&second).unwrap().unwrap();
    storage.commit_pending(vec![joined]).unwrap();
    assert_eq!(shown(&storage.snapshot()), owned(&[("a", 2), ("b", 3), ("a", 1), ("b", 4)]));
}

#[test]
fn pending_rows_of_an_older_schema_are_refused() {
    let directory = TempDir::new().unwrap();
    let storage = open(&directory);
    let rows = pend(&storage, &[(1, "a", 1)]);
    let mut schema = TableSchema::clone(storage.snapshot().table("t").unwrap().schema());
    schema.columns.push(ColumnSchema::new("more", SqlType::Long));
    storage.commit(vec![Change::ReplaceSchema(schema)]).unwrap();
    let committed = storage.snapshot();
    let error = storage.preview(&committed, &committed, std::slice::from_ref(&rows)).unwrap_err();
    assert_eq!(error.code, ErrorCode::Replan);
    assert_eq!(storage.commit_pending(vec![rows]).unwrap_err().code, ErrorCode::Replan);
}
