//! Cost and leftovers of a checkpoint: nothing is written twice, no unreferenced file remains, and
//! the background thread requests a checkpoint when one is due.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{OpenMode, SimVfs, Vfs};

const DAY: i64 = 86_400_000_000;

fn options() -> StorageOptions {
    StorageOptions {
        commit_mode: CommitMode::NoSync,
        log_file_bytes: 1 << 20,
        keep_generations: 1,
        disk_reserve_bytes: 0,
        background: false,
        ..StorageOptions::default()
    }
}

fn open(disk: &SimVfs, options: StorageOptions) -> Arc<Storage> {
    Storage::open(Arc::new(disk.clone()), options).unwrap()
}

fn schema(name: &str) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("sym", SqlType::Symbol),
    ];
    let schema = TableSchema::new(name, columns);
    TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema }
}

fn create(storage: &Storage, name: &str) -> u64 {
    storage.commit(vec![Change::CreateTable(schema(name))]).unwrap();
    storage.snapshot().table(name).unwrap().schema().id
}

/// One row per timestamp, with this symbol.
fn batch(times: &[i64], symbol: &str) -> RecordBatch {
    let times = times.iter().map(|ts| Some(*ts));
    let symbols = StringArray::from_iter_values(times.clone().map(|_| symbol));
    let columns: [(&str, ArrayRef); 2] = [
        ("ts", Arc::new(times.collect::<TimestampMicrosecondArray>())),
        ("sym", Arc::new(symbols)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, name: &str, times: &[i64], symbol: &str) {
    let table = storage.snapshot().table(name).unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let change = Change::Append { table, schema_version, batch: batch(times, symbol) };
    storage.commit(vec![change]).unwrap();
}

fn import(storage: &Arc<Storage>, table: u64, portions: &[&[i64]]) {
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    for times in portions {
        bulk.push(batch(times, "s")).unwrap();
    }
    bulk.finish().unwrap();
}

/// Symbols of a table's rows, in time order.
fn symbols(storage: &Storage, name: &str) -> Vec<String> {
    let mut found = Vec::new();
    for slice in storage.snapshot().table(name).unwrap().slices().unwrap() {
        let columns = slice.columns(&[1], 0..slice.rows()).unwrap();
        let texts = columns[0].as_dictionary::<Int32Type>().downcast_dict::<StringArray>().unwrap();
        found.extend(texts.into_iter().map(|text| text.unwrap().to_owned()));
    }
    found
}

fn files(disk: &SimVfs, start: &str, end: &str) -> usize {
    disk.files().iter().filter(|path| path.starts_with(start) && path.ends_with(end)).count()
}

fn len(disk: &SimVfs, path: &str) -> u64 {
    disk.open(path, OpenMode::Read).unwrap().len().unwrap()
}

fn wait_for(what: &str, is_done: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_mins(1);
    while !is_done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_checkpoint_without_changes_writes_no_files() {
    for keep_generations in [1, 2] {
        let disk = SimVfs::new(1);
        let storage = open(&disk, StorageOptions { keep_generations, ..options() });
        let table = create(&storage, "t");
        append(&storage, "t", &[1, 2], "a");
        import(&storage, table, &[&[DAY, DAY + 1]]);
        storage.checkpoint().unwrap();
        let before = disk.operations();
        storage.checkpoint().unwrap();
        assert_eq!(disk.operations(), before);
    }
}

#[test]
fn rows_in_time_order_are_written_once() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, StorageOptions { segment_rows: 10, ..options() });
    create(&storage, "t");
    create(&storage, "other");
    for part in 0..5 {
        let times: Vec<i64> = (part * 10..part * 10 + 10).collect();
        append(&storage, "t", &times, "a");
        storage.checkpoint().unwrap();
        // A checkpoint for another table does not touch this table.
        append(&storage, "other", &[part], "b");
        storage.checkpoint().unwrap();
    }
    let small = 5; // Rows of the other table, combined with its earlier rows.
    let written = storage.folded_rows();
    assert!((50 + small..=50 + small * 4).contains(&written), "{written}");
}

#[test]
fn startup_finds_no_unreferenced_files() {
    for keep_generations in [1, 2] {
        let options = StorageOptions { keep_generations, segment_rows: 8, ..options() };
        let disk = SimVfs::new(1);
        let storage = open(&disk, options.clone());
        let table = create(&storage, "t");
        for round in 0..12 {
            // Late rows, so older segments are merged and rewritten.
            append(&storage, "t", &[round * 7 % 5, DAY + round, round], &format!("s{round}"));
            import(&storage, table, &[&[20 - round, DAY / 2]]);
            storage.checkpoint().unwrap();
            let started = disk.kill(round as u64);
            drop(open(&started, options.clone()));
            assert_eq!(files(&started, "db/trash/", ""), 0, "round {round}: {:?}", disk.files());
        }
    }
}

#[test]
fn a_dictionary_is_stored_in_few_files() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, options());
    create(&storage, "t");
    let mut expected = Vec::new();
    for round in 0..30 {
        let symbol = format!("symbol {round}");
        append(&storage, "t", &[round], &symbol);
        expected.push(symbol);
        storage.checkpoint().unwrap();
        let count = disk.files().iter().filter(|path| path.contains("/sym.")).count();
        assert!((1..=8).contains(&count), "{count} files: {:?}", disk.files());
    }
    storage.close().unwrap();
    assert_eq!(symbols(&open(&disk, options()), "t"), expected);
}

#[test]
fn a_manifest_edit_contains_only_changes() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, options());
    for table in 0..60 {
        create(&storage, &format!("t{table}"));
        append(&storage, &format!("t{table}"), &[1], "a");
    }
    storage.checkpoint().unwrap();
    for edit in 3..6 {
        append(&storage, "t7", &[edit], "a");
        storage.checkpoint().unwrap();
        let (whole, next) =
            (len(&disk, "db/manifest.2"), len(&disk, &format!("db/manifest.{edit}")));
        assert!(next * 10 < whole, "{next} bytes of {whole}");
    }
}

/// The preallocated space exceeds neither the log's content nor the configured size, so a
/// short-lived process leaves small files.
#[test]
fn the_log_is_preallocated_only_in_sync_mode() {
    for (commit_mode, ahead) in [(CommitMode::Sync, true), (CommitMode::NoSync, false)] {
        let disk = SimVfs::new(1);
        let options = StorageOptions { log_prewrite_bytes: 100_000, commit_mode, ..options() };
        let storage = open(&disk, options);
        create(&storage, "t");
        let log = disk.files().into_iter().find(|path| path.starts_with("db/log/")).unwrap();
        let first = len(&disk, &log);
        assert_eq!(first, if ahead { 8_192 + (16 << 10) } else { 8_192 }, "{commit_mode:?}");
        for row in 0..100 {
            append(&storage, "t", &[row], "a");
        }
        // A header, and a block per commit.
        let (written, found) = (102 * 4_096, len(&disk, &log));
        let max = if ahead { written + 100_000 } else { written };
        assert!((written..=max).contains(&found), "{commit_mode:?}: {found} bytes");
        assert_eq!(found > written, ahead, "{commit_mode:?}: {found} bytes");
    }
}

#[test]
fn every_call_on_a_closed_storage_fails_with_the_closed_error() {
    let storage = open(&SimVfs::new(1), options());
    let table = create(&storage, "t");
    storage.close().unwrap();
    let closed = [
        storage.commit(Vec::new()).unwrap_err(),
        storage.begin_bulk(BulkTarget::Existing(table)).unwrap_err(),
        storage.flush().unwrap_err(),
        storage.checkpoint().unwrap_err(),
    ];
    for error in closed {
        assert_eq!(error.code, ErrorCode::Closed, "{error}");
    }
    // Closing twice is allowed.
    storage.close().unwrap();
}

#[test]
fn a_table_id_that_is_already_in_use_is_refused() {
    let disk = SimVfs::new(1);
    let storage = open(&disk, options());
    let table = create(&storage, "t");
    append(&storage, "t", &[1], "a");
    let used = TableSchema { id: table, ..schema("u") };
    let refused = storage.commit(vec![Change::CreateTable(used)]).unwrap_err();
    assert!(refused.reason().contains("is invalid or in use"), "{refused}");
    assert!(storage.snapshot().table("u").is_none());
    assert_eq!(symbols(&storage, "t"), ["a"]);
}

#[test]
fn overlapping_segments_of_one_import_are_merged_in_the_background() {
    let small = StorageOptions { bulk_memory_bytes: 1_000, background: true, ..options() };
    let storage = open(&SimVfs::new(1), small);
    let table = create(&storage, "t");
    let times: Vec<i64> = (0..500).collect();
    import(&storage, table, &[&times, &times, &times]);
    wait_for("a checkpoint", || storage.folded_rows() > 0);
    assert_eq!(storage.snapshot().table("t").unwrap().row_count().unwrap(), 1_500);
}
