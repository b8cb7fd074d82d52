//! This version opens roots written by earlier versions (`roots/`), with their content.
//!
//! `TIDEMARK_WRITE_ROOT=1 cargo test --release -p tidemark-storage --test compat` writes the root
//! of the current version. Run it once per format version, before that version is released.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, FORMAT_VERSION, PartitionAction, PartitionFormat,
    Storage, StorageOptions, TableSchema, TableSnapshot, Update,
};
use tidemark_types::{ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{RealVfs, Vfs};

const HOUR: i64 = 3_600_000_000;
const ROWS: i64 = 60;

/// A relative path, because clones share compiled binaries. Cargo runs tests in the crate
/// directory.
fn roots() -> PathBuf {
    PathBuf::from("tests/roots")
}

fn open(root: &Path) -> Arc<Storage> {
    let options = StorageOptions {
        commit_mode: CommitMode::Sync,
        log_file_bytes: 32 << 10,
        log_prewrite_bytes: 0,
        disk_reserve_bytes: 0,
        background: false,
        ..StorageOptions::default()
    };
    let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(root).unwrap());
    Storage::open(vfs, options).unwrap()
}

fn schema(name: &str, timed: bool) -> TableSchema {
    let columns = vec![
        ColumnSchema::new("ts", SqlType::Timestamp),
        ColumnSchema::new("id", SqlType::Long),
        ColumnSchema::new("sym", SqlType::Symbol),
        ColumnSchema::new("note", SqlType::Varchar),
    ];
    let schema = TableSchema::new(name, columns);
    let partition_by = if timed { PartitionBy::Day } else { PartitionBy::None };
    TableSchema { timestamp: timed.then_some(0), partition_by, ..schema }
}

/// Timestamp of row `id`. Every third row is a few hours late; all other cells are derived from the
/// id.
fn time_of(id: i64) -> i64 {
    id * HOUR - if id % 3 == 0 { 7 * HOUR / 2 } else { 0 } + 40 * HOUR
}

fn symbol_of(id: i64) -> Option<String> {
    (id % 5 != 0).then(|| format!("symbol {}", id % 11))
}

fn note_of(id: i64) -> Option<String> {
    (id % 4 != 0).then(|| format!("note {id} with a tail").repeat((id % 4) as usize))
}

fn batch(ids: std::ops::Range<i64>) -> RecordBatch {
    let mut symbols = StringDictionaryBuilder::<Int32Type>::new();
    ids.clone().for_each(|id| symbols.append_option(symbol_of(id)));
    let times = ids.clone().map(|id| Some(time_of(id))).collect::<TimestampMicrosecondArray>();
    let columns: [(&str, ArrayRef); 4] = [
        ("ts", Arc::new(times)),
        ("id", Arc::new(ids.clone().map(Some).collect::<Int64Array>())),
        ("sym", Arc::new(symbols.finish())),
        ("note", Arc::new(ids.map(note_of).collect::<StringViewArray>())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, name: &str, ids: std::ops::Range<i64>) {
    let table = storage.snapshot().table(name).unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    storage.commit(vec![Change::Append { table, schema_version, batch: batch(ids) }]).unwrap();
}

/// Covers every kind of file and record: segments and symbols of three manifests (one of them a
/// base), a bulk write, a dropped table and Parquet files. Also a detached and reattached
/// partition, updated rows and a log to replay.
fn write_root(root: &Path) {
    let storage = open(root);
    for (name, timed) in [("timed", true), ("plain", false), ("dropped", true)] {
        storage.commit(vec![Change::CreateTable(schema(name, timed))]).unwrap();
    }
    for start in [0, 20] {
        for name in ["timed", "plain", "dropped"] {
            append(&storage, name, start..start + 10);
        }
        storage.checkpoint().unwrap();
        let id = storage.snapshot().table("timed").unwrap().schema().id;
        let mut bulk = storage.begin_bulk(BulkTarget::Existing(id)).unwrap();
        bulk.push(batch(start + 10..start + 20)).unwrap();
        bulk.finish().unwrap();
        append(&storage, "plain", start + 10..start + 20);
    }
    let dropped = storage.snapshot().table("dropped").unwrap().schema().id;
    let (kind, key, value) = ("setting".to_owned(), "key".to_owned(), b"value".to_vec());
    storage
        .commit(vec![Change::DropTable(dropped), Change::PutRecord { kind, key, value }])
        .unwrap();
    change_and_change_back(&storage);
    append(&storage, "timed", 40..ROWS);
    append(&storage, "plain", 40..ROWS);
}

/// Converts, detaches and updates rows so that the content stays the same.
fn change_and_change_back(storage: &Arc<Storage>) {
    let timed = storage.snapshot().table("timed").unwrap();
    let (table, floors) = (timed.schema().id, timed.partition_list());
    let floor = |index: usize| vec![floors[index].floor];
    storage.convert_partitions(table, &floor(0), PartitionFormat::Parquet).unwrap();
    for action in [PartitionAction::Detach, PartitionAction::Attach] {
        storage.commit(vec![Change::Partitions { table, action, floors: floor(1) }]).unwrap();
    }
    let base = storage.snapshot().table("timed").unwrap();
    let slice = base.slices().unwrap().into_iter().next_back().unwrap();
    let cells = slice.columns(&[3, 4], 0..slice.rows()).unwrap();
    let update = Update {
        schema_version: base.schema().version,
        columns: vec![3],
        rows: cells[1].as_primitive::<Int64Type>().values().to_vec(),
        values: vec![Arc::clone(&cells[0])],
        base,
    };
    storage.commit(vec![Change::Update(update)]).unwrap();
}

fn rows(table: &TableSnapshot) -> Vec<(i64, i64, Option<String>, Option<String>)> {
    let mut rows = Vec::new();
    for slice in table.slices().unwrap() {
        let columns = slice.columns(&[0, 1, 2, 3], 0..slice.rows()).unwrap();
        let times = columns[0].as_primitive::<TimestampMicrosecondType>();
        let ids = columns[1].as_primitive::<Int64Type>();
        let symbols = columns[2].as_dictionary::<Int32Type>();
        let texts = symbols.values().as_string::<i32>();
        let notes = columns[3].as_string_view();
        rows.extend((0..slice.rows()).map(|row| {
            let symbol = symbols.key(row).map(|key| texts.value(key).to_owned());
            let note = notes.is_valid(row).then(|| notes.value(row).to_owned());
            (times.value(row), ids.value(row), symbol, note)
        }));
    }
    rows
}

fn check(storage: &Storage) {
    let snapshot = storage.snapshot();
    assert!(snapshot.table("dropped").is_none());
    assert_eq!(snapshot.record("setting", "key"), Some(&b"value"[..]));
    for name in ["timed", "plain"] {
        let mut expected: Vec<_> =
            (0..ROWS).map(|id| (time_of(id), id, symbol_of(id), note_of(id))).collect();
        if name == "timed" {
            expected.sort_by_key(|row| row.0);
        }
        assert_eq!(rows(&snapshot.table(name).unwrap()), expected, "{name}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn databases_of_earlier_versions_can_be_opened() {
    let (major, minor) = FORMAT_VERSION;
    if std::env::var_os("TIDEMARK_WRITE_ROOT").is_some() {
        let root = roots().join(format!("v{major}.{minor}"));
        write_root(&root);
        std::fs::remove_file(root.join("lock")).unwrap();
    }
    let mut versions = 0;
    for entry in std::fs::read_dir(roots()).unwrap() {
        let stored = entry.unwrap().path();
        let directory = tempfile::tempdir().unwrap();
        copy(&stored, directory.path());
        let storage = open(directory.path());
        assert_eq!(storage.repairs(), [] as [String; 0], "an old root is not damaged");
        check(&storage);
        // The root accepts writes like a root created by this version.
        append(&storage, "plain", ROWS..ROWS + 1);
        storage.close().unwrap();
        drop(storage);
        let storage = open(directory.path());
        assert_eq!(
            storage.snapshot().table("plain").unwrap().row_count().unwrap(),
            ROWS as u64 + 1
        );
        let format = std::fs::read_to_string(directory.path().join("db/FORMAT")).unwrap();
        assert!(format.starts_with(&format!("tidemark {major}.{minor} ")), "{format}");
        versions += 1;
    }
    assert!(versions > 0, "no stored root");
}

#[test]
fn a_database_with_an_unreadable_format_file_opens_and_reports_a_repair() {
    let directory = tempfile::tempdir().unwrap();
    open(directory.path()).close().unwrap();
    let format = directory.path().join("db/FORMAT");
    let line = std::fs::read(&format).unwrap();
    std::fs::write(&format, b"tidemark ?").unwrap();
    let storage = open(directory.path());
    let [repair] = storage.repairs() else { panic!("{:?}", storage.repairs()) };
    assert!(repair.contains("does not contain a format version"), "{repair}");
    drop(storage);
    assert_eq!(std::fs::read(&format).unwrap(), line, "the file is rewritten");
    assert_eq!(open(directory.path()).repairs(), [] as [String; 0]);
}

#[test]
fn a_newer_format_is_refused_without_changing_the_database() {
    let (major, minor) = FORMAT_VERSION;
    for (newer, shown) in [((major, minor + 1), "minor"), ((major + 1, 0), "major")] {
        let directory = tempfile::tempdir().unwrap();
        open(directory.path()).close().unwrap();
        let format = directory.path().join("db/FORMAT");
        let version = format!("tidemark {}.{}", newer.0, newer.1);
        let line = format!("{version} {:08x}\n", crc32c::crc32c(version.as_bytes()));
        std::fs::write(&format, line).unwrap();
        let listing = || {
            let mut all = Vec::new();
            for entry in walk(directory.path()) {
                all.push((entry.clone(), std::fs::read(entry).unwrap()));
            }
            all
        };
        let before = listing();
        let vfs: Arc<dyn Vfs> = Arc::new(RealVfs::new(directory.path()).unwrap());
        let error = Storage::open(vfs, StorageOptions::default()).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotSupported, "{shown}");
        assert!(error.message.contains(&format!("format {}.{}", newer.0, newer.1)), "{error}");
        assert!(!error.message.contains('\n'));
        assert_eq!(listing(), before, "{shown}");
    }
}

fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(walk(&path)) } else { files.push(path) }
    }
    files.retain(|path| path.file_name().is_some_and(|name| name != "lock"));
    files.sort();
    files
}
