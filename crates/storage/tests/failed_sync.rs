//! A failed sync never counts as a success, and the database recovers automatically. Data that may
//! be lost is written to other files, in every commit mode and without a restart.

#![allow(
    clippy::unwrap_used,
    clippy::case_sensitive_file_extension_comparisons,
    reason = "a test of files this code names"
)]

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampMicrosecondArray};
use tidemark_storage::{
    BulkTarget, Change, ColumnSchema, CommitMode, Storage, StorageOptions, TableSchema,
};
use tidemark_types::{EngineResult, ErrorCode, PartitionBy, SqlType};
use tidemark_vfs::{SimFault, SimVfs};

const MODES: [CommitMode; 3] = [CommitMode::Sync, CommitMode::Async, CommitMode::NoSync];

fn options(commit_mode: CommitMode) -> StorageOptions {
    StorageOptions {
        commit_mode,
        log_file_bytes: 64 << 10,
        log_prewrite_bytes: 8 << 10,
        background: false,
        ..StorageOptions::default()
    }
}

fn open(vfs: &SimVfs, mode: CommitMode) -> Arc<Storage> {
    Storage::open(Arc::new(vfs.clone()), options(mode)).unwrap()
}

fn fail_sync(vfs: &SimVfs, path: &str) {
    vfs.plant(SimFault::FailSync { path: path.to_owned(), at: 0 });
}

fn create(storage: &Storage, name: &str) -> u64 {
    let columns =
        vec![ColumnSchema::new("ts", SqlType::Timestamp), ColumnSchema::new("id", SqlType::Long)];
    let schema = TableSchema::new(name, columns);
    let schema = TableSchema { timestamp: Some(0), partition_by: PartitionBy::Day, ..schema };
    storage.commit(vec![Change::CreateTable(schema)]).unwrap();
    storage.snapshot().table(name).unwrap().schema().id
}

fn batch(first: i64, rows: i64) -> RecordBatch {
    let times = (first..first + rows).map(Some).collect::<TimestampMicrosecondArray>();
    let ids = (first..first + rows).map(Some).collect::<Int64Array>();
    let columns: [(&str, ArrayRef); 2] = [("ts", Arc::new(times)), ("id", Arc::new(ids))];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn append(storage: &Storage, name: &str, first: i64) -> EngineResult<()> {
    let table = storage.snapshot().table(name).unwrap();
    let (table, schema_version) = (table.schema().id, table.schema().version);
    let change = Change::Append { table, schema_version, batch: batch(first, 10) };
    storage.commit(vec![change]).map(drop)
}

fn bulk(storage: &Arc<Storage>, table: u64, first: i64) {
    let mut bulk = storage.begin_bulk(BulkTarget::Existing(table)).unwrap();
    bulk.push(batch(first, 10)).unwrap();
    bulk.finish().unwrap();
}

/// Reads all rows of a table and returns their number.
fn rows(storage: &Storage, name: &str) -> EngineResult<usize> {
    let mut count = 0;
    for slice in storage.snapshot().table(name).unwrap().slices()? {
        slice.columns(&[0, 1], 0..slice.rows())?;
        count += slice.rows();
    }
    Ok(count)
}

/// Checks that every possible state after a power loss opens without damage and has this number of
/// rows.
fn survives_power_loss(vfs: &SimVfs, mode: CommitMode, expected: usize) {
    for seed in 0..40 {
        let storage = open(&vfs.power_loss(seed), mode);
        assert_eq!(storage.repairs(), [] as [String; 0], "{mode:?}, seed {seed}");
        assert_eq!(storage.snapshot().damages(), [], "{mode:?}, seed {seed}");
        assert_eq!(rows(&storage, "t").unwrap(), expected, "{mode:?}, seed {seed}");
    }
}

#[test]
fn a_failed_log_sync_is_repaired_and_writes_continue() {
    for mode in MODES {
        let vfs = SimVfs::new(1);
        let storage = open(&vfs, mode);
        create(&storage, "t");
        append(&storage, "t", 0).unwrap();
        storage.flush().unwrap();
        fail_sync(&vfs, ".log");
        // In `sync` mode, the commit itself fails and leaves no rows.
        let acknowledged = append(&storage, "t", 100).is_ok();
        assert_eq!(acknowledged, mode != CommitMode::Sync);
        storage.flush().unwrap();
        assert!(vfs.sync_has_failed());
        let expected = if acknowledged { 20 } else { 10 };
        survives_power_loss(&vfs, mode, expected);
        append(&storage, "t", 200).unwrap();
        storage.flush().unwrap();
        survives_power_loss(&vfs, mode, expected + 10);
        storage.close().unwrap();
        survives_power_loss(&vfs, mode, expected + 10);
    }
}

#[test]
fn a_flush_succeeds_only_after_lost_data_is_rewritten() {
    for mode in [CommitMode::Async, CommitMode::NoSync] {
        let vfs = SimVfs::new(7);
        let storage = open(&vfs, mode);
        create(&storage, "t");
        append(&storage, "t", 0).unwrap();
        storage.flush().unwrap();
        append(&storage, "t", 100).unwrap();
        fail_sync(&vfs, ".log");
        fail_sync(&vfs, "manifest.");
        // Both the log and the checkpoint that replaces it fail.
        assert_eq!(storage.flush().unwrap_err().code, ErrorCode::Io, "{mode:?}");
        storage.flush().unwrap();
        survives_power_loss(&vfs, mode, 20);
    }
}

#[test]
fn a_checkpoint_does_not_rely_on_a_log_that_failed_to_sync() {
    let mode = CommitMode::NoSync;
    let vfs = SimVfs::new(2);
    let storage = open(&vfs, mode);
    create(&storage, "t");
    append(&storage, "t", 0).unwrap();
    storage.checkpoint().unwrap();
    append(&storage, "t", 100).unwrap();
    fail_sync(&vfs, ".log");
    storage.checkpoint().unwrap();
    assert!(vfs.sync_has_failed());
    survives_power_loss(&vfs, mode, 20);
    // The previous generation lacks the data that the failed sync lost, so it must not serve as a
    // fallback.
    let manifests: Vec<String> =
        vfs.files().into_iter().filter(|path| path.starts_with("db/manifest.")).collect();
    assert_eq!(manifests.len(), 2, "{manifests:?}"); // An edit and its base.
    append(&storage, "t", 200).unwrap();
    storage.checkpoint().unwrap();
    survives_power_loss(&vfs, mode, 30);
}

#[test]
fn a_bulk_segment_that_failed_to_sync_is_rewritten_to_a_new_file() {
    for mode in [CommitMode::Async, CommitMode::NoSync] {
        for by_checkpoint in [false, true] {
            let vfs = SimVfs::new(3);
            let storage = open(&vfs, mode);
            let table = create(&storage, "t");
            bulk(&storage, table, 0);
            storage.checkpoint().unwrap();
            bulk(&storage, table, 100);
            let newest = || {
                let files = vfs.files().into_iter().filter(|path| path.ends_with(".seg"));
                files.max().unwrap()
            };
            let before = newest();
            fail_sync(&vfs, &before);
            if by_checkpoint { storage.checkpoint() } else { storage.flush() }.unwrap();
            // In `async` mode the segment was synced before its record.
            assert_eq!(vfs.sync_has_failed(), newest() != before, "{mode:?}");
            assert_eq!(rows(&storage, "t").unwrap(), 20);
            survives_power_loss(&vfs, mode, 20);
        }
    }
}

#[test]
fn unrecoverable_rows_damage_only_their_table() {
    let vfs = SimVfs::new(4);
    let storage = open(&vfs, CommitMode::NoSync);
    let table = create(&storage, "lost");
    create(&storage, "t");
    append(&storage, "t", 0).unwrap();
    bulk(&storage, table, 0);
    let segment = vfs.files().into_iter().find(|path| path.ends_with(".seg")).unwrap();
    fail_sync(&vfs, &segment);
    // The kernel dropped the page that it could not write.
    vfs.corrupt(&segment, |bytes| bytes[64..80].fill(0)).unwrap();
    storage.flush().unwrap();
    let damages = storage.snapshot().damages();
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(damages[0].table, "lost");
    assert_eq!(rows(&storage, "lost").unwrap_err().code, ErrorCode::Damaged);
    assert_eq!(append(&storage, "lost", 50).unwrap_err().code, ErrorCode::Damaged);
    append(&storage, "t", 100).unwrap();
    storage.flush().unwrap();
    drop(storage);
    let storage = open(&vfs.power_loss(1), CommitMode::NoSync);
    assert_eq!(rows(&storage, "t").unwrap(), 20);
}

#[test]
fn writes_are_refused_while_every_sync_fails_and_resume_afterwards() {
    for mode in [CommitMode::Async, CommitMode::NoSync] {
        let vfs = SimVfs::new(5);
        let storage = open(&vfs, mode);
        create(&storage, "t");
        append(&storage, "t", 0).unwrap();
        (0..100).for_each(|_| fail_sync(&vfs, "db/"));
        assert!(storage.flush().is_err());
        let refused = append(&storage, "t", 100).unwrap_err();
        assert_eq!(refused.code, ErrorCode::ReadOnly);
        assert!(refused.message.contains("a sync failed"), "{refused}");
        assert!(refused.hint.unwrap().contains("resume automatically"));
        assert!(storage.begin_bulk(BulkTarget::Existing(1)).is_err());
        assert_eq!(rows(&storage, "t").unwrap(), 10);
        assert!(storage.flush().is_err());
        vfs.heal();
        storage.checkpoint().unwrap();
        survives_power_loss(&vfs, mode, 10);
        append(&storage, "t", 100).unwrap();
        storage.flush().unwrap();
        survives_power_loss(&vfs, mode, 20);
    }
}

#[test]
fn a_database_that_needs_no_repair_writes_no_manifest() {
    let vfs = SimVfs::new(11);
    let options = StorageOptions { background: true, ..options(CommitMode::Async) };
    let storage = Storage::open(Arc::new(vfs.clone()), options).unwrap();
    create(&storage, "t");
    append(&storage, "t", 0).unwrap();
    let manifests = || {
        let files = vfs.files().into_iter();
        files.filter(|path| path.starts_with("db/manifest.")).collect::<Vec<_>>()
    };
    let before = manifests();
    // Longer than the delay before a repair.
    std::thread::sleep(std::time::Duration::from_millis(1_300));
    assert_eq!(manifests(), before);
}
